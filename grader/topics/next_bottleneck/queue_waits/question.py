"""Ask *queue waits*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.next_bottleneck.queue_waits import cases
from grader.topics.next_bottleneck.queue_waits.mistakes import MISTAKES
from grader.topics.next_bottleneck.shared import LESSON

QUESTION = NumpyQuestion(
    id="next_bottleneck.queue_waits",
    notebook="concepts",
    asks="queue_waits(arrivals, services): how long each request waits before its service begins, at a server that serves one at a time in the order of arrival, in which the arrivals are given",
    entry="queue_waits",
    parts=(Part("values", 2, "calls"),),
    reference=cases.queue_waits,
    public=(
        Call((np.array([0.0, 1.0, 2.0, 6.0]), np.array([2.0, 2.0, 1.0, 1.0])), "four requests"),
        Call((np.array([1.0, 2.0]), np.array([0.5, 0.5])), "an idle server"),
    ),
    hidden=lambda rng: (
        [Call(cases.case(rng, between(rng, 15, 60), load), "a busy server") for load in (0.5, 0.8, 0.95, 1.3)]
        + [
            Call(cases.case(rng, 200, 0.9), "many requests"),
            Call((np.zeros(5), rng.uniform(1, 2, 5)), "all at once"),
            Call((np.array([3.0]), np.array([1.0])), "one alone"),
        ]
    ),
    where=f'{LESSON}/g_load.ipynb, "Why 90% busy is slow"',
    hints=(
        "When is the server free again?",
        "Keep one number, the time at which the server is free. A request starts at that time or when it arrives, whichever is later.",
        "start = max(free, arrived); wait = start - arrived; free = start + takes",
    ),
    mistakes=MISTAKES,
)
