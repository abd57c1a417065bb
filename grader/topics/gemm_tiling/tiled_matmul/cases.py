"""Draw the inputs of *tiled matmul* and limit their cost."""

import numpy as np

from kernels.gemm_tiling import reference


def matrices(rng, m, n, k):
    return rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)


def step_loads(m, n, k, bm, bn, bk, of_b=1) -> np.ndarray:
    """Return the elements that each tile loads at each step: (rows of tiles, columns of tiles, steps along K)."""
    rows, columns, steps = (np.diff([*range(0, size, b), size]) for size, b in ((m, bm), (n, bn), (k, bk)))
    return (rows[:, None, None] + of_b * columns[None, :, None]) * steps[None, None, :]


def tiled_product(a, b, bm, bn, bk):
    """Return the expected result of tiled_matmul: the matmul, and the loads of each tile at each step along K."""
    return reference.gemm(a, b), step_loads(len(a), b.shape[1], len(b), bm, bn, bk)
