"""Share draws among numpy questions of moe routing."""

import numpy as np


def drawn_ids(rng, tokens, experts, k, only=None):
    """Draw different experts for each token, from `only` if given."""
    open_experts = np.arange(experts) if only is None else np.asarray(only)
    ids = [rng.permutation(open_experts)[:k] for _ in range(tokens)]
    return np.array(ids, int).reshape(tokens, k)


def short(args: tuple) -> tuple:
    """Numbers that can be read, for calls that are shown."""
    return tuple(np.round(a, 1) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in args)
