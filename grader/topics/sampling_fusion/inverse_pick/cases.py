"""Draw the inputs of *inverse pick* and limit their cost."""

import numpy as np

from grader.questions.draws import between


def inverse_pick(weights, u):
    before = np.cumsum(weights) - weights
    return int(np.flatnonzero((weights > 0) & (before <= u * np.sum(weights)))[-1])


def with_zeros(rng, n):
    return np.where(rng.random(n) < 0.3, 0.0, rng.random(n)) + np.eye(n)[rng.integers(n)]


def rounded_short(rng):
    """Weights whose running sum ends below u of their sum, by rounding alone, for the largest u that there is."""
    u = float(np.nextafter(1.0, 0.0))
    while True:
        w = np.append(rng.random(between(rng, 20, 40)), 0.0)
        if np.cumsum(w)[-1] <= u * np.sum(w):
            return w, u


def one_before_many(rng):
    """Put a weight before more tiny ones than single precision can add to it, with u among the tiny ones."""
    many = between(rng, 40, 90)
    w = np.append(1.0, np.full(many, 1e-9))
    return w, float((1 + 1e-9 * (between(rng, many // 3, many - 2) + 0.5)) / w.sum())
