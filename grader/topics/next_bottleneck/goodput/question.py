"""Ask *goodput*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.next_bottleneck.goodput import cases
from grader.topics.next_bottleneck.goodput.mistakes import MISTAKES
from grader.topics.next_bottleneck.shared import LESSON

QUESTION = NumpyQuestion(
    id="next_bottleneck.goodput",
    notebook="concepts",
    asks="goodput(first, between, first_goal, between_goal, seconds): the 99th percentile of the times to the first token, which is the smallest time that at least 99% do not exceed, and the requests per second that met both goals, in a run of this many seconds. A time equal to its goal meets it",
    entry="goodput",
    parts=(Part("values", 2, "calls"),),
    reference=cases.goodput,
    public=(
        Call(
            (np.array([0.1, 0.2, 0.6, 0.3]), np.array([0.02, 0.06, 0.01, 0.05]), 0.5, 0.05, 2.0),
            "four requests",
        ),
        Call((np.arange(1, 201) / 100, np.full(200, 0.01), 0.5, 0.05, 10.0), "two hundred"),
    ),
    hidden=lambda rng: (
        [Call(cases.case(rng, between(rng, 20, 90)), "fewer than a hundred") for _ in range(3)]
        + [Call(cases.case(rng, between(rng, 120, 390)), "hundreds") for _ in range(4)]
        + [
            Call(cases.case(rng, 100), "a hundred"),
            Call(cases.case(rng, 300), "three hundred"),
            Call((np.array([0.4]), np.array([0.01]), 0.5, 0.05, 1.0), "one request"),
        ]
    ),
    where=f'{LESSON}/g_load.ipynb, "A server isn\'t a clerk"',
    hints=(
        "Sort the times. Which is the smallest time that at least 99% of the times don't exceed?",
        "Of n sorted times, the 99th percentile is number ceil(0.99 n), counted from 1. A request is good if it met both goals.",
        "np.sort(first)[math.ceil(0.99 * len(first) - 1e-9) - 1], ((first <= first_goal) & (between <= between_goal)).sum() / seconds",
    ),
    mistakes=MISTAKES,
)
