"""roof: the inputs of its cases, and what they may cost."""

import numpy as np

from grader.questions.draws import between
from kernels.roofline import cost


def roof(intensity: float, peak: float, bandwidth: float) -> tuple[float, str]:
    """The rate that can be reached at this many FLOP per byte, and what limits it."""
    return (
        cost.attainable_flop_s(intensity, peak, bandwidth),
        cost.bound(intensity, cost.ridge(peak, bandwidth)),
    )


def near_ridge(rng: np.random.Generator) -> tuple[float, float, float]:
    """A machine, and work at its very ridge: powers of two, so that no rounding blurs which side it is on."""
    ridge = 2.0 ** between(rng, 5, 9)
    return ridge, ridge * 2.0**42, 2.0**42
