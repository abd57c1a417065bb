"""Draw the inputs of *tile use* and limit their cost."""

import math

from grader.questions.draws import between


def tile_use(loads, tile, factor):
    limit = math.inf if factor is None else math.ceil(factor * sum(loads) / len(loads))
    kept = [min(load, limit) for load in loads]
    slots = sum(math.ceil(load / tile) * tile for load in kept)
    return slots - sum(kept), sum(kept) / slots, sum(loads) - sum(kept)


def loads(rng, experts_, least=0, most=60):
    loads = rng.integers(least, most + 1, experts_)
    loads[rng.integers(experts_)] += between(rng, 1, 40)
    return [int(load) for load in loads]


def just_above(rng) -> list[int]:
    """Draw loads of eight experts whose mean, and 1.25 times it, are slightly above whole numbers. One load is above
    both."""
    mean = 4 * between(rng, 2, 6)
    loads = [mean - 3] * 7 + [mean + 22]
    return [loads[i] for i in rng.permutation(8)]
