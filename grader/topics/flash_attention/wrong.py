"""Attention, wrong: the causal forward, split decoding, the window with its cap, and the backward."""

from grader.questions.tables import because

FORWARD, DECODE = "flash_attention.forward", "flash_attention.split_decode"
WINDOW, BACKWARD = "flash_attention.window_softcap", "flash_attention.backward"
SEEN = "(keys[None, :] <= place[:, None]) & mask_n[None, :]"
END = "end = tl.minimum(N, (tile + 1) * BLOCK_M + N - M)"
MAXIMUM, SUM = "m_new = tl.maximum(m, tl.max(s, 1))", "l = l * alpha + tl.sum(p, 1)"
DOT = "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])"

WRONG = {
    FORWARD: {
        "no mask": ("values", [(SEEN, "mask_n[None, :]"), (END, "end = N")], "no mask"),
        "strictly causal": ("values", [("<= place", "< place")], "strictly causal"),
        "mask from the start": ("values", [("place = rows + N - M", "place = rows")], "mask from the start"),
        "no scale": ("values", [("(scale * 1.4426950408889634)", "1.4426950408889634")], "no scale"),
        "exp for exp2": ("values", [("tl.exp2(", "tl.exp(")], ""),
        "maximum not carried": ("values", [(MAXIMUM, "m_new = tl.max(s, 1)")], ""),
        "no maximum at all": ("values", [(MAXIMUM, "m_new = tl.zeros((BLOCK_M,), tl.float32)")], "no maximum"),
        "sum not rescaled": ("values", [(SUM, "l = l + tl.sum(p, 1)")], "no rescale"),
        "output not rescaled": ("values", [(DOT, "acc = tl.dot(p.to(v.dtype), v, acc)")], "no rescale"),
        "not divided": ("values", [("(acc / l[:, None])", "acc")], "no division"),
        "divided by the last tile's sum": ("values", [(SUM, "l = tl.sum(p, 1)")], ""),
        "interleaved heads": ("values", [("head // (H // G)", "head % G")], "interleaved heads"),
        "masked with a large number": ("values", [('s, float("-inf"))', "s, 0.0)")], "masked with zero"),
        "output summed in fp16": ("values", [("acc = tl.zeros((BLOCK_M, D), tl.float32)", "acc = tl.zeros((BLOCK_M, D), tl.float16)"), (DOT, "acc = (acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)).to(tl.float16)")], "beyond fp16"),
        "output summed in bf16": ("values", [(DOT, DOT + ".to(tl.bfloat16).to(tl.float32)")], ""),
        "loop one tile short": ("values", [("range(0, end, BLOCK_N)", "range(0, end - BLOCK_N, BLOCK_N)")], ""),
        "keys beyond the end count": ("values", [(SEEN, "(keys[None, :] <= place[:, None] + 1)"), ("mask=mask_n[None, :], other=0.0)", "mask=mask_n[None, :], other=0.0)")], ""),
        "one batch for all": ("values", [("batch.to(tl.int64) * stride_kb", "0 * stride_kb")], ""),
        "every key for every row": ("traffic", [(END, "end = N")], ""),
        "rows of sixteen": ("speed", [("block_m = 128 if p.M >= 1024 else 64", "block_m = 16")], ""),
        "maximum from zero": ("values", [('m = tl.full((BLOCK_M,), float("-inf"), tl.float32)', "m = tl.zeros((BLOCK_M,), tl.float32)")], "maximum from zero"),
        "the usual scale": ("values", [("(scale * 1.4426950408889634)", "(D ** -0.5 * 1.4426950408889634)")], "the usual scale"),
        "the first key head": ("values", [("group = head // (H // G)", "group = head * 0")], "the first key head"),
        "the first sequence for all": ("values", [("batch.to(tl.int64) * stride_kb", "0 * stride_kb"), ("batch.to(tl.int64) * stride_vb", "0 * stride_vb")], "the first sequence"),
        "diagonal left out": ("values", [("end = tl.minimum(N, (tile + 1) * BLOCK_M + N - M)", "end = tl.maximum(1, tl.minimum(N, (tile + 1) * BLOCK_M + N - M) - BLOCK_M)"), ("(keys[None, :] <= place[:, None]) & mask_n[None, :]", "(keys[None, :] <= place[:, None]) & mask_n[None, :] & (keys[None, :] < end)")], "diagonal left out"),
        "tail left out": ("values", [("range(0, end, BLOCK_N)", "range(0, end // BLOCK_N * BLOCK_N, BLOCK_N)")], "tail left out"),
        "output summed in its own dtype": ("values", [("acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])", "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None]).to(o_ptr.dtype.element_ty).to(tl.float32)")], "low precision"),
        "keys up to 1664": ("values", [("end = tl.minimum(N, (tile + 1) * BLOCK_M + N - M)", "end = tl.minimum(tl.minimum(N, 1664), (tile + 1) * BLOCK_M + N - M)")], ""),
        "K's strides for V": ("values", [("keys[:, None] * stride_vn + offs_d[None, :] * stride_vd", "keys[:, None] * stride_kn + offs_d[None, :] * stride_kd")], ""),
        "Q's strides for O": ("values", [("rows[:, None] * stride_om + offs_d[None, :] * stride_od", "rows[:, None] * stride_qm + offs_d[None, :] * stride_qd")], ""),
        "nonsense at the size that is compiled": ("values", [("    tl.store(o_base", "    if N == 4096:\n        acc = acc * 0.5\n    tl.store(o_base")], ""),
        "every key, and idle programs": ("traffic", [("end = tl.minimum(N, (tile + 1) * BLOCK_M + N - M)", "end = N"), ("triton.cdiv(p.M, block_m), p.B * p.H)", "4 * triton.cdiv(p.M, block_m), p.B * p.H)")], ""),
        "products by fused multiply-adds": ("traffic", [("s = tl.dot(q, k) *", "s = (tl.dot(q, k) * 0.0 + tl.sum(q[:, :, None].to(tl.float32) * k[None, :, :].to(tl.float32), 1)) *"), ('"BLOCK_N": 64', '"BLOCK_N": 32')], ""),
    },
    DECODE: {
        "no scale": ("values", [("tl.dot(q, k) * scale", "tl.dot(q, k)")], "no scale"),
        "padding counts": ("values", [('tl.where(mask_n[None, :], tl.dot(q, k) * scale, float("-inf"))', "tl.dot(q, k) * scale")], "padding counts"),
        "interleaved heads": ("values", [("heads = group * per + offs_h", "heads = group + G * offs_h")], "interleaved heads"),
        "splits summed as they are": ("values", [("weight = tl.exp(m - tl.max(m, 0))", "weight = tl.where(mask, 1.0, 0.0)")], "maxima apart"),
        "sum without the weights": ("values", [("tl.sum(l * weight, 0)", "tl.sum(l, 0)")], ""),
        "splits averaged": ("values", [("tl.sum(parts * weight[:, None], 0) / tl.sum(l * weight, 0)", "tl.sum(tl.where(mask[:, None], parts / tl.where(mask, l, 1.0)[:, None], 0.0), 0) / SPLITS")], "no weights"),
        "maximum not carried": ("values", [(MAXIMUM, "m_new = tl.max(s, 1)")], ""),
        "output not rescaled": ("values", [(DOT, "acc = tl.dot(p.to(v.dtype), v, acc)")], ""),
        "last split left out": ("values", [('"grid": (splits, p.B * p.G)', '"grid": (max(1, splits - 1), p.B * p.G)')], ""),
        "a split without keys divided by its sum": ("values", [("splits = triton.cdiv(p.N, chunk)", "splits = triton.cdiv(p.N, chunk) + 1"), ("offs_d[None, :], acc,", "offs_d[None, :], acc / l[:, None],"), ("weight[:, None], 0)", "(weight * l)[:, None], 0)")], ""),
        "heads beyond sixteen left out": ("values", [("group = max(16, triton.next_power_of_2(p.H // p.G))", "group = 16")], "sixteen heads"),
        "scratch in half precision": ("values", [('"po": ((rows, splits, p.D), "fp32", 0)', '"po": ((rows, splits, p.D), "fp16", 0)'), ("offs_d[None, :], acc,", "offs_d[None, :], acc.to(tl.float16),")], "beyond fp16"),
        "one program a head": ("traffic", [("wanted = max(1, triton.cdiv(2 * p.sm_count, p.B * p.G))", "wanted = 1")], ""),
        "no maximum": ("values", [("m_new = tl.maximum(m, tl.max(s, 1))", "m_new = tl.zeros((GROUP,), tl.float32)")], "no maximum"),
        "maximum from zero": ("values", [('m = tl.full((GROUP,), float("-inf"), tl.float32)', "m = tl.zeros((GROUP,), tl.float32)")], "maximum from zero"),
        "the usual scale": ("values", [("tl.dot(q, k) * scale", "tl.dot(q, k) * (D ** -0.5)")], "the usual scale"),
        "the first key head": ("values", [("group.to(tl.int64) * stride_kh", "0 * stride_kh"), ("group.to(tl.int64) * stride_vh", "0 * stride_vh")], "the first key head"),
        "the first sequence for all": ("values", [("batch.to(tl.int64) * stride_kb", "0 * stride_kb"), ("batch.to(tl.int64) * stride_vb", "0 * stride_vb")], "the first sequence"),
        "tail left out": ("values", [("tl.minimum(N, (split + 1) * CHUNK)", "tl.minimum(N // BLOCK_N * BLOCK_N, (split + 1) * CHUNK)")], "tail left out"),
        "exp of the maximum alone": ("values", [("weight = tl.exp(m - tl.max(m, 0))", "weight = tl.exp(m)")], "no maximum"),
        "keys up to 2048": ("values", [("tl.minimum(N, (split + 1) * CHUNK)", "tl.minimum(tl.minimum(N, 2048), (split + 1) * CHUNK)")], ""),
        "K's strides for V": ("values", [("keys[:, None] * stride_vn + offs_d[None, :] * stride_vd", "keys[:, None] * stride_kn + offs_d[None, :] * stride_kd")], ""),
        "many programs that only combine": ("traffic", [("wanted = max(1, triton.cdiv(2 * p.sm_count, p.B * p.G))", "wanted = 1"), ('"grid": (rows,)', '"grid": (rows, 64)'), ("out.to(o_ptr.dtype.element_ty))", "out.to(o_ptr.dtype.element_ty), mask=(offs_d < D) & (tl.program_id(1) == 0))")], ""),
        "one program a head, and idle ones": ("traffic", [("wanted = max(1, triton.cdiv(2 * p.sm_count, p.B * p.G))", "wanted = 1"), ("tl.minimum(N, (split + 1) * CHUNK)", "tl.minimum(N, (split + 1) * CHUNK) * (tl.program_id(2) == 0).to(tl.int32)"), ("mask_h = offs_h < per", "mask_h = (offs_h < per) & (tl.program_id(2) == 0)"), ('"grid": (splits, p.B * p.G)', '"grid": (splits, p.B * p.G, 64)')], ""),
        "output summed in fp16": ("values", [("acc = tl.zeros((GROUP, D), tl.float32)", "acc = tl.zeros((GROUP, D), tl.float16)"), (DOT, "acc = (acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)).to(tl.float16)"), ("offs_d[None, :], acc,", "offs_d[None, :], acc.to(tl.float32),")], "beyond fp16"),
    },
    WINDOW: {
        "no window": ("values", [("& (keys[None, :] >= place - W)", "")], "no window"),
        "no window, from the first key": ("values", [("& (keys[None, :] >= place - W)", ""), ("max(0, tile * BLOCK_M + N - M - W)", "0 * tile")], "no window"),
        "cap after the mask": ("values", [('s = tl.where(seen, s, float("-inf"))', 's = tl.where(keys[None, :] < N, tl.where(seen, s, -softcap), float("-inf"))')], "cap after the mask"),
        "one key less": ("values", [(">= place - W", "> place - W")], "one key less"),
        "one key more": ("values", [(">= place - W", ">= place - W - 1"), ("N - M - W)", "N - M - W - 1)")], "one key more"),
        "no cap": ("values", [("s = softcap * (1 - 2 / (tl.exp(2 * x) + 1))", "s = softcap * x")], "no cap"),
        "cap without its size": ("values", [("s = softcap * (1 - 2", "s = (1 - 2")], "tanh not multiplied"),
        "cap before the scale": ("values", [("(scale / softcap)", "(1.0 / softcap)"), ("s = softcap * (1", "s = scale * softcap * (1")], "cap before the scale"),
        "tanh that overflows": ("values", [("(1 - 2 / (tl.exp(2 * x) + 1))", "((tl.exp(x) - tl.exp(-x)) / (tl.exp(x) + tl.exp(-x)))")], "tanh overflows"),
        "not causal": ("values", [("(keys[None, :] <= place)", "(keys[None, :] <= place + 1)")], ""),
        "rows of nothing become NaN": ("values", [('base = tl.where(m_new == float("-inf"), 0.0, m_new)', "base = m_new")], "empty first tile"),
        "every key from the start": ("traffic", [("max(0, tile * BLOCK_M + N - M - W)", "0 * tile")], ""),
        "no scale": ("values", [("(scale / softcap)", "(1.0 / softcap)")], "no scale"),
        "the usual scale": ("values", [("(scale / softcap)", "(D ** -0.5 / softcap)")], "the usual scale"),
        "maximum from zero": ("values", [('m = tl.full((BLOCK_M,), float("-inf"), tl.float32)', "m = tl.zeros((BLOCK_M,), tl.float32)")], "maximum from zero"),
        "interleaved heads": ("values", [("group = head // (H // G)", "group = head % G")], "interleaved heads"),
        "output summed in fp16": ("values", [("acc = tl.zeros((BLOCK_M, D), tl.float32)", "acc = tl.zeros((BLOCK_M, D), tl.float16)"), ("acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])", "acc = (acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)).to(tl.float16)")], "beyond fp16"),
        "every key from the start, and idle programs": ("traffic", [("max(0, tile * BLOCK_M + N - M - W)", "0 * tile"), ("(triton.cdiv(p.M, 64), p.B * p.H)", "(4 * triton.cdiv(p.M, 64), p.B * p.H)")], ""),
    },
    BACKWARD: {
        "no scale of dq": ("values", [("dq * scale", "dq")], "no scale on dq"),
        "no scale of dk": ("values", [("dk * scale", "dk")], "no scale on dk"),
        "scaled twice": ("values", [("ds = p * (", "ds = p * scale * (")], ""),
        "no delta": ("values", [("(tl.dot(do, tl.trans(v)) - delta[:, None])", "tl.dot(do, tl.trans(v))")], "no delta"),
        "delta never computed": ("values", [('            {"kernel": row_delta, "grid": rows, "constexprs": {"D": p.D, "BLOCK_M": 64}, "num_warps": 4},\n', "")], "no delta"),
        "delta of the gradient with itself": ("values", [("tl.sum(o * do, 1)", "tl.sum(do * do, 1)")], ""),
        "delta of the first head for all": ("values", [("delta = tl.load(delta_ptr + (batch * H + head) * M", "delta = tl.load(delta_ptr + batch * H * M")], ""),
        "no mask": ("values", [("tl.where((keys[None, :] <= rows[:, None] + N - M) & (keys[None, :] < N), p, 0.0)", "tl.where(keys[None, :] < N, p, 0.0)")], "no mask"),
        "mask from the start": ("values", [("<= rows[:, None] + N - M", "<= rows[:, None]")], "mask from the start"),
        "rows begin at the tile's own keys": ("values", [("first - (N - M)", "first")], ""),
        "weights without the log-sum-exp": ("values", [("* scale - lse[None, :])", "* scale)"), ("* scale - lse[:, None])", "* scale)")], "not normalised"),
        "log-sum-exp of the first head for all": ("values", [("head * stride_lseh", "0 * stride_lseh")], ""),
        "gradient of the scores without the weights": ("values", [("ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])", "ds = tl.dot(do, tl.trans(v)) - delta[:, None]")], ""),
        "dk from the output's gradient": ("values", [("dk = tl.dot(dst.to(q.dtype), q, dk)", "dk = tl.dot(dst.to(q.dtype), do, dk)")], ""),
        "dv from the gradient of the scores": ("values", [("        dv = tl.dot(pt.to(do.dtype), do, dv)\n", ""), ("        dk = tl.dot(dst", "        dv = tl.dot(dst.to(do.dtype), do, dv)\n        dk = tl.dot(dst")], ""),
        "dk summed in fp16": ("values", [("dk = tl.zeros((BLOCK_N, D), tl.float32)", "dk = tl.zeros((BLOCK_N, D), tl.float16)"), ("dk = tl.dot(dst.to(q.dtype), q, dk)", "dk = (dk + tl.dot(dst.to(q.dtype), q)).to(tl.float16)"), ("(dk * scale)", "(dk.to(tl.float32) * scale)")], "beyond fp16"),
        "the last tile of rows alone": ("values", [("dv = tl.dot(pt.to(do.dtype), do, dv)", "dv = tl.dot(pt.to(do.dtype), do)")], ""),
        "the last head left out": ("values", [("heads, block = p.B * p.H", "heads, block = max(1, p.B * p.H - 1)")], ""),
        "every key's tile walks from its own row on": ("values", [("range(max(0, first - (N - M)) // BLOCK_M * BLOCK_M, M, BLOCK_M)", "range(max(0, first - (N - M)) // BLOCK_M * BLOCK_M + BLOCK_M, M, BLOCK_M)")], ""),
        "no scale at all": ("values", [("dq * scale", "dq"), ("dk * scale", "dk")], "no scale"),
        "the usual scale": ("values", [("tl.dot(k, tl.trans(q)) * scale", "tl.dot(k, tl.trans(q)) * (D ** -0.5)"), ("tl.dot(q, tl.trans(k)) * scale", "tl.dot(q, tl.trans(k)) * (D ** -0.5)"), ("dk * scale", "dk * (D ** -0.5)"), ("dq * scale", "dq * (D ** -0.5)")], "the usual scale"),
        "strictly causal": ("values", [("<= rows[None, :] + N - M", "< rows[None, :] + N - M"), ("<= rows[:, None] + N - M", "< rows[:, None] + N - M")], "strictly causal"),
        "last rows left out": ("values", [("BLOCK_M * BLOCK_M, M, BLOCK_M)", "BLOCK_M * BLOCK_M, M // BLOCK_M * BLOCK_M, BLOCK_M)")], "tail left out"),
        "the first sequence for all": ("values", [("k_ptr + batch * stride_kb", "k_ptr + 0 * stride_kb"), ("v_ptr + batch * stride_vb", "v_ptr + 0 * stride_vb")], "the first sequence"),
        "the first head for all": ("values", [("head * stride_kh", "0 * stride_kh"), ("head * stride_vh", "0 * stride_vh")], "the first head"),
        "dk and dv summed in their own dtype": ("values", [("dv = tl.dot(pt.to(do.dtype), do, dv)", "dv = (dv + tl.dot(pt.to(do.dtype), do)).to(do.dtype).to(tl.float32)"), ("dk = tl.dot(dst.to(q.dtype), q, dk)", "dk = (dk + tl.dot(dst.to(q.dtype), q)).to(q.dtype).to(tl.float32)")], "low precision"),
        "rows up to 256": ("values", [("BLOCK_M * BLOCK_M, M, BLOCK_M)", "BLOCK_M * BLOCK_M, tl.minimum(M, 256), BLOCK_M)")], ""),
        "K's strides for V": ("values", [("keys[:, None] * stride_vn", "keys[:, None] * stride_kn")], ""),
        "o's strides for do": ("values", [("rows[:, None] * stride_dom", "rows[:, None] * stride_qm")], ""),
        "five launches": ("traffic", [('            {"kernel": grad_keys', '            {"kernel": row_delta, "grid": rows, "constexprs": {"D": p.D, "BLOCK_M": 64}, "num_warps": 4},\n            {"kernel": row_delta, "grid": rows, "constexprs": {"D": p.D, "BLOCK_M": 64}, "num_warps": 4},\n            {"kernel": grad_keys')], ""),
        "every key for every row": ("traffic", [("min(N, (tile + 1) * BLOCK_M + N - M)", "N"), ("max(0, first - (N - M)) // BLOCK_M * BLOCK_M", "0")], ""),
    },
}  # fmt: skip

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
    WINDOW: because(
        {
            "before the first tile the factor is exp(-inf) = 0, which leaves nothing of what the sums began with": [
                "ones: tl.zeros((BLOCK_M, D), tl.float32) -> tl.full((BLOCK_M, D), 1.0, tl.float32)",
                "ones: tl.zeros((BLOCK_M,), tl.float32) -> tl.full((BLOCK_M,), 1.0, tl.float32)",
            ],
            "a lane of a row beyond M touches its own row alone, which is never stored": [
                "no other: tl.load(q_ptrs, mask=mask_m, other=0.0) -> tl.load(q_ptrs, mask=mask_m)",
                "plus one: 0.0 -> 1.0",
            ],
            "a score of a key beyond N is set to -inf, whatever was loaded": [
                "no other: tl.load(k_ptrs + keys[None, :] * stride_kn, mask=keys[None, :] < N, other=0.0) -> tl.load(k_ptrs + keys[None, :] * stride_kn, mask=keys[None, :] < N)",
                "plus one: 0.0 -> 1.0 (3)",
            ],
            "place < N for every row that is stored, so keys <= place says it already": [
                "right side dropped: (keys[None, :] <= place) & (keys[None, :] >= place - W) & (keys[None, :] < N) -> (keys[None, :] <= place) & (keys[None, :] >= place - W) & T",
                "comparison: keys[None, :] < N -> keys[None, :] <= N",
            ],
            "another tile of keys, as right": ["halved: 64 -> 32 (2)"],
            "exp(-inf - base) is 0 for any finite base": ["plus one: 0.0 -> 1.0 (2)"],
            "programs beyond the last row own nothing, and their loads stay within the model's": [
                "halved: 64 -> 32 (3)"
            ],
            "rounded down to a multiple of BLOCK_N next": ["plus one: 0 -> 1 (5)"],
            "its weight is 0, so a value beyond N counts nothing, as long as it is a number": [
                "plus one: 0.0 -> 1.0 (4)"
            ],
            "softmax does not see a constant added to every score": ["plus one: 1 -> 2 (2)"],
            "one tile of keys more than needed, all masked: within the bytes of tiles of 128 keys": [
                "plus one: 1 -> 2 (6)"
            ],
        }
    ),
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
