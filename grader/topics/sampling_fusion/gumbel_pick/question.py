"""Ask *gumbel pick*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.sampling_fusion.gumbel_pick import cases
from grader.topics.sampling_fusion.gumbel_pick.mistakes import MISTAKES
from grader.topics.sampling_fusion.shared_concepts import LESSON

QUESTION = NumpyQuestion(
    id="sampling_fusion.gumbel_pick",
    notebook="concepts",
    asks="gumbel_pick(logits, temperature, u): the token with the largest logit / T + Gumbel noise, computed from the uniform numbers u",
    entry="gumbel_pick",
    parts=(Part("values", 2, "calls"),),
    reference=cases.gumbel_pick,
    public=(
        Call((np.array([1.0, 2.0, 3.0]), 1.0, np.array([0.9, 0.5, 0.1]))),
        Call((np.array([0.0, 1.0]), 0.5, np.array([0.9, 0.5])), "a temperature"),
        *(Call(call, "many tokens") for call in cases.MANY),
    ),
    hidden=lambda rng: (
        [Call(cases.close(rng, n)) for n in rng.integers(12, 60, 14)]
        + [Call(cases.lifted(*cases.close(rng, n)), "large logits") for n in rng.integers(30, 60, 3)]
        + [Call(cases.lowered(*cases.close(rng, n)), "logits far below 0") for n in rng.integers(30, 60, 2)]
    ),
    where=f'{LESSON}, "Two ways to draw"',
    hints=(
        "Gumbel noise is -log(-log(u)). For which u is it large?",
        "Add one noise number to each scaled logit, and return the index of the largest sum.",
        "int(np.argmax(logits / temperature - np.log(-np.log(u))))",
    ),
    mistakes=MISTAKES,
)
