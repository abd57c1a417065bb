"""List the mistakes of *tile loads*, a row each."""

from grader.questions import Mistake
from kernels.gemm_tiling import cost

MISTAKES = (
    Mistake(
        "floor",
        "the last, ragged tile is left out: round the number of tiles up",
        cell="def tile_loads(m, n, k, bm, bn):\n    return m * k * (n // bn) + k * n * (m // bm)",
    ),
    Mistake(
        "rounded by hand",
        "a tile with a single row is still a tile: math.ceil rounds any remainder up, however small",
        cell="def tile_loads(m, n, k, bm, bn):\n    return m * k * int(n / bn + 0.995) + k * n * int(m / bm + 0.995)",
    ),
    Mistake(
        "swapped",
        "A is loaded again for every column of tiles, and B for every row of tiles: here the two are swapped",
        cell="def tile_loads(m, n, k, bm, bn):\n    return m * k * -(-m // bm) + k * n * -(-n // bn)",
    ),
    Mistake(
        "padded tiles",
        "ragged tiles are counted as full ones: nothing is loaded from outside the matrices",
        cell="def tile_loads(m, n, k, bm, bn):\n    return -(-m // bm) * -(-n // bn) * k * (bm + bn)",
    ),
)


SHORTCUTS = {"square tiles": lambda m, n, k, bm, bn: cost.tile_loads(m, n, k, bm, bm)}
