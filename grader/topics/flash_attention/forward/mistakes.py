"""List the mistakes of *forward*, a row each."""

import itertools

import numpy as np

from grader.questions import Case
from grader.questions.families import dense, family, one_stride, same_strides, within_limit
from grader.questions.rows import edited
from grader.topics.flash_attention import shared_mistakes
from grader.topics.flash_attention.shared import causal
from grader.topics.flash_attention.shared_mistakes import (
    FROM_ZERO,
    NARROWED,
    STAND_IN,
    STAND_INS,
    TILES,
    TILES_IN_FP16,
    TILINGS,
    attended,
    begun_at,
    causal_scores,
    for_all_heads,
    lanes_beyond,
    narrow,
    narrow_values,
    no_maximum,
    other_heads,
    visited,
)
from kernels.flash_attention import reference


def variant(**change):
    """The reference with one of its options exchanged."""

    def wrong(inputs: dict, c: Case) -> dict:
        q, k, v = (inputs[x].astype(np.float64) for x in "qkv")
        options = {"causal": True, "scale": c.scalars["scale"], **change}
        return {"o": reference.attention(q, k, v, **options)[0]}

    return wrong


def power_of_two(inputs: dict, c: Case) -> dict:
    """2 to the scores instead of e to them."""
    return variant(scale=c.scalars["scale"] * np.log(2))(inputs, c)


def first_batch(inputs: dict, c: Case) -> dict:
    return {"o": attended(inputs | {x: np.broadcast_to(inputs[x][:1], inputs[x].shape) for x in "kv"}, c)}


def _aligned_at_start(inputs: dict, c: Case) -> dict:
    q, k, v = for_all_heads(inputs)
    s = np.where(np.tri(q.shape[2], k.shape[2]), reference.scores(q, k, c.scalars["scale"]), -np.inf)
    return {"o": reference.softmax(s)[0] @ v}


def _beyond_the_diagonal(rows: int, keys: int):
    """Masked keys of the tiles that are visited anyway keep their score."""

    def wrong(inputs: dict, c: Case) -> dict:
        q, k, v = for_all_heads(inputs)
        s = reference.scores(q, k, c.scalars["scale"])
        return {"o": reference.softmax(np.where(visited(c, rows, keys), s, -np.inf))[0] @ v}

    return wrong


def _masked_with(number: float, rows: int, keys: int):
    """Give masked keys of visited tiles this score, keys beyond N too, whose values are 0."""

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
    """End the walk over tiles of keys where it would end with one key per query."""

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
    """Return, for each key, the running maximum at its tile. Anything that isn't rescaled stays weighed against that
    maximum."""
    tops = [s[..., : start + tile].max(-1, keepdims=True) for start in range(0, s.shape[-1], tile)]
    return np.concatenate([np.repeat(top, tile, -1) for top in tops], -1)[..., : s.shape[-1]]


def not_rescaled(tile: int, scaled: str):
    """Leave the accumulator or the sum, unless named in `scaled`, at its weight under an older maximum."""

    def wrong(inputs: dict, c: Case) -> dict:
        s, v = causal_scores(inputs, c)
        last, then = s.max(-1, keepdims=True), maximum_when_it_came(s, tile)
        with np.errstate(invalid="ignore"):
            own, whole = np.where(np.isneginf(s), 0, np.exp(s - then)), np.exp(s - last)
        acc, total = (whole if part in scaled else own for part in ("acc", "sum"))
        return {"o": acc @ v / total.sum(-1, keepdims=True)}

    return wrong


SEEN = "(keys[None, :] <= place[:, None]) & mask_n[None, :]"
END = "end = tl.minimum(N, (tile + 1) * BLOCK_M + N - M)"
MAXIMUM, SUM = "m_new = tl.maximum(m, tl.max(s, 1))", "l = l * alpha + tl.sum(p, 1)"
DOT = "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])"
ARGUMENTS = "q_ptr, k_ptr, v_ptr, o_ptr, H, G, M, N, scale, " + ", ".join(
    f"stride_{name}{axis}"
    for name, axes in (("q", "bhmd"), ("k", "bhnd"), ("v", "bhnd"), ("o", "bhmd"))
    for axis in axes
)
WALKS_ALONE = f"""@triton.jit
def attend({ARGUMENTS}, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    for tile in range(0, tl.cdiv(M, BLOCK_M)):
        one_tile(tile, {ARGUMENTS}, D, BLOCK_M, BLOCK_N)


"""


MISTAKES = (
    family(
        "low precision",
        shared_mistakes.SUM,
        *(narrow(causal_scores, b) for b in (16, 64, 128)),
        edits=(
            (
                "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])",
                "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None]).to(o_ptr.dtype.element_ty).to(tl.float32)",
            ),
        ),
    ),
    family(
        "beyond fp16",
        NARROWED,
        narrow(causal_scores, 64, "fp16"),
        narrow_values(causal_scores, 64),
        edits=(
            ("acc = tl.zeros((BLOCK_M, D), tl.float32)", "acc = tl.zeros((BLOCK_M, D), tl.float16)"),
            (DOT, "acc = (acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)).to(tl.float16)"),
        ),
    ),
    family(
        "no maximum",
        "wrong only if a score is large: is the running maximum subtracted before exp?",
        no_maximum(causal_scores),
        edits=((MAXIMUM, "m_new = tl.zeros((BLOCK_M,), tl.float32)"),),
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
        *(_masked_with(number, *tiles) for number in STAND_INS for tiles in TILINGS),
        *(begun_at(number, causal_scores) for number in STAND_INS),
        edits=(('s, float("-inf"))', "s, -1e9)"),),
    ),
    family(
        "no mask",
        "here queries see keys after their own: is the causal mask applied to the scores, with -inf, before the maximum?",
        *(_beyond_the_diagonal(*tiles) for tiles in TILINGS),
        edits=(
            (SEEN, "mask_n[None, :]"),
            (END, "end = N"),
        ),
    ),
    family(
        "no scale",
        "the scores are not scaled: multiply q k by p.scale",
        variant(scale=1.0),
        edits=(("(scale * 1.4426950408889634)", "1.4426950408889634"),),
    ),
    family(
        "exp2 without log2 e",
        "tl.exp2 is a power of 2 and softmax needs one of e: multiply the scores by log2(e) = 1.4427 first, or take tl.exp",
        power_of_two,
        edits=(("(scale * 1.4426950408889634)", "scale"),),
    ),
    family(
        "the usual scale",
        "the scale is p.scale, which need not be 1 / sqrt(D)",
        variant(scale=None),
        edits=(("(scale * 1.4426950408889634)", "(D ** -0.5 * 1.4426950408889634)"),),
    ),
    family(
        "mask from the start",
        "query i belongs to key i + N - M: with more keys than queries the mask starts further right",
        _aligned_at_start,
        edits=(("place = rows + N - M", "place = rows"),),
    ),
    family(
        "interleaved heads",
        "query head h belongs to key head h // (H // G), not h % G",
        other_heads(lambda h, per, g: h % g),
        edits=(("head // (H // G)", "head % G"),),
    ),
    family(
        "the first key head",
        "every query head reads the first key head: query head h belongs to key head h // (H // G)",
        other_heads(lambda h, per, g: 0),
        edits=(("group = head // (H // G)", "group = head * 0"),),
    ),
    family(
        "the first sequence",
        "every sequence of the batch reads the keys of the first: where does the batch's stride come in?",
        first_batch,
        edits=(
            ("batch.to(tl.int64) * stride_kb", "0 * stride_kb"),
            ("batch.to(tl.int64) * stride_vb", "0 * stride_vb"),
        ),
    ),
    family(
        "strictly causal",
        "a query sees its own key too: <=, not <",
        _strictly_causal(np.nan),
        _strictly_causal(0.0),
        edits=(("<= place", "< place"),),
    ),
    family(
        "masked with zero",
        "a masked score must be -inf: a score of 0 still has a weight of exp(0 - m)",
        *(_masked_with(0.0, *tiles) for tiles in TILINGS),
        edits=(('s, float("-inf"))', "s, 0.0)"),),
    ),
    family(
        "diagonal left out",
        "the tile on the diagonal is left out: the loop must include the last row's own key",
        *(_ends(lambda end, rows: np.maximum(end - rows, 1))(b) for b in TILES),
        edits=(
            (
                "end = tl.minimum(N, (tile + 1) * BLOCK_M + N - M)",
                "end = tl.maximum(1, tl.minimum(N, (tile + 1) * BLOCK_M + N - M) - BLOCK_M)",
            ),
            (
                "(keys[None, :] <= place[:, None]) & mask_n[None, :]",
                "(keys[None, :] <= place[:, None]) & mask_n[None, :] & (keys[None, :] < end)",
            ),
        ),
    ),
    family(
        "tail left out",
        "the last keys, which don't fill a tile, are left out: run the loop to the end, and mask the load",
        *(_ends(lambda end, rows, b=b: np.maximum(end // b * b, 1))(64) for b in TILES),
        edits=(("range(0, end, BLOCK_N)", "range(0, end // BLOCK_N * BLOCK_N, BLOCK_N)"),),
    ),
    family(
        "end from the start",
        "the loop over keys ends too early if there are more keys than queries: it must run to (tile + 1) * BLOCK_M + N - M",
        *(_end_from_the_start(*tiles) for tiles in itertools.product(TILES, TILES)),
        edits=(
            (
                "end = tl.minimum(N, (tile + 1) * BLOCK_M + N - M)",
                "end = tl.minimum(N, (tile + 1) * BLOCK_M)",
            ),
        ),
    ),
    family(
        "no division",
        "the output is not divided by the running sum",
        _undivided,
        edits=(("(acc / l[:, None])", "acc"),),
    ),
    family(
        "no rescale",
        "right for one tile of keys and wrong for more: multiply the accumulator and the sum by exp(m_old - m_new)",
        *(not_rescaled(b, kept) for b in TILES for kept in ("", "acc", "sum")),
        edits=((SUM, "l = l + tl.sum(p, 1)"),),
    ),
    edited("each tile summed in fp16", (DOT, TILES_IN_FP16)),
    edited(
        "a scale of 1 at most",
        ("(scale * 1.4426950408889634)", "(tl.minimum(scale, 1.0) * 1.4426950408889634)"),
    ),
    edited(
        "a scale of 0.02 at least",
        ("(scale * 1.4426950408889634)", "(tl.maximum(scale, 0.02) * 1.4426950408889634)"),
    ),
    edited("exp for exp2", ("tl.exp2(", "tl.exp(")),
    edited(
        "a NaN in V counts as 0", (DOT, DOT.replace("v, acc", "tl.where(v == v, v, 0.0).to(v.dtype), acc"))
    ),
    edited("maximum not carried", (MAXIMUM, "m_new = tl.max(s, 1)")),
    edited("output not rescaled", (DOT, "acc = tl.dot(p.to(v.dtype), v, acc)"), told_as="no rescale"),
    edited("divided by the last tile's sum", (SUM, "l = tl.sum(p, 1)")),
    edited("output summed in bf16", (DOT, DOT + ".to(tl.bfloat16).to(tl.float32)")),
    edited("loop one tile short", ("range(0, end, BLOCK_N)", "range(0, end - BLOCK_N, BLOCK_N)")),
    edited(
        "keys beyond the end count",
        (SEEN, "(keys[None, :] <= place[:, None] + 1)"),
        ("mask=mask_n[None, :], other=0.0)", "mask=mask_n[None, :], other=0.0)"),
    ),
    edited("one batch for all", ("batch.to(tl.int64) * stride_kb", "0 * stride_kb")),
    edited("every key for every row", (END, "end = N"), part="traffic"),
    edited(
        "the second half of 128 taken for dense",
        (
            "offs_d = tl.arange(0, D)\n",
            "offs_d = tl.arange(0, D)\n    offs_q = offs_d % 64 * stride_qd + offs_d // 64 * 64 * tl.where(offs_d < 64, stride_qd, 1)\n",
        ),
        ("offs_d[None, :] * stride_qd", "offs_q[None, :]"),
    ),
    edited(
        "heads of 128 of the first sequence alone",
        (
            "o_ptr + batch.to(tl.int64) * stride_ob",
            "o_ptr + (batch if D < 128 else 0 * batch).to(tl.int64) * stride_ob",
        ),
    ),
    edited(
        "operands widened",
        ("tl.dot(q, k)", "tl.dot(q.to(tl.float32), k.to(tl.float32))"),
        (DOT, "acc = tl.dot(p, v.to(tl.float32), acc * alpha[:, None])"),
        part="speed",
    ),
    edited("weights widened", (DOT, "acc = tl.dot(p, v.to(tl.float32), acc * alpha[:, None])"), part="speed"),
    edited("rows of sixteen", ("block_m = 128 if p.M >= 1024 else 64", "block_m = 16"), part="speed"),
    edited(
        "keys up to 1664",
        (
            "end = tl.minimum(N, (tile + 1) * BLOCK_M + N - M)",
            "end = tl.minimum(tl.minimum(N, 1664), (tile + 1) * BLOCK_M + N - M)",
        ),
    ),
    edited(
        "K's strides for V",
        (
            "keys[:, None] * stride_vn + offs_d[None, :] * stride_vd",
            "keys[:, None] * stride_kn + offs_d[None, :] * stride_kd",
        ),
    ),
    edited(
        "Q's strides for O",
        (
            "rows[:, None] * stride_om + offs_d[None, :] * stride_od",
            "rows[:, None] * stride_qm + offs_d[None, :] * stride_qd",
        ),
    ),
    edited(
        "nonsense at the size that is compiled",
        ("    tl.store(o_base", "    if N == 4096:\n        acc = acc * 0.5\n    tl.store(o_base"),
    ),
    edited(
        "every key, and idle programs",
        ("end = tl.minimum(N, (tile + 1) * BLOCK_M + N - M)", "end = N"),
        ("triton.cdiv(p.M, block_m), p.B * p.H)", "4 * triton.cdiv(p.M, block_m), p.B * p.H)"),
        part="traffic",
    ),
    edited(
        "one program a head",
        ("def attend(q_ptr", "def one_tile(tile, q_ptr"),
        ("    tile = tl.program_id(0)\n", ""),
        ("def launch(p):", WALKS_ALONE + "def launch(p):"),
        ("grid = (triton.cdiv(p.M, block_m), p.B * p.H)", "grid = (1, p.B * p.H)"),
        part="speed",
    ),
    edited(
        "products by fused multiply-adds",
        (
            "s = tl.dot(q, k) *",
            "s = (tl.dot(q, k) * 0.0 + tl.sum(q[:, :, None].to(tl.float32) * k[None, :, :].to(tl.float32), 1)) *",
        ),
        ('"BLOCK_N": 64', '"BLOCK_N": 32'),
        part="traffic",
    ),
)


SHORTCUTS = {
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
