"""Draw the inputs of *least hot share* and limit their cost."""

import math

from grader.questions.draws import between
from grader.topics.expert_load_balance.shared_concepts import hot, hot_slowdown


def least_hot_share(top_k, experts, devices, slowdown):
    """Return how much of all tokens the hot expert must take, infinite if even all tokens aren't enough."""
    beside = experts // devices - 1  # experts that share its device
    fixed = beside * top_k / (experts - 1)
    share = (slowdown * top_k / devices - fixed) / (1 - beside / (experts - 1))
    return share if share <= 1 + 1e-12 else math.inf


def reached(rng, each, low, high):
    """A slowdown that some share gives."""
    given = hot(rng, each, low, high)
    return *given[:3], float(hot_slowdown(*given))


def beyond(rng):
    devices, each = 2 ** between(rng, 2, 3), between(rng, 2, 5)
    top_k = between(rng, 2, 4)
    most = float(hot_slowdown(top_k, devices * each, devices, 1.0))
    return top_k, devices * each, devices, most * rng.uniform(1.05, 1.4)


def just_enough(rng):
    """A slowdown that takes all tokens, in powers of two, which any order of the operations gives exactly."""
    devices, top_k = 2 ** between(rng, 2, 5), 2 ** between(rng, 0, 1)
    return top_k, devices, devices, devices / top_k
