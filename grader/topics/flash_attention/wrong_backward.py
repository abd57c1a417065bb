"""Attention's gradients, wrong."""

from grader.questions.tables import because, changed

BACKWARD = "flash_attention.backward"

WRONG = {
    BACKWARD: {
        "no scale of dq": changed(("dq * scale", "dq"), mistake="no scale on dq"),
        "no scale of dk": changed(("dk * scale", "dk"), mistake="no scale on dk"),
        "scaled twice": changed(("ds = p * (", "ds = p * scale * (")),
        "no delta": changed(
            ("(tl.dot(do, tl.trans(v)) - delta[:, None])", "tl.dot(do, tl.trans(v))"), mistake="no delta"
        ),
        "delta never computed": changed(
            (
                '            {"kernel": row_delta, "grid": rows, "constexprs": {"D": p.D, "BLOCK_M": 64}, "num_warps": 4},\n',
                "",
            ),
            mistake="no delta",
        ),
        "delta of the gradient with itself": changed(("tl.sum(o * do, 1)", "tl.sum(do * do, 1)")),
        "delta of the first head for all": changed(
            (
                "delta = tl.load(delta_ptr + (batch * H + head) * M",
                "delta = tl.load(delta_ptr + batch * H * M",
            )
        ),
        "no mask": changed(
            (
                "tl.where((keys[None, :] <= rows[:, None] + N - M) & (keys[None, :] < N), p, 0.0)",
                "tl.where(keys[None, :] < N, p, 0.0)",
            ),
            mistake="no mask",
        ),
        "mask from the start": changed(
            ("<= rows[:, None] + N - M", "<= rows[:, None]"), mistake="mask from the start"
        ),
        "rows begin at the tile's own keys": changed(("first - (N - M)", "first")),
        "weights without the log-sum-exp": changed(
            ("* scale - lse[None, :])", "* scale)"),
            ("* scale - lse[:, None])", "* scale)"),
            mistake="not normalised",
        ),
        "log-sum-exp of the first head for all": changed(("head * stride_lseh", "0 * stride_lseh")),
        "gradient of the scores without the weights": changed(
            (
                "ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])",
                "ds = tl.dot(do, tl.trans(v)) - delta[:, None]",
            )
        ),
        "dk from the output's gradient": changed(
            ("dk = tl.dot(dst.to(q.dtype), q, dk)", "dk = tl.dot(dst.to(q.dtype), do, dk)")
        ),
        "dv from the gradient of the scores": changed(
            ("        dv = tl.dot(pt.to(do.dtype), do, dv)\n", ""),
            (
                "        dk = tl.dot(dst",
                "        dv = tl.dot(dst.to(do.dtype), do, dv)\n        dk = tl.dot(dst",
            ),
        ),
        "dk summed in fp16": changed(
            ("dk = tl.zeros((BLOCK_N, D), tl.float32)", "dk = tl.zeros((BLOCK_N, D), tl.float16)"),
            ("dk = tl.dot(dst.to(q.dtype), q, dk)", "dk = (dk + tl.dot(dst.to(q.dtype), q)).to(tl.float16)"),
            ("(dk * scale)", "(dk.to(tl.float32) * scale)"),
            mistake="beyond fp16",
        ),
        "the last tile of rows alone": changed(
            ("dv = tl.dot(pt.to(do.dtype), do, dv)", "dv = tl.dot(pt.to(do.dtype), do)")
        ),
        "the last head left out": changed(
            ("heads, block = p.B * p.H", "heads, block = max(1, p.B * p.H - 1)")
        ),
        "every key's tile walks from its own row on": changed(
            (
                "range(max(0, first - (N - M)) // BLOCK_M * BLOCK_M, M, BLOCK_M)",
                "range(max(0, first - (N - M)) // BLOCK_M * BLOCK_M + BLOCK_M, M, BLOCK_M)",
            )
        ),
        "no scale at all": changed(("dq * scale", "dq"), ("dk * scale", "dk"), mistake="no scale"),
        "the usual scale": changed(
            ("tl.dot(k, tl.trans(q)) * scale", "tl.dot(k, tl.trans(q)) * (D ** -0.5)"),
            ("tl.dot(q, tl.trans(k)) * scale", "tl.dot(q, tl.trans(k)) * (D ** -0.5)"),
            ("dk * scale", "dk * (D ** -0.5)"),
            ("dq * scale", "dq * (D ** -0.5)"),
            mistake="the usual scale",
        ),
        "strictly causal": changed(
            ("<= rows[None, :] + N - M", "< rows[None, :] + N - M"),
            ("<= rows[:, None] + N - M", "< rows[:, None] + N - M"),
            mistake="strictly causal",
        ),
        "last rows left out": changed(
            ("BLOCK_M * BLOCK_M, M, BLOCK_M)", "BLOCK_M * BLOCK_M, M // BLOCK_M * BLOCK_M, BLOCK_M)"),
            mistake="tail left out",
        ),
        "the first sequence for all": changed(
            ("k_ptr + batch * stride_kb", "k_ptr + 0 * stride_kb"),
            ("v_ptr + batch * stride_vb", "v_ptr + 0 * stride_vb"),
            mistake="the first sequence",
        ),
        "the first head for all": changed(
            ("head * stride_kh", "0 * stride_kh"),
            ("head * stride_vh", "0 * stride_vh"),
            mistake="the first head",
        ),
        "dk and dv summed in their own dtype": changed(
            (
                "dv = tl.dot(pt.to(do.dtype), do, dv)",
                "dv = (dv + tl.dot(pt.to(do.dtype), do)).to(do.dtype).to(tl.float32)",
            ),
            (
                "dk = tl.dot(dst.to(q.dtype), q, dk)",
                "dk = (dk + tl.dot(dst.to(q.dtype), q)).to(q.dtype).to(tl.float32)",
            ),
            mistake="low precision",
        ),
        "rows up to 256": changed(
            ("BLOCK_M * BLOCK_M, M, BLOCK_M)", "BLOCK_M * BLOCK_M, tl.minimum(M, 256), BLOCK_M)")
        ),
        "K's strides for V": changed(("keys[:, None] * stride_vn", "keys[:, None] * stride_kn")),
        "o's strides for do": changed(("rows[:, None] * stride_dom", "rows[:, None] * stride_qm")),
        "five launches": changed(
            (
                '            {"kernel": grad_keys',
                '            {"kernel": row_delta, "grid": rows, "constexprs": {"D": p.D, "BLOCK_M": 64}, "num_warps": 4},\n            {"kernel": row_delta, "grid": rows, "constexprs": {"D": p.D, "BLOCK_M": 64}, "num_warps": 4},\n            {"kernel": grad_keys',
            ),
            part="traffic",
        ),
        "operands widened": changed(
            ("dv = tl.dot(pt.to(do.dtype), do, dv)", "dv = tl.dot(pt, do.to(tl.float32), dv)"),
            part="speed",
        ),
        "every key for every row": changed(
            ("min(N, (tile + 1) * BLOCK_M + N - M)", "N"),
            ("max(0, first - (N - M)) // BLOCK_M * BLOCK_M", "0"),
            part="traffic",
        ),
    },
}

EQUIVALENT = {
    BACKWARD: because(
        {
            "a lane of a key beyond N touches its own row of dk and dv alone, which is never stored": [
                "no other: tl.load(k_ptrs, mask=mask_n, other=0.0) -> tl.load(k_ptrs, mask=mask_n)",
                "no other: tl.load(v_ptrs, mask=mask_n, other=0.0) -> tl.load(v_ptrs, mask=mask_n)",
                "plus one: 0.0 -> 1.0",
                "plus one: 0.0 -> 1.0 (2)",
            ],
            "a lane of a row beyond M touches its own row alone, which is never stored": [
                "no other: tl.load(q_ptrs, mask=mask_m, other=0.0) -> tl.load(q_ptrs, mask=mask_m)",
                "no other: tl.load(do_ptrs + offs_d[None, :] * stride_dod, mask=mask_m, other=0.0) -> tl.load(do_ptrs + offs_d[None, :] * stride_dod, mask=mask_m)",
                "no other: tl.load(lse_ptrs, mask=rows < M, other=float('inf')) -> tl.load(lse_ptrs, mask=rows < M)",
                "no other: tl.load(delta_ptr + (batch * H + head) * M + rows, mask=rows < M, other=0.0) -> tl.load(delta_ptr + (batch * H + head) * M + rows, mask=rows < M)",
                "plus one: 0.0 -> 1.0 (4)",
                "plus one: 0.0 -> 1.0 (5)",
                "plus one: 0.0 -> 1.0 (6)",
            ],
            "the delta of a row beyond M is never stored": [
                "no other: tl.load(o_ptrs, mask=mask, other=0.0) -> tl.load(o_ptrs, mask=mask)",
                "no other: tl.load(do_ptrs + offs_d[None, :] * stride_dod, mask=mask, other=0.0) -> tl.load(do_ptrs + offs_d[None, :] * stride_dod, mask=mask)",
                "plus one: 0.0 -> 1.0 (13)",
                "plus one: 0.0 -> 1.0 (14)",
            ],
            "ends a tile of keys later, whose weights are masked; the budgets leave room for it": [
                "plus one: 1 -> 2 (8)"
            ],
            "place < N for every row that is stored, so keys <= place says it already": [
                "right side dropped: (keys[None, :] <= rows[:, None] + N - M) & (keys[None, :] < N) -> (keys[None, :] <= rows[:, None] + N - M) & True",
                "comparison: keys[None, :] < N -> keys[None, :] <= N",
            ],
            "the weight of a row beyond M is exp(-inf) = 0, so it counts nothing, as long as it is a number": [
                "plus one: 0.0 -> 1.0 (8)",
                "plus one: 0.0 -> 1.0 (9)",
                "plus one: 0.0 -> 1.0 (10)",
            ],
            "the weight of a key beyond N is masked, so it counts nothing, as long as it is a number": [
                "plus one: 0.0 -> 1.0 (11)",
                "plus one: 0.0 -> 1.0 (12)",
            ],
            "programs beyond the last tile own nothing and store nothing": [
                "halved: 64 -> 32 (3)",
                "halved: 64 -> 32 (4)",
            ],
            "every element of scratch that is read was written before": ["plus one: 0 -> 1 (13)"],
            "rounded down to a multiple of BLOCK_M next": ["plus one: 0 -> 1 (14)"],
        }
    ),
}
