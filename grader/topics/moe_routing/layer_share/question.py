"""Ask *layer share*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.moe_routing.layer_share import cases
from grader.topics.moe_routing.layer_share.mistakes import MISTAKES
from grader.topics.moe_routing.shared import LESSON

QUESTION = NumpyQuestion(
    id="moe_routing.layer_share",
    notebook="concepts",
    asks='layer_share(events): (the layer\'s share of the step, the share of moe.experts in the layer) for events (name, start, us). The layer consists of all events whose names begin with "moe.", and the step lasts from the first start to the last end, gaps included',
    entry="layer_share",
    parts=(Part("values", 2, "calls"),),
    reference=cases.layer_share,
    public=(
        Call(([("norm", 10.0, 2.0), ("moe.router", 12.0, 1.0), ("moe.experts", 15.0, 5.0)],), "three events"),
        Call(
            (
                [
                    (name, round(at, 1), round(us, 1))
                    for name, at, us in cases.events(np.random.default_rng(10), 1)
                ],
            ),
            "a block",
        ),
    ),
    hidden=lambda rng: [
        *(Call((cases.events(rng, n),), "other steps") for n in (1, 2, 5)),
        Call((cases.events(rng, 3, shuffled=True),), "events in no order"),
        Call(([("before.moe.in", 1.0, 2.0)] + cases.events(rng, 2),), "a name with moe. further on"),
        Call((cases.beside(rng),), "an event beside others, and names that are much alike"),
    ],
    where=f'{LESSON}/d_measured.ipynb, "Its share of a step"',
    hints=(
        "You need three times: the step's, the layer's and the experts'. Which one of them isn't a sum of durations?",
        'Sum the durations of all events that begin with "moe.", and separately the durations of moe.experts. The step lasts from the smallest start to the largest start + us.',
        "step = max(s + d for _, s, d in events) - min(s for _, s, _ in events); layer = sum(d for name, _, d in events if name.startswith('moe.'))",
    ),
    mistakes=MISTAKES,
)
