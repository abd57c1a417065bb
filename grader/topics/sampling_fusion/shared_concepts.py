"""Share draws among numpy questions of sampling fusion."""

import numpy as np

from grader.questions import Call
from grader.questions.draws import between, log_uniform
from grader.topics.sampling_fusion import shared_rows

LESSON = "course/06_sampling_fusion/b_rules_and_draws.ipynb"


def survivors(logits, temperature, top_k, top_p, min_p):
    return shared_rows.survivors(logits, temperature, (top_k, top_p, min_p))


def row(rng, n, spread=2.0):
    return (spread * rng.standard_normal(n)).round(3)


def filters(rng, n):
    """Each filter from its whole range, now and then off."""
    k = 0 if rng.random() < 0.3 else between(rng, 1, n + 2)
    p = 1.0 if rng.random() < 0.3 else float(rng.uniform(0.2, 0.99))
    m = 0.0 if rng.random() < 0.3 else log_uniform(rng, 0.01, 0.6)
    return log_uniform(rng, 0.3, 3.0), k, p, m


def heavy_tail(rng):
    """Draw three tokens near the best, and a crowd that min-p at 0.3 removes, though it holds more mass than they do."""
    x = np.concatenate((3.0 - 0.05 * np.arange(3), rng.uniform(0.9, 1.1, 30)))
    return rng.permutation(x), 1.0, 0, float(rng.uniform(0.56, 0.62)), 0.3


def evenly(rng):
    """Draw a crowd at every height, so that a temperature off by a hundredth moves min-p's edge past a token."""
    return (
        rng.permutation(np.linspace(0, 6, 400)),
        log_uniform(rng, 0.4, 1.6),
        0,
        1.0,
        float(rng.uniform(0.04, 0.12)),
    )


def borders(rng):
    """Numbers that are exact, so that < and <= differ."""
    level = float(rng.integers(-4, 5))
    return [
        Call((np.full(4, level), 1.0, 0, between(rng, 1, 3) / 4, 0.0), "a mass of p exactly"),
        Call((level - np.array([0.0, 0.0, 1.0]), 1.0, 0, 1.0, 1.0), "a weight of min-p exactly"),
        Call((np.full(4, level), 1.0, 2, 1.0, 0.0), "ties at the border of top-k"),
    ]


def each_filter_alone(rng):
    x = row(rng, between(rng, 20, 40), 1.0)
    return [
        Call((x, 1.0, between(rng, 3, 9), 1.0, 0.0), "top-k alone"),
        Call((x, log_uniform(rng, 1.5, 3.0), 0, float(rng.uniform(0.4, 0.7)), 0.0), "top-p alone"),
        *(Call(evenly(rng), "min-p alone") for _ in range(3)),
        Call(
            (x, log_uniform(rng, 1.5, 3.0), between(rng, 8, 12), float(rng.uniform(0.4, 0.6)), 0.0),
            "top-p of what top-k kept",
        ),
        Call(heavy_tail(rng), "min-p after top-p"),
    ]
