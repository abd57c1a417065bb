"""Draw the inputs of *layer time* and limit their cost."""

import numpy as np

from grader.topics.expert_load_balance.shared_concepts import drawn_ids, spread
from kernels.expert_load_balance import reference


def layer_time(loads, device_of, devices, row_s, exchange_s):
    """Busiest over mean, seconds, and the share of the devices' time with the experts that is spent waiting."""
    placement = [(int(device),) for device in device_of]
    uneven = reference.imbalance(reference.rank_loads(loads, placement, devices))
    return uneven, reference.step_time(loads, placement, devices, row_s, exchange_s), 1 - 1 / uneven


def timed(rng, devices, each):
    experts = devices * each
    loads = np.bincount(drawn_ids(rng, 97, 2, experts).reshape(-1), minlength=experts)
    return loads, spread(rng, experts, devices), devices, rng.uniform(1e-7, 1e-6), rng.uniform(1e-5, 1e-4)
