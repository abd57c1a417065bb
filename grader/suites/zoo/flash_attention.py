"""Attention, wrong: the causal forward, split decoding, the window with its cap, and the backward."""

FORWARD, DECODE = "flash_attention.forward", "flash_attention.split_decode"
WINDOW, BACKWARD = "flash_attention.window_softcap", "flash_attention.backward"
SEEN = "(keys[None, :] <= place[:, None]) & mask_n[None, :]"
END = "end = tl.minimum(N, (tile + 1) * BLOCK_M + N - M)"
DOT = "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])"

WRONG = {
    FORWARD: {
        "no mask": ("values", [(SEEN, "mask_n[None, :]"), (END, "end = N")], "no mask"),
        "strictly causal": ("values", [("<= place", "< place")], "strictly causal"),
        "mask from the start": ("values", [("place = rows + N - M", "place = rows")], "mask from the start"),
        "no scale": ("values", [("(scale * 1.4426950408889634)", "1.4426950408889634")], "no scale"),
        "exp for exp2": ("values", [("tl.exp2(", "tl.exp(")], ""),
        "maximum not carried": ("values", [("m_new = tl.maximum(m, tl.max(s, 1))", "m_new = tl.max(s, 1)")], ""),
        "sum not rescaled": ("values", [("l = l * alpha + tl.sum(p, 1)", "l = l + tl.sum(p, 1)")], ""),
        "output not rescaled": ("values", [(DOT, "acc = tl.dot(p.to(v.dtype), v, acc)")], ""),
        "not divided": ("values", [("(acc / l[:, None])", "acc")], "no division"),
        "divided by the last tile's sum": ("values", [("l = l * alpha + tl.sum(p, 1)", "l = tl.sum(p, 1)")], ""),
        "interleaved heads": ("values", [("head // (H // G)", "head % G")], "interleaved heads"),
        "masked with a large number": ("values", [('s, float("-inf"))', "s, 0.0)")], "masked with zero"),
        "weights rounded to fp16 before the sum": ("values", [("l = l * alpha + tl.sum(p, 1)", "l = (l * alpha + tl.sum(p, 1)).to(tl.float16).to(tl.float32)")], ""),
        "loop one tile short": ("values", [("range(0, end, BLOCK_N)", "range(0, end - BLOCK_N, BLOCK_N)")], ""),
        "keys beyond the end count": ("values", [(SEEN, "(keys[None, :] <= place[:, None] + 1)"), ("mask=mask_n[None, :], other=0.0)", "mask=mask_n[None, :], other=0.0)")], ""),
        "one batch for all": ("values", [("batch.to(tl.int64) * stride_kb", "0 * stride_kb")], ""),
        "every key for every row": ("traffic", [(END, "end = N")], ""),
        "rows of sixteen": ("speed", [("block_m = 128 if p.M >= 1024 else 64", "block_m = 16")], ""),
    },
    DECODE: {
        "no scale": ("values", [("tl.dot(q, k) * scale", "tl.dot(q, k)")], "no scale"),
        "padding counts": ("values", [('tl.where(mask_n[None, :], tl.dot(q, k) * scale, float("-inf"))', "tl.dot(q, k) * scale")], "padding counts"),
        "interleaved heads": ("values", [("heads = group * per + offs_h", "heads = group + G * offs_h")], "interleaved heads"),
        "splits summed as they are": ("values", [("weight = tl.exp(m - tl.max(m, 0))", "weight = tl.where(mask, 1.0, 0.0)")], "no weights"),
        "sum without the weights": ("values", [("tl.sum(l * weight, 0)", "tl.sum(l, 0)")], ""),
        "splits averaged": ("values", [("tl.sum(parts * weight[:, None], 0) / tl.sum(l * weight, 0)", "tl.sum(parts / l[:, None] * mask[:, None], 0) / SPLITS")], ""),
        "maximum not carried": ("values", [("m_new = tl.maximum(m, tl.max(s, 1))", "m_new = tl.max(s, 1)")], ""),
        "output not rescaled": ("values", [(DOT, "acc = tl.dot(p.to(v.dtype), v, acc)")], ""),
        "last split left out": ("values", [('"grid": (splits, p.B * p.G)', '"grid": (max(1, splits - 1), p.B * p.G)')], ""),
        "splits beyond the keys": ("values", [("splits = triton.cdiv(p.N, chunk)", "splits = triton.cdiv(p.N, chunk) + 1")], ""),
        "scratch in half precision": ("values", [('"po": ((rows, splits, p.D), "fp32", 0)', '"po": ((rows, splits, p.D), "fp8e5", 0)'), ("tl.store(po_ptr + at[:, None] * D + offs_d[None, :], acc,", "tl.store(po_ptr + at[:, None] * D + offs_d[None, :], acc.to(tl.float8e5),"), (", other=0.0)\n    out", ", other=0.0).to(tl.float32)\n    out")], ""),
        "one program a head": ("traffic", [("wanted = max(1, triton.cdiv(2 * p.sm_count, p.B * p.G))", "wanted = 1")], ""),
    },
    WINDOW: {
        "no window": ("values", [("& (keys[None, :] >= place - W)", "")], ""),
        "one key less": ("values", [(">= place - W", "> place - W")], "one key less"),
        "one key more": ("values", [(">= place - W", ">= place - W - 1")], ""),
        "no cap": ("values", [("s = softcap * (1 - 2 / (tl.exp(2 * x) + 1))", "s = softcap * x")], "no cap"),
        "cap without its size": ("values", [("s = softcap * (1 - 2", "s = (1 - 2")], ""),
        "cap before the scale": ("values", [("(scale / softcap)", "(1.0 / softcap)"), ("s = softcap * (1", "s = scale * softcap * (1")], "cap before the scale"),
        "tanh that overflows": ("values", [("(1 - 2 / (tl.exp(2 * x) + 1))", "((tl.exp(x) - tl.exp(-x)) / (tl.exp(x) + tl.exp(-x)))")], ""),
        "not causal": ("values", [("(keys[None, :] <= place)", "(keys[None, :] <= place + 1)")], ""),
        "rows of nothing become NaN": ("values", [('base = tl.where(m_new == float("-inf"), 0.0, m_new)', "base = m_new")], "NaN"),
        "every key from the start": ("traffic", [("max(0, tile * BLOCK_M + N - M - W)", "0 * tile")], ""),
    },
    BACKWARD: {
        "no scale of dq": ("values", [("dq * scale", "dq")], ""),
        "no delta": ("values", [("(tl.dot(do, tl.trans(v)) - delta[:, None])", "tl.dot(do, tl.trans(v))")], "no delta"),
        "no mask": ("values", [("tl.where((keys[None, :] <= rows[:, None] + N - M) & (keys[None, :] < N), p, 0.0)", "tl.where(keys[None, :] < N, p, 0.0)")], "no mask"),
        "mask from the start": ("values", [("<= rows[:, None] + N - M", "<= rows[:, None]")], ""),
    },
}  # fmt: skip

EQUIVALENT = {FORWARD: {}, DECODE: {}, WINDOW: {}, BACKWARD: {}}
