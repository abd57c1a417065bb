"""Draw the inputs of *roof* and limit their cost."""

import numpy as np

from grader.questions.draws import between
from kernels.roofline import cost


def roof(intensity: float, peak: float, bandwidth: float) -> tuple[float, str]:
    """Return the attainable rate at this many FLOP per byte, and its limit."""
    return (
        cost.attainable_flop_s(intensity, peak, bandwidth),
        cost.bound(intensity, cost.ridge(peak, bandwidth)),
    )


def near_ridge(rng: np.random.Generator) -> tuple[float, float, float]:
    """Draw a machine, and work exactly at its ridge, in powers of two, so that no rounding blurs the side."""
    ridge = 2.0 ** between(rng, 5, 9)
    return ridge, ridge * 2.0**42, 2.0**42
