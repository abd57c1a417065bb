"""Attention, right in other ways."""

FORWARD, DECODE = "flash_attention.forward", "flash_attention.split_decode"
WINDOW, BACKWARD = "flash_attention.window_softcap", "flash_attention.backward"
DOT = "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])"
LOOP = "for start in range(0, end, BLOCK_N):"
WANTED = "wanted = max(1, triton.cdiv(2 * p.sm_count, p.B * p.G))"

FORMS = {
    FORWARD: {
        "tiles of keys of 128": ((), [('"BLOCK_N": 64', '"BLOCK_N": 128'), ("3 if p.D <= 64 else 2", "2")]),
        "tiles of keys of 32": ((), [('"BLOCK_N": 64', '"BLOCK_N": 32')]),
        "tiles of keys of 256": ((), [('"BLOCK_N": 64', '"BLOCK_N": 256 if p.D <= 64 else 64'), ("3 if p.D <= 64 else 2", "1"), ("block_m = 128 if p.M >= 1024 else 64", "block_m = 64"), ('"num_warps": 8 if block_m == 128 else 4', '"num_warps": 8')]),
        "an assumption, a barrier, a print": ((), [("    place = rows + N - M\n", '    place = rows + N - M\n    tl.assume(N >= M)\n    tl.debug_barrier()\n    if tl.program_id(0) == 0:\n        tl.device_print("first place", tl.min(place, 0))\n')]),
        "natural exponentials": ((), [("tl.exp2(", "tl.exp("), ("(scale * 1.4426950408889634)", "scale")]),
        "from the last keys to the first": ((), [(LOOP, "for back in range(0, end, BLOCK_N):\n        start = (tl.cdiv(end, BLOCK_N) - 1) * BLOCK_N - back"), ("        m = m_new\n", "        m = m_new\n"), ("alpha = tl.exp2(m - m_new)", 'base = tl.where(m_new == float("-inf"), 0.0, m_new)\n        alpha = tl.exp2(m - base)'), ("p = tl.exp2(s - m_new[:, None])", "p = tl.exp2(s - base[:, None])")]),
        "normalised at every step": ((), [("l = l * alpha + tl.sum(p, 1)", "total = l * alpha + tl.sum(p, 1)"), (DOT, "acc = acc * (l * alpha / total)[:, None] + tl.dot(p.to(v.dtype), v) / total[:, None]\n        l = total"), ("(acc / l[:, None])", "acc")]),
        "rescaled only where it must": ((), [("        alpha = tl.exp2(m - m_new)\n", "        m_new = tl.where(m_new > m + 6.0, m_new, m)\n        alpha = tl.exp2(m - m_new)\n")]),
        "the longest tiles first": ((), [("tile = tl.program_id(0)", "tile = tl.num_programs(0) - 1 - tl.program_id(0)")]),
        "a sum of rounded weights": ((), [("tl.sum(p, 1)", "tl.sum(p.to(v_ptr.dtype.element_ty).to(tl.float32), 1)")]),
        "diagonal apart": ((), "attention_diagonal_apart"),
        "queries scaled before the loop": ((), [("other=0.0)\n    place", "other=0.0)\n    q = (q.to(tl.float32) * (scale * 1.4426950408889634)).to(o_ptr.dtype.element_ty)\n    place"), ("tl.dot(q, k) * (scale * 1.4426950408889634)", "tl.dot(q, k)")]),
        "a while loop": ((), [("    " + LOOP, "    start = 0\n    while start < end:"), ("        m = m_new\n", "        m = m_new\n        start += BLOCK_N\n")]),
        "one head after another in the grid": ((), [("tile = tl.program_id(0)", "tile = tl.program_id(1)"), ("tl.program_id(1) // H, tl.program_id(1) % H", "tl.program_id(0) // H, tl.program_id(0) % H"), ("grid = (triton.cdiv(p.M, block_m), p.B * p.H)", "grid = (p.B * p.H, triton.cdiv(p.M, block_m))")]),
        "keys loaded as they lie": ((), [("k_base + keys[None, :] * stride_kn + offs_d[:, None] * stride_kd, mask=mask_n[None, :]", "k_base + keys[:, None] * stride_kn + offs_d[None, :] * stride_kd, mask=mask_n[:, None]"), ("tl.dot(q, k)", "tl.dot(q, tl.trans(k))")]),
    },
    DECODE: {
        "one program for each tile of keys": ((), [(WANTED, "wanted = p.N")]),
        "tiles of keys of 128": ((), [("block_n = 64", "block_n = 128")]),
        "tiles of keys of 256": ((), [("block_n = 64", "block_n = 256")]),
        "a split without keys": ((), [("splits = triton.cdiv(p.N, chunk)", "splits = triton.cdiv(p.N, chunk) + 1")]),
        "queries scaled before the loop": ((), [("    k_base = k_ptr", "    q = (q.to(tl.float32) * scale).to(k_ptr.dtype.element_ty)\n    k_base = k_ptr"), ("tl.dot(q, k) * scale", "tl.dot(q, k)")]),
        "base two throughout": ((), [("tl.exp(", "tl.exp2("), ("tl.dot(q, k) * scale", "tl.dot(q, k) * (scale * 1.4426950408889634)")]),
        "outputs divided before they are stored": ((), [("at[:, None] * D + offs_d[None, :], acc,", "at[:, None] * D + offs_d[None, :], acc / l[:, None],"), ("tl.sum(parts * weight[:, None], 0)", "tl.sum(parts * (weight * l)[:, None], 0)")]),
        # at scores of -1e9 an fp32 log-sum-exp has no room for the logarithm
        "a log-sum-exp for maximum and sum": (("values", "traffic", "compiled", "speed"), [("tl.store(pm_ptr + at, m, mask=mask_h)", "tl.store(pm_ptr + at, m + tl.log(l), mask=mask_h)"), ("at[:, None] * D + offs_d[None, :], acc,", "at[:, None] * D + offs_d[None, :], acc / l[:, None],"), ("tl.sum(l * weight, 0)", "tl.sum(weight, 0)")]),
        "groups before splits in the grid": ((), [("split = tl.program_id(0)\n    batch, group = tl.program_id(1) // G, tl.program_id(1) % G", "split = tl.program_id(1)\n    batch, group = tl.program_id(0) // G, tl.program_id(0) % G"), ('"grid": (splits, p.B * p.G)', '"grid": (p.B * p.G, splits)')]),
        "combined in a loop": ((), [("    weight = tl.exp(m - tl.max(m, 0))\n", "    top = tl.max(m, 0)\n    total = tl.sum(l * tl.exp(m - top), 0)\n    out = tl.zeros((D,), tl.float32)\n    for i in range(SPLITS):\n        share = tl.exp(tl.load(pm_ptr + row * SPLITS + i) - top)\n        out += share * tl.load(po_ptr + (row * SPLITS + i) * D + offs_d)\n    out = out / total\n"), ("    parts = tl.load(po_ptr + (row * SPLITS + offs_s)[:, None] * D + offs_d[None, :], mask=mask[:, None], other=0.0)\n    out = tl.sum(parts * weight[:, None], 0) / tl.sum(l * weight, 0)\n", "")]),
        "a program for each query head": (("traffic", "speed"), [("p.B * p.G))\n", "p.B * p.H))\n"), ("tl.program_id(1) // G, tl.program_id(1) % G", "tl.program_id(1) // H, tl.program_id(1) % H // (H // G)"), ("per = H // G", "head = tl.program_id(1) % H"), ("mask_h = offs_h < per", "mask_h = offs_h < 1"), ("heads = group * per + offs_h", "heads = head + offs_h"), ('"grid": (splits, p.B * p.G)', '"grid": (splits, p.B * p.H)')]),
    },
    WINDOW: {
        "tiles of keys of 32": ((), [('"BLOCK_N": 64', '"BLOCK_N": 32')]),
        "tiles of keys of 256": ((), [('"BLOCK_N": 64', '"BLOCK_N": 256')]),
        "tiles of rows of 32": ((), [('"BLOCK_M": 64', '"BLOCK_M": 32'), ("triton.cdiv(p.M, 64)", "triton.cdiv(p.M, 32)")]),
        "tanh from the other end": ((), [("(1 - 2 / (tl.exp(2 * x) + 1))", "tl.where(x > 0, 1 - 2 / (tl.exp(2 * tl.abs(x)) + 1), 2 / (tl.exp(2 * tl.abs(x)) + 1) - 1)")]),
        "tanh by a sigmoid": ((), [("(1 - 2 / (tl.exp(2 * x) + 1))", "(2 * tl.sigmoid(2 * x) - 1)")]),
        "a while loop": ((), [("    for start in range(begin, end, BLOCK_N):", "    start = begin\n    while start < end:"), ("        m = m_new\n", "        m = m_new\n        start += BLOCK_N\n")]),
        "a very low number for masked scores": ((), [('s = tl.where(seen, s, float("-inf"))', "s = tl.where(seen, s, -1.0e30)"), ("p = tl.exp(s - base[:, None])", "p = tl.where(seen, tl.exp(s - base[:, None]), 0.0)")]),
        "keys loaded as they lie": ((), [("k_ptrs + keys[None, :] * stride_kn, mask=keys[None, :] < N", "k_ptrs + keys[:, None] * stride_kn, mask=keys[:, None] < N"), ("offs_d[:, None] * stride_kd", "offs_d[None, :] * stride_kd"), ("tl.dot(q, k)", "tl.dot(q, tl.trans(k))")]),
    },
    BACKWARD: {
        "dq added up in fp32 by atomics": ((), "backward_atomics"),
        "tiles of 32": (("speed",), [('"BLOCK_M": 64, "BLOCK_N": 64', '"BLOCK_M": 32, "BLOCK_N": 32'), ("(triton.cdiv(p.M, 64), heads), (triton.cdiv(p.N, 64), heads)", "(triton.cdiv(p.M, 32), heads), (triton.cdiv(p.N, 32), heads)"), ('"BLOCK_M": 64}, "num_warps"', '"BLOCK_M": 32}, "num_warps"')]),
        "queries first": ((), [("            {\"kernel\": grad_keys, \"grid\": keys, \"constexprs\": block, \"num_warps\": 4, \"num_stages\": 2},\n            {\"kernel\": grad_queries, \"grid\": rows, \"constexprs\": block, \"num_warps\": 4, \"num_stages\": 2},\n", "            {\"kernel\": grad_queries, \"grid\": rows, \"constexprs\": block, \"num_warps\": 4, \"num_stages\": 2},\n            {\"kernel\": grad_keys, \"grid\": keys, \"constexprs\": block, \"num_warps\": 4, \"num_stages\": 2},\n")]),
        "base two": ((), [("tl.exp(tl.dot(k, tl.trans(q)) * scale - lse[None, :])", "tl.exp2((tl.dot(k, tl.trans(q)) * scale - lse[None, :]) * 1.4426950408889634)"), ("tl.exp(tl.dot(q, tl.trans(k)) * scale - lse[:, None])", "tl.exp2((tl.dot(q, tl.trans(k)) * scale - lse[:, None]) * 1.4426950408889634)")]),
        "added, not accumulated": ((), [("dv = tl.dot(pt.to(do.dtype), do, dv)", "dv += tl.dot(pt.to(do.dtype), do)"), ("dq = tl.dot(ds.to(k.dtype), k, dq)", "dq += tl.dot(ds.to(k.dtype), k)")]),
        "the scale with the weights": ((), [("dst = pt * (tl.dot(v, tl.trans(do)) - delta[None, :])", "dst = pt * (tl.dot(v, tl.trans(do)) - delta[None, :]) * scale"), ("(dk * scale)", "dk")]),
        "every row walked": (("traffic", "speed"), [("max(0, first - (N - M)) // BLOCK_M * BLOCK_M", "0")]),
        "eight warps": ((), [('"constexprs": block, "num_warps": 4', '"constexprs": block, "num_warps": 8')]),
    },
}
