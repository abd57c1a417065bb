"""Attention in numpy, a step at a time: what the concepts lab asks."""

import math
from functools import partial

import numpy as np

from grader.questions import Call, Mistake, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.flash_attention.mistakes import maximum_when_it_came, weighed
from kernels.flash_attention import cost, reference, reference_tiles

LESSON = "course/05_flash_attention"


def online_states(tiles) -> list:
    return [(m, rescale, total) for m, rescale, total, _ in reference.online_softmax(tiles)]


def tiled_states(q, k, v, block):
    return reference_tiles.tiled_states(q, k, v, block)


def state_bytes(length, heads, head_dim, elem_bytes):
    shape = cost.Shape(length, length, head_dim, heads, heads, elem_bytes=elem_bytes)
    return cost.naive_state_bytes(shape), cost.tiled_state_bytes(shape)


def causal_tiles(length, block_m, block_n):
    shape = cost.Shape(length, length, 64, right=0)
    tiling = cost.Tiling(block_m, block_n)
    return sum(-(-cost.keys_loaded(shape, tiling, row) // block_n) for row in range(0, length, block_m))


def _states(
    tiles,
    top=lambda m, tile: max(m, tile.max()),
    factor=lambda old, new: np.exp(old - new),
    kept=lambda factor: factor,
    start=-np.inf,
):
    """The recurrence with one of its steps exchanged."""
    m, total, states = start, 0.0, []
    for tile in tiles:
        m_new = top(m, tile)
        rescale = factor(m, m_new)
        total = total * kept(rescale) + np.exp(tile - m_new).sum()
        m = m_new
        states.append((float(m), float(rescale), float(total)))
    return states


def _all_at_once(tiles):
    """Weights under the largest score of all, summed as the tiles come, and scaled to each tile's maximum afterwards."""
    tops = np.maximum.accumulate([tile.max() for tile in tiles])
    sums = np.cumsum([np.exp(tile - tops[-1]).sum() for tile in tiles])
    factors = np.exp(np.concatenate(([-np.inf], tops[:-1])) - tops)
    return [
        (float(m), float(f), float(l * np.exp(tops[-1] - m)))
        for m, f, l in zip(tops, factors, sums, strict=True)
    ]


def _tiled(out=lambda out, totals, s, v: out, tops=lambda m: m, totals=lambda l: l, scale=None):
    """tiled_attention with one of its three results made otherwise."""

    def wrong(q, k, v, block):
        o, m, l = reference_tiles.tiled_states(q, k, v, block, scale)
        return out(o, l, reference.scores(q, k, scale), v), tops(m), totals(l)

    return wrong


def _not_rescaled(q, k, v, block):
    s = reference.scores(q, k)
    then = maximum_when_it_came(s, block)
    cuts = range(0, s.shape[1], block)
    sums = np.cumsum([np.exp(s - then)[:, cut : cut + block].sum(1) for cut in cuts], 0)
    return weighed(s, then, v), np.array([then[:, cut] for cut in cuts]), sums


def _output_not_rescaled(q, k, v, block):
    """Maxima and sums are right; the output keeps what it had under an older maximum."""
    _, tops, totals = reference_tiles.tiled_states(q, k, v, block)
    s = reference.scores(q, k)
    return np.exp(s - maximum_when_it_came(s, block)) @ v / totals[-1][:, None], tops, totals


def _whole_tiles(q, k, v, block):
    """Keys that fill no tile are left out."""
    end = len(k) // block * block
    return reference_tiles.tiled_states(q, k[:end], v[:end], block)


def _as_wide_as_queries(q, k, v, block):
    """The output begun as zeros of the queries' shape."""
    o, m, l = reference_tiles.tiled_states(q, k, v, block)
    return np.zeros_like(q) + o, m, l


def _maximum_from(number, q, k, v, block):
    s = reference.scores(q, k)
    then = np.maximum(maximum_when_it_came(s, block), number)
    cuts = range(0, s.shape[1], block)
    tops = np.array([then[:, cut] for cut in cuts])
    totals = np.array(
        [np.exp(s[:, : cut + block] - top[:, None]).sum(1) for cut, top in zip(cuts, tops, strict=True)]
    )
    with np.errstate(invalid="ignore"):
        return weighed(s, then[:, -1:], v), tops, totals


ONLINE_SOFTMAX_MISTAKES = (
    Mistake("last state alone", "one entry for each tile is asked, and this is the last alone: return the list of all", wrong=lambda t: online_states(t)[-1]),
    Mistake("no rescale", "the old sum is not scaled when the maximum grows", wrong=lambda t: _states(t, kept=lambda factor: 1.0)),
    Mistake("tile maximum", "the first number must be the running maximum, not the tile's own", wrong=lambda t: _states(t, top=lambda m, tile: tile.max())),
    Mistake("first factor", "before the first tile the maximum is -inf, so the first factor is exp(-inf) = 0", wrong=lambda t: [(m, r if i else 1.0, total) for i, (m, r, total) in enumerate(online_states(t))]),
    Mistake("maximum from zero", "the running maximum starts at -inf, not at 0: scores may all lie below zero", wrong=lambda t: _states(t, top=lambda m, tile: max(m, tile.max(), 0.0))),
    Mistake("starts at zero", "before the first tile the maximum is -inf, not 0: the first factor is then exp(-inf) = 0", wrong=lambda t: _states(t, start=0.0)),
    Mistake("maximum from a number", "the running maximum starts at -inf: scores may lie below any number that stands for it", wrong=lambda t: _states(t, top=lambda m, tile: max(m, tile.max(), -1e9))),
    Mistake("all at once", "the largest score of all is used before it has come: where it lies far above the first tiles, their sums are 0", wrong=_all_at_once),
    Mistake("factor upside down", "the factor is exp(m_old - m_new): what was summed under a smaller maximum shrinks", wrong=lambda t: _states(t, factor=lambda old, new: np.exp(new - old) if np.isfinite(old) else 0.0)),
)  # fmt: skip

TILED_ATTENTION_MISTAKES = (
    Mistake("output alone", "three results are asked for: the output, and each query's maximum and sum after every tile", wrong=lambda q, k, v, b: reference_tiles.tiled_states(q, k, v, b)[0]),
    Mistake("no scale", "the scores are not divided by sqrt(d)", wrong=lambda q, k, v, b: reference_tiles.tiled_states(q, k, v, b, 1.0)),
    Mistake("divided by d", "the scores are divided by sqrt(d), not by d", wrong=lambda q, k, v, b: reference_tiles.tiled_states(q, k, v, b, 1 / q.shape[-1])),
    Mistake("no division", "the output is not divided by the sum", wrong=_tiled(out=lambda out, totals, s, v: out * totals[-1][:, None])),
    Mistake("no rescale", "right for one tile and wrong for more: both the sum and the output are scaled by exp(m - m_new)", wrong=_not_rescaled),
    Mistake("output not rescaled", "maxima and sums are right, and the output keeps its old scale: multiply it too by exp(m - m_new) before a tile is added", wrong=_output_not_rescaled),
    Mistake("tail left out", "the last keys, which fill no tile, are left out: range(0, len(k), block) reaches them, and a slice ends where the keys do", wrong=_whole_tiles),
    Mistake("maximum from zero", "wrong where all scores lie below zero: the running maximum starts at -inf, not at 0", wrong=partial(_maximum_from, 0.0)),
    Mistake("maximum from a number", "the running maximum starts at -inf: scores may lie below any number that stands for it", wrong=partial(_maximum_from, -1e9)),
    Mistake("last state alone", "maximum and sum are asked for after every tile, not after the last alone", wrong=_tiled(tops=lambda m: m[-1], totals=lambda l: l[-1])),
    Mistake("whole rows", "maximum and sum are the same after every tile: the first tiles know nothing of later keys", wrong=_tiled(tops=lambda m: np.broadcast_to(m[-1], m.shape), totals=lambda l: np.broadcast_to(l[-1], l.shape))),
)  # fmt: skip

ATTENTION_BYTES_MISTAKES = (
    Mistake(
        "written only",
        "scores and probabilities are each written and read: four passes over length x length",
        wrong=lambda n, h, d, e: (state_bytes(n, h, d, e)[1] + 2 * h * n * n * e, state_bytes(n, h, d, e)[1]),
    ),
    Mistake("one head", "that is one head's share", wrong=lambda n, h, d, e: state_bytes(n, 1, d, e)),
    Mistake(
        "other order",
        "the naive bytes come first, then the tiled ones",
        wrong=lambda n, h, d, e: state_bytes(n, h, d, e)[::-1],
    ),
)

CAUSAL_TILES_MISTAKES = (
    Mistake(
        "no skipping",
        "this visits every tile: which are masked from first to last key?",
        wrong=lambda n, m, b: math.ceil(n / m) * math.ceil(n / b),
    ),
    Mistake(
        "square tiles",
        "row tile i visits i + 1 tiles only where both blocks are equal",
        wrong=lambda n, m, b: sum(range(math.ceil(n / m) + 1)),
    ),
    Mistake(
        "cut off",
        "the last tile of keys counts too when it is part full: round up",
        wrong=lambda n, m, b: sum(min(i + m, n) // b for i in range(0, n, m)),
    ),
    Mistake(
        "first row",
        "that counts the keys of each tile's first row; its last one, min(i + block_m, length) - 1, sees furthest",
        wrong=lambda n, m, b: sum(i // b + 1 for i in range(0, n, m)),
    ),
    Mistake(
        "rows beyond the end",
        "the last tile of rows may be part full: it ends at min(i + block_m, length)",
        wrong=lambda n, m, b: sum(math.ceil((i + m) / b) for i in range(0, n, m)),
    ),
    Mistake(
        "blocks exchanged",
        "block_m and block_n are exchanged: rows go in tiles of block_m, keys in tiles of block_n",
        wrong=lambda n, m, b: causal_tiles(n, b, m),
    ),
)


def _tiles(rng, count, width, spread=1.0):
    return (spread * rng.standard_normal((count, width))).round(3)


def _heads(rng, length, keys, d, spread=1.0):
    return tuple(
        s * rng.standard_normal(shape)
        for s, shape in ((spread, (length, d)), (spread, (keys, d)), (1.0, (keys, d)))
    )


def _far_below(rng, length, keys, d):
    """Every score some -500: nothing of it is left beside a maximum of 0."""
    q, k, v = _heads(rng, length, keys, d, 0.5)
    return 30.0 + q, -30.0 * 500 / (900 * d**0.5) - k, v


def _overhanging(rng):
    """The last tile of rows reaches beyond the length by a tile of keys or more."""
    keys, rows = between(rng, 8, 60), between(rng, 100, 200)
    return rows * between(rng, 2, 9) + between(rng, 1, rows - keys), rows, keys


SCENE = np.array(cost.SCENE.scores, float)

ONLINE_SOFTMAX = NumpyQuestion(
    id="flash_attention.online_softmax",
    notebook="concepts",
    asks="online_softmax(tiles): after each tile of scores, (running maximum, rescale factor, running sum)",
    entry="online_softmax",
    parts=(Part("values", 3, "calls"),),
    reference=online_states,
    rtol=1e-7,
    public=(Call((SCENE,), "the four tiles of the scene"), Call((_tiles(np.random.default_rng(0), 3, 8),))),
    hidden=lambda rng: (
        [
            Call((_tiles(rng, int(rng.integers(1, 6)), int(rng.integers(1, 9))),), "other tiles")
            for _ in range(5)
        ]
        + [
            Call((_tiles(rng, 4, 4, 800.0),), "extreme scores"),
            Call((-1e4 + _tiles(rng, 3, 4),), "scores far below zero"),
            Call((-(2.0**40) + np.arange(12.0).reshape(3, 4),), "scores below -1e9"),
            Call((_tiles(rng, 3, 5) + 900.0 * np.arange(3)[:, None],), "a maximum that comes late"),
        ]
    ),
    where=f'{LESSON}/a_online.ipynb, "Three running numbers"',
    hints=(
        "Before the first tile there is no maximum: what number is below every score, and what does exp give for it?",
        "m_new = max(m, tile.max()); what was summed under the old maximum must be multiplied by exp(m - m_new).",
        "l = l * exp(m - m_new) + exp(tile - m_new).sum(); append (m_new, exp(m - m_new), l); then m = m_new",
    ),
    mistakes=ONLINE_SOFTMAX_MISTAKES,
)

TILED_ATTENTION = NumpyQuestion(
    id="flash_attention.tiled_attention",
    notebook="concepts",
    asks="tiled_attention(q, k, v, block): one head's attention with `block` keys at a time: the output, and each query's running maximum and sum after every tile, (tiles, queries) each",
    entry="tiled_attention",
    parts=(Part("values", 4, "calls"),),
    reference=tiled_states,
    rtol=1e-6,
    atol=1e-9,
    public=(
        Call((*_heads(np.random.default_rng(3), 8, 16, 4), 4)),
        Call((*_heads(np.random.default_rng(4), 5, 13, 8), 4), "a ragged last tile"),
    ),
    hidden=lambda rng: (
        [
            Call(
                (
                    *_heads(rng, between(rng, 1, 20), between(rng, 20, 60), between(rng, 3, 16)),
                    between(rng, 1, 17),
                ),
                "other sizes",
            )
            for _ in range(5)
        ]
        + [
            Call((*_heads(rng, 6, 32, 16, 30.0), 8), "extreme scores"),
            Call((*_heads(rng, 4, 9, 4), 100), "a tile longer than the keys"),
            Call((*_far_below(rng, 5, 21, 4), 4), "scores far below zero"),
            Call(
                (np.full((3, 4), 2.0**20), np.full((9, 4), -(2.0**20)), rng.standard_normal((9, 4)), 4),
                "scores below -1e9",
            ),
            Call(
                (*_heads(rng, 5, 11, 4)[:2], rng.standard_normal((11, between(rng, 5, 9))), 4),
                "values wider than queries",
            ),
        ]
    ),
    where=f'{LESSON}/a_online.ipynb, "Exact, not approximate"',
    hints=(
        "Keep three things per query row: the maximum m, the sum l and the unnormalised output.",
        "For each tile: scores s, m_new, p = exp(s - m_new); scale l and the output by exp(m - m_new), then add p.sum and p @ v_tile.",
        "Divide by l once, after the last tile; the scale of the scores is 1 / sqrt(q.shape[-1]). Append m and l to two lists at the end of each step, and return np.array of both.",
    ),
    mistakes=TILED_ATTENTION_MISTAKES,
)

ATTENTION_BYTES = NumpyQuestion(
    id="flash_attention.attention_bytes",
    notebook="concepts",
    asks="attention_bytes(length, heads, head_dim, elem_bytes): (naive, tiled) bytes through HBM for one layer",
    entry="attention_bytes",
    parts=(Part("values", 3, "calls"),),
    reference=state_bytes,
    public=(
        Call((8192, 1, 128, 2), "one head of the lesson"),
        Call((8192, 64, 128, 2), "the layer of the lesson"),
    ),
    hidden=lambda rng: [
        Call(
            (between(rng, 2, 9999), between(rng, 1, 64), between(rng, 8, 256), between(rng, 1, 8)),
            "other sizes",
        )
        for _ in range(6)
    ],
    where=f'{LESSON}/b_kernel.ipynb, "Sixty-five times"',
    hints=(
        "Both read Q, K, V and write the output. What does only the naive one write and read?",
        "The score matrix is length x length a head; it is written, read, and so are the probabilities: four times.",
        "tiled = 4 * heads * length * head_dim * elem_bytes; naive = tiled + 4 * heads * length**2 * elem_bytes",
    ),
    mistakes=ATTENTION_BYTES_MISTAKES,
)

CAUSAL_TILES = NumpyQuestion(
    id="flash_attention.causal_tiles",
    notebook="concepts",
    asks="causal_tiles(length, block_m, block_n): key tiles that all row tiles visit when masked ones are skipped",
    entry="causal_tiles",
    parts=(Part("values", 2, "calls"),),
    reference=causal_tiles,
    public=(Call((512, 64, 64)), Call((1024, 128, 64)), Call((100, 32, 64), "a ragged length")),
    hidden=lambda rng: (
        [
            Call((between(rng, 1, 3000), between(rng, 8, 200), between(rng, 8, 200)), "other sizes")
            for _ in range(8)
        ]
        + [
            Call((1000, 128, between(rng, 20, 60)), "row tiles longer than key tiles"),
            Call((1000, 48, between(rng, 100, 200)), "key tiles longer than row tiles"),
            Call(_overhanging(rng), "a last tile of rows that is nearly empty"),
        ]
    ),
    where=f'{LESSON}/b_kernel.ipynb, "Half of it is masked"',
    hints=(
        "What is the last key that any row of a tile may see?",
        "A row tile from i to i + block_m sees keys up to its own last row, which is cut off at the length.",
        "sum of ceil(min(i + block_m, length) / block_n) over i in range(0, length, block_m)",
    ),
    mistakes=CAUSAL_TILES_MISTAKES,
)

QUESTIONS = (ONLINE_SOFTMAX, TILED_ATTENTION, ATTENTION_BYTES, CAUSAL_TILES)
# Answers that hold for some calls alone.
SHORTCUTS = {
    ONLINE_SOFTMAX.id: {"the last state for all": lambda tiles: [online_states(tiles)[-1]] * len(tiles)},
    TILED_ATTENTION.id: {"as wide as queries": _as_wide_as_queries},
    ATTENTION_BYTES.id: {"two bytes always": lambda n, h, d, e: state_bytes(n, h, d, 2)},
    CAUSAL_TILES.id: {"half of all tiles": lambda n, m, b: math.ceil(n / m) * math.ceil(n / b) // 2},
}
