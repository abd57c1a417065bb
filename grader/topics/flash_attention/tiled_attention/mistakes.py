"""List the mistakes of *tiled attention*, a row each."""

import numpy as np

from grader.questions import Mistake
from kernels.flash_attention import reference_tiles


def _as_wide_as_queries(q, k, v, block):
    """The output begun as zeros of the queries' shape."""
    o, m, l = reference_tiles.tiled_states(q, k, v, block)
    return np.zeros_like(q) + o, m, l


TILED = """
def tiled_attention(q, k, v, block):
    m, total, out = np.full(len(q), {start}), np.zeros(len(q)), np.zeros((len(q), v.shape[1]))
    tops, sums = [], []
    for i in range(0, {end}, block):
        s = q @ k[i : i + block].T * {scale}
        new = np.maximum(m, s.max(1))
        factor, p, m = np.exp(m - new), np.exp(s - new[:, None]), new
        total, out = {kept}
        total, out = total + p.sum(1), out + p @ v[i : i + block]
        tops.append(m)
        sums.append(total)
    tops, sums = np.array(tops), np.array(sums)
    return {result}
"""
RIGHT_TILES = {
    "start": "-np.inf",
    "end": "len(k)",
    "scale": "q.shape[1] ** -0.5",
    "kept": "total * factor, out * factor[:, None]",
    "result": "out / total[:, None], tops, sums",
}


def tiled(**changed) -> str:
    return TILED.format(**RIGHT_TILES | changed)


MISTAKES = (
    Mistake(
        "output alone",
        "return three results: the output, and each query's maximum and sum after every tile",
        cell=tiled(result="out / total[:, None]"),
    ),
    Mistake("no scale", "the scores are not divided by sqrt(d)", cell=tiled(scale="1")),
    Mistake(
        "divided by d", "the scores are divided by sqrt(d), not by d", cell=tiled(scale="1 / q.shape[1]")
    ),
    Mistake("no division", "the output is not divided by the sum", cell=tiled(result="out, tops, sums")),
    Mistake(
        "no rescale",
        "right for one tile and wrong for more: multiply both the sum and the output by exp(m - m_new)",
        cell=tiled(kept="total, out"),
    ),
    Mistake(
        "output not rescaled",
        "maxima and sums are right, but the output keeps its old scale: multiply it by exp(m - m_new) as well, before a tile is added",
        cell=tiled(kept="total * factor, out"),
    ),
    Mistake(
        "tail left out",
        "the last keys, which don't fill a tile, are left out: range(0, len(k), block) reaches them, and a slice ends where the keys do",
        cell=tiled(end="len(k) - block + 1"),
    ),
    Mistake(
        "maximum from zero",
        "wrong if all scores are negative: the running maximum starts at -inf, not at 0",
        cell=tiled(start="0.0"),
    ),
    Mistake(
        "maximum from a number",
        "the running maximum starts at -inf: scores may be below any finite number that replaces it",
        cell=tiled(start="-1e9"),
    ),
    Mistake(
        "last state alone",
        "return maximum and sum after every tile, not only after the last",
        cell=tiled(result="out / total[:, None], tops[-1], sums[-1]"),
    ),
    Mistake(
        "whole rows",
        "maximum and sum are the same after every tile: return the running values, which know nothing of later keys",
        cell=tiled(result="out / total[:, None], tops * 0 + tops[-1], sums * 0 + sums[-1]"),
    ),
)


SHORTCUTS = {"as wide as queries": _as_wide_as_queries}
