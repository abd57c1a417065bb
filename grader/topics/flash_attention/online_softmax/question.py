"""Ask *online softmax*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.flash_attention.online_softmax import cases
from grader.topics.flash_attention.online_softmax.mistakes import MISTAKES
from grader.topics.flash_attention.shared import LESSON

QUESTION = NumpyQuestion(
    id="flash_attention.online_softmax",
    notebook="concepts",
    asks="online_softmax(tiles): after each tile of scores, (running maximum, rescale factor, running sum)",
    entry="online_softmax",
    parts=(Part("values", 3, "calls"),),
    reference=cases.online_states,
    rtol=1e-7,
    public=(
        Call((cases.SCENE,), "the four tiles of the scene"),
        Call((cases.tiles(np.random.default_rng(0), 3, 8),)),
    ),
    hidden=lambda rng: (
        [
            Call((cases.tiles(rng, int(rng.integers(1, 6)), int(rng.integers(1, 9))),), "other tiles")
            for _ in range(5)
        ]
        + [
            Call((cases.tiles(rng, 4, 4, 800.0),), "extreme scores"),
            Call((-1e4 + cases.tiles(rng, 3, 4),), "scores far below zero"),
            Call((-(2.0**40) + np.arange(12.0).reshape(3, 4),), "scores below -1e9"),
            Call((cases.tiles(rng, 3, 5) + 900.0 * np.arange(3)[:, None],), "a maximum that comes late"),
        ]
    ),
    where=f'{LESSON}/a_online.ipynb, "Three running numbers"',
    hints=(
        "Before the first tile there is no maximum. Which number is below every score, and what is its exponential?",
        "m_new = max(m, tile.max()); multiply the sum under the old maximum by exp(m - m_new).",
        "l = l * exp(m - m_new) + exp(tile - m_new).sum(); append (m_new, exp(m - m_new), l); then m = m_new",
    ),
    mistakes=MISTAKES,
)
