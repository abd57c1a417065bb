"""Measure how far an array is from its reference, for tests and benchmark alike."""

import numpy as np


def relative_error(actual, expected) -> float:
    """Return the norm of the difference over the norm of the reference, infinite for NaN, inf or a wrong shape."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    if actual.shape != expected.shape or not np.isfinite(actual).all():
        return float("inf")
    scale = np.linalg.norm(expected)
    return float(np.linalg.norm(actual - expected) / (scale if scale else 1.0))


def spread(count: int, size: int, seed: int = 0) -> np.ndarray:
    """Draw `count` indices below `size`, one from each equal stretch, so that no tile of size / count is missed."""
    if count >= size:
        return np.arange(size)
    edges = np.linspace(0, size, count + 1).astype(np.int64)
    return np.random.default_rng(seed).integers(edges[:-1], edges[1:])
