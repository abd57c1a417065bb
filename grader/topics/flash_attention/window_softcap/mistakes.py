"""List the mistakes of *window softcap*, a row each."""

import itertools

import numpy as np

from grader.questions import Case
from grader.questions.families import computing, dense, family, one_stride, same_strides, within_limit
from grader.questions.rows import edited
from grader.topics.flash_attention.shared import causal
from grader.topics.flash_attention.shared_mistakes import (
    FROM_ZERO,
    NARROWED,
    STAND_IN,
    STAND_INS,
    TILINGS,
    begun_at,
    causal_scores,
    for_all_heads,
    lanes_beyond,
    narrow,
    narrow_values,
    other_heads,
    visited,
)
from kernels.flash_attention import reference

W_TABLE, CAPS = (0, 16, 20, 25, 32, 33, 64, 70, 128, 256, 1000), (1, 2, 5, 10, 15, 20, 30, 50)


def _windowed(window=lambda w: w, cap=lambda cap: cap, scale=lambda c: c.scalars["scale"]):
    """Attention with another window, cap or scale."""

    def wrong(inputs: dict, c: Case) -> dict:
        q, k, v = (inputs[x].astype(np.float64) for x in "qkv")
        options = {
            "window": (window(c.sizes["W"]), 0),
            "scale": scale(c),
            "softcap": cap(c.scalars["softcap"]),
        }
        return {"o": reference.attention(q, k, v, **options)[0]}

    return wrong


def _capped(inputs: dict, c: Case):
    q, k, v = for_all_heads(inputs)
    return reference.scores(q, k, c.scalars["scale"], c.scalars["softcap"]), v


def _seen(c: Case) -> np.ndarray:
    return reference.visible(c.sizes["M"], c.sizes["N"], window=(c.sizes["W"], 0))


def _stood_for(number: float, rows: int, keys: int):
    """Give masked keys of visited tiles this score, keys beyond N too, whose values are 0."""

    def wrong(inputs: dict, c: Case) -> dict:
        s, v = _capped(inputs, c)
        s = np.where(visited(c, rows, keys), np.where(_seen(c), s, number), -np.inf)
        beyond = lanes_beyond(c, rows, keys)
        top = np.maximum(s.max(-1, keepdims=True), np.where(beyond > 0, number, -np.inf))
        p = np.exp(s - top)
        return {"o": p @ v / (p.sum(-1, keepdims=True) + beyond * np.exp(number - top))}

    return wrong


def _cap_after_mask(rows: int, keys: int):
    def wrong(inputs: dict, c: Case) -> dict:
        s, v = _capped(inputs, c)
        s = np.where(_seen(c), s, -c.scalars["softcap"])
        return {"o": reference.softmax(np.where(visited(c, rows, keys), s, -np.inf))[0] @ v}

    return wrong


def _no_window(rows: int, keys: int):
    """Every key that a program visits counts, back to the start of its first row's window or of all keys."""

    def wrong(inputs: dict, c: Case) -> dict:
        s, v = _capped(inputs, c)
        return {"o": reference.softmax(np.where(visited(c, rows, keys) & causal(c), s, -np.inf))[0] @ v}

    return wrong


def _cap_before_scale(inputs: dict, c: Case) -> dict:
    q, k, v = for_all_heads(inputs)
    s = c.scalars["scale"] * reference.scores(q, k, 1.0, c.scalars["softcap"])
    return {"o": reference.softmax(np.where(_seen(c), s, -np.inf))[0] @ v}


def _overflowing(tanh):
    """A tanh of exponentials in fp32, where inf over inf is NaN."""

    def wrong(inputs: dict, c: Case) -> dict:
        q, k, v = for_all_heads(inputs)
        with np.errstate(all="ignore"):
            x = (reference.scores(q, k, c.scalars["scale"]) / c.scalars["softcap"]).astype(np.float32)
            s = np.where(_seen(c), c.scalars["softcap"] * tanh(x).astype(np.float64), -np.inf)
            return {"o": reference.softmax(s)[0] @ v}

    return wrong


def _of_twice(x):
    return (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1)


def _of_both_signs(x):
    return (np.exp(x) - np.exp(-x)) / (np.exp(x) + np.exp(-x))


def _empty_first_tile(rows: int, keys: int):
    """Return NaN for a row whose first tile holds none of its keys, since -inf minus -inf is NaN and stays."""

    def wrong(inputs: dict, c: Case) -> dict:
        (s, v), seen = _capped(inputs, c), _seen(c)
        m, n = seen.shape
        first = np.maximum(np.arange(m) // rows * rows + n - m - c.sizes["W"], 0) // keys * keys
        empty = ~(seen & (np.arange(n)[None, :] < first[:, None] + keys)).any(-1)
        o = reference.softmax(np.where(seen, s, -np.inf))[0] @ v
        return {"o": np.where(empty[:, None], np.nan, o)}

    return wrong


def _nearest(table):
    return lambda value: min(table, key=lambda known: abs(known - value))


from_w_table = computing(_windowed(window=_nearest(W_TABLE)))
from_cap_table = computing(_windowed(cap=_nearest(CAPS)))


MISTAKES = (
    family(
        "no window",
        "the query sees keys further back than W: with the query at key p, the mask is p - W <= key <= p",
        *(_no_window(*tiles) for tiles in TILINGS),
        edits=(("& (keys[None, :] >= place - W)", ""),),
    ),
    family(
        "one key less",
        "the window holds W keys before the query's own, W + 1 in all",
        _windowed(window=lambda w: w - 1),
        edits=((">= place - W", "> place - W"),),
    ),
    family(
        "one key more",
        "the window holds W keys before the query's own, W + 1 in all: here it holds one too many",
        _windowed(window=lambda w: w + 1),
        edits=(
            (">= place - W", ">= place - W - 1"),
            ("N - M - W)", "N - M - W - 1)"),
        ),
    ),
    family(
        "no cap",
        "the scores do not pass through softcap * tanh(s / softcap)",
        _windowed(cap=lambda cap: 0.0),
        edits=(("s = softcap * (1 - 2 / (tl.exp(2 * x) + 1))", "s = softcap * x"),),
    ),
    family(
        "cap after the mask",
        "a masked score is -softcap here, and must be minus infinity: cap first, then mask with -inf",
        *(_cap_after_mask(*tiles) for tiles in TILINGS),
        edits=(
            (
                's = tl.where(seen, s, float("-inf"))',
                's = tl.where(keys[None, :] < N, tl.where(seen, s, -softcap), float("-inf"))',
            ),
        ),
    ),
    family(
        "cap before the scale",
        "the cap works on scaled scores: multiply by p.scale first",
        _cap_before_scale,
        edits=(
            ("(scale / softcap)", "(1.0 / softcap)"),
            ("s = softcap * (1", "s = scale * softcap * (1"),
        ),
    ),
    family(
        "tanh not multiplied",
        "tanh(s / softcap) is between -1 and 1: multiply it by softcap",
        lambda i, c: {
            "o": reference.softmax(np.where(_seen(c), _capped(i, c)[0] / c.scalars["softcap"], -np.inf))[0]
            @ _capped(i, c)[1]
        },
        edits=(("s = softcap * (1 - 2", "s = (1 - 2"),),
    ),
    family(
        "no scale",
        "the scores are not scaled: multiply q k by p.scale",
        _windowed(scale=lambda c: 1.0),
        edits=(("(scale / softcap)", "(1.0 / softcap)"),),
    ),
    family(
        "the usual scale",
        "the scale is p.scale, which need not be 1 / sqrt(D)",
        _windowed(scale=lambda c: c.sizes["D"] ** -0.5),
        edits=(("(scale / softcap)", "(D ** -0.5 / softcap)"),),
    ),
    family(
        "tanh overflows",
        "NaN if a score is far beyond the cap: e**2x overflows, so write tanh as 1 - 2 / (e**2x + 1)",
        _overflowing(_of_twice),
        _overflowing(_of_both_signs),
        edits=(("(1 - 2 / (tl.exp(2 * x) + 1))", "((tl.exp(x) - tl.exp(-x)) / (tl.exp(x) + tl.exp(-x)))"),),
    ),
    family(
        "empty first tile",
        "NaN: a row that sees no key in its first tile has a maximum of -inf, and -inf minus -inf is NaN",
        *(_empty_first_tile(*tiles) for tiles in TILINGS[1:] if tiles[1] <= tiles[0]),
        edits=(('base = tl.where(m_new == float("-inf"), 0.0, m_new)', "base = m_new"),),
    ),
    family(
        "maximum from zero",
        FROM_ZERO,
        begun_at(0, causal_scores),
        edits=(
            ('m = tl.full((BLOCK_M,), float("-inf"), tl.float32)', "m = tl.zeros((BLOCK_M,), tl.float32)"),
        ),
    ),
    family(
        "a number for minus infinity",
        STAND_IN,
        *(_stood_for(number, *tiles) for number in STAND_INS for tiles in TILINGS),
        *(begun_at(number, causal_scores) for number in STAND_INS),
        edits=(('tl.where(seen, s, float("-inf"))', "tl.where(seen, s, -1e4)"),),
    ),
    family(
        "interleaved heads",
        "query head h belongs to key head h // (H // G), not h % G",
        other_heads(lambda h, per, g: h % g),
        edits=(("group = head // (H // G)", "group = head % G"),),
    ),
    family(
        "beyond fp16",
        NARROWED,
        narrow(causal_scores, 64, "fp16"),
        narrow_values(causal_scores, 64),
        edits=(
            ("acc = tl.zeros((BLOCK_M, D), tl.float32)", "acc = tl.zeros((BLOCK_M, D), tl.float16)"),
            (
                "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])",
                "acc = (acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)).to(tl.float16)",
            ),
        ),
    ),
    edited(
        "no window, from the first key",
        ("& (keys[None, :] >= place - W)", ""),
        ("max(0, tile * BLOCK_M + N - M - W)", "0 * tile"),
        told_as="no window",
    ),
    edited("not causal", ("(keys[None, :] <= place)", "(keys[None, :] <= place + 1)")),
    edited("every key from the start", ("max(0, tile * BLOCK_M + N - M - W)", "0 * tile"), part="traffic"),
    edited(
        "the window's start as if there were as many keys as queries",
        ("max(0, tile * BLOCK_M + N - M - W)", "max(0, tile * BLOCK_M - W)"),
        part="traffic",
    ),
    edited(
        "operands widened",
        ("tl.dot(q, k)", "tl.dot(q.to(tl.float32), k.to(tl.float32))"),
        (
            "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])",
            "acc = tl.dot(p, v.to(tl.float32), acc * alpha[:, None])",
        ),
        part="traffic",
    ),
    edited(
        "every key from the start, and idle programs",
        ("max(0, tile * BLOCK_M + N - M - W)", "0 * tile"),
        ("(triton.cdiv(p.M, 64), p.B * p.H)", "(4 * triton.cdiv(p.M, 64), p.B * p.H)"),
        part="traffic",
    ),
)


SHORTCUTS = {
    "W from a table": from_w_table,
    "softcap from a table": from_cap_table,
    **{f"N up to {most}": within_limit("N", most) for most in (128, 512, 2048, 4096)},
    **{f"M up to {most}": within_limit("M", most) for most in (64, 256, 512)},
    **{f"stride {axis} of {name} taken for 1": one_stride(name, axis) for name in "qkvo" for axis in (2, 3)},
    **{f"{name} taken for dense": dense(name) for name in "qkvo"},
    **{
        f"{used}'s strides for {of}": same_strides(used, of) for used, of in itertools.permutations("qkvo", 2)
    },
}
