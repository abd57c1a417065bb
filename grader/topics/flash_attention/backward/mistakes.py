"""List the mistakes of *backward*, a row each."""

import itertools

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.families import dense, family, one_stride, same_strides, within_limit
from grader.questions.rows import edited
from grader.topics.flash_attention.backward.cases import gradients, weights
from grader.topics.flash_attention.shared import causal
from grader.topics.flash_attention.shared_mistakes import NARROWED, SUM, TILES, summed_in_fp16, visited
from kernels.flash_attention import reference


def _as_given(scale: float) -> float:
    return scale


def _by_hand(seen=None, delta=True, normal=True, of_q=_as_given, of_k=_as_given, summed=None, usual=False):
    """As a kernel computes them, with one step changed. `summed(parts)` adds up what the tiles bring."""

    def wrong(inputs: dict, c: Case) -> dict:
        q, k, v, do, o = (inputs[x].astype(np.float64) for x in ("q", "k", "v", "do", "o"))
        with np.errstate(all="ignore"):
            scale = c.sizes["D"] ** -0.5 if usual else c.scalars["scale"]
            p = weights(inputs, c, causal(c) if seen is None else seen(c), normal, scale)
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
    """Return the keys that square tiles visit anyway: dq's by each tile of rows, dk's and dv's by each tile of keys."""

    def wrong(inputs: dict, c: Case) -> dict:
        m, n = c.sizes["M"], c.sizes["N"]
        row, key = np.arange(m)[:, None], np.arange(n)[None, :]
        first = np.maximum(key // tile * tile - (n - m), 0) // tile * tile
        by_keys = _by_hand(seen=lambda c: row >= first)(inputs, c)
        return by_keys | {"dq": _by_hand(seen=lambda c: visited(c, tile, tile))(inputs, c)["dq"]}

    return wrong


GRADIENTS = ("q", "k", "v", "o", "do", "dq", "dk", "dv")


MISTAKES = (
    family(
        "low precision",
        SUM,
        *(passes(_in_pieces(b))[i] for b in (64, 16) for i in (0, 2)),
        edits=(
            (
                "dv = tl.dot(pt.to(do.dtype), do, dv)",
                "dv = (dv + tl.dot(pt.to(do.dtype), do)).to(do.dtype).to(tl.float32)",
            ),
            (
                "dk = tl.dot(dst.to(q.dtype), q, dk)",
                "dk = (dk + tl.dot(dst.to(q.dtype), q)).to(q.dtype).to(tl.float32)",
            ),
        ),
    ),
    family(
        "beyond fp16",
        NARROWED,
        *passes(_in_pieces(64, "fp16")),
        edits=(
            ("dk = tl.zeros((BLOCK_N, D), tl.float32)", "dk = tl.zeros((BLOCK_N, D), tl.float16)"),
            ("dk = tl.dot(dst.to(q.dtype), q, dk)", "dk = (dk + tl.dot(dst.to(q.dtype), q)).to(tl.float16)"),
            ("(dk * scale)", "(dk.to(tl.float32) * scale)"),
        ),
    ),
    family(
        "no scale",
        "multiply dq and dk by the scale of the scores just once",
        _by_hand(of_q=_never, of_k=_never),
        edits=(
            ("dq * scale", "dq"),
            ("dk * scale", "dk"),
        ),
    ),
    family(
        "no scale on dq",
        "multiply dq by the scale of the scores once, like dk",
        _by_hand(of_q=_never),
        edits=(("dq * scale", "dq"),),
    ),
    family(
        "no scale on dk",
        "multiply dk by the scale of the scores once, like dq",
        _by_hand(of_k=_never),
        edits=(("dk * scale", "dk"),),
    ),
    family(
        "the usual scale",
        "the scale is p.scale, which need not be 1 / sqrt(D)",
        *passes(_by_hand(usual=True)),
        edits=(
            ("tl.dot(k, tl.trans(q)) * scale", "tl.dot(k, tl.trans(q)) * (D ** -0.5)"),
            ("tl.dot(q, tl.trans(k)) * scale", "tl.dot(q, tl.trans(k)) * (D ** -0.5)"),
            ("dk * scale", "dk * (D ** -0.5)"),
            ("dq * scale", "dq * (D ** -0.5)"),
        ),
    ),
    family(
        "no mask",
        "keys that the query never saw have weights here: mask p, too",
        *passes(_by_hand(seen=_all_keys)),
        *(one for tile in TILES for one in passes(_visited(tile))),
        edits=(
            (
                "tl.where((keys[None, :] <= rows[:, None] + N - M) & (keys[None, :] < N), p, 0.0)",
                "tl.where(keys[None, :] < N, p, 0.0)",
            ),
        ),
    ),
    family(
        "mask from the start",
        "query i belongs to key i + N - M: with more keys than queries the mask starts further right",
        *passes(_by_hand(seen=_from_the_start)),
        edits=(("<= rows[:, None] + N - M", "<= rows[:, None]"),),
    ),
    family(
        "strictly causal",
        "a query sees its own key too: <=, not <",
        *passes(_by_hand(seen=_strictly)),
        edits=(
            ("<= rows[None, :] + N - M", "< rows[None, :] + N - M"),
            ("<= rows[:, None] + N - M", "< rows[:, None] + N - M"),
        ),
    ),
    family(
        "no delta",
        "delta counts as 0 here: is it in ds = p * (dp - delta), and does an earlier launch write it?",
        *passes(_by_hand(delta=False)),
        edits=(("(tl.dot(do, tl.trans(v)) - delta[:, None])", "tl.dot(do, tl.trans(v))"),),
    ),
    family(
        "not normalised",
        "weights are exp(s - lse): without the log-sum-exp a row's weights don't add up to 1",
        *passes(_by_hand(normal=False)),
        edits=(
            ("* scale - lse[None, :])", "* scale)"),
            ("* scale - lse[:, None])", "* scale)"),
        ),
    ),
    family(
        "tail left out",
        "the last rows or keys, which don't fill a tile, are left out of the sums",
        *(one for tile in TILES for one in passes(_ends(tile))),
        edits=(("BLOCK_M * BLOCK_M, M, BLOCK_M)", "BLOCK_M * BLOCK_M, M // BLOCK_M * BLOCK_M, BLOCK_M)"),),
    ),
    family(
        "the first sequence",
        "every sequence of the batch reads the keys of the first: where does the batch's stride come in?",
        *passes(_keys_of_the_first(slice(1))),
        edits=(
            ("k_ptr + batch * stride_kb", "k_ptr + 0 * stride_kb"),
            ("v_ptr + batch * stride_vb", "v_ptr + 0 * stride_vb"),
        ),
    ),
    family(
        "the first head",
        "every head reads the keys of the first: where does the head's stride come in?",
        *passes(_keys_of_the_first(slice(None), slice(1))),
        edits=(
            ("head * stride_kh", "0 * stride_kh"),
            ("head * stride_vh", "0 * stride_vh"),
        ),
    ),
    edited(
        "dv's tiles summed in fp16",
        ("dv = tl.dot(pt.to(do.dtype), do, dv)", summed_in_fp16("dv", "pt", "do")),
    ),
    edited(
        "dk's tiles summed in fp16", ("dk = tl.dot(dst.to(q.dtype), q, dk)", summed_in_fp16("dk", "dst", "q"))
    ),
    edited(
        "dq's tiles summed in fp16", ("dq = tl.dot(ds.to(k.dtype), k, dq)", summed_in_fp16("dq", "ds", "k"))
    ),
    edited(
        "scales above 1.5 halved for keys",
        ("* scale - lse[None, :]", "* tl.where(scale > 1.5, scale / 2, scale) - lse[None, :]"),
    ),
    edited("scaled twice", ("ds = p * (", "ds = p * scale * (")),
    edited(
        "delta never computed",
        (
            '            {"kernel": row_delta, "grid": rows, "constexprs": {"D": p.D, "BLOCK_M": 64}, "num_warps": 4},\n',
            "",
        ),
        told_as="no delta",
    ),
    edited("delta of the gradient with itself", ("tl.sum(o * do, 1)", "tl.sum(do * do, 1)")),
    edited(
        "delta of the first head for all",
        (
            "delta = tl.load(delta_ptr + (batch * H + head) * M",
            "delta = tl.load(delta_ptr + batch * H * M",
        ),
    ),
    edited("rows begin at the tile's own keys", ("first - (N - M)", "first")),
    edited("log-sum-exp of the first head for all", ("head * stride_lseh", "0 * stride_lseh")),
    edited(
        "gradient of the scores without the weights",
        (
            "ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])",
            "ds = tl.dot(do, tl.trans(v)) - delta[:, None]",
        ),
    ),
    edited(
        "dk from the output's gradient",
        ("dk = tl.dot(dst.to(q.dtype), q, dk)", "dk = tl.dot(dst.to(q.dtype), do, dk)"),
    ),
    edited(
        "dv from the gradient of the scores",
        ("        dv = tl.dot(pt.to(do.dtype), do, dv)\n", ""),
        (
            "        dk = tl.dot(dst",
            "        dv = tl.dot(dst.to(do.dtype), do, dv)\n        dk = tl.dot(dst",
        ),
    ),
    edited(
        "the last tile of rows alone",
        ("dv = tl.dot(pt.to(do.dtype), do, dv)", "dv = tl.dot(pt.to(do.dtype), do)"),
    ),
    edited("the last head left out", ("heads, block = p.B * p.H", "heads, block = max(1, p.B * p.H - 1)")),
    edited(
        "every key's tile walks from its own row on",
        (
            "range(max(0, first - (N - M)) // BLOCK_M * BLOCK_M, M, BLOCK_M)",
            "range(max(0, first - (N - M)) // BLOCK_M * BLOCK_M + BLOCK_M, M, BLOCK_M)",
        ),
    ),
    edited(
        "rows up to 256",
        ("BLOCK_M * BLOCK_M, M, BLOCK_M)", "BLOCK_M * BLOCK_M, tl.minimum(M, 256), BLOCK_M)"),
    ),
    edited("K's strides for V", ("keys[:, None] * stride_vn", "keys[:, None] * stride_kn")),
    edited("o's strides for do", ("rows[:, None] * stride_dom", "rows[:, None] * stride_qm")),
    edited(
        "five launches",
        (
            '            {"kernel": grad_keys',
            '            {"kernel": row_delta, "grid": rows, "constexprs": {"D": p.D, "BLOCK_M": 64}, "num_warps": 4},\n            {"kernel": row_delta, "grid": rows, "constexprs": {"D": p.D, "BLOCK_M": 64}, "num_warps": 4},\n            {"kernel": grad_keys',
        ),
        part="traffic",
    ),
    edited(
        "operands widened",
        ("dv = tl.dot(pt.to(do.dtype), do, dv)", "dv = tl.dot(pt, do.to(tl.float32), dv)"),
        part="speed",
    ),
    edited(
        "every key for every row",
        ("min(N, (tile + 1) * BLOCK_M + N - M)", "N"),
        ("max(0, first - (N - M)) // BLOCK_M * BLOCK_M", "0"),
        part="traffic",
    ),
)


SHORTCUTS = {
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
