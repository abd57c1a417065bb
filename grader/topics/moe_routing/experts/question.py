"""Ask *experts*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.moe_routing.experts import cases
from grader.topics.moe_routing.experts.mistakes import MISTAKES
from grader.topics.moe_routing.shared import LESSON
from grader.topics.moe_routing.shared_concepts import short

QUESTION = NumpyQuestion(
    id="moe_routing.experts",
    notebook="concepts",
    asks="experts(rows, expert_offsets, gate_up, down): the output of each row's expert. Rows expert_offsets[e] to expert_offsets[e + 1] - 1 belong to expert e. gate_up[e] holds the rows of gate above those of up, and a row's output is (silu(row @ gate.T) * (row @ up.T)) @ down[e].T",
    entry="experts",
    parts=(Part("values", 2, "calls"),),
    reference=cases.experts,
    public=(
        Call(
            short(cases.layer(np.random.default_rng(5), 3, 2, 1, 2, hidden=3, intermediate=2)), "two experts"
        ),
        Call(
            short(cases.layer(np.random.default_rng(6), 4, 4, 1, 2, 3, 2, only=[1, 3])),
            "experts without tokens",
        ),
        Call(short(cases.layer(np.random.default_rng(7), 0, 2, 1, 4, 3, 2)), "no tokens"),
    ),
    hidden=lambda rng: [
        *(Call(cases.layer(rng, between(rng, 4, 20), n, 2, t)) for n, t in ((3, 4), (6, 1), (8, 3))),
        Call(cases.layer(rng, 9, 6, 2, 4, only=[1, 2, 4]), "experts without tokens"),
        Call(cases.layer(rng, 7, 4, 1, 4, only=[2]), "all tokens on one expert"),
        Call(cases.layer(rng, 24, 4, 2, 4, size=2000.0), "large gates"),
        Call(cases.layer(rng, 0, 5, 2, 8), "no tokens"),
    ],
    where=f'{LESSON}/a_experts.ipynb, "Six steps"',
    hints=(
        "Loop over the experts. Which rows belong to expert e, and what happens if an expert has no rows?",
        "both = rows[a:b] @ gate_up[e].T has gate in the first half of its columns and up in the second half. SiLU(g) is g times its sigmoid, g / (1 + exp(-g)).",
        "g, u = np.split(rows[a:b] @ gate_up[e].T, 2, axis=1); out[a:b] = (g / (1 + np.exp(-g)) * u) @ down[e].T",
    ),
    mistakes=MISTAKES,
)
