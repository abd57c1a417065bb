"""Does a sampler draw from the distribution it should? A chi-square test with a stated rate of wrong alarms."""

import math

import numpy as np

ALARM = 1e-6  # a right sampler fails one run in a million; seeds are fixed, so in practice never


def chi_square_tail(statistic: float, degrees: int) -> float:
    """P(chi-square >= statistic): the incomplete gamma function of a half-integer is a finite sum."""
    x, odd = statistic / 2, degrees % 2
    total = math.erfc(math.sqrt(x)) if odd else 0.0
    term = math.exp(-x) * (math.sqrt(x) / math.gamma(1.5) if odd else 1.0)
    for i in range(degrees // 2):
        total += term
        term *= x / (i + (1.5 if odd else 1.0))
    return total


def p_value(tokens, expected) -> float:
    """`expected` [V] probabilities. Tokens that should come less than 5 times are counted together."""
    expected = np.asarray(expected, np.float64)
    counts = np.bincount(tokens, minlength=expected.size)
    assert counts[expected == 0].sum() == 0, "a token came that must never come"
    wanted = expected * len(tokens)
    rare = wanted < 5
    observed = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(wanted[~rare], wanted[rare].sum())
    observed, wanted = observed[wanted > 0], wanted[wanted > 0]
    return chi_square_tail(((observed - wanted) ** 2 / wanted).sum(), observed.size - 1)
