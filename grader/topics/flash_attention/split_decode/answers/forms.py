"""List right answers to *split decode* in other forms."""



FORMS = {
        "splits of 16 keys that fill the machine": ((), "short_splits"),
        "tiles of keys of 128": ((), [("block_n = 64", "block_n = 128")]),
        "tiles of keys of 256 for small heads": ((), [("block_n = 64", "block_n = 256 if p.D < 128 and p.H <= 32 * p.G else 64")]),
        "a split without keys": ((), [("splits = triton.cdiv(p.N, chunk)", "splits = triton.cdiv(p.N, chunk) + 1")]),
        "queries scaled before the loop": ((), [("    k_base = k_ptr", "    q = (q.to(tl.float32) * scale).to(k_ptr.dtype.element_ty)\n    k_base = k_ptr"), ("tl.dot(q, k) * scale", "tl.dot(q, k)")]),
        "base two throughout": ((), [("tl.exp(", "tl.exp2("), ("tl.dot(q, k) * scale", "tl.dot(q, k) * (scale * 1.4426950408889634)")]),
        "outputs divided before they are stored": ((), [("at[:, None] * D + offs_d[None, :], acc,", "at[:, None] * D + offs_d[None, :], acc / l[:, None],"), ("tl.sum(parts * weight[:, None], 0)", "tl.sum(parts * (weight * l)[:, None], 0)")]),
        # at scores of -1e9 an fp32 log-sum-exp has no room for the logarithm
        "a log-sum-exp for maximum and sum": (("values", "traffic", "compiled", "speed"), [("tl.store(pm_ptr + at, m, mask=mask_h)", "tl.store(pm_ptr + at, m + tl.log(l), mask=mask_h)"), ("at[:, None] * D + offs_d[None, :], acc,", "at[:, None] * D + offs_d[None, :], acc / l[:, None],"), ("tl.sum(l * weight, 0)", "tl.sum(weight, 0)")]),
        "groups before splits in the grid": ((), [("split = tl.program_id(0)\n    batch, group = tl.program_id(1) // G, tl.program_id(1) % G", "split = tl.program_id(1)\n    batch, group = tl.program_id(0) // G, tl.program_id(0) % G"), ('"grid": (splits, p.B * p.G)', '"grid": (p.B * p.G, splits)')]),
        "combined in a loop": ((), [("    weight = tl.exp(m - tl.max(m, 0))\n", "    top = tl.max(m, 0)\n    total = tl.sum(l * tl.exp(m - top), 0)\n    out = tl.zeros((D,), tl.float32)\n    for i in range(SPLITS):\n        share = tl.exp(tl.load(pm_ptr + row * SPLITS + i) - top)\n        out += share * tl.load(po_ptr + (row * SPLITS + i) * D + offs_d)\n    out = out / total\n"), ("    parts = tl.load(po_ptr + (row * SPLITS + offs_s)[:, None] * D + offs_d[None, :], mask=mask[:, None], other=0.0)\n    out = tl.sum(parts * weight[:, None], 0) / tl.sum(l * weight, 0)\n", "")]),
        "a program for each query head": (("traffic", "speed"), [("p.B * p.G))\n", "p.B * p.H))\n"), ("tl.program_id(1) // G, tl.program_id(1) % G", "tl.program_id(1) // H, tl.program_id(1) % H // (H // G)"), ("per = H // G", "head = tl.program_id(1) % H"), ("mask_h = offs_h < per", "mask_h = offs_h < 1"), ("heads = group * per + offs_h", "heads = head + offs_h"), ('"grid": (splits, p.B * p.G)', '"grid": (splits, p.B * p.H)')]),
    }
