"""Decide from paired times: a median ratio, its 99% interval, and a verdict only when the interval is clear."""

import math
import random
import statistics as std
from dataclasses import dataclass

QUADS = 40
BOOTSTRAPS = 2000
TAIL = 0.005  # 99% interval
BLOCK = 4  # adjacent quads share their noise
UNSTEADY = 0.20  # a quad whose two bar samples differ by more is dropped
MOST_DROPPED = 0.30


@dataclass(frozen=True)
class Ratio:
    """Hold the answer's time over the bar's."""

    median: float
    low: float
    high: float
    quads: int
    dropped: int

    @property
    def usable(self) -> bool:
        return self.quads > 0 and self.dropped <= MOST_DROPPED * (self.quads + self.dropped)


def ratio(rows: list[list[float]], seed: int = 0) -> Ratio:
    """Return the ratio from `rows` of two samples of the answer and two of the bar, in seconds."""
    logs, dropped = [], 0
    for a1, a2, b1, b2 in rows:
        if min(a1, a2, b1, b2) <= 0 or abs(math.log(b1 / b2)) > UNSTEADY:
            dropped += 1
            continue
        logs.append((math.log(a1 * a2) - math.log(b1 * b2)) / 2)
    if not logs:
        return Ratio(math.nan, math.nan, math.nan, 0, dropped)
    rng = random.Random(seed)
    blocks = [logs[i : i + BLOCK] for i in range(0, len(logs), BLOCK)]
    medians = sorted(std.median([x for _ in blocks for x in rng.choice(blocks)]) for _ in range(BOOTSTRAPS))
    low, high = medians[int(TAIL * BOOTSTRAPS)], medians[int((1 - TAIL) * BOOTSTRAPS) - 1]
    return Ratio(math.exp(std.median(logs)), math.exp(low), math.exp(high), len(logs), dropped)


def share_of_points(
    measured: float, full: float, none: float, steps: tuple[tuple[float, float], ...] = ()
) -> float:
    """Return 1 at or below `full`, 0 at or above `none`, and a straight line in the logarithm between: a ramp, not a
    cliff.

    `steps` make a ladder instead: the share of the first (limit, share) that holds.
    """
    if measured <= full:
        return 1.0
    if steps:
        return next((share for limit, share in steps if measured <= limit), 0.0)
    if measured >= none:
        return 0.0
    return math.log(none / measured) / math.log(none / full)


def upper_bound(failures: int, trials: int, confidence: float = 0.95) -> float:
    """Return the largest failure rate that is consistent with this number of failures in `trials` (exact binomial)."""
    if trials <= 0:
        return 1.0
    low, high = failures / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        chance = sum(
            math.comb(trials, k) * middle**k * (1 - middle) ** (trials - k) for k in range(failures + 1)
        )
        low, high = (middle, high) if chance > 1 - confidence else (low, middle)
    return high
