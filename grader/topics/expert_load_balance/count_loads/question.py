"""Ask *count loads*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.expert_load_balance.count_loads import cases
from grader.topics.expert_load_balance.count_loads.mistakes import MISTAKES
from grader.topics.expert_load_balance.shared import LESSON
from grader.topics.expert_load_balance.shared_concepts import drawn_ids

QUESTION = NumpyQuestion(
    id="expert_load_balance.count_loads",
    notebook="concepts",
    asks="count_loads(topk_ids, device_of, devices): (load of each expert, load of each device), where topk_ids (tokens, top_k) holds the experts that each token chose and device_of the device of each expert",
    entry="count_loads",
    parts=(Part("values", 2, "calls"),),
    reference=cases.count_loads,
    public=(
        Call((np.array([[0, 2], [2, 1], [2, 0]]), np.array([0, 0, 1, 1]), 2), "an expert without a token"),
        Call(cases.counted(np.random.default_rng(1), 4, 2), "eight experts on four devices"),
    ),
    hidden=lambda rng: (
        [
            Call(cases.counted(rng, between(rng, 2, 5), between(rng, 1, 4)), "another routing")
            for _ in range(4)
        ]
        + [Call(cases.counted(rng, 4, 2, 1), "one expert a token")]
        + [Call(cases.counted(rng, 4, 2, 2, last=False), "the last expert without a token")]
        + [Call((np.array([[0, 1]]), np.arange(4), 4), "devices without a token")]
        + [Call((drawn_ids(rng, 20, 2, 4), np.array([2, 0, 3, 2]), 6), "devices without an expert")]
    ),
    where=f'{LESSON}/a_busiest.ipynb, "Skew that is real"',
    hints=(
        "Each entry of topk_ids is one pair, and the order of the pairs doesn't matter here. Which numpy function counts how often each number occurs?",
        "np.bincount(topk_ids.reshape(-1), minlength=...) counts the pairs of all experts, including experts that no token chose. A device's load is the sum of its experts' loads.",
        "loads = np.bincount(topk_ids.reshape(-1), minlength=len(device_of)); np.bincount(device_of, weights=loads, minlength=devices)",
    ),
    mistakes=MISTAKES,
)
