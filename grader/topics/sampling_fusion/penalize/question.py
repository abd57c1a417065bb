"""Ask *penalize*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between, log_uniform
from grader.topics.sampling_fusion.penalize import cases
from grader.topics.sampling_fusion.penalize.mistakes import MISTAKES
from grader.topics.sampling_fusion.shared_concepts import LESSON

QUESTION = NumpyQuestion(
    id="sampling_fusion.penalize",
    notebook="concepts",
    asks="penalize(logits, output, repetition, frequency, presence): the logits after the three penalties on the tokens of `output`",
    entry="penalize",
    parts=(Part("values", 3, "calls"),),
    reference=cases.penalize,
    rtol=1e-6,
    atol=1e-6,
    public=(
        Call((np.array([2.0, -1.0, 0.5, 3.0]), [0, 1, 1], 2.0, 0.5, 0.25)),
        Call((np.array([1.0, 1.0, 1.0]), [], 1.5, 1.0, 1.0), "an empty history"),
    ),
    hidden=lambda rng: (
        [Call(cases.penalised(rng, between(rng, 8, 30), 20)) for _ in range(5)]
        + [
            Call(cases.penalised(rng, 50, 200), "a long history"),
            Call(cases.often(rng), "a token that came thousands of times"),
            Call(
                (np.array([-3.0, -2.0, 0.0]), [0, 0, 2], log_uniform(rng, 1.1, 2), 0.0, 0.0),
                "negative logits",
            ),
            Call(
                (np.array([1.0, -np.inf, -2.0]), [0, 1, 1], log_uniform(rng, 1.1, 2), 0.3, 0.2),
                "a token that was banned",
            ),
        ]
    ),
    where=f'{LESSON}, "The rules, in order"',
    hints=(
        "Which tokens were produced, and how often was each? np.bincount answers both.",
        "Apply the repetition penalty first. It divides a positive logit and multiplies any other, so that both get smaller.",
        "x = np.where(seen, np.where(x > 0, x / repetition, x * repetition), x) - frequency * counts - presence * seen",
    ),
    mistakes=MISTAKES,
)
