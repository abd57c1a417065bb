"""List the mistakes of *causal tiles*, a row each."""

import math

from grader.questions import Mistake

MISTAKES = (
    Mistake(
        "no skipping",
        "this visits every tile: which are masked from first to last key?",
        cell="def causal_tiles(n, bm, bn):\n    return -(-n // bm) * -(-n // bn)",
    ),
    Mistake(
        "square tiles",
        "row tile i visits i + 1 tiles only where both blocks are equal",
        cell="def causal_tiles(n, bm, bn):\n    return sum(range(-(-n // bm) + 1))",
    ),
    Mistake(
        "cut off",
        "the last tile of keys counts too when it is part full: round up",
        cell="def causal_tiles(n, bm, bn):\n    return sum(min(i + bm, n) // bn for i in range(0, n, bm))",
    ),
    Mistake(
        "first row",
        "that counts the keys of each tile's first row; its last one, min(i + block_m, length) - 1, sees furthest",
        cell="def causal_tiles(n, bm, bn):\n    return sum(-(-(i + 1) // bn) for i in range(0, n, bm))",
    ),
    Mistake(
        "rows beyond the end",
        "the last tile of rows may be part full: it ends at min(i + block_m, length)",
        cell="def causal_tiles(n, bm, bn):\n    return sum(-(-(i + bm) // bn) for i in range(0, n, bm))",
    ),
    Mistake(
        "blocks exchanged",
        "block_m and block_n are exchanged: rows go in tiles of block_m, keys in tiles of block_n",
        cell="def causal_tiles(n, bm, bn):\n    return sum(-(-min(j + bn, n) // bm) for j in range(0, n, bn))",
    ),
)


SHORTCUTS = {"half of all tiles": lambda n, m, b: math.ceil(n / m) * math.ceil(n / b) // 2}
