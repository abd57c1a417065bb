"""Compute the reference of *verify* and draw its inputs."""

import numpy as np


def verify(drafts, p, q, u, last):
    """Return what a round of speculative decoding emits."""
    for i, token in enumerate(drafts):
        if not u[i] * q[i, token] < p[i, token]:
            return np.append(drafts[:i], draw(np.maximum(p[i] - q[i], 0), last))
    return np.append(drafts, draw(p[len(drafts)], last))


def draw(weights, u):
    """Return the first token whose running sum exceeds u of the whole."""
    ends = np.cumsum(weights)
    return int(np.flatnonzero(ends > u * ends[-1])[0])


def models(rng, drafts, vocabulary):
    """Draw both models' distributions for each position, and one more of the target's."""
    p = rng.dirichlet(np.full(vocabulary, 0.7), drafts + 1)
    return p, 0.5 * p[:-1] + 0.5 * rng.dirichlet(np.full(vocabulary, 0.7), drafts)


def case(rng, drafts, vocabulary, rejected):
    """Draw a round in which draft `rejected` is the first rejection, or with -1 none is rejected."""
    while True:
        p, q = models(rng, drafts, vocabulary)
        tokens = np.array([rng.choice(vocabulary, p=one) for one in q])
        at = np.arange(drafts)
        ratio = p[at, tokens] / q[at, tokens]
        u = rng.uniform(0.02, 0.95, drafts) * np.minimum(ratio, 1)
        if rejected >= 0:
            if ratio[rejected] > 0.9:
                continue
            u[rejected] = ratio[rejected] + (1 - ratio[rejected]) * rng.uniform(0.05, 0.95)
        return tokens, p, q, u, float(rng.uniform(0.02, 0.98))
