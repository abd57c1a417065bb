"""Ask *combine*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.moe_routing.combine import cases
from grader.topics.moe_routing.combine.mistakes import MISTAKES
from grader.topics.moe_routing.shared import LESSON
from grader.topics.moe_routing.shared_concepts import short

QUESTION = NumpyQuestion(
    id="moe_routing.combine",
    notebook="concepts",
    asks="combine(rows, inv_permuted_idx, topk_weights): (tokens, hidden), the sum of each token's rows, rows[inv_permuted_idx[token, slot]], each multiplied by topk_weights[token, slot]. Rows that inv_permuted_idx doesn't name may hold anything",
    entry="combine",
    parts=(Part("values", 2, "calls"),),
    reference=cases.combine,
    public=(
        Call(short(cases.back(np.random.default_rng(8), 3, 3, 2, 2, hidden=2)), "rows with padding"),
        Call(
            cases.back(np.random.default_rng(9), 2, 3, 2, 4, padding=np.nan, hidden=2),
            "padding that is no number",
        ),
        Call(short(cases.back(np.random.default_rng(9), 0, 3, 2, 4)), "no tokens"),
    ),
    hidden=lambda rng: [
        *(
            Call(cases.back(rng, between(rng, 4, 20), n, k, t))
            for n, k, t in ((4, 2, 3), (9, 4, 1), (6, 1, 4), (5, 5, 8))
        ),
        Call(cases.back(rng, 12, 6, 2, 8, padding=np.nan), "padding that is no number"),
        Call(cases.unbounded(rng), "rows with infinities"),
        Call(cases.back(rng, 0, 5, 2, 8), "no tokens"),
    ],
    where=f'{LESSON}/c_kernel_and_combine.ipynb, "Un-permute and combine, without atomics"',
    hints=(
        "inv_permuted_idx holds the row of each pair. What shape does rows[inv_permuted_idx] have?",
        "rows[inv_permuted_idx] is (tokens, k, hidden) and holds a token's k rows one after another. Multiply each row by its weight, and sum over k.",
        "(rows[inv_permuted_idx] * topk_weights[:, :, None]).sum(1)",
    ),
    mistakes=MISTAKES,
)
