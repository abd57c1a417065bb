"""Ask *plan bytes*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.roofline.plan_bytes import cases
from grader.topics.roofline.plan_bytes.mistakes import MISTAKES

QUESTION = NumpyQuestion(
    id="roofline.plan_bytes",
    notebook="concepts",
    asks="plan_bytes(groups, rows, width, elem_bytes): the bytes that a chain moves if its kernels do groups[0], groups[1], ... operations, and the bytes that this saves against one kernel per operation",
    entry="plan_bytes",
    parts=(Part("values", 2, "calls"),),
    reference=cases.plan_bytes,
    public=(
        Call(([1, 1, 1], 256, 1024, 2), "nothing fused"),
        Call(([3], 256, 1024, 2), "all in one"),
        Call(([2, 1, 3], 100, 70, 4), "three kernels"),
    ),
    hidden=lambda rng: [
        Call(
            (
                [between(rng, 1, 6) for _ in range(between(rng, 2, 5))] + [between(rng, 2, 6)],
                between(rng, 1, 4000),
                between(rng, 1, 4000),
                2 ** between(rng, 1, 3),
            ),
            "another plan",
        )
        for _ in range(6)
    ],
    where='course/00_roofline/d_fusion.ipynb, "Fusion: what stays on the chip"',
    hints=(
        "How many bytes does a kernel move, however many operations are in it?",
        "Each kernel reads one tensor and writes one, which moves 2 * rows * width * elem_bytes. Count the kernels of the plan, and the kernels that the chain has without fusion.",
        "one = 2 * rows * width * elem_bytes; len(groups) * one, (sum(groups) - len(groups)) * one",
    ),
    mistakes=MISTAKES,
)
