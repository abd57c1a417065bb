"""Do tokens come as they should? A chi-square test that knows how often it is wrong and how much it can see.

`limit` gives the rate of wrong alarms, `power` how often a stated bias is seen, `noncentrality` how large one must be.
A million runs without a wrong alarm want the limit of two million: with a token expected only LEAST times the true tail
is some 40% heavier than chi-square's there (measured in grader/topics/sampling_fusion/tests/test_distribution.py).
"""

import math

import numpy as np

LEAST = 50  # tokens expected less often are counted together, or the tail would be no chi-square's any more
NEVER = math.inf


def tail(value: float, freedom: int) -> float:
    """P(chi-square > value): the incomplete gamma function of a half-integer, a finite sum."""
    x, odd = value / 2, freedom % 2
    total = math.erfc(math.sqrt(x)) if odd else 0.0
    term = math.exp(-x) * (math.sqrt(x) / math.gamma(1.5) if odd else 1.0)
    for i in range(freedom // 2):
        total += term
        term *= x / (i + (1.5 if odd else 1.0))
    return min(1.0, total)


def limit(freedom: int, once_in: float) -> float:
    """The value that a right sampler passes once in so many runs."""
    low, high = 0.0, 1.0
    while tail(high, freedom) > 1 / once_in:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle, freedom) > 1 / once_in else (low, middle)
    return high


def merged(chances, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """(where each token is counted, the chance of each place): rare tokens share one, tokens of chance 0 have none."""
    chances = np.asarray(chances, np.float64)
    rare = chances * draws < LEAST
    place = np.where(rare, (~rare).sum(), np.cumsum(~rare) - 1)
    shares = np.bincount(place, chances, (~rare).sum() + 1)
    return np.where(chances > 0, place, -1), shares[shares > 0]


def statistic(counts, chances) -> tuple[float, int]:
    """(sum of squares, degrees of freedom); NEVER where a token came that must not."""
    counts, draws = np.asarray(counts), int(np.sum(counts))
    place, shares = merged(chances, draws)
    if counts[place < 0].any():
        return NEVER, shares.size - 1
    seen = np.bincount(place[place >= 0], counts[place >= 0], shares.size)
    return float(((seen - draws * shares) ** 2 / (draws * shares)).sum()), shares.size - 1


def p_value(tokens, chances) -> float:
    """How often a right sampler looks as bad as these tokens, or worse."""
    value, freedom = statistic(np.bincount(tokens, minlength=len(chances)), chances)
    return 0.0 if value == NEVER else tail(value, freedom) if freedom else 1.0


def effect(chances, biased, draws: int) -> float:
    """What each draw from `biased` adds to the sum of squares, on average, beyond what a right one does."""
    place, shares = merged(chances, draws)
    biased = np.asarray(biased, np.float64)
    if biased[place < 0].sum() > 0:
        return NEVER
    other = np.bincount(place[place >= 0], biased[place >= 0], shares.size)
    return float(((other - shares) ** 2 / shares).sum())


def passed(noncentrality: float, freedom: int, value: float) -> float:
    """P(chi-square > value) with so much bias in it: central ones of more freedom, mixed by a Poisson's weights."""
    mean, x = noncentrality / 2, value / 2
    central, term = (
        tail(value, freedom),
        math.exp(freedom / 2 * math.log(x) - x - math.lgamma(freedom / 2 + 1)),
    )
    total, left = 0.0, 1.0
    for i in range(int(x + 20 * math.sqrt(x)) + 40):  # by then the tail is 1
        weight = math.exp(i * math.log(mean) - mean - math.lgamma(i + 1)) if mean else float(i == 0)
        total, left = total + weight * central, left - weight
        central += term  # the tail with two degrees more
        term *= x / (freedom / 2 + i + 1)
    return min(1.0, total + max(0.0, left))


def power(chances, biased, draws: int, once_in: float) -> float:
    """How often so many draws from `biased` are refused."""
    place, shares = merged(chances, draws)
    forbidden = float(np.asarray(biased)[place < 0].sum())
    if forbidden:
        return 1 - (1 - forbidden) ** draws
    freedom = shares.size - 1
    return passed(draws * effect(chances, biased, draws), freedom, limit(freedom, once_in))


def noncentrality(freedom: int, once_in: float, wanted: float) -> float:
    """The bias, times the draws, that is seen with the wanted power."""
    value, low, high = limit(freedom, once_in), 0.0, 1.0
    while passed(high, freedom, value) < wanted:
        high *= 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if passed(middle, freedom, value) < wanted else (low, middle)
    return high
