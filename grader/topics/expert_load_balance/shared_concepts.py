"""Share draws among numpy questions of expert load balance."""

import numpy as np

from grader.questions.draws import between
from kernels.expert_load_balance import cost, reference


def hot_slowdown(top_k, experts, devices, hot_share):
    """The step with one hot expert over the step with the same work spread evenly."""
    rest = (top_k - hot_share) / (experts - 1)
    loads = np.array([hot_share] + [rest] * (experts - 1))
    return reference.imbalance(reference.rank_loads(loads, cost.contiguous(experts, devices), devices))


def drawn_ids(rng, tokens, top_k, experts, skew=1.0):
    """Draw the choices of `tokens` tokens, no expert twice in one. The popular experts have scattered numbers."""
    wanted = -skew * np.log(np.arange(1, experts + 1))[rng.permutation(experts)]
    return np.argsort(-(wanted + rng.gumbel(size=(tokens, experts))), axis=1)[:, :top_k]


def spread(rng, experts, devices):
    """Return a device for each expert, the same number of experts on each device, in random order."""
    return rng.permutation(np.arange(experts) % devices)


def hot(rng, each, low, high):
    devices = 2 ** between(rng, 2, 4)
    experts, top_k = devices * each, between(rng, 2, 3)
    even = top_k / experts
    return top_k, experts, devices, even + (1 - even) * rng.uniform(low, high)


def loads(rng, experts, skew=1.0, tokens=4000):
    """Draw measured loads, no two alike, and some much larger than all others."""
    share = (1.0 + np.arange(experts)) ** -skew * rng.uniform(0.7, 1.3, experts)
    return np.round(tokens * share[rng.permutation(experts)] / share.sum() + rng.permutation(experts) / 8, 3)
