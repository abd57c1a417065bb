"""Draw the inputs of *count loads* and limit their cost."""

import numpy as np

from grader.questions.draws import odd
from grader.topics.expert_load_balance import shared_concepts
from grader.topics.expert_load_balance.shared_concepts import spread
from kernels.expert_load_balance import reference


def count_loads(topk_ids, device_of, devices):
    loads = reference.loads_of(topk_ids, len(device_of))
    return loads, reference.rank_loads(loads, [(int(device),) for device in device_of], devices)


def counted(rng, devices, each, top_k=2, last=True):
    experts = devices * each
    topk_ids = shared_concepts.drawn_ids(rng, odd(rng, 9, 60), top_k, experts)
    device_of = spread(rng, experts, devices)
    return (topk_ids if last else np.where(topk_ids == experts - 1, 0, topk_ids)), device_of, devices
