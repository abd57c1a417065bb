"""Compute a GEMM in float64, the only reference of the topic."""

import numpy as np

SCALE_BLOCK = 128


def gemm(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return A @ B. Operands may have any dtype, and their values are taken as they are."""
    return a.astype(np.float64) @ b.astype(np.float64)


def block_scaled_gemm(a: np.ndarray, b: np.ndarray, sa: np.ndarray, sb: np.ndarray) -> np.ndarray:
    """Return (A x sa) @ (B x sb), with one scale for each 1 x 128 piece of A and each 128 x 128 block of B."""
    k, n = b.shape
    rows = np.repeat(sa.astype(np.float64), SCALE_BLOCK, axis=1)[:, :k]
    blocks = np.repeat(np.repeat(sb.astype(np.float64), SCALE_BLOCK, axis=0)[:k], SCALE_BLOCK, axis=1)[:, :n]
    return gemm(a.astype(np.float64) * rows, b.astype(np.float64) * blocks)
