"""Ask *gemm bytes*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.gemm_tiling.gemm_bytes.mistakes import MISTAKES
from grader.topics.gemm_tiling.shared import LESSON
from grader.topics.gemm_tiling.shared_concepts import sizes, tile
from kernels.gemm_tiling import cost

QUESTION = NumpyQuestion(
    id="gemm_tiling.gemm_bytes",
    notebook="concepts",
    asks="gemm_bytes(m, n, k, bm, bn, elem_bytes): the bytes that a whole tiled GEMM moves, by the tiles' loads and by writing C once",
    entry="gemm_bytes",
    parts=(Part("values", 3, "calls"),),
    reference=cost.gemm_bytes,
    public=(
        Call((256, 256, 256, 64, 64, 2)),
        Call((4096, 4096, 4096, 128, 128, 2)),
        Call((1, 4096, 4096, 16, 128, 2), "a single row"),
    ),
    hidden=lambda rng: [
        Call((*sizes(rng, 1, 5000), *tile(rng), between(rng, 1, 8)), "other sizes") for _ in range(8)
    ],
    where=f'{LESSON}/a_reuse.ipynb, "Count it"',
    hints=(
        "You have the loads already. What is written, and how often?",
        "Add m * n written elements to the tiles' loads, and multiply the sum by elem_bytes. An answer must work on its own, so write out the formula of the loads again.",
        "(m * k * ceil(n / bn) + k * n * ceil(m / bm) + m * n) * elem_bytes",
    ),
    mistakes=MISTAKES,
)
