"""Ask *rounds*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.next_bottleneck.rounds import cases
from grader.topics.next_bottleneck.rounds.mistakes import MISTAKES
from grader.topics.next_bottleneck.shared import LESSON

QUESTION = NumpyQuestion(
    id="next_bottleneck.rounds",
    notebook="concepts",
    asks="rounds(step_s, shares, cuts): the step's seconds after each round. shares are the parts' shares of the first step, and cuts[r, i] is the share of part i's remaining time that round r removes",
    entry="rounds",
    parts=(Part("values", 2, "calls"),),
    reference=cases.rounds,
    public=(
        Call(
            (
                0.085,
                np.array([0.38, 0.24, 0.14, 0.12, 0.12]),
                np.array([[0.45, 0, 0, 0, 0], [0, 0.3, 1 - 0.04 / 0.14, 0, 1.0]]),
            ),
            "the playbook",
        ),
        Call((10.0, np.array([0.5, 0.5]), np.array([[0.5, 0.0], [0.5, 0.5]])), "one part twice"),
    ),
    hidden=lambda rng: (
        [Call(cases.case(rng, between(rng, 3, 7), between(rng, 2, 5)), "another playbook") for _ in range(6)]
        + [
            Call(cases.case(rng, between(rng, 3, 7), 1), "a single round"),
            Call(
                (float(rng.uniform(1, 2)), np.array([0.6, 0.4]), np.array([[1.0, 0.0], [0.5, 0.5]])),
                "a part that is gone",
            ),
        ]
    ),
    where=f'{LESSON}/i_playbook.ipynb, "Round 1: fewer bits"',
    hints=(
        "Keep the seconds of each part, and change them round by round.",
        "A cut of 0.3 leaves 0.7 of the part's current time, whatever earlier rounds have removed.",
        "now = step_s * shares; for cut in cuts: now = now * (1 - cut); collect now.sum()",
    ),
    mistakes=MISTAKES,
)
