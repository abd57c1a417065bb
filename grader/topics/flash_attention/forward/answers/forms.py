"""List right answers to *forward* in other forms."""



DOT = "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])"
LOOP = "for start in range(0, end, BLOCK_N):"
FORMS = {
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
    }
