"""Compute the reference of *rounds* and draw its inputs."""

import numpy as np


def rounds(step_s, shares, cuts):
    """Return the step after each round of cuts."""
    now, steps = step_s * shares, []
    for cut in cuts:
        now = now * (1 - cut)
        steps.append(now.sum())
    return np.array(steps)


def case(rng, parts, rounds):
    """Draw shares that add up to 1, and cuts, where some cuts are 0."""
    shares = rng.dirichlet(np.ones(parts))
    cuts = rng.uniform(0, 0.8, (rounds, parts)) * (rng.random((rounds, parts)) < 0.7)
    cuts[:, 0] = rng.uniform(0.2, 0.7, rounds)
    return float(rng.uniform(0.02, 0.2)), shares, cuts
