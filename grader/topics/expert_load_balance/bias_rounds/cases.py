"""Draw the inputs of *bias rounds* and limit their cost."""

import numpy as np

from kernels.expert_load_balance import reference


def bias_rounds(scores, top_k, rate, rounds):
    bias, seen = np.zeros(scores.shape[1]), []
    for _ in range(rounds):
        seen.append(reference.loads_of(reference.choose(scores, top_k, bias), scores.shape[1]))
        bias = reference.bias_update(bias, seen[-1], rate)
    return bias, np.array(seen)


def equal_sums(rng, tokens, experts):
    """Scores that are whole quarters, so that with steps of a quarter sums are often equal, and exactly so."""
    return rng.integers(0, 4, (tokens, experts)) / 4


def scores(rng, tokens, experts):
    return reference.probabilities(rng.standard_normal((tokens, experts)) + rng.standard_normal(experts))
