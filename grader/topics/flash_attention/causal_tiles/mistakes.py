"""List the mistakes of *causal tiles*, a row each."""

import math

from grader.questions import Mistake

MISTAKES = (
    Mistake(
        "no skipping",
        "this visits every tile: in which ones does no row see any key?",
        cell="def causal_tiles(n, bm, bn):\n    return -(-n // bm) * -(-n // bn)",
    ),
    Mistake(
        "square tiles",
        "row tile i visits i + 1 key tiles only if block_m and block_n are equal",
        cell="def causal_tiles(n, bm, bn):\n    return sum(range(-(-n // bm) + 1))",
    ),
    Mistake(
        "cut off",
        "a tile of which a row sees only the first keys counts, too: round up",
        cell="def causal_tiles(n, bm, bn):\n    return sum(min(i + bm, n) // bn for i in range(0, n, bm))",
    ),
    Mistake(
        "first row",
        "this counts the keys of each tile's first row: its last row, min(i + block_m, length) - 1, sees furthest",
        cell="def causal_tiles(n, bm, bn):\n    return sum(-(-(i + 1) // bn) for i in range(0, n, bm))",
    ),
    Mistake(
        "rows beyond the end",
        "the last tile of rows may be only partly filled: it ends at min(i + block_m, length)",
        cell="def causal_tiles(n, bm, bn):\n    return sum(-(-(i + bm) // bn) for i in range(0, n, bm))",
    ),
    Mistake(
        "blocks exchanged",
        "block_m and block_n are swapped: rows come in tiles of block_m, keys in tiles of block_n",
        cell="def causal_tiles(n, bm, bn):\n    return sum(-(-min(j + bn, n) // bm) for j in range(0, n, bn))",
    ),
)


SHORTCUTS = {"half of all tiles": lambda n, m, b: math.ceil(n / m) * math.ceil(n / b) // 2}
