"""Ask *kept share*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.sampling_fusion.kept_share import cases
from grader.topics.sampling_fusion.kept_share.mistakes import MISTAKES
from grader.topics.sampling_fusion.shared_concepts import (
    LESSON,
    borders,
    each_filter_alone,
    filters,
    row,
    survivors,
)

QUESTION = NumpyQuestion(
    id="sampling_fusion.kept_share",
    notebook="concepts",
    asks="kept_share(logits, temperature, top_k, top_p, min_p): the probability mass that the survivors held before the filters",
    entry="kept_share",
    parts=(Part("values", 1, "calls"),),
    reference=lambda x, t, k, p, m: cases.share(x, t, survivors(x, t, k, p, m)),
    public=(
        Call((np.array([3.0, 2.0, 1.0, 0.0]), 1.0, 2, 1.0, 0.0)),
        Call((np.array([3.0, 2.0, 1.0, 0.0]), 2.0, 0, 0.8, 0.0), "a temperature"),
    ),
    hidden=lambda rng: (
        [Call((x := row(rng, between(rng, 12, 30)), *filters(rng, len(x)))) for _ in range(5)]
        + each_filter_alone(rng)
        + borders(rng)
        + [Call((np.array([1.0, 2.0, 1.5]), 1.0, 0, 0.0, 0.0), "top-p of 0")]
    ),
    where=f'{LESSON}, "Who may still be drawn"',
    hints=(
        "Sum the softmax at temperature T over the survivors. This is the share that they held before the other tokens were removed.",
        "Rank the weights exp((x - best) / T), find the ranks that survive as in `survivors`, add up their weights, and divide by the sum of all weights.",
        "ranked[keep].sum() / weight.sum(), with keep = rank < k, then before < top_p * ranked[keep].sum(), then ranked >= min_p",
    ),
    mistakes=MISTAKES,
)
