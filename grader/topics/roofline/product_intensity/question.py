"""Ask *product intensity*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.roofline.product_intensity.mistakes import MISTAKES
from grader.topics.roofline.shared_concepts import LESSON
from kernels.roofline import cost

QUESTION = NumpyQuestion(
    id="roofline.product_intensity",
    notebook="concepts",
    asks="product_intensity(m, n, k, elem_bytes): FLOP per byte of C = A B when each matrix crosses the memory once",
    entry="product_intensity",
    parts=(Part("values", 2, "calls"),),
    reference=lambda m, n, k, elem_bytes: cost.gemm(m, n, k, elem_bytes).intensity,
    public=(
        Call((512, 512, 512, 2)),
        Call((1, 8192, 8192, 2), "a single row"),
        Call((64, 32, 16, 4), "fp32"),
    ),
    hidden=lambda rng: [
        Call((*(between(rng, 2, 5000) for _ in range(3)), between(rng, 1, 8)), "other sizes")
        for _ in range(6)
    ],
    where=f'{LESSON}, "The roofline"',
    hints=(
        "Divide the FLOP by the bytes. How many multiply-adds does one element of C take, and which matrices are read or written?",
        "A multiply-add is two FLOP, so the product takes 2 m n k. A has m k elements, B has k n and C has m n, each of elem_bytes.",
        "2 * m * n * k / (elem_bytes * (m * k + k * n + m * n))",
    ),
    mistakes=MISTAKES,
)
