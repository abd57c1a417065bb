"""Draw the inputs of *quantize groups* and limit their cost."""

import numpy as np

from grader.questions.draws import between
from grader.topics.quantization_layouts.shared_concepts import weights


def tiny(rng, group, largest=-6.3):
    """Weights whose scales are among fp16's smallest numbers, where rounding one moves it by a third or to nothing."""
    sizes = np.repeat(10.0 ** rng.uniform(largest - 1.7, largest, (6, 8)), group, axis=1)
    return sizes * rng.standard_normal(sizes.shape)


def with_zeros(rng, group):
    w = weights(rng, group)
    w[between(rng, 0, len(w) - 1), :group] = 0.0
    return w


def all_below(w):
    """The same sizes, no weight above 0."""
    return -np.abs(w)


def halves(rng, group, zero_points):
    """Draw weights exactly half a step between two codes, and half of the zero points between codes, too. Scales
    are powers of two."""
    n, groups = between(rng, 4, 8), between(rng, 3, 6)
    steps = rng.integers(-6, 6, (n, groups, group)) + 0.5
    low = rng.integers(-27, -2, (n, groups)) / 2 if zero_points else np.full((n, groups), -7.0)
    if zero_points:
        low[0, :2] = -3.0, -2.5  # an odd zero point, and one half way between two
    high = low + 15 if zero_points else -low
    steps = np.clip(steps, low[..., None], high[..., None])
    steps[..., 0], steps[..., 1] = low, high
    return (steps * 2.0 ** rng.integers(-6, 3, (n, groups, 1))).reshape(n, -1)
