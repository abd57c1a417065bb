"""What goes wrong in the causal forward: the whole output that each mistake gives, and the sentence that tells of it."""

import itertools

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.families import dense, family, one_stride, same_strides, within_limit
from kernels.flash_attention import reference

TILES = (16, 32, 64, 128)  # widths that a kernel's tiles are likely to have
F32 = np.float32


def for_all_heads(inputs: dict) -> list[np.ndarray]:
    q, k, v = (inputs[x].astype(np.float64) for x in "qkv")
    return [q, *(reference.for_each_query_head(x, q.shape[1]) for x in (k, v))]


def weighed(s, top, v, total=None):
    """Values weighed by exp(s - top), over the sum of the same weights or of others."""
    p = np.exp(s - top)
    return p @ v / (p if total is None else total).sum(-1, keepdims=True)


def causal(c: Case) -> np.ndarray:
    return reference.visible(c.sizes["M"], c.sizes["N"], causal=True)


def causal_scores(inputs: dict, c: Case):
    """Scores with -inf where a query doesn't see, and values, for every query head."""
    q, k, v = for_all_heads(inputs)
    s = reference.scores(q, k, c.scalars["scale"], c.scalars.get("softcap", 0.0))
    seen = reference.visible(*s.shape[-2:], window=(c.sizes.get("W"), 0))
    return np.where(seen, s, -np.inf), v


def variant(**change):
    """The reference with one of its options exchanged."""

    def wrong(inputs: dict, c: Case) -> dict:
        q, k, v = (inputs[x].astype(np.float64) for x in "qkv")
        options = {"causal": True, "scale": c.scalars["scale"], **change}
        return {"o": reference.attention(q, k, v, **options)[0]}

    return wrong


def other_heads(which):
    """Keys and values of the head that `which(query head, group size, key heads)` names."""

    def wrong(inputs: dict, c: Case) -> dict:
        h, g = c.sizes["H"], c.sizes["G"]
        heads = [which(head, h // g, g) for head in range(h)]
        return {"o": _attended(inputs | {x: inputs[x][:, heads] for x in "kv"}, c)}

    return wrong


def first_batch(inputs: dict, c: Case) -> dict:
    return {"o": _attended(inputs | {x: np.broadcast_to(inputs[x][:1], inputs[x].shape) for x in "kv"}, c)}


def _attended(inputs: dict, c: Case) -> np.ndarray:
    s, v = causal_scores(inputs, c)
    return reference.softmax(s)[0] @ v


def _aligned_at_start(inputs: dict, c: Case) -> dict:
    q, k, v = for_all_heads(inputs)
    s = np.where(np.tri(q.shape[2], k.shape[2]), reference.scores(q, k, c.scalars["scale"]), -np.inf)
    return {"o": reference.softmax(s)[0] @ v}


def visited(c: Case, rows: int, keys: int) -> np.ndarray:
    """Which keys each query's program loads, with tiles of so many rows and keys; all of them where rows is 0."""
    m, n, w = c.sizes["M"], c.sizes["N"], c.sizes.get("W", c.sizes["N"])
    if not rows:
        return np.ones((m, n), bool)
    key, first = np.arange(n)[None, :], np.arange(m)[:, None] // rows * rows + n - m
    return (key >= (first - w) // keys * keys) & (key < -(-(first + rows) // keys) * keys)


TILINGS = ((0, 0), *itertools.product(TILES, TILES))


def _beyond_the_diagonal(rows: int, keys: int):
    """Masked keys of the tiles that are visited anyway keep their score."""

    def wrong(inputs: dict, c: Case) -> dict:
        q, k, v = for_all_heads(inputs)
        s = reference.scores(q, k, c.scalars["scale"])
        return {"o": reference.softmax(np.where(visited(c, rows, keys), s, -np.inf))[0] @ v}

    return wrong


def lanes_beyond(c: Case, rows: int, keys: int) -> np.ndarray:
    """How many lanes behind the last key each query's program computes, with tiles of so many rows and keys."""
    m, n = c.sizes["M"], c.sizes["N"]
    end = np.minimum(n, (np.arange(m) // rows + 1) * rows + n - m) if rows else np.full(m, n)
    return np.maximum(-(-end // (keys or 64)) * (keys or 64) - n, 0)[:, None]


def _masked_with(number: float, rows: int, keys: int):
    """Masked keys of the tiles that are visited count with such a score, those beyond N too, whose values are 0."""

    def wrong(inputs: dict, c: Case) -> dict:
        q, k, v = for_all_heads(inputs)
        s = np.where(causal(c), reference.scores(q, k, c.scalars["scale"]), number)
        s = np.where(visited(c, rows, keys), s, -np.inf)
        beyond = lanes_beyond(c, rows, keys)
        top = np.maximum(s.max(-1, keepdims=True), np.where(beyond > 0, number, -np.inf))
        p = np.exp(s - top)
        return {"o": p @ v / (p.sum(-1, keepdims=True) + beyond * np.exp(number - top))}

    return wrong


def _ends(end):
    """Keys from `end(first row of the tile's last key + 1, N)` on are left out, with tiles of `rows` rows."""

    def with_rows(rows: int):
        def wrong(inputs: dict, c: Case) -> dict:
            s, v = causal_scores(inputs, c)
            m, n = s.shape[-2:]
            behind = (np.arange(m) // rows + 1) * rows + n - m
            kept = np.arange(n)[None, :] < end(np.minimum(behind, n), rows)[:, None]
            return {"o": reference.softmax(np.where(kept, s, -np.inf))[0] @ v}

        return wrong

    return with_rows


def _end_from_the_start(rows: int, keys: int):
    """The walk over tiles of keys ends where it would if there were as many keys as queries."""

    def wrong(inputs: dict, c: Case) -> dict:
        s, v = causal_scores(inputs, c)
        m, n = s.shape[-2:]
        end = -(-(np.arange(m) // rows + 1) * rows // keys) * keys
        return {"o": reference.softmax(np.where(np.arange(n) < end[:, None], s, -np.inf))[0] @ v}

    return wrong


def _strictly_causal(nothing: float):
    """A first query that sees no key gives zeros, or NaN."""

    def wrong(inputs: dict, c: Case) -> dict:
        o = variant(causal=False, window=(None, -1))(inputs, c)["o"]
        blind = np.arange(c.sizes["M"])[:, None] + c.sizes["N"] - c.sizes["M"] < 1
        return {"o": np.where(blind, nothing, o)}

    return wrong


def _undivided(inputs: dict, c: Case) -> dict:
    s, v = causal_scores(inputs, c)
    return {"o": np.exp(s - s.max(-1, keepdims=True)) @ v}


def maximum_when_it_came(s, tile: int):
    """For each key the running maximum at the time of its tile: what is not rescaled stays weighed against it."""
    tops = [s[..., : start + tile].max(-1, keepdims=True) for start in range(0, s.shape[-1], tile)]
    return np.concatenate([np.repeat(top, tile, -1) for top in tops], -1)[..., : s.shape[-1]]


def not_rescaled(tile: int, scaled: str):
    """Of the accumulator and the sum, those that are not in `scaled` keep what they had under an older maximum."""

    def wrong(inputs: dict, c: Case) -> dict:
        s, v = causal_scores(inputs, c)
        last, then = s.max(-1, keepdims=True), maximum_when_it_came(s, tile)
        with np.errstate(invalid="ignore"):
            own, whole = np.where(np.isneginf(s), 0, np.exp(s - then)), np.exp(s - last)
        acc, total = (whole if part in scaled else own for part in ("acc", "sum"))
        return {"o": acc @ v / total.sum(-1, keepdims=True)}

    return wrong


def begun_at(number: float, scores):
    """The running maximum starts at a number: where all scores lie far below it, fp32 has no weight left."""

    def wrong(inputs: dict, c: Case) -> dict:
        s, v = scores(inputs, c)
        with np.errstate(invalid="ignore", divide="ignore"):
            p = np.exp((s - np.maximum(s.max(-1, keepdims=True), number)).astype(F32))
            o = p.astype(DTYPES[c.dtype]).astype(F32) @ v / p.sum(-1, keepdims=True)
        return {"o": o if "M" in c.sizes else o[:, :, 0]}

    return wrong


def no_maximum(scores):
    """exp of the bare score: infinite from 88 on, in fp16 from 11 on, and 0 below -104."""

    def wrong(inputs: dict, c: Case) -> dict:
        s, v = scores(inputs, c)
        with np.errstate(all="ignore"):
            p = np.exp(s.astype(F32))
            o = p.astype(DTYPES[c.dtype]).astype(F32) @ v.astype(F32) / p.sum(-1, keepdims=True)
        return {"o": o if "M" in c.sizes else o[:, :, 0]}

    return wrong


def walked(s, v, c: Case, tile: int, to) -> tuple:
    """(accumulator, sum, maximum) after a walk over tiles of keys that rounds the accumulator to `to` after each."""
    acc, total, m = 0.0, 0.0, np.full((*s.shape[:-1], 1), -np.inf)
    for start in range(0, s.shape[-1], tile):
        some = s[..., start : start + tile]
        top = np.maximum(m, some.max(-1, keepdims=True))
        base = np.where(np.isneginf(top), 0, top)
        p, kept = np.exp(some - base), np.exp(m - base)
        stored = p.astype(DTYPES[c.dtype]).astype(np.float64)
        acc = (acc * kept + stored @ v[..., start : start + tile, :]).astype(to).astype(np.float64)
        total, m = total * kept + p.sum(-1, keepdims=True), top
    return acc, total, m


def narrow(scores, tile: int, dtype: str = ""):
    """The accumulator rounded to `dtype`, or to the output's own, after each tile of keys."""

    def wrong(inputs: dict, c: Case) -> dict:
        with np.errstate(all="ignore"):
            acc, total, _ = walked(*scores(inputs, c), c, tile, DTYPES[dtype or c.dtype])
            o = acc / total
        return {"o": o if "M" in c.sizes else o[:, :, 0]}

    return wrong


NARROWED = "bf16 holds numbers above 65504 and fp16 does not: what is rounded to fp16 on the way?"
SUM = "close, but off in the third digit over many keys: are the accumulator and the sum fp32 from first to last?"
STAND_INS = (-1e4, -1e9)  # not -1e30: no score of a model comes near it
STAND_IN = "a number stands for minus infinity, and scores may lie below it: mask with float('-inf'), and start the running maximum there"
FROM_ZERO = "wrong where all scores of a row lie far below zero: a running maximum starts at -inf, and what stands for a missing one is -inf too, never 0"

FORWARD = (
    family("low precision", SUM, *(narrow(causal_scores, b) for b in (16, 64, 128))),
    family("beyond fp16", NARROWED, narrow(causal_scores, 64, "fp16")),
    family(
        "no maximum",
        "wrong only where a score is large: is the running maximum subtracted before exp?",
        no_maximum(causal_scores),
    ),
    family("maximum from zero", FROM_ZERO, begun_at(0, causal_scores)),
    family(
        "a number for minus infinity",
        STAND_IN,
        *(_masked_with(number, *tiles) for number in STAND_INS for tiles in TILINGS),
        *(begun_at(number, causal_scores) for number in STAND_INS),
    ),
    family(
        "no mask",
        "queries see keys behind their own here: is the causal mask applied to the scores, with -inf, before the maximum?",
        *(_beyond_the_diagonal(*tiles) for tiles in TILINGS),
    ),
    family("no scale", "the scores are not scaled: multiply q k by p.scale", variant(scale=1.0)),
    family("the usual scale", "the scale is p.scale, which need not be 1 / sqrt(D)", variant(scale=None)),
    family(
        "mask from the start",
        "query i stands at key i + N - M: with more keys than queries the mask starts further right",
        _aligned_at_start,
    ),
    family(
        "interleaved heads",
        "query head h belongs to key head h // (H // G), not h % G",
        other_heads(lambda h, per, g: h % g),
    ),
    family(
        "the first key head",
        "every query head reads the first key head: it belongs to h // (H // G)",
        other_heads(lambda h, per, g: 0),
    ),
    family(
        "the first sequence",
        "every sequence of the batch reads the keys of the first: where does the batch's stride come in?",
        first_batch,
    ),
    family(
        "strictly causal",
        "a query sees its own key too: <=, not <",
        _strictly_causal(np.nan),
        _strictly_causal(0.0),
    ),
    family(
        "masked with zero",
        "a masked score must be -inf: a score of 0 still has a weight of exp(0 - m)",
        *(_masked_with(0.0, *tiles) for tiles in TILINGS),
    ),
    family(
        "diagonal left out",
        "the tile on the diagonal is left out: the loop ends behind the last row's own key",
        *(_ends(lambda end, rows: np.maximum(end - rows, 1))(b) for b in TILES),
    ),
    family(
        "tail left out",
        "the last keys that fill no tile are left out: the loop runs to the end, and the load is masked",
        *(_ends(lambda end, rows, b=b: np.maximum(end // b * b, 1))(64) for b in TILES),
    ),
    family(
        "end from the start",
        "the loop over keys ends too early where there are more keys than queries: its end needs N - M too, (tile + 1) * BLOCK_M + N - M",
        *(_end_from_the_start(*tiles) for tiles in itertools.product(TILES, TILES)),
    ),
    family("no division", "the output is not divided by the running sum", _undivided),
    family(
        "no rescale",
        "right for one tile of keys and wrong for more: the accumulator and the sum are scaled by exp(m_old - m_new)",
        *(not_rescaled(b, kept) for b in TILES for kept in ("", "acc", "sum")),
    ),
)

FORWARD_SHORTCUTS = {
    **{f"N up to {most}": within_limit("N", most) for most in (128, 512, 1664, 2048, 4096)},
    **{f"M up to {most}": within_limit("M", most) for most in (64, 256, 1024)},
    **{f"stride {axis} of {name} taken for 1": one_stride(name, axis) for name in "qkvo" for axis in (2, 3)},
    **{f"{name} taken for dense": dense(name) for name in "qkvo"},
    **{
        f"{used}'s strides for {of}": same_strides(used, of) for used, of in itertools.permutations("qkvo", 2)
    },
    "D of 64 or less": within_limit("D", 64),
    "one batch": within_limit("B", 1),
    "two heads": within_limit("H", 2),
    "as many keys as queries": lambda question, c: c.sizes["M"] != c.sizes["N"],
}
