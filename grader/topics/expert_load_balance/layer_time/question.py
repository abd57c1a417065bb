"""Ask *layer time*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.expert_load_balance.layer_time import cases
from grader.topics.expert_load_balance.layer_time.mistakes import MISTAKES
from grader.topics.expert_load_balance.shared import LESSON

QUESTION = NumpyQuestion(
    id="expert_load_balance.layer_time",
    notebook="concepts",
    asks="layer_time(loads, device_of, devices, row_s, exchange_s): the busiest device's load divided by the mean, the seconds of the layer if each pair takes row_s on its device and all exchanges together take exchange_s, and the share of their total time that the devices spend waiting while the experts run",
    entry="layer_time",
    parts=(Part("values", 2, "calls"),),
    reference=cases.layer_time,
    public=(
        Call((np.array([6, 2, 2, 2]), np.array([0, 0, 1, 1]), 2, 1e-6, 5e-6), "two devices"),
        Call((np.array([9, 1, 1, 1]), np.array([0, 1, 2, 3]), 4, 1e-6, 5e-6), "one hot expert"),
    ),
    hidden=lambda rng: (
        [Call(cases.timed(rng, between(rng, 2, 5), between(rng, 2, 3)), "another layer") for _ in range(5)]
        + [Call((np.array([3, 3, 3, 3]), np.array([1, 0, 1, 0]), 2, 1e-6, 0.0), "even loads, no exchange")]
        + [Call((np.array([5, 0, 7, 0]), np.array([2, 1, 0, 1]), 3, 1e-6, 1e-5), "a device without a token")]
        + [
            Call(
                (np.array([5, 1, 7, 2]), np.array([1, 0, 1, 0]), 3, 1e-6, 1e-5), "a device without an expert"
            )
        ]
    ),
    where=f'{LESSON}/a_busiest.ipynb, "The step is the busiest device\'s"',
    hints=(
        "All devices wait for the last one. Which single number of tokens decides when the experts are done?",
        "Add up the loads on each device. The time is the largest sum times row_s, plus the exchange. A device with half of the largest sum waits for half of the time, so on average the devices work for mean / largest of the time.",
        "held = np.bincount(device_of, loads, devices); held.max() / held.mean(), held.max() * row_s + exchange_s, 1 - held.mean() / held.max()",
    ),
    mistakes=MISTAKES,
)
