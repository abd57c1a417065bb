"""Split decoding, wrong."""

from grader.questions.tables import because, changed

DECODE = "flash_attention.split_decode"
MAXIMUM = "m_new = tl.maximum(m, tl.max(s, 1))"
DOT = "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])"

WRONG = {
    DECODE: {
        "no scale": changed(("tl.dot(q, k) * scale", "tl.dot(q, k)"), mistake="no scale"),
        "padding counts": changed(
            ('tl.where(mask_n[None, :], tl.dot(q, k) * scale, float("-inf"))', "tl.dot(q, k) * scale"),
            mistake="padding counts",
        ),
        "interleaved heads": changed(
            ("heads = group * per + offs_h", "heads = group + G * offs_h"), mistake="interleaved heads"
        ),
        "splits summed as they are": changed(
            ("weight = tl.exp(m - tl.max(m, 0))", "weight = tl.where(mask, 1.0, 0.0)"), mistake="maxima apart"
        ),
        "places without a split of maximum zero": changed(
            ('mask=mask, other=float("-inf"))', "mask=mask, other=0.0)")
        ),
        "sum without the weights": changed(("tl.sum(l * weight, 0)", "tl.sum(l, 0)")),
        "splits averaged": changed(
            (
                "tl.sum(parts * weight[:, None], 0) / tl.sum(l * weight, 0)",
                "tl.sum(tl.where(mask[:, None], parts / tl.where(mask, l, 1.0)[:, None], 0.0), 0) / SPLITS",
            ),
            mistake="no weights",
        ),
        "maximum not carried": changed((MAXIMUM, "m_new = tl.max(s, 1)")),
        "output not rescaled": changed((DOT, "acc = tl.dot(p.to(v.dtype), v, acc)")),
        "last split left out": changed(
            ('"grid": (splits, p.B * p.G)', '"grid": (max(1, splits - 1), p.B * p.G)')
        ),
        "a split without keys divided by its sum": changed(
            ("splits = triton.cdiv(p.N, chunk)", "splits = triton.cdiv(p.N, chunk) + 1"),
            ("offs_d[None, :], acc,", "offs_d[None, :], acc / l[:, None],"),
            ("weight[:, None], 0)", "(weight * l)[:, None], 0)"),
        ),
        "heads beyond sixteen left out": changed(
            ("group = max(16, triton.next_power_of_2(p.H // p.G))", "group = 16"), mistake="sixteen heads"
        ),
        "scratch in half precision": changed(
            ('"po": ((rows, splits, p.D), "fp32", 0)', '"po": ((rows, splits, p.D), "fp16", 0)'),
            ("offs_d[None, :], acc,", "offs_d[None, :], acc.to(tl.float16),"),
            mistake="beyond fp16",
        ),
        "one program a head": changed(
            ("wanted = max(1, triton.cdiv(2 * p.sm_count, p.B * p.G))", "wanted = 1"), part="traffic"
        ),
        "the second half of 128 taken for dense": changed(
            (
                "    offs_d = tl.arange(0, D)\n    mask_h",
                "    offs_d = tl.arange(0, D)\n    offs_q = offs_d % 64 * stride_qd + offs_d // 64 * 64 * tl.where(offs_d < 64, stride_qd, 1)\n    mask_h",
            ),
            ("offs_d[None, :] * stride_qd", "offs_q[None, :]"),
        ),
        "operands widened": changed(
            ("tl.dot(q, k)", "tl.dot(q.to(tl.float32), k.to(tl.float32))"),
            (
                "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])",
                "acc = tl.dot(p, v.to(tl.float32), acc * alpha[:, None])",
            ),
            part="speed",
        ),
        "masked with -1e4": changed(
            ('tl.dot(q, k) * scale, float("-inf"))', "tl.dot(q, k) * scale, -1e4)"),
            mistake="a number for minus infinity",
        ),
        "no maximum": changed(
            ("m_new = tl.maximum(m, tl.max(s, 1))", "m_new = tl.zeros((GROUP,), tl.float32)"),
            mistake="no maximum",
        ),
        "maximum from zero": changed(
            ('m = tl.full((GROUP,), float("-inf"), tl.float32)', "m = tl.zeros((GROUP,), tl.float32)"),
            mistake="maximum from zero",
        ),
        "the usual scale": changed(
            ("tl.dot(q, k) * scale", "tl.dot(q, k) * (D ** -0.5)"), mistake="the usual scale"
        ),
        "the first key head": changed(
            ("group.to(tl.int64) * stride_kh", "0 * stride_kh"),
            ("group.to(tl.int64) * stride_vh", "0 * stride_vh"),
            mistake="the first key head",
        ),
        "the first sequence for all": changed(
            ("batch.to(tl.int64) * stride_kb", "0 * stride_kb"),
            ("batch.to(tl.int64) * stride_vb", "0 * stride_vb"),
            mistake="the first sequence",
        ),
        "tail left out": changed(
            ("tl.minimum(N, (split + 1) * CHUNK)", "tl.minimum(N // BLOCK_N * BLOCK_N, (split + 1) * CHUNK)"),
            mistake="tail left out",
        ),
        "exp of the maximum alone": changed(
            ("weight = tl.exp(m - tl.max(m, 0))", "weight = tl.exp(m)"), mistake="no maximum"
        ),
        "keys up to 2048": changed(
            ("tl.minimum(N, (split + 1) * CHUNK)", "tl.minimum(tl.minimum(N, 2048), (split + 1) * CHUNK)")
        ),
        "K's strides for V": changed(
            (
                "keys[:, None] * stride_vn + offs_d[None, :] * stride_vd",
                "keys[:, None] * stride_kn + offs_d[None, :] * stride_kd",
            )
        ),
        "many programs that only combine": changed(
            ("wanted = max(1, triton.cdiv(2 * p.sm_count, p.B * p.G))", "wanted = 1"),
            ('"grid": (rows,)', '"grid": (rows, 64)'),
            (
                "out.to(o_ptr.dtype.element_ty))",
                "out.to(o_ptr.dtype.element_ty), mask=(offs_d < D) & (tl.program_id(1) == 0))",
            ),
            part="traffic",
        ),
        "one program a head, and idle ones": changed(
            ("wanted = max(1, triton.cdiv(2 * p.sm_count, p.B * p.G))", "wanted = 1"),
            (
                "tl.minimum(N, (split + 1) * CHUNK)",
                "tl.minimum(N, (split + 1) * CHUNK) * (tl.program_id(2) == 0).to(tl.int32)",
            ),
            ("mask_h = offs_h < per", "mask_h = (offs_h < per) & (tl.program_id(2) == 0)"),
            ('"grid": (splits, p.B * p.G)', '"grid": (splits, p.B * p.G, 64)'),
            part="traffic",
        ),
        "output summed in fp16": changed(
            ("acc = tl.zeros((GROUP, D), tl.float32)", "acc = tl.zeros((GROUP, D), tl.float16)"),
            (DOT, "acc = (acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)).to(tl.float16)"),
            ("offs_d[None, :], acc,", "offs_d[None, :], acc.to(tl.float32),"),
            mistake="beyond fp16",
        ),
    },
}

EQUIVALENT = {
    DECODE: because(
        {
            "before the first tile the factor is exp(-inf) = 0, which leaves nothing of what the sums began with": [
                "ones: tl.zeros((GROUP, D), tl.float32) -> tl.full((GROUP, D), 1.0, tl.float32)",
                "ones: tl.zeros((GROUP,), tl.float32) -> tl.full((GROUP,), 1.0, tl.float32)",
            ],
            "a query beyond the group touches its own row alone, which is never stored": [
                "no other: tl.load(q_ptr + batch * stride_qb + heads[:, None] * stride_qh + offs_d[None, :] * stride_qd, mask=mask_h[:, None], other=0.0) -> tl.load(q_ptr + batc",
                "plus one: 0.0 -> 1.0",
            ],
            "another tile of keys, as right": ["halved: 64 -> 32"],
            "a score of a key beyond N is set to -inf, whatever was loaded": [
                "no other: tl.load(k_base + keys[None, :] * stride_kn + offs_d[:, None] * stride_kd, mask=mask_n[None, :], other=0.0) -> tl.load(k_base + keys[None, :] * stride_",
                "plus one: 0.0 -> 1.0 (4)",
            ],
            "another number of splits, still enough for every multiprocessor": [
                "rounded down: triton.cdiv(2 * p.sm_count, p.B * p.G) -> triton.cdiv(2 * p.sm_count - p.B * p.G + 1, p.B * p.G)",
                "rounded down: triton.cdiv(p.N, wanted) -> triton.cdiv(p.N - wanted + 1, wanted)",
                "rounded down: triton.cdiv(triton.cdiv(p.N, wanted), block_n) -> triton.cdiv(triton.cdiv(p.N, wanted) - block_n + 1, block_n)",
                "plus one: 1 -> 2",
                "operator: 2 * p.sm_count -> 2 + p.sm_count",
                "operator: p.B * p.G -> p.B + p.G",
                "plus one: 2 -> 3",
            ],
            "Triton pads a product of 8 rows itself": ["halved: 16 -> 8"],
            "a split that is not there has the weight exp(-inf) = 0": [
                "plus one: 0.0 -> 1.0 (2)",
                "plus one: 0.0 -> 1.0 (3)",
            ],
            "its weight is 0, so a value beyond N counts nothing, as long as it is a number": [
                "plus one: 0.0 -> 1.0 (5)"
            ],
            "every element of scratch that is read was written before": [
                "plus one: 0 -> 1 (11)",
                "plus one: 0 -> 1 (12)",
                "plus one: 0 -> 1 (13)",
            ],
        }
    ),
}
