"""Ask *causal tiles*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.flash_attention.causal_tiles import cases
from grader.topics.flash_attention.causal_tiles.mistakes import MISTAKES
from grader.topics.flash_attention.shared import LESSON

QUESTION = NumpyQuestion(
    id="flash_attention.causal_tiles",
    notebook="concepts",
    asks="causal_tiles(length, block_m, block_n): the key tiles that all row tiles visit in total, if tiles without a visible key are skipped",
    entry="causal_tiles",
    parts=(Part("values", 2, "calls"),),
    reference=cases.causal_tiles,
    public=(Call((512, 64, 64)), Call((1024, 128, 64)), Call((100, 32, 64), "a ragged length")),
    hidden=lambda rng: (
        [
            Call((between(rng, 1, 3000), between(rng, 8, 200), between(rng, 8, 200)), "other sizes")
            for _ in range(8)
        ]
        + [
            Call((1000, 128, between(rng, 20, 60)), "row tiles longer than key tiles"),
            Call((1000, 48, between(rng, 100, 200)), "key tiles longer than row tiles"),
            Call(cases.overhanging(rng), "a last tile of rows that is nearly empty"),
        ]
    ),
    where=f'{LESSON}/b_kernel.ipynb, "Half of it is masked"',
    hints=(
        "What is the last key that any row of a tile may see?",
        "A tile of rows from i to i + block_m sees the keys up to its last row's own key, and no further than the length.",
        "sum of ceil(min(i + block_m, length) / block_n) over i in range(0, length, block_m)",
    ),
    mistakes=MISTAKES,
)
