"""Ask *inverse pick*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.sampling_fusion.inverse_pick import cases
from grader.topics.sampling_fusion.inverse_pick.mistakes import MISTAKES
from grader.topics.sampling_fusion.shared_concepts import LESSON

QUESTION = NumpyQuestion(
    id="sampling_fusion.inverse_pick",
    notebook="concepts",
    asks="inverse_pick(weights, u): the last token whose predecessors hold at most a share u of the total weight. A token of weight 0 is never drawn",
    entry="inverse_pick",
    parts=(Part("values", 2, "calls"),),
    reference=cases.inverse_pick,
    public=(
        Call((np.array([1.0, 2.0, 1.0]), 0.8)),
        Call((np.array([0.0, 3.0, 0.0, 1.0]), 0.8), "zeros between"),
    ),
    hidden=lambda rng: (
        [Call((cases.with_zeros(rng, between(rng, 5, 40)), float(rng.random()))) for _ in range(8)]
        + [
            Call((np.array([2.0, 1.0, 0.0]), 1 - 1e-9), "u near 1"),
            *(Call(cases.rounded_short(rng), "u next to 1, and a last weight of 0") for _ in range(2)),
            Call((np.array([0.0, 1.0]), 0.0), "u of 0"),
            Call(cases.one_before_many(rng), "one weight before many tiny ones"),
            Call((np.array([1.0, 1.0, 2.0, 4.0]), 0.25), "u on a border"),
            Call((5 * rng.random(20), float(rng.uniform(0.3, 0.7))), "weights that do not add up to 1"),
            Call((rng.random(20) / 40, float(rng.uniform(0.3, 0.7))), "weights that do not add up to 1"),
        ]
    ),
    where=f'{LESSON}, "Two ways to draw"',
    hints=(
        "Lay the weights end to end. u says how far along to look.",
        "Let before be the cumulative sum without the token's own weight. A token of weight 0 has no length, so it must not be drawn.",
        "np.flatnonzero((weights > 0) & (before <= u * weights.sum()))[-1]",
    ),
    mistakes=MISTAKES,
)
