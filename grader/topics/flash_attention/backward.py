"""Attention's gradients: how far a right backward may be from the reference, and what each common mistake gives."""

import itertools

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.draws import ROUNDING
from grader.questions.families import dense, family, one_stride, same_strides, within_limit
from grader.topics.flash_attention.mistakes import NARROWED, SUM, TILES, causal, visited
from grader.topics.flash_attention.wanted import SUMS, WEIGHT_ROUNDING
from kernels.flash_attention import reference


def gradients(inputs: dict, c: Case) -> dict:
    found = reference.attention_backward(
        *(inputs[x] for x in ("do", "q", "k", "v")), causal=True, scale=c.scalars["scale"]
    )
    return dict(zip(("dq", "dk", "dv"), found, strict=True))


def _weights(inputs: dict, c: Case, seen, normal=True, scale=None) -> np.ndarray:
    """What a backward computes again from the saved log-sum-exp."""
    s = reference.scores(*(inputs[x].astype(np.float64) for x in "qk"), scale or c.scalars["scale"])
    with np.errstate(over="ignore"):
        return np.where(seen, np.exp(s - normal * inputs["lse"].astype(np.float64)[..., None]), 0)


def gradient_within(inputs: dict, c: Case, want: dict) -> dict:
    """Weights and dS are rounded before their products, delta comes from a rounded output; sums are fp32."""
    q, k, v, do, o = (np.abs(inputs[x].astype(np.float64)) for x in ("q", "k", "v", "do", "o"))
    unit, scale = WEIGHT_ROUNDING[c.dtype], abs(c.scalars["scale"])
    p, across = _weights(inputs, c, causal(c)), v.swapaxes(-1, -2)
    share = (
        unit + SUMS + 2.0**-16 * scale * (q @ k.swapaxes(-1, -2))
    )  # of a weight, with its score's own error
    delta = (o * do).sum(-1, keepdims=True)
    ds = scale * p * (share * (do @ across + delta) + unit * delta)
    off = {"dq": ds @ k, "dk": ds.swapaxes(-1, -2) @ q, "dv": (p * share).swapaxes(-1, -2) @ do}
    return {name: ROUNDING[c.dtype] * (np.abs(w) + off[name]) + off[name] + 1e-5 for name, w in want.items()}


def _as_given(scale: float) -> float:
    return scale


def _by_hand(seen=None, delta=True, normal=True, of_q=_as_given, of_k=_as_given, summed=None, usual=False):
    """As a kernel computes them, with one step changed. `summed(parts)` adds up what the tiles bring."""

    def wrong(inputs: dict, c: Case) -> dict:
        q, k, v, do, o = (inputs[x].astype(np.float64) for x in ("q", "k", "v", "do", "o"))
        with np.errstate(all="ignore"):
            scale = c.sizes["D"] ** -0.5 if usual else c.scalars["scale"]
            p = _weights(inputs, c, causal(c) if seen is None else seen(c), normal, scale)
            ds = p * (do @ v.swapaxes(-1, -2) - (o * do).sum(-1, keepdims=True) * delta)
            product = summed(c) if summed else np.matmul
            return {
                "dq": product(ds, k) * of_q(scale),
                "dk": product(ds.swapaxes(-1, -2), q) * of_k(scale),
                "dv": product(p.swapaxes(-1, -2), do),
            }

    return wrong


def _in_pieces(block: int, dtype: str = ""):
    """Sums rounded to `dtype`, or to the output's own, after each tile."""

    def summed(c: Case):
        to = DTYPES[dtype or c.dtype]

        def product(a, b):
            total = np.zeros((*a.shape[:-1], b.shape[-1]))
            for start in range(0, a.shape[-1], block):
                piece = slice(start, start + block)
                total = (total + a[..., piece] @ b[..., piece, :]).astype(to).astype(np.float64)
            return total

        return product

    return _by_hand(summed=summed)


def _ends(tile: int):
    """Only whole tiles of rows and of keys take part in the sums."""

    def summed(c: Case):
        def product(a, b):
            kept = max(1, a.shape[-1] // tile * tile)
            return a[..., :kept] @ b[..., :kept, :]

        return product

    return _by_hand(summed=summed)


def _all_keys(c: Case) -> np.ndarray:
    return np.ones((c.sizes["M"], c.sizes["N"]), bool)


def _from_the_start(c: Case) -> np.ndarray:
    return np.tri(c.sizes["M"], c.sizes["N"]) > 0


def _strictly(c: Case) -> np.ndarray:
    return reference.visible(c.sizes["M"], c.sizes["N"], window=(None, -1))


def _keys_of_the_first(*spot):
    """Keys and values of the first sequence or head for all, with each row's own log-sum-exp."""

    def wrong(inputs: dict, c: Case) -> dict:
        return _by_hand()(inputs | {x: np.broadcast_to(inputs[x][spot], inputs[x].shape) for x in "kv"}, c)

    return wrong


def passes(wrong) -> tuple:
    """The mistake in both passes, in the queries' alone, in the keys' alone."""

    def with_dq_of(one, others):
        return lambda inputs, c: others(inputs, c) | {"dq": one(inputs, c)["dq"]}

    return wrong, with_dq_of(wrong, gradients), with_dq_of(gradients, wrong)


def _never(scale: float) -> float:
    return 1.0


def _visited(tile: int):
    """Keys that square tiles visit anyway: dq's by each tile of rows, dk's and dv's by each tile of keys."""

    def wrong(inputs: dict, c: Case) -> dict:
        m, n = c.sizes["M"], c.sizes["N"]
        row, key = np.arange(m)[:, None], np.arange(n)[None, :]
        first = np.maximum(key // tile * tile - (n - m), 0) // tile * tile
        by_keys = _by_hand(seen=lambda c: row >= first)(inputs, c)
        return by_keys | {"dq": _by_hand(seen=lambda c: visited(c, tile, tile))(inputs, c)["dq"]}

    return wrong


BACKWARD = (
    family(
        "low precision", SUM, *(passes(_in_pieces(b))[i] for b in (64, 16) for i in (0, 2))
    ),  # dq's own rounding hides it
    family("beyond fp16", NARROWED, *passes(_in_pieces(64, "fp16"))),
    family("no scale", "dq and dk carry the scale of the scores once", _by_hand(of_q=_never, of_k=_never)),
    family("no scale on dq", "dq carries the scale of the scores once, as dk does", _by_hand(of_q=_never)),
    family("no scale on dk", "dk carries the scale of the scores once, as dq does", _by_hand(of_k=_never)),
    family(
        "the usual scale",
        "the scale is p.scale, which need not be 1 / sqrt(D)",
        *passes(_by_hand(usual=True)),
    ),
    family(
        "no mask",
        "weights of keys that the query never saw: mask p here too, its gradient is 0",
        *passes(_by_hand(seen=_all_keys)),
        *(one for tile in TILES for one in passes(_visited(tile))),
    ),
    family(
        "mask from the start",
        "query i stands at key i + N - M: with more keys than queries the mask starts further right",
        *passes(_by_hand(seen=_from_the_start)),
    ),
    family("strictly causal", "a query sees its own key too: <=, not <", *passes(_by_hand(seen=_strictly))),
    family(
        "no delta",
        "ds = p * (dp - delta): without delta the softmax's own sum has no gradient",
        *passes(_by_hand(delta=False)),
    ),
    family(
        "not normalised",
        "weights are exp(s - lse): without the log-sum-exp a row's weights do not add up to 1",
        *passes(_by_hand(normal=False)),
    ),
    family(
        "tail left out",
        "the last rows or keys that fill no tile are left out of the sums",
        *(one for tile in TILES for one in passes(_ends(tile))),
    ),
    family(
        "the first sequence",
        "every sequence of the batch reads the keys of the first: where does the batch's stride come in?",
        *passes(_keys_of_the_first(slice(1))),
    ),
    family(
        "the first head",
        "every head reads the keys of the first: where does the head's stride come in?",
        *passes(_keys_of_the_first(slice(None), slice(1))),
    ),
)

GRADIENTS = ("q", "k", "v", "o", "do", "dq", "dk", "dv")
BACKWARD_SHORTCUTS = {
    **{f"N up to {most}": within_limit("N", most) for most in (128, 256, 512, 1024, 4096)},
    **{f"M up to {most}": within_limit("M", most) for most in (64, 256, 512, 1024)},
    **{
        f"stride {axis} of {name} taken for 1": one_stride(name, axis)
        for name in GRADIENTS
        for axis in (2, 3)
    },
    **{f"{name} taken for dense": dense(name) for name in (*GRADIENTS, "lse")},
    **{
        f"{used}'s strides for {of}": same_strides(used, of)
        for used, of in itertools.permutations(GRADIENTS, 2)
    },
    "one batch": within_limit("B", 1),
    "one head": within_limit("H", 1),
}
