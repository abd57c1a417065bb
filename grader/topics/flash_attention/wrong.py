"""Attention, wrong: the causal forward; the other questions' answers stand in wrong_*.py."""

from grader.questions.tables import because, changed
from grader.topics.flash_attention import wrong_backward, wrong_decode, wrong_window

FORWARD = "flash_attention.forward"
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

WRONG = {
    FORWARD: {
        "no mask": changed((SEEN, "mask_n[None, :]"), (END, "end = N"), mistake="no mask"),
        "strictly causal": changed(("<= place", "< place"), mistake="strictly causal"),
        "mask from the start": changed(
            ("place = rows + N - M", "place = rows"), mistake="mask from the start"
        ),
        "no scale": changed(("(scale * 1.4426950408889634)", "1.4426950408889634"), mistake="no scale"),
        "exp for exp2": changed(("tl.exp2(", "tl.exp(")),
        "maximum not carried": changed((MAXIMUM, "m_new = tl.max(s, 1)")),
        "no maximum at all": changed(
            (MAXIMUM, "m_new = tl.zeros((BLOCK_M,), tl.float32)"), mistake="no maximum"
        ),
        "sum not rescaled": changed((SUM, "l = l + tl.sum(p, 1)"), mistake="no rescale"),
        "output not rescaled": changed((DOT, "acc = tl.dot(p.to(v.dtype), v, acc)"), mistake="no rescale"),
        "not divided": changed(("(acc / l[:, None])", "acc"), mistake="no division"),
        "divided by the last tile's sum": changed((SUM, "l = tl.sum(p, 1)")),
        "interleaved heads": changed(("head // (H // G)", "head % G"), mistake="interleaved heads"),
        "masked with a large number": changed(('s, float("-inf"))', "s, 0.0)"), mistake="masked with zero"),
        "output summed in fp16": changed(
            ("acc = tl.zeros((BLOCK_M, D), tl.float32)", "acc = tl.zeros((BLOCK_M, D), tl.float16)"),
            (DOT, "acc = (acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)).to(tl.float16)"),
            mistake="beyond fp16",
        ),
        "output summed in bf16": changed((DOT, DOT + ".to(tl.bfloat16).to(tl.float32)")),
        "loop one tile short": changed(("range(0, end, BLOCK_N)", "range(0, end - BLOCK_N, BLOCK_N)")),
        "keys beyond the end count": changed(
            (SEEN, "(keys[None, :] <= place[:, None] + 1)"),
            ("mask=mask_n[None, :], other=0.0)", "mask=mask_n[None, :], other=0.0)"),
        ),
        "one batch for all": changed(("batch.to(tl.int64) * stride_kb", "0 * stride_kb")),
        "every key for every row": changed((END, "end = N"), part="traffic"),
        "the second half of 128 taken for dense": changed(
            (
                "offs_d = tl.arange(0, D)\n",
                "offs_d = tl.arange(0, D)\n    offs_q = offs_d % 64 * stride_qd + offs_d // 64 * 64 * tl.where(offs_d < 64, stride_qd, 1)\n",
            ),
            ("offs_d[None, :] * stride_qd", "offs_q[None, :]"),
        ),
        "heads of 128 of the first sequence alone": changed(
            (
                "o_ptr + batch.to(tl.int64) * stride_ob",
                "o_ptr + (batch if D < 128 else 0 * batch).to(tl.int64) * stride_ob",
            )
        ),
        "operands widened": changed(
            ("tl.dot(q, k)", "tl.dot(q.to(tl.float32), k.to(tl.float32))"),
            (DOT, "acc = tl.dot(p, v.to(tl.float32), acc * alpha[:, None])"),
            part="speed",
        ),
        "weights widened": changed(
            (DOT, "acc = tl.dot(p, v.to(tl.float32), acc * alpha[:, None])"), part="speed"
        ),
        "masked with -1e9": changed(('s, float("-inf"))', "s, -1e9)"), mistake="a number for minus infinity"),
        "rows of sixteen": changed(("block_m = 128 if p.M >= 1024 else 64", "block_m = 16"), part="speed"),
        "maximum from zero": changed(
            ('m = tl.full((BLOCK_M,), float("-inf"), tl.float32)', "m = tl.zeros((BLOCK_M,), tl.float32)"),
            mistake="maximum from zero",
        ),
        "the usual scale": changed(
            ("(scale * 1.4426950408889634)", "(D ** -0.5 * 1.4426950408889634)"), mistake="the usual scale"
        ),
        "the first key head": changed(
            ("group = head // (H // G)", "group = head * 0"), mistake="the first key head"
        ),
        "the first sequence for all": changed(
            ("batch.to(tl.int64) * stride_kb", "0 * stride_kb"),
            ("batch.to(tl.int64) * stride_vb", "0 * stride_vb"),
            mistake="the first sequence",
        ),
        "diagonal left out": changed(
            (
                "end = tl.minimum(N, (tile + 1) * BLOCK_M + N - M)",
                "end = tl.maximum(1, tl.minimum(N, (tile + 1) * BLOCK_M + N - M) - BLOCK_M)",
            ),
            (
                "(keys[None, :] <= place[:, None]) & mask_n[None, :]",
                "(keys[None, :] <= place[:, None]) & mask_n[None, :] & (keys[None, :] < end)",
            ),
            mistake="diagonal left out",
        ),
        "the loop's end without N - M": changed(
            (
                "end = tl.minimum(N, (tile + 1) * BLOCK_M + N - M)",
                "end = tl.minimum(N, (tile + 1) * BLOCK_M)",
            ),
            mistake="end from the start",
        ),
        "tail left out": changed(
            ("range(0, end, BLOCK_N)", "range(0, end // BLOCK_N * BLOCK_N, BLOCK_N)"), mistake="tail left out"
        ),
        "output summed in its own dtype": changed(
            (
                "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])",
                "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None]).to(o_ptr.dtype.element_ty).to(tl.float32)",
            ),
            mistake="low precision",
        ),
        "keys up to 1664": changed(
            (
                "end = tl.minimum(N, (tile + 1) * BLOCK_M + N - M)",
                "end = tl.minimum(tl.minimum(N, 1664), (tile + 1) * BLOCK_M + N - M)",
            )
        ),
        "K's strides for V": changed(
            (
                "keys[:, None] * stride_vn + offs_d[None, :] * stride_vd",
                "keys[:, None] * stride_kn + offs_d[None, :] * stride_kd",
            )
        ),
        "Q's strides for O": changed(
            (
                "rows[:, None] * stride_om + offs_d[None, :] * stride_od",
                "rows[:, None] * stride_qm + offs_d[None, :] * stride_qd",
            )
        ),
        "nonsense at the size that is compiled": changed(
            ("    tl.store(o_base", "    if N == 4096:\n        acc = acc * 0.5\n    tl.store(o_base")
        ),
        "every key, and idle programs": changed(
            ("end = tl.minimum(N, (tile + 1) * BLOCK_M + N - M)", "end = N"),
            ("triton.cdiv(p.M, block_m), p.B * p.H)", "4 * triton.cdiv(p.M, block_m), p.B * p.H)"),
            part="traffic",
        ),
        "one program a head": changed(
            ("def attend(q_ptr", "def one_tile(tile, q_ptr"),
            ("    tile = tl.program_id(0)\n", ""),
            ("def launch(p):", WALKS_ALONE + "def launch(p):"),
            ("grid = (triton.cdiv(p.M, block_m), p.B * p.H)", "grid = (1, p.B * p.H)"),
            part="speed",
        ),
        "products by fused multiply-adds": changed(
            (
                "s = tl.dot(q, k) *",
                "s = (tl.dot(q, k) * 0.0 + tl.sum(q[:, :, None].to(tl.float32) * k[None, :, :].to(tl.float32), 1)) *",
            ),
            ('"BLOCK_N": 64', '"BLOCK_N": 32'),
            part="traffic",
        ),
    },
    **wrong_backward.WRONG,
    **wrong_decode.WRONG,
    **wrong_window.WRONG,
}

EQUIVALENT = {
    FORWARD: because(
        {
            "before the first tile the factor is exp(-inf) = 0, which leaves nothing of what the sums began with": [
                "ones: tl.zeros((BLOCK_M, D), tl.float32) -> tl.full((BLOCK_M, D), 1.0, tl.float32)",
                "ones: tl.zeros((BLOCK_M,), tl.float32) -> tl.full((BLOCK_M,), 1.0, tl.float32)",
            ],
            "a lane of a row beyond M touches its own row alone, which is never stored": [
                "no other: tl.load(q_base + rows[:, None] * stride_qm + offs_d[None, :] * stride_qd, mask=mask_m[:, None], other=0.0) -> tl.load(q_base + rows[:, None] * stride_",
                "plus one: 0.0 -> 1.0",
            ],
            "a score of a key beyond N is set to -inf, whatever was loaded": [
                "no other: tl.load(k_base + keys[None, :] * stride_kn + offs_d[:, None] * stride_kd, mask=mask_n[None, :], other=0.0) -> tl.load(k_base + keys[None, :] * stride_",
                "plus one: 0.0 -> 1.0 (2)",
            ],
            "chooses between right tile sizes; time tells them apart, values and bytes do not": [
                "comparison: p.M >= 1024 -> p.M > 1024",
                "halved: 128 -> 64",
                "plus one: 1024 -> 1025",
                "halved: 1024 -> 512",
            ],
            "place < N for every row that is stored, so keys <= place says it already": [
                "right side dropped: (keys[None, :] <= place[:, None]) & mask_n[None, :] -> (keys[None, :] <= place[:, None]) & True"
            ],
            "its weight is 0, so a value beyond N counts nothing, as long as it is a number": [
                "plus one: 0.0 -> 1.0 (3)"
            ],
            "another tile of keys, as right": ["halved: 64 -> 32 (2)"],
        }
    ),
    **wrong_backward.EQUIVALENT,
    **wrong_decode.EQUIVALENT,
    **wrong_window.EQUIVALENT,
}
