"""Draw the inputs of *causal tiles* and limit their cost."""

from grader.questions.draws import between
from kernels.flash_attention import cost


def causal_tiles(length, block_m, block_n):
    shape = cost.Shape(length, length, 64, right=0)
    tiling = cost.Tiling(block_m, block_n)
    return sum(-(-cost.keys_loaded(shape, tiling, row) // block_n) for row in range(0, length, block_m))


def overhanging(rng):
    """The last tile of rows reaches beyond the length by a tile of keys or more."""
    keys, rows = between(rng, 8, 60), between(rng, 100, 200)
    return rows * between(rng, 2, 9) + between(rng, 1, rows - keys), rows, keys
