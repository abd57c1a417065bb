"""Share mistakes among questions of flash attention."""

import itertools

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from kernels.flash_attention import reference

TILES = (16, 32, 64, 128)  # widths that a kernel's tiles are likely to have


F32 = np.float32


def for_all_heads(inputs: dict) -> list[np.ndarray]:
    q, k, v = (inputs[x].astype(np.float64) for x in "qkv")
    return [q, *(reference.for_each_query_head(x, q.shape[1]) for x in (k, v))]


def causal_scores(inputs: dict, c: Case):
    """Scores with -inf where a query doesn't see, and values, for every query head."""
    q, k, v = for_all_heads(inputs)
    s = reference.scores(q, k, c.scalars["scale"], c.scalars.get("softcap", 0.0))
    seen = reference.visible(*s.shape[-2:], window=(c.sizes.get("W"), 0))
    return np.where(seen, s, -np.inf), v


def other_heads(which):
    """Keys and values of the head that `which(query head, group size, key heads)` names."""

    def wrong(inputs: dict, c: Case) -> dict:
        h, g = c.sizes["H"], c.sizes["G"]
        heads = [which(head, h // g, g) for head in range(h)]
        return {"o": attended(inputs | {x: inputs[x][:, heads] for x in "kv"}, c)}

    return wrong


def attended(inputs: dict, c: Case) -> np.ndarray:
    s, v = causal_scores(inputs, c)
    return reference.softmax(s)[0] @ v


def visited(c: Case, rows: int, keys: int) -> np.ndarray:
    """Return the keys that each query's program loads, with tiles of these rows and keys, or all keys if rows is 0."""
    m, n, w = c.sizes["M"], c.sizes["N"], c.sizes.get("W", c.sizes["N"])
    if not rows:
        return np.ones((m, n), bool)
    key, first = np.arange(n)[None, :], np.arange(m)[:, None] // rows * rows + n - m
    return (key >= (first - w) // keys * keys) & (key < -(-(first + rows) // keys) * keys)


TILINGS = ((0, 0), *itertools.product(TILES, TILES))


def lanes_beyond(c: Case, rows: int, keys: int) -> np.ndarray:
    """Return how many lanes after the last key each query's program computes, with tiles of `rows` and `keys`."""
    m, n = c.sizes["M"], c.sizes["N"]
    end = np.minimum(n, (np.arange(m) // rows + 1) * rows + n - m) if rows else np.full(m, n)
    return np.maximum(-(-end // (keys or 64)) * (keys or 64) - n, 0)[:, None]


def begun_at(number: float, scores):
    """Start the running maximum at a number. If all scores are far below it, fp32 has no weight left."""

    def wrong(inputs: dict, c: Case) -> dict:
        s, v = scores(inputs, c)
        with np.errstate(invalid="ignore", divide="ignore"):
            p = np.exp((s - np.maximum(s.max(-1, keepdims=True), number)).astype(F32))
            o = p.astype(DTYPES[c.dtype]).astype(F32) @ v / p.sum(-1, keepdims=True)
        return {"o": o if "M" in c.sizes else o[:, :, 0]}

    return wrong


def no_maximum(scores):
    """Take exp of the bare score: infinite from 88 on, in fp16 from 11 on, and 0 below -104."""

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


def narrow_values(scores, tile: int):
    """V rounded to fp16 before its product with the weights."""

    def wrong(inputs: dict, c: Case) -> dict:
        with np.errstate(all="ignore"):
            s, v = scores(inputs, c)
            acc, total, _ = walked(s, v.astype(DTYPES["fp16"]).astype(np.float64), c, tile, np.float64)
            o = acc / total
        return {"o": o if "M" in c.sizes else o[:, :, 0]}

    return wrong


NARROWED = "bf16 holds numbers above 65504 and fp16 does not: what is rounded to fp16 on the way?"
SUM = "close, but off in the third digit over many keys: are the accumulator and the sum fp32 from first to last?"
STAND_INS = (-1e4, -1e9)  # not -1e30, because no score of a model comes near that
STAND_IN = "a finite number replaces minus infinity, and scores may be below it: mask with float('-inf'), and start the running maximum there"
FROM_ZERO = "wrong if all scores of a row are far below zero: a running maximum starts at -inf, and a masked score is -inf, never 0"


def summed_in_fp16(into: str, p: str, v: str) -> str:
    """Return a product whose sums over one tile are in fp16, where its operands are."""
    return (
        f"if {v}.dtype == tl.float16:\n"
        f"            {into} += tl.dot({p}.to({v}.dtype), {v}, out_dtype=tl.float16).to(tl.float32)\n"
        "        else:\n"
        f"            {into} = tl.dot({p}.to({v}.dtype), {v}, {into})"
    )


TILES_IN_FP16 = "acc = acc * alpha[:, None]\n        " + summed_in_fp16("acc", "p", "v")
