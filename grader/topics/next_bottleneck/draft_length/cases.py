"""Compute the reference of *draft length* and draw its inputs."""

import numpy as np


def draft_length(p, draft_s, pass_s, most):
    """Return the best number of drafts, seconds per token, tokens per round."""
    tokens = np.cumsum(float(p) ** np.arange(most + 1))
    times = (np.arange(most + 1) * draft_s + pass_s) / tokens
    best = int(times.argmin())
    return best, float(times[best]), float(tokens[best])


def server(rng):
    """Draw a draft model and a target whose best number of drafts isn't at an end."""
    return (
        float(rng.uniform(0.4, 0.85)),
        float(rng.uniform(0.3, 1.5)) * 1e-3,
        float(rng.uniform(20, 60)) * 1e-3,
        24,
    )
