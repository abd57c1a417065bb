"""Ask *layer bytes*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.quantization_layouts.layer_bytes import cases
from grader.topics.quantization_layouts.layer_bytes.mistakes import MISTAKES
from grader.topics.quantization_layouts.shared import LESSON

QUESTION = NumpyQuestion(
    id="quantization_layouts.layer_bytes",
    notebook="concepts",
    asks="layer_bytes(m, n, k, bits, group, zero_bits): bytes that Y = X W.T moves if X (m, k), Y (m, n), the packed W (n, k) and its groups' 16-bit scales and zero points are each moved once",
    entry="layer_bytes",
    parts=(Part("values", 2, "calls"),),
    reference=cases.layer_bytes,
    public=(
        Call((1, 28672, 8192, 4, 128, 0)),
        Call((16, 4096, 4096, 4, 64, 4), "with zero points"),
        Call((8, 100, 200, 3, 128, 8), "a group that is not full"),
    ),
    hidden=lambda rng: (
        [
            Call(
                (
                    *(between(rng, 1, 5000) for _ in range(3)),
                    between(rng, 2, 8),
                    2 ** between(rng, 5, 8),
                    zero_bits,
                ),
                "another layer",
            )
            for zero_bits in (0, 2, 4, 8)
        ]
        + [
            Call(
                (
                    between(rng, 1, 64),
                    between(rng, 100, 900),
                    128 * between(rng, 2, 9) + between(rng, 1, 127),
                    4,
                    128,
                    4,
                ),
                "a group that is not full",
            )
        ]
    ),
    where=f'{LESSON}/a_account.ipynb, "The account"',
    hints=(
        "X, W and W's scales and zero points are read, and Y is written. Which of them has fewer bits than in a 16-bit layer, and which is new?",
        "Add up n k weights of `bits` bits, a scale of 16 bits and a zero point of zero_bits for each of n ceil(k / group) groups, and X and Y with 2 bytes per element.",
        "n * k * bits / 8 + n * math.ceil(k / group) * (16 + zero_bits) / 8 + 2 * (m * k + m * n)",
    ),
    mistakes=MISTAKES,
)
