"""Trace the online softmax, one row and one number a key, for the stepper."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class State:
    """Hold the state after a tile: its maximum, the running maximum, the factor on earlier sums, the sum, the weighted mean."""

    tile_max: float
    m: float
    rescale: float
    l: float
    output: float


@dataclass(frozen=True)
class Scene:
    scores: tuple[tuple[float, ...], ...]
    values: tuple[tuple[float, ...], ...]


# Four tiles of four keys, chosen so that the trace is the one that "Real kernels" prints.
SCENE = Scene(
    scores=((3, 2, 1, 0.5), (5, 2.5, 1, 0), (4, 3, 2, 1), (6, 2, 1, 0)),
    values=((12, 11, 10, 8), (14, 8, 13, 11), (13, 12, 8, 9), (15, 8, 13, 10)),
)


def online_trace(scores: Sequence[Sequence[float]], values: Sequence[Sequence[float]]) -> list[State]:
    """Trace the online softmax tile by tile. A larger maximum scales down the sums gathered under the old one."""
    m, l, weighted, states = -math.inf, 0.0, 0.0, []
    for tile, tile_values in zip(scores, values, strict=True):
        tile_max = max(tile)
        m_new = max(m, tile_max)
        rescale = math.exp(m - m_new)
        p = [math.exp(score - m_new) for score in tile]
        l = l * rescale + sum(p)
        weighted = weighted * rescale + sum(a * b for a, b in zip(p, tile_values, strict=True))
        m = m_new
        states.append(State(tile_max, m, rescale, l, weighted / l))
    return states
