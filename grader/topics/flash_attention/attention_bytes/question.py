"""Ask *attention bytes*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.flash_attention.attention_bytes import cases
from grader.topics.flash_attention.attention_bytes.mistakes import MISTAKES
from grader.topics.flash_attention.shared import LESSON

QUESTION = NumpyQuestion(
    id="flash_attention.attention_bytes",
    notebook="concepts",
    asks="attention_bytes(length, heads, head_dim, elem_bytes): (naive, tiled) bytes through HBM for one layer",
    entry="attention_bytes",
    parts=(Part("values", 3, "calls"),),
    reference=cases.state_bytes,
    public=(
        Call((8192, 1, 128, 2), "one head of the lesson"),
        Call((8192, 64, 128, 2), "the layer of the lesson"),
    ),
    hidden=lambda rng: [
        Call(
            (between(rng, 2, 9999), between(rng, 1, 64), between(rng, 8, 256), between(rng, 1, 8)),
            "other sizes",
        )
        for _ in range(6)
    ],
    where=f'{LESSON}/b_kernel.ipynb, "Sixty-five times"',
    hints=(
        "Naive and tiled attention both read Q, K and V and write the output. Which matrices does only naive attention write and read?",
        "The score matrix has length x length elements per head. It is written once and read once, and so are the probabilities. That makes four passes.",
        "tiled = 4 * heads * length * head_dim * elem_bytes; naive = tiled + 4 * heads * length**2 * elem_bytes",
    ),
    mistakes=MISTAKES,
)
