"""Ask *tile loads*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.gemm_tiling.shared import LESSON
from grader.topics.gemm_tiling.shared_concepts import sizes, tile
from grader.topics.gemm_tiling.tile_loads.mistakes import MISTAKES
from kernels.gemm_tiling import cost

QUESTION = NumpyQuestion(
    id="gemm_tiling.tile_loads",
    notebook="concepts",
    asks="tile_loads(m, n, k, bm, bn): the elements of A and B that all tiles of C load, where a ragged tile counts only the elements it really holds",
    entry="tile_loads",
    parts=(Part("values", 3, "calls"),),
    reference=cost.tile_loads,
    public=(
        Call((256, 256, 256, 64, 64)),
        Call((100, 70, 50, 32, 64), "ragged tiles"),
        Call((1, 4096, 4096, 64, 64), "a single row"),
    ),
    hidden=lambda rng: (
        [Call((*sizes(rng), *tile(rng)), "ragged tiles") for _ in range(8)]
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
        "Every tile of C needs a band of A and a band of B, both as long as K. Which other tiles need the same bands?",
        "Each band of A is loaded once for every column of tiles, and each band of B once for every row of tiles.",
        "A: m * k * ceil(n / bn); B: k * n * ceil(m / bm); the answer is their sum.",
    ),
    mistakes=MISTAKES,
)
