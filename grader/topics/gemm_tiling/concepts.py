"""GEMM tiling in numpy: reuse counted, traffic modelled, the product tile by tile."""

import math

import numpy as np

from grader.questions import Call, Mistake, NumpyQuestion, Part
from grader.questions.draws import between
from kernels.gemm_tiling import cost, reference

LESSON = "course/01_gemm_tiling"


def _sizes(rng, low=1, high=300):
    return tuple(between(rng, low, high) for _ in range(3))


def _tile(rng, sides=2, high=200):
    return tuple(between(rng, 2, high) for _ in range(sides))


def matrices(rng, m, n, k):
    return rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)


def step_loads(m, n, k, bm, bn, bk, of_b=1) -> np.ndarray:
    """Elements that each tile loads at each step: (rows of tiles, columns of tiles, steps along K)."""
    rows, columns, steps = (np.diff([*range(0, size, b), size]) for size, b in ((m, bm), (n, bn), (k, bk)))
    return (rows[:, None, None] + of_b * columns[None, :, None]) * steps[None, None, :]


def tiled_product(a, b, bm, bn, bk):
    """What tiled_matmul must return: the product, and what each tile loads at each step along K."""
    return reference.gemm(a, b), step_loads(len(a), b.shape[1], len(b), bm, bn, bk)


def _never_cleared(a, b, bm, bn, bk):
    """One accumulator for all tiles of C, which each of them adds to; and the right loads."""
    c, acc = np.zeros((len(a), b.shape[1])), np.zeros((bm, bn))
    for i in range(0, len(a), bm):
        for j in range(0, b.shape[1], bn):
            part = reference.gemm(a[i : i + bm], b[:, j : j + bn])
            acc[: len(part), : part.shape[1]] += part
            c[i : i + bm, j : j + bn] = acc[: len(part), : part.shape[1]]
    return c, step_loads(len(a), b.shape[1], len(b), bm, bn, bk)


def _counted(count):
    """The right product with another count."""
    return lambda a, b, bm, bn, bk: (reference.gemm(a, b), count(len(a), b.shape[1], len(b), bm, bn, bk))


REUSE = NumpyQuestion(
    id="gemm_tiling.reuse",
    notebook="concepts",
    asks="reuse(bm, bn): how many FLOPs a bm x bn tile does for each element it loads",
    entry="reuse",
    parts=(Part("values", 2, "calls"),),
    reference=cost.reuse,
    public=(Call((64, 64)), Call((128, 64)), Call((1, 128), "a single row")),
    hidden=lambda rng: (
        [Call(tuple(int(v) for v in rng.integers(1, 512, 2))) for _ in range(6)]
        + [Call((1, between(rng, 2, 9999)), "a single row")]
    ),
    where=f'{LESSON}/a_reuse.ipynb, "Reuse is a harmonic mean"',
    hints=(
        "One step along K multiplies a bm x 1 column by a 1 x bn row. Count what it loads and what it computes.",
        "It loads bm + bn elements and does bm * bn multiply-adds, each of which is two FLOPs.",
        "Divide: 2 * bm * bn over (bm + bn).",
    ),
    mistakes=(
        Mistake(
            "one FLOP",
            "half of what is wanted: a multiply-add counts as two FLOPs, and a step loads its bm + bn elements once",
            wrong=lambda bm, bn: bm * bn / (bm + bn),
        ),
        Mistake(
            "upside down",
            "this is what a tile loads for each FLOP: the FLOPs stand above the line, 2 * bm * bn, and the loads below",
            wrong=lambda bm, bn: (bm + bn) / (2 * bm * bn),
        ),
        Mistake(
            "arithmetic mean",
            "this is the arithmetic mean of the sides; the loads of both sides add up below the line",
            wrong=lambda bm, bn: (bm + bn) / 2,
        ),
    ),
)

TILE_LOADS = NumpyQuestion(
    id="gemm_tiling.tile_loads",
    notebook="concepts",
    asks="tile_loads(m, n, k, bm, bn): elements of A and B that all tiles of C load, ragged tiles counted by what they really hold",
    entry="tile_loads",
    parts=(Part("values", 3, "calls"),),
    reference=cost.tile_loads,
    public=(
        Call((256, 256, 256, 64, 64)),
        Call((100, 70, 50, 32, 64), "ragged tiles"),
        Call((1, 4096, 4096, 64, 64), "a single row"),
    ),
    hidden=lambda rng: (
        [Call((*_sizes(rng), *_tile(rng)), "ragged tiles") for _ in range(8)]
        + [
            Call(
                (1024 * between(rng, 1, 4) + 1, 1024 * between(rng, 1, 4) + 1, 64, 1024, 1024),
                "one more than whole tiles",
            )
            for _ in range(2)
        ]
    ),
    where=f'{LESSON}/a_reuse.ipynb, "Count it"',
    hints=(
        "Every tile of C needs a band of A as wide as K and a band of B as long as K. Who needs the same band?",
        "Each row band of A is loaded once for every column of tiles; each column band of B once for every row of tiles.",
        "A: m * k * ceil(n / bn); B: k * n * ceil(m / bm); the answer is their sum.",
    ),
    mistakes=(
        Mistake(
            "floor",
            "the last, ragged tile is left out: round the number of tiles up",
            wrong=lambda m, n, k, bm, bn: m * k * (n // bn) + k * n * (m // bm),
        ),
        Mistake(
            "rounded by hand",
            "a tile that holds a single row is a tile: math.ceil rounds any rest up, however small",
            wrong=lambda m, n, k, bm, bn: m * k * int(n / bn + 0.995) + k * n * int(m / bm + 0.995),
        ),
        Mistake(
            "swapped",
            "A is re-read for every column of tiles and B for every row of tiles: the two are swapped",
            wrong=lambda m, n, k, bm, bn: m * k * math.ceil(m / bm) + k * n * math.ceil(n / bn),
        ),
        Mistake(
            "padded tiles",
            "ragged tiles are counted as full ones: masked lanes load nothing",
            wrong=lambda m, n, k, bm, bn: math.ceil(m / bm) * math.ceil(n / bn) * k * (bm + bn),
        ),
    ),
)

GEMM_BYTES = NumpyQuestion(
    id="gemm_tiling.gemm_bytes",
    notebook="concepts",
    asks="gemm_bytes(m, n, k, bm, bn, elem_bytes): bytes a whole tiled GEMM moves: the tiles' loads and C written once",
    entry="gemm_bytes",
    parts=(Part("values", 3, "calls"),),
    reference=cost.gemm_bytes,
    public=(
        Call((256, 256, 256, 64, 64, 2)),
        Call((4096, 4096, 4096, 128, 128, 2)),
        Call((1, 4096, 4096, 16, 128, 2), "a single row"),
    ),
    hidden=lambda rng: [
        Call((*_sizes(rng, 1, 5000), *_tile(rng), between(rng, 1, 8)), "other sizes") for _ in range(8)
    ],
    where=f'{LESSON}/a_reuse.ipynb, "Count it"',
    hints=(
        "You have the loads already; what is written, and how often?",
        "The tiles' loads and m * n elements written, each of elem_bytes bytes. An answer stands alone: write the loads out again.",
        "(m * k * ceil(n / bn) + k * n * ceil(m / bm) + m * n) * elem_bytes",
    ),
    mistakes=(
        Mistake(
            "no store",
            "C is written too: m * n elements are missing",
            wrong=lambda m, n, k, bm, bn, e: cost.tile_loads(m, n, k, bm, bn) * e,
        ),
        Mistake(
            "bytes of C alone",
            "the loads are counted in elements and C in bytes: elem_bytes multiplies all of them, so their sum stands in brackets",
            wrong=lambda m, n, k, bm, bn, e: cost.tile_loads(m, n, k, bm, bn) + m * n * e,
        ),
        Mistake(
            "bytes of the loads alone",
            "the loads are counted in bytes and C in elements: elem_bytes multiplies all of them, so their sum stands in brackets",
            wrong=lambda m, n, k, bm, bn, e: cost.tile_loads(m, n, k, bm, bn) * e + m * n,
        ),
        Mistake(
            "compulsory",
            "these are the bytes of each matrix once; the tiles read A and B again and again",
            wrong=lambda m, n, k, bm, bn, e: (m * k + k * n + m * n) * e,
        ),
    ),
)

TILED_MATMUL = NumpyQuestion(
    id="gemm_tiling.tiled_matmul",
    notebook="concepts",
    asks="tiled_matmul(a, b, bm, bn, bk): the product, and loads[i, j, s]: elements that tile (i, j) of C loads at its step s along K",
    entry="tiled_matmul",
    parts=(Part("values", 4, "calls"),),
    reference=tiled_product,
    rtol=1e-4,
    atol=1e-3,
    public=(
        Call((*matrices(np.random.default_rng(1), 64, 64, 64), 32, 32, 16)),
        Call((*matrices(np.random.default_rng(2), 70, 50, 33), 32, 16, 16), "ragged tiles"),
    ),
    hidden=lambda rng: (
        [Call((*matrices(rng, *_sizes(rng, 20, 90)), *_tile(rng, 3, 40)), "ragged tiles") for _ in range(4)]
        + [
            Call((*matrices(rng, 1, 40, 64), 16, 16, 16), "a single row"),
            Call((*matrices(rng, 9, 8, 7), 64, 64, 64), "a tile larger than C"),
        ]
    ),
    where=f'{LESSON}/a_reuse.ipynb, "The tile walk"',
    hints=(
        "Three loops: tiles of rows, tiles of columns, and inside them steps along K that add to one accumulator.",
        "numpy slices past the end are simply shorter, so a ragged tile needs no special case; count what a slice holds with .size.",
        "acc += a[i:i+bm, s:s+bk] @ b[s:s+bk, j:j+bn]; loads[i // bm, j // bn, s // bk] = both slices' .size; then c[i:i+bm, j:j+bn] = acc",
    ),
    mistakes=(
        Mistake(
            "one number",
            "loads has a number for each tile and each step along K; its sum is tile_loads",
            wrong=_counted(lambda m, n, k, bm, bn, bk: cost.tile_loads(m, n, k, bm, bn)),
        ),
        Mistake(
            "full tiles",
            "ragged tiles are counted as full ones: a slice past the end is shorter",
            wrong=_counted(
                lambda m, n, k, bm, bn, bk: np.full_like(step_loads(m, n, k, bm, bn, bk), (bm + bn) * bk)
            ),
        ),
        Mistake(
            "never cleared",
            "the sum of the tile before is still in the accumulator: it begins at 0 for each tile of C, inside both loops over tiles",
            wrong=_never_cleared,
        ),
        Mistake(
            "A alone",
            "a step loads a piece of A and a piece of B",
            wrong=_counted(lambda m, n, k, bm, bn, bk: step_loads(m, n, k, bm, bn, bk, of_b=0)),
        ),
    ),
)

QUESTIONS = (REUSE, TILE_LOADS, GEMM_BYTES, TILED_MATMUL)
# Answers that hold for some calls alone.
SHORTCUTS = {
    REUSE.id: {"square tiles": lambda bm, bn: float(bm)},
    TILE_LOADS.id: {"square tiles": lambda m, n, k, bm, bn: cost.tile_loads(m, n, k, bm, bm)},
    GEMM_BYTES.id: {
        "two bytes always": lambda m, n, k, bm, bn, e: cost.gemm_bytes(m, n, k, bm, bn, 2),
        "floor": lambda m, n, k, bm, bn, e: (m * k * (n // bn) + k * n * (m // bm) + m * n) * e,
    },
    TILED_MATMUL.id: {
        "whole tiles alone": lambda a, b, bm, bn, bk: (
            reference.gemm(a[:, : len(b) // bk * bk], b[: len(b) // bk * bk]),
            step_loads(len(a), b.shape[1], len(b), bm, bn, bk),
        ),
    },
}
