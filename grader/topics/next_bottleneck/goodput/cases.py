"""Compute the reference of *goodput* and draw its inputs."""

from kernels.next_bottleneck import cost


def goodput(first, between, first_goal, between_goal, seconds):
    """Return P99 of the first token, and the requests a second that kept both promises."""
    good = (first <= first_goal) & (between <= between_goal)
    return cost.percentile(list(first), 0.99), float(good.sum() / seconds)


def case(rng, requests):
    """Draw a run. Some requests miss one goal, some the other, some both, and one meets both exactly."""
    first, between = rng.exponential(0.3, requests), rng.gamma(4, 0.01, requests)
    at = int(rng.integers(requests))
    first[at], between[at] = 0.5, 0.05
    return first, between, 0.5, 0.05, float(rng.uniform(5, 60))
