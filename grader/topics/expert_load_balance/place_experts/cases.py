"""Draw the inputs of *place experts* and limit their cost."""

import numpy as np

from kernels.expert_load_balance import cost


def place_experts(loads, devices):
    """Heaviest first, to the least loaded device that has a slot free."""
    return np.array([copies[0] for copies in cost.greedy(loads.tolist(), devices)])
