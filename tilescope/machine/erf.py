"""Compute the error function of many numbers at once, to fp64: by Taylor's series around the nearest of some nodes."""

import math

import numpy as np

EACH = 64  # nodes to 1
LAST = 6.0  # beyond which erf is 1 in fp64
TERMS = 8


def _coefficients() -> np.ndarray:
    """Return erf and its derivatives over their factorials at each node, by Hermite's recurrence."""
    x = np.arange(int(LAST * EACH) + 1) / EACH
    found, slope = [np.vectorize(math.erf)(x)], 2 / math.sqrt(math.pi) * np.exp(-x * x)
    before, hermite = np.zeros_like(x), np.ones_like(x)
    for n in range(1, TERMS):
        found.append((-1) ** (n - 1) * hermite * slope / math.factorial(n))
        before, hermite = hermite, 2 * x * hermite - 2 * (n - 1) * before
    return np.array(found)


COEFFICIENTS = _coefficients()


def erf(x: np.ndarray) -> np.ndarray:
    x = np.asarray(x, np.float64)
    size = np.minimum(np.abs(x), LAST)
    node = np.nan_to_num(np.rint(size * EACH)).astype(np.intp)
    step, found = size - node / EACH, COEFFICIENTS[-1][node]
    for each in COEFFICIENTS[-2::-1]:
        found = found * step + each[node]
    return np.copysign(found, x)
