"""Draw the inputs of *gumbel pick* and limit their cost."""

import numpy as np

from grader.questions.draws import log_uniform
from grader.topics.sampling_fusion.shared_rows import gumbel_of


def gumbel_pick(logits, temperature, u):
    return int(np.argmax(np.asarray(logits, np.float64) / temperature + gumbel_of(u)))


def _near_the_ends(rng, n):
    """Draw uniform numbers, half so close to 0 or 1 that a clipped or rounded number shows."""
    far = np.exp(rng.uniform(np.log(1e-12), np.log(1e-3), n))
    return np.where(
        rng.random(n) < 0.5, np.where(rng.random(n) < 0.5, far, 1 - far), rng.uniform(0.01, 0.99, n)
    )


def close(rng, n):
    """Make logits of the noise, so that the sums are close together and each small change picks another token."""
    u, temperature = _near_the_ends(rng, n), log_uniform(rng, 0.2, 4.0)
    return temperature * (0.02 * rng.permutation(n) - gumbel_of(u)), temperature, u


def lifted(x, t, u):
    """The same draw, with logits beyond what np.exp can take."""
    return x + 800 * t, t, u


def lowered(x, t, u):
    """The same draw, with logits so low that all sums are below 0."""
    return x - 800 * t, t, u


# Between them each mistake draws a token of its own.
MANY = (
    (
        np.array([0.7, 1.6, 0.8, -0.6, -0.2, -1.2, -0.2, -0.8, -0.8, 1.7, -1.2, -0.6, -0.4, -1.3]),
        3.0,
        np.array([0.55, 0.35, 0.86, 0.93, 0.54, 0.15, 0.59, 0.25, 0.51, 0.38, 0.94, 0.77, 0.41, 0.38]),
    ),
    (
        np.array([1.4, -0.3, -1.6, 0.8, 1.6, 0.4, 0.8, 0.9, 0.4, -0.1, 0.0, -0.4, 1.3, -0.5]),
        2.0,
        np.array([0.32, 0.48, 0.28, 0.27, 0.58, 0.2, 0.23, 0.49, 0.65, 0.78, 0.66, 0.95, 0.8, 0.66]),
    ),
)
