"""Ask *place experts*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.expert_load_balance.place_experts import cases
from grader.topics.expert_load_balance.place_experts.mistakes import MISTAKES
from grader.topics.expert_load_balance.shared import LESSON, good_placement
from grader.topics.expert_load_balance.shared_concepts import loads

QUESTION = NumpyQuestion(
    id="expert_load_balance.place_experts",
    notebook="concepts",
    asks="place_experts(loads, devices): the device of each expert, with len(loads) / devices experts on each device, so that the busiest device has few tokens. With up to 12 experts it may have at most 4/3 of the tokens that it has in the best placement. With more experts it may have at most 2% more than with heaviest first",
    entry="place_experts",
    parts=(Part("values", 3, "calls"),),
    reference=cases.place_experts,
    agree=good_placement,
    public=(
        Call((np.array([9.0, 8.0, 1.0, 2.0]), 2), "two devices"),
        Call((loads(np.random.default_rng(9), 8), 4), "four devices"),
        Call((loads(np.random.default_rng(10), 32), 8), "32 experts"),
    ),
    hidden=lambda rng: (
        [Call((loads(rng, 8, skew), 4), "eight experts") for skew in (0.5, 1.0)]
        + [Call((loads(rng, 12, 1.0), devices), "twelve experts") for devices in (3, 4)]
        + [Call((loads(rng, 8 * each, 0.7), 8), "many experts") for each in (4, 8, 16)]
        + [Call((np.sort(loads(rng, 64, 0.8)), 8), "loads in order")]
    ),
    where=f'{LESSON}/c_placement.ipynb, "Where experts live, and copies of them"',
    hints=(
        "Light experts can even out the differences that heavy ones leave. In which order would you place the experts?",
        "Begin with the heaviest expert, and give each expert to the device that has the fewest tokens so far among those with a free slot.",
        "for e in np.argsort(-loads): free = [d for d in range(devices) if count[d] < slots]; d = min(free, key=lambda d: held[d]); held[d] += loads[e]; count[d] += 1; device_of[e] = d",
    ),
    mistakes=MISTAKES,
)
