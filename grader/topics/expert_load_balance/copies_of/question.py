"""Ask *copies of*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.expert_load_balance.copies_of import cases
from grader.topics.expert_load_balance.copies_of.mistakes import MISTAKES
from grader.topics.expert_load_balance.shared import LESSON
from grader.topics.expert_load_balance.shared_concepts import loads

QUESTION = NumpyQuestion(
    id="expert_load_balance.copies_of",
    notebook="concepts",
    asks="copies_of(loads, devices, spare): (copies of each expert, tokens of the busiest copy). Each expert has one copy at first. Then `spare` more copies are given out one by one, each to the expert with the most tokens per copy (among equals the lower number), but no expert gets more than one copy per device",
    entry="copies_of",
    parts=(Part("values", 2, "calls"),),
    reference=cases.copies_of,
    public=(
        Call((np.array([12.0, 5.0, 4.0, 3.0]), 4, 2), "two spare copies"),
        Call((np.array([40.0, 1.0, 1.0]), 2, 2), "a copy on every device already"),
    ),
    hidden=lambda rng: (
        [Call((loads(rng, between(rng, 6, 20)), 8, between(rng, 4, 12)), "other loads") for _ in range(4)]
        + [Call((loads(rng, 6, 2.5), 3, 5), "a copy on every device already") for _ in range(2)]
        + [Call((loads(rng, 6), 4, 0), "no spare copy")]
        + [
            Call(
                (np.array([0.0, 9.0, 0.0, 4.0, 0.0]) * between(rng, 2, 99), 3, spare),
                "copies for experts without tokens",
            )
            for spare in (6, 8)
        ]
        + [
            Call((np.array([5.0, 11.0, 3.0, 2.0]), 8, 2), "shares that differ by less than one"),
            Call((np.array([13.0, 9.0, 2.0, 1.0]), 8, 4), "shares that differ by less than one"),
        ]
    ),
    where=f'{LESSON}/c_placement.ipynb, "Where experts live, and copies of them"',
    hints=(
        "With one spare copy, each copy of an expert gets half of the expert's load, and with two spare copies each gets a third. After each spare copy, which expert needs the next one most?",
        "Begin with an array copies of ones. Repeat spare times: of the experts with fewer copies than devices, the one with the largest loads / copies gets one more.",
        "share = np.where(copies < devices, loads / copies, -1); copies[share.argmax()] += 1",
    ),
    mistakes=MISTAKES,
)
