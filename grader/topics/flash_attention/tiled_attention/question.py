"""Ask *tiled attention*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.flash_attention.shared import LESSON
from grader.topics.flash_attention.tiled_attention import cases
from grader.topics.flash_attention.tiled_attention.mistakes import MISTAKES

QUESTION = NumpyQuestion(
    id="flash_attention.tiled_attention",
    notebook="concepts",
    asks="tiled_attention(q, k, v, block): one head's attention with `block` keys at a time: the output, and each query's running maximum and sum after every tile, (tiles, queries) each",
    entry="tiled_attention",
    parts=(Part("values", 4, "calls"),),
    reference=cases.tiled_states,
    rtol=1e-6,
    atol=1e-9,
    public=(
        Call((*cases.heads(np.random.default_rng(3), 8, 16, 4), 4)),
        Call((*cases.heads(np.random.default_rng(4), 5, 13, 8), 4), "a ragged last tile"),
    ),
    hidden=lambda rng: (
        [
            Call(
                (
                    *cases.heads(rng, between(rng, 1, 20), between(rng, 20, 60), between(rng, 3, 16)),
                    between(rng, 1, 17),
                ),
                "other sizes",
            )
            for _ in range(5)
        ]
        + [
            Call((*cases.heads(rng, 6, 32, 16, 30.0), 8), "extreme scores"),
            Call((*cases.heads(rng, 4, 9, 4), 100), "a tile longer than the keys"),
            Call((*cases.far_below(rng, 5, 21, 4), 4), "scores far below zero"),
            Call(
                (np.full((3, 4), 2.0**20), np.full((9, 4), -(2.0**20)), rng.standard_normal((9, 4)), 4),
                "scores below -1e9",
            ),
            Call(
                (*cases.heads(rng, 5, 11, 4)[:2], rng.standard_normal((11, between(rng, 5, 9))), 4),
                "values wider than queries",
            ),
        ]
    ),
    where=f'{LESSON}/a_online.ipynb, "Exact, not approximate"',
    hints=(
        "Keep three things per query row: the maximum m, the sum l and the unnormalized output.",
        "For each tile, compute the scores s, m_new and p = exp(s - m_new). Multiply l and the output by exp(m - m_new), then add p.sum(axis=1) to l and p @ v_tile to the output.",
        "Divide by l once, after the last tile. The scale of the scores is 1 / sqrt(q.shape[-1]). Append m and l to two lists at the end of each step, and return both lists as arrays.",
    ),
    mistakes=MISTAKES,
)
