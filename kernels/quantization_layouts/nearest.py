"""Guess the fastest candidate of an unmeasured shape from the nearest measured shapes.

Choosing a candidate costs the ratio of its time to the best time, both on a near shape. Two effects carry over badly
and are corrected first, a K that ends within a candidate's step and a last round of programs that isn't full.
The nearest shapes count most, and those that were measured for this number of rows. H200, int4, each of 33 shapes by
the others, M up to 64: the choice takes 3.3% longer than the best on average. With eleven odd shapes, far from all
others (groups of 32 and 128), it is 5.9%.
"""

import math
from dataclasses import replace

from kernels.quantization_layouts.candidates import CANDIDATES, Candidate
from kernels.quantization_layouts.direct import Direct
from kernels.quantization_layouts.hopper_unpack import STEP
from kernels.quantization_layouts.packed import Packed
from kernels.quantization_layouts.ring_launch import Ring, multiprocessors, shares
from kernels.quantization_layouts.stream import Stream

NEAR = 5  # shapes that are considered
FALL = 4.0  # a shape's weight falls by e^-4 when N, or K, grows e-fold
OF_GROUP = 0.35  # a group twice as long, in the same measure
OF_ROWS = 0.7  # twice as many rows of X as some other shape was measured for
MARGIN = 1.2  # that a candidate must be ahead of 16 bits, which are never far off
UNMEASURED = 1.6  # ratio to the best time beyond which calibration drops a candidate


def distance(c, w: Packed, rows: int) -> float:
    """Between a measured row and this weight with `rows`."""
    sides = math.log(w.n * w.experts / (c.n * c.experts)), math.log(w.k / c.k)
    apart = OF_GROUP * abs(math.log2(w.group / c.group)) + OF_ROWS * abs(math.log2(rows / c.m))
    return sum(map(abs, sides)) + apart


def likely(rows_near: list, w: Packed, rows: int, packed_alone: bool, sixteen: str) -> list[str]:
    """Return the candidates' names, the likeliest first. `rows_near` are the measured rows for this M, one per shape,
    nearest first."""
    there = [(c, replace(w, n=c.n, k=c.k, experts=c.experts, group=c.group)) for c in rows_near[:NEAR]]
    names = {name for c, _ in there for name in c.us if name in CANDIDATES}
    if packed_alone:
        names.discard(sixteen)
    able = [
        one for one in map(CANDIDATES.get, sorted(names)) if one.takes(w) and one.least <= rows <= one.most
    ]

    def cost(one: Candidate) -> float:
        here, total, weights = waste(one, w, rows), 0.0, 0.0
        for c, like in there:
            taken = c.us.get(one.name, UNMEASURED * min(c.us.values())) / min(c.us.values())
            weight = math.exp(-FALL * distance(c, w, rows)) + 1e-12
            total += weight * math.log(taken * here / waste(one, like, rows))
            weights += weight
        return total / weights

    if not able:
        return [rows_near[0].best_packed]
    costs = {one.name: cost(one) for one in able}
    if sixteen in costs:
        costs[sixteen] -= math.log(MARGIN)
    return sorted(costs, key=costs.__getitem__)


def waste(one: Candidate, w: Packed, rows: int) -> float:
    """Return its time over that of even steps and rounds of programs. Half of a round's idleness shows."""
    config = one.config
    if isinstance(config, Stream | Direct):
        run, warps = w.cut(config.run, config.warps)
        return math.ceil(w.k / (run * warps)) * run * warps / w.k
    if isinstance(config, Ring) and not config.even:
        return math.sqrt(_idle(config, w, rows))
    return 1.0


def _idle(config: Ring, w: Packed, rows: int) -> float:
    room = multiprocessors(w.device) * (2 if config.two else 1)
    tiles = w.experts * math.ceil(w.n / config.rows) * math.ceil(rows / config.cols)
    steps = math.ceil(w.k / STEP.value)
    programs, cut = shares(config, tiles, steps, room)
    each = programs // tiles if cut else 1
    longest = math.ceil(steps / each) * math.ceil(tiles * each / programs)
    return longest * room / (tiles * steps)
