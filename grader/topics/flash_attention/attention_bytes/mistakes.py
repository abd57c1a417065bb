"""List the mistakes of *attention bytes*, a row each."""

from grader.questions import Mistake
from grader.topics.flash_attention.attention_bytes.cases import state_bytes

MISTAKES = (
    Mistake(
        "written only",
        "scores and probabilities are each written and read: four passes over length x length",
        cell="def attention_bytes(n, h, d, e):\n    return 4 * h * n * d * e + 2 * h * n * n * e, 4 * h * n * d * e",
    ),
    Mistake(
        "one head",
        "these are the bytes of one head: multiply by the number of heads",
        cell="def attention_bytes(n, h, d, e):\n    return 4 * n * d * e + 4 * n * n * e, 4 * n * d * e",
    ),
    Mistake(
        "other order",
        "the naive bytes come first, then the tiled ones",
        cell="def attention_bytes(n, h, d, e):\n    return 4 * h * n * d * e, 4 * h * n * d * e + 4 * h * n * n * e",
    ),
)


SHORTCUTS = {"two bytes always": lambda n, h, d, e: state_bytes(n, h, d, 2)}
