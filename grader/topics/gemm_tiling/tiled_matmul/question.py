"""Ask *tiled matmul*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.gemm_tiling.shared import LESSON
from grader.topics.gemm_tiling.shared_concepts import sizes, tile
from grader.topics.gemm_tiling.tiled_matmul import cases
from grader.topics.gemm_tiling.tiled_matmul.mistakes import MISTAKES

QUESTION = NumpyQuestion(
    id="gemm_tiling.tiled_matmul",
    notebook="concepts",
    asks="tiled_matmul(a, b, bm, bn, bk): the product, and in loads[i, j, s] the number of elements that tile (i, j) of C loads at its step s along K",
    entry="tiled_matmul",
    parts=(Part("values", 4, "calls"),),
    reference=cases.tiled_product,
    rtol=1e-4,
    atol=1e-3,
    public=(
        Call((*cases.matrices(np.random.default_rng(1), 64, 64, 64), 32, 32, 16)),
        Call((*cases.matrices(np.random.default_rng(2), 70, 50, 33), 32, 16, 16), "ragged tiles"),
    ),
    hidden=lambda rng: (
        [
            Call((*cases.matrices(rng, *sizes(rng, 20, 90)), *tile(rng, 3, 40)), "ragged tiles")
            for _ in range(4)
        ]
        + [
            Call((*cases.matrices(rng, 1, 40, 64), 16, 16, 16), "a single row"),
            Call((*cases.matrices(rng, 9, 8, 7), 64, 64, 64), "a tile larger than C"),
        ]
    ),
    where=f'{LESSON}/a_reuse.ipynb, "The tile walk"',
    hints=(
        "Use three nested loops: over the rows of tiles, over the columns of tiles, and over the steps along K, which add to one accumulator.",
        "numpy shortens a slice that reaches past the end, so a ragged tile needs no special case. The .size of a slice counts its elements.",
        "acc += a[i:i+bm, s:s+bk] @ b[s:s+bk, j:j+bn]; loads[i // bm, j // bn, s // bk] = both slices' .size; then c[i:i+bm, j:j+bn] = acc",
    ),
    mistakes=MISTAKES,
)
