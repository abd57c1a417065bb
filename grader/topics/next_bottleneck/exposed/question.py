"""Ask *exposed*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.next_bottleneck.exposed import cases
from grader.topics.next_bottleneck.exposed.mistakes import MISTAKES
from grader.topics.next_bottleneck.shared import LESSON

QUESTION = NumpyQuestion(
    id="next_bottleneck.exposed",
    notebook="concepts",
    asks="exposed(ready, seconds, end_s): the time at which the last bucket has been sent, and the seconds of sending after the backward pass, which ends at end_s. Bucket i can leave from ready[i] on and takes seconds[i], and the link sends the buckets one after another in this order",
    entry="exposed",
    parts=(Part("values", 2, "calls"),),
    reference=cases.exposed,
    public=(
        Call((np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.5, 0.5, 0.5]), 4.0), "a fast link"),
        Call((np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0]), 3.0), "a slow link"),
    ),
    hidden=lambda rng: (
        [Call(cases.case(rng, between(rng, 4, 20), rng.uniform(0.2, 0.8)), "a fast link") for _ in range(4)]
        + [Call(cases.case(rng, between(rng, 4, 20), rng.uniform(1.2, 3)), "a slow link") for _ in range(4)]
        + [
            Call((np.array([0.2, 0.5, 1.0]), np.array([0.1, 0.1, 0.2]), 4.0), "all hidden"),
            Call((np.array([2.0]), np.array([0.7]), 2.0), "one bucket"),
        ]
    ),
    where=f'{LESSON}/e_dispatch.ipynb, "When it hides"',
    hints=(
        "Follow the link's clock from bucket to bucket.",
        "A bucket starts when it is ready or when the link is free, whichever is later. Sending after end_s is exposed.",
        "free = 0.0; for start, takes in zip(ready, seconds): free = max(free, start) + takes; return free, max(0.0, free - end_s)",
    ),
    mistakes=MISTAKES,
)
