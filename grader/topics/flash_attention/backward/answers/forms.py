"""List right answers to *backward* in other forms."""



FORMS = {
        "dq added up in fp32 by atomics": ((), "backward_atomics"),
        "tiles of 32": (("speed",), [('"BLOCK_M": 64, "BLOCK_N": 64', '"BLOCK_M": 32, "BLOCK_N": 32'), ("(triton.cdiv(p.M, 64), heads), (triton.cdiv(p.N, 64), heads)", "(triton.cdiv(p.M, 32), heads), (triton.cdiv(p.N, 32), heads)"), ('"BLOCK_M": 64}, "num_warps"', '"BLOCK_M": 32}, "num_warps"')]),
        "queries first": ((), [("            {\"kernel\": grad_keys, \"grid\": keys, \"constexprs\": block, \"num_warps\": 4, \"num_stages\": 2},\n            {\"kernel\": grad_queries, \"grid\": rows, \"constexprs\": block, \"num_warps\": 4, \"num_stages\": 2},\n", "            {\"kernel\": grad_queries, \"grid\": rows, \"constexprs\": block, \"num_warps\": 4, \"num_stages\": 2},\n            {\"kernel\": grad_keys, \"grid\": keys, \"constexprs\": block, \"num_warps\": 4, \"num_stages\": 2},\n")]),
        "base two": ((), [("tl.exp(tl.dot(k, tl.trans(q)) * scale - lse[None, :])", "tl.exp2((tl.dot(k, tl.trans(q)) * scale - lse[None, :]) * 1.4426950408889634)"), ("tl.exp(tl.dot(q, tl.trans(k)) * scale - lse[:, None])", "tl.exp2((tl.dot(q, tl.trans(k)) * scale - lse[:, None]) * 1.4426950408889634)")]),
        "added, not accumulated": ((), [("dv = tl.dot(pt.to(do.dtype), do, dv)", "dv += tl.dot(pt.to(do.dtype), do)"), ("dq = tl.dot(ds.to(k.dtype), k, dq)", "dq += tl.dot(ds.to(k.dtype), k)")]),
        "the scale with the weights": ((), [("dst = pt * (tl.dot(v, tl.trans(do)) - delta[None, :])", "dst = pt * (tl.dot(v, tl.trans(do)) - delta[None, :]) * scale"), ("(dk * scale)", "dk")]),
        "every row walked": (("traffic", "speed"), [("max(0, first - (N - M)) // BLOCK_M * BLOCK_M", "0")]),
        "eight warps": ((), [('"constexprs": block, "num_warps": 4', '"constexprs": block, "num_warps": 8')]),
    }
