"""Ask *survivors*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between, log_uniform
from grader.topics.sampling_fusion.shared_concepts import (
    LESSON,
    borders,
    each_filter_alone,
    filters,
    row,
    survivors,
)
from grader.topics.sampling_fusion.survivors import cases
from grader.topics.sampling_fusion.survivors.mistakes import MISTAKES

QUESTION = NumpyQuestion(
    id="sampling_fusion.survivors",
    notebook="concepts",
    asks="survivors(logits, temperature, top_k, top_p, min_p): which tokens may still be drawn (True), after top-k, top-p and min-p",
    entry="survivors",
    parts=(Part("values", 4, "calls"),),
    reference=survivors,
    public=(
        Call((np.array([3.0, 2.0, 1.0, 0.0]), 1.0, 2, 1.0, 0.0), "top-k alone"),
        Call((np.array([3.0, 2.0, 1.0, 0.0]), 1.0, 0, 0.9, 0.0), "top-p alone; 0 turns top-k off"),
        Call((np.array([0.0, 1.0, 2.0, 2.0]), 0.5, 3, 0.8, 0.1), "all three"),
    ),
    hidden=lambda rng: (
        [Call((x := row(rng, between(rng, 3, 30)), *filters(rng, len(x)))) for _ in range(6)]
        + each_filter_alone(rng)
        + [
            *(
                Call(cases.tied(rng, k=between(rng, 20, 40)), "many ties at the border of top-k")
                for _ in range(3)
            ),
            Call(cases.tied(rng, p=float(rng.uniform(0.2, 0.4))), "many ties at the border of top-p"),
            Call((np.array([1.0, 2.0, -np.inf, 0.5]), 1.0, 0, 0.95, 0.0), "a token that was banned"),
            Call(
                (np.array([1.0, -np.inf, 0.5, -np.inf]), log_uniform(rng, 0.5, 2), 0, 1.0, 0.0),
                "a banned token with the filters off",
            ),
            Call(
                (
                    np.where(rng.random(40) < 0.6, -np.inf, row(rng, 40, 1.0)) + 0.0,
                    1.0,
                    39,
                    float(rng.uniform(0.3, 0.6)),
                    0.0,
                ),
                "fewer tokens than top-k asks for",
            ),
            Call((np.array([9.0, 0.0, 0.0]), 1.0, 0, 0.01, 0.0), "one token always stays"),
            Call((np.array([1.0, 2.0, 1.5]), 1.0, 0, 0.0, 0.0), "top-p of 0"),
            *borders(rng),
            Call((np.array([0.0, -45.0]), 1.0, 0, 1.0, 0.0), "top-p off, and a token too light for the sum"),
            Call((np.array([5.0, 1.0, 0.0]), 1.0, 99, 1.0, 0.0), "more asked for than there are"),
            Call((np.array([3.0, 2.0, 1.0, 0.0]), 1.0, 2, 0.7, 0.0), "top-p of what top-k kept"),
        ]
    ),
    where=f'{LESSON}, "Who may still be drawn"',
    hints=(
        "First rank the tokens by logit, and put the lower id first where logits are equal. A logit of -inf never survives.",
        "Weights are exp((x - best) / T). Top-p looks at the mass ranked before a token, among the tokens that top-k kept. The token stays if that mass is below a share p of their total mass.",
        "keep = rank < k; keep &= before < top_p * weight[keep].sum(); keep &= weight >= min_p  (the best has weight 1)",
    ),
    mistakes=MISTAKES,
)
