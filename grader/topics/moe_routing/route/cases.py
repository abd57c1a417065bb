"""Draw the inputs of *route* and limit their cost."""

import numpy as np

from kernels.moe_routing import reference
from kernels.moe_routing.rules import Rule

SHIFT = 800.0  # beyond what exp can take


def route(x, router, k, softmax_first):
    rule = Rule(k, "softmax of all" if softmax_first else "softmax of chosen")
    return reference.route(np.asarray(x) @ np.asarray(router).T, rule)


def router(rng, tokens, experts, hidden, shift=0.0):
    """Draw tokens and a router. A column of ones adds `shift` to every logit."""
    x, w = rng.standard_normal((tokens, hidden)), rng.standard_normal((experts, hidden))
    if shift:
        x[:, 0], w[:, 0] = 1.0, shift
    return x, w


def far_apart(rng, tokens, experts, hidden):
    """Logits of one token so far apart that the powers of all but one are 0, and of another so far below the first's."""
    x, w = router(rng, tokens, experts, hidden)
    return x * np.where(np.arange(tokens) % 2, 1.0, 4000.0)[:, None], w


def equals(rng, tokens, experts):
    """Logits that are small whole numbers, so that the best few of a token are often equal, and exactly so."""
    logits = rng.integers(0, 3, (tokens, experts)).astype(float)
    return np.eye(tokens), logits.T.copy()


FIRST = np.random.default_rng(3)
