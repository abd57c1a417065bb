"""Ask *reuse*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.gemm_tiling.reuse.mistakes import MISTAKES
from grader.topics.gemm_tiling.shared import LESSON
from kernels.gemm_tiling import cost

QUESTION = NumpyQuestion(
    id="gemm_tiling.reuse",
    notebook="concepts",
    asks="reuse(bm, bn): the FLOP that a bm x bn tile does for each element that it loads",
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
        "It loads bm + bn elements and does bm * bn multiply-adds, each of which is two FLOP.",
        "Divide 2 * bm * bn by bm + bn.",
    ),
    mistakes=MISTAKES,
)
