"""tiled matmul: the inputs of its cases, and what they may cost."""

import numpy as np

from kernels.gemm_tiling import reference


def matrices(rng, m, n, k):
    return rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)


def step_loads(m, n, k, bm, bn, bk, of_b=1) -> np.ndarray:
    """Elements that each tile loads at each step: (rows of tiles, columns of tiles, steps along K)."""
    rows, columns, steps = (np.diff([*range(0, size, b), size]) for size, b in ((m, bm), (n, bn), (k, bk)))
    return (rows[:, None, None] + of_b * columns[None, :, None]) * steps[None, None, :]


def tiled_product(a, b, bm, bn, bk):
    """What tiled_matmul must return: the product, and what each tile loads at each step along K."""
    return reference.gemm(a, b), step_loads(len(a), b.shape[1], len(b), bm, bn, bk)
