"""List the mistakes of *split decode*, a row each."""

import itertools

import numpy as np

from grader.questions import Case
from grader.questions.families import computing, dense, family, one_stride, same_strides, within_limit
from grader.questions.rows import edited
from grader.topics.flash_attention.shared_mistakes import (
    FROM_ZERO,
    NARROWED,
    STAND_IN,
    STAND_INS,
    TILES,
    TILES_IN_FP16,
    begun_at,
    narrow,
    narrow_values,
    no_maximum,
    walked,
)
from kernels.flash_attention import reference

CHUNKS = (16, 32, 64, 128, 256, 512)


def decode_scores(inputs: dict, c: Case, scale=None):
    q, k, v = inputs["q"].astype(np.float64)[:, :, None], *(inputs[x].astype(np.float64) for x in "kv")
    k, v = (reference.for_each_query_head(x, q.shape[1]) for x in (k, v))
    return reference.scores(q, k, c.scalars["scale"] if scale is None else scale), v


def _softmaxed(s, v) -> dict:
    return {"o": (reference.softmax(s)[0] @ v)[:, :, 0]}


def _scaled(scale):
    return lambda inputs, c: _softmaxed(*decode_scores(inputs, c, scale(c)))


def _other_heads(which):
    def wrong(inputs: dict, c: Case) -> dict:
        h, g = c.sizes["H"], c.sizes["G"]
        heads = [which(head, h // g, g) for head in range(h)]
        return _softmaxed(*decode_scores(inputs | {x: inputs[x][:, heads] for x in "kv"}, c))

    return wrong


def _first_batch(inputs: dict, c: Case) -> dict:
    return _softmaxed(
        *decode_scores(inputs | {x: np.broadcast_to(inputs[x][:1], inputs[x].shape) for x in "kv"}, c)
    )


def _cuts(n: int, chunk: int) -> list[slice]:
    return [slice(start, start + chunk) for start in range(0, n, chunk)]


def _parts_averaged(chunk: int):
    def wrong(inputs: dict, c: Case) -> dict:
        s, v = decode_scores(inputs, c)
        parts = [reference.softmax(s[..., cut])[0] @ v[:, :, cut] for cut in _cuts(c.sizes["N"], chunk)]
        return {"o": np.mean(parts, 0)[:, :, 0]}

    return wrong


def _own_maxima(chunk: int):
    """Sums that each keep their own maximum are added as if they had one."""

    def wrong(inputs: dict, c: Case) -> dict:
        (s, v), cuts = decode_scores(inputs, c), _cuts(c.sizes["N"], chunk)
        own = [np.exp(s[..., cut] - s[..., cut].max(-1, keepdims=True)) for cut in cuts]
        total = sum(p.sum(-1, keepdims=True) for p in own)
        return {"o": (sum(p @ v[:, :, cut] for p, cut in zip(own, cuts, strict=True)) / total)[:, :, 0]}

    return wrong


def _padding_counted(tile: int, number: float = 0.0):
    def wrong(inputs: dict, c: Case) -> dict:
        s, v = decode_scores(inputs, c)
        beyond = [(0, 0), (0, 0), (0, 0), (0, -c.sizes["N"] % tile)]
        p, _ = reference.softmax(np.pad(s, beyond, constant_values=number))
        return {"o": (p[..., : c.sizes["N"]] @ v)[:, :, 0]}

    return wrong


def _bare_exp_of_lse(chunk: int):
    """Parts joined by exp(lse) without a common maximum, in fp32."""

    def wrong(inputs: dict, c: Case) -> dict:
        (s, v), top, total = decode_scores(inputs, c), 0.0, 0.0
        with np.errstate(all="ignore"):
            for cut in _cuts(c.sizes["N"], chunk):
                p, lse = reference.softmax(s[..., cut])
                weight = np.exp(lse.astype(np.float32))[..., None]
                top, total = top + weight * (p @ v[:, :, cut]), total + weight
            return {"o": (top / total)[:, :, 0]}

    return wrong


def _narrow_parts(chunk: int):
    """Round each split's accumulator to fp16 after every tile of 64 keys, and join the parts correctly."""

    def wrong(inputs: dict, c: Case) -> dict:
        s, v = decode_scores(inputs, c)
        with np.errstate(all="ignore"):
            parts = [
                walked(s[..., cut], v[:, :, cut], c, 64, np.float16) for cut in _cuts(c.sizes["N"], chunk)
            ]
            top = np.max([m for _, _, m in parts], 0)
            acc = sum(acc * np.exp(m - top) for acc, _, m in parts)
            return {"o": (acc / sum(l * np.exp(m - top) for _, l, m in parts))[:, :, 0]}

    return wrong


def _tail_left_out(tile: int):
    def wrong(inputs: dict, c: Case) -> dict:
        s, v = decode_scores(inputs, c)
        kept = max(1, c.sizes["N"] // tile * tile)
        return _softmaxed(s[..., :kept], v[:, :, :kept])

    return wrong


def _sixteen_heads(inputs: dict, c: Case) -> dict:
    """The first 16 query heads of each group alone are written."""
    right, per = _softmaxed(*decode_scores(inputs, c))["o"], c.sizes["H"] // c.sizes["G"]
    return {"o": np.where((np.arange(c.sizes["H"]) % per < 16)[None, :, None], right, np.nan)}


MAXIMUM = "m_new = tl.maximum(m, tl.max(s, 1))"
DOT = "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])"


MISTAKES = (
    family(
        "beyond fp16",
        NARROWED,
        narrow(decode_scores, 64, "fp16"),
        narrow_values(decode_scores, 64),
        *map(_narrow_parts, CHUNKS),
        edits=(
            ('"po": ((rows, splits, p.D), "fp32", 0)', '"po": ((rows, splits, p.D), "fp16", 0)'),
            ("offs_d[None, :], acc,", "offs_d[None, :], acc.to(tl.float16),"),
        ),
    ),
    family(
        "no maximum",
        "wrong if scores are large, or all far below zero: is a maximum subtracted before every exp, in the parts and in the combine?",
        no_maximum(decode_scores),
        *map(_bare_exp_of_lse, CHUNKS),
        edits=(("m_new = tl.maximum(m, tl.max(s, 1))", "m_new = tl.zeros((GROUP,), tl.float32)"),),
    ),
    family(
        "maximum from zero",
        FROM_ZERO,
        begun_at(0, decode_scores),
        edits=(('m = tl.full((GROUP,), float("-inf"), tl.float32)', "m = tl.zeros((GROUP,), tl.float32)"),),
    ),
    family(
        "a number for minus infinity",
        STAND_IN,
        *(_padding_counted(tile, number) for number in STAND_INS for tile in TILES),
        *(begun_at(number, decode_scores) for number in STAND_INS),
        edits=(('tl.dot(q, k) * scale, float("-inf"))', "tl.dot(q, k) * scale, -1e4)"),),
    ),
    family(
        "no scale",
        "the scores are not scaled: multiply q k by p.scale",
        _scaled(lambda c: 1.0),
        edits=(("tl.dot(q, k) * scale", "tl.dot(q, k)"),),
    ),
    family(
        "the usual scale",
        "the scale is p.scale, which need not be 1 / sqrt(D)",
        _scaled(lambda c: c.sizes["D"] ** -0.5),
        edits=(("tl.dot(q, k) * scale", "tl.dot(q, k) * (D ** -0.5)"),),
    ),
    family(
        "interleaved heads",
        "query head h belongs to key head h // (H // G), not h % G",
        _other_heads(lambda h, per, g: h % g),
        edits=(("heads = group * per + offs_h", "heads = group + G * offs_h"),),
    ),
    family(
        "the first key head",
        "every query head reads the first key head: query head h belongs to key head h // (H // G)",
        _other_heads(lambda h, per, g: 0),
        edits=(
            ("group.to(tl.int64) * stride_kh", "0 * stride_kh"),
            ("group.to(tl.int64) * stride_vh", "0 * stride_vh"),
        ),
    ),
    family(
        "the first sequence",
        "every sequence of the batch reads the keys of the first: where does the batch's stride come in?",
        _first_batch,
        edits=(
            ("batch.to(tl.int64) * stride_kb", "0 * stride_kb"),
            ("batch.to(tl.int64) * stride_vb", "0 * stride_vb"),
        ),
    ),
    family(
        "padding counts",
        "keys past N have a score of 0 here, and so a weight: mask them with -inf",
        *map(_padding_counted, TILES),
        edits=(('tl.where(mask_n[None, :], tl.dot(q, k) * scale, float("-inf"))', "tl.dot(q, k) * scale"),),
    ),
    family(
        "tail left out",
        "the last keys, which don't fill a tile, are left out: the last split must run to N, with its load masked",
        *map(_tail_left_out, TILES),
        edits=(
            ("tl.minimum(N, (split + 1) * CHUNK)", "tl.minimum(N // BLOCK_N * BLOCK_N, (split + 1) * CHUNK)"),
        ),
    ),
    family(
        "no weights",
        "the parts are added as if each had the same weight: weight them by their sums under a common maximum",
        *map(_parts_averaged, CHUNKS),
        edits=(
            (
                "tl.sum(parts * weight[:, None], 0) / tl.sum(l * weight, 0)",
                "tl.sum(tl.where(mask[:, None], parts / tl.where(mask, l, 1.0)[:, None], 0.0), 0) / SPLITS",
            ),
        ),
    ),
    family(
        "maxima apart",
        "each part keeps its own maximum: rescale all parts to a common maximum before you add them",
        *map(_own_maxima, CHUNKS),
        edits=(("weight = tl.exp(m - tl.max(m, 0))", "weight = tl.where(mask, 1.0, 0.0)"),),
    ),
    family(
        "sixteen heads",
        "a group may have more than 16 query heads: pad to the next power of two, at least 16",
        _sixteen_heads,
        edits=(("group = max(16, triton.next_power_of_2(p.H // p.G))", "group = 16"),),
    ),
    edited(
        "places without a split of maximum zero", ('mask=mask, other=float("-inf"))', "mask=mask, other=0.0)")
    ),
    edited("each tile summed in fp16", (DOT, TILES_IN_FP16)),
    edited(
        "splits of little weight left out",
        (
            "weight = tl.exp(m - tl.max(m, 0))",
            "weight = tl.exp(m - tl.max(m, 0))\n    weight = tl.where(weight < 1e-4, 0.0, weight)",
        ),
    ),
    edited("a scale of 1 at most", ("tl.dot(q, k) * scale", "tl.dot(q, k) * tl.minimum(scale, 1.0)")),
    edited("sum without the weights", ("tl.sum(l * weight, 0)", "tl.sum(l, 0)")),
    edited("maximum not carried", (MAXIMUM, "m_new = tl.max(s, 1)")),
    edited("output not rescaled", (DOT, "acc = tl.dot(p.to(v.dtype), v, acc)")),
    edited("last split left out", ('"grid": (splits, p.B * p.G)', '"grid": (max(1, splits - 1), p.B * p.G)')),
    edited(
        "a split without keys divided by its sum",
        ("splits = triton.cdiv(p.N, chunk)", "splits = triton.cdiv(p.N, chunk) + 1"),
        ("offs_d[None, :], acc,", "offs_d[None, :], acc / l[:, None],"),
        ("weight[:, None], 0)", "(weight * l)[:, None], 0)"),
    ),
    edited(
        "one program a head",
        ("wanted = max(1, triton.cdiv(2 * p.sm_count, p.B * p.G))", "wanted = 1"),
        part="traffic",
    ),
    edited(
        "the second half of 128 taken for dense",
        (
            "    offs_d = tl.arange(0, D)\n    mask_h",
            "    offs_d = tl.arange(0, D)\n    offs_q = offs_d % 64 * stride_qd + offs_d // 64 * 64 * tl.where(offs_d < 64, stride_qd, 1)\n    mask_h",
        ),
        ("offs_d[None, :] * stride_qd", "offs_q[None, :]"),
    ),
    edited(
        "operands widened",
        ("tl.dot(q, k)", "tl.dot(q.to(tl.float32), k.to(tl.float32))"),
        (
            "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])",
            "acc = tl.dot(p, v.to(tl.float32), acc * alpha[:, None])",
        ),
        part="speed",
    ),
    edited(
        "exp of the maximum alone",
        ("weight = tl.exp(m - tl.max(m, 0))", "weight = tl.exp(m)"),
        told_as="no maximum",
    ),
    edited(
        "keys up to 2048",
        ("tl.minimum(N, (split + 1) * CHUNK)", "tl.minimum(tl.minimum(N, 2048), (split + 1) * CHUNK)"),
    ),
    edited(
        "K's strides for V",
        (
            "keys[:, None] * stride_vn + offs_d[None, :] * stride_vd",
            "keys[:, None] * stride_kn + offs_d[None, :] * stride_kd",
        ),
    ),
    edited(
        "many programs that only combine",
        ("wanted = max(1, triton.cdiv(2 * p.sm_count, p.B * p.G))", "wanted = 1"),
        ('"grid": (rows,)', '"grid": (rows, 64)'),
        (
            "out.to(o_ptr.dtype.element_ty))",
            "out.to(o_ptr.dtype.element_ty), mask=(offs_d < D) & (tl.program_id(1) == 0))",
        ),
        part="traffic",
    ),
    edited(
        "one program a head, and idle ones",
        ("wanted = max(1, triton.cdiv(2 * p.sm_count, p.B * p.G))", "wanted = 1"),
        (
            "tl.minimum(N, (split + 1) * CHUNK)",
            "tl.minimum(N, (split + 1) * CHUNK) * (tl.program_id(2) == 0).to(tl.int32)",
        ),
        ("mask_h = offs_h < per", "mask_h = (offs_h < per) & (tl.program_id(2) == 0)"),
        ('"grid": (splits, p.B * p.G)', '"grid": (splits, p.B * p.G, 64)'),
        part="traffic",
    ),
    edited(
        "output summed in fp16",
        ("acc = tl.zeros((GROUP, D), tl.float32)", "acc = tl.zeros((GROUP, D), tl.float16)"),
        (DOT, "acc = (acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)).to(tl.float16)"),
        ("offs_d[None, :], acc,", "offs_d[None, :], acc.to(tl.float32),"),
        told_as="beyond fp16",
    ),
)


SHORTCUTS = {
    **{
        f"an accumulator in its own precision, tiles of {b}": computing(narrow(decode_scores, b))
        for b in (16, 64, 128)
    },
    **{f"N up to {most}": within_limit("N", most) for most in (128, 512, 2048, 4096, 8192)},
    **{f"stride {axis} of {name} taken for 1": one_stride(name, axis) for name in "kv" for axis in (2, 3)},
    **{f"stride {axis} of {name} taken for 1": one_stride(name, axis) for name in "qo" for axis in (1, 2)},
    **{f"{name} taken for dense": dense(name) for name in "qkvo"},
    **{
        f"{used}'s strides for {of}": same_strides(used, of)
        for used, of in (*itertools.permutations("kv"), *itertools.permutations("qo"))
    },
    "D of 64 or less": within_limit("D", 64),
    "one batch": within_limit("B", 1),
    "sixteen heads a group": within_limit("H", 16),
}
