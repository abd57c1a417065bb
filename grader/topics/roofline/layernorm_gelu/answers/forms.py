"""List right answers to *layernorm gelu* in other forms."""



ROW = "row = tl.program_id(0).to(tl.int64)"
FORMS = {
        "four rows a program": ((), "norm_four_rows"),
        "persistent programs": ((), "norm_persistent"),
        "moments joined by a combine function with constants": ((), "norm_welford"),
        "helper functions and a descriptor": ((), "norm_helpers"),
        "in chunks, reading x three times": (("traffic", "speed"), "norm_chunks"),
        "a reciprocal root": ((), [("1 / tl.sqrt(tl.sum(d * d, axis=0) / N + eps)", "tl.rsqrt(tl.sum(d * d, axis=0) / N + eps)")]),
        "variance as a mean of squares of differences": ((), [("tl.sum(d * d, axis=0) / N", "tl.sum(d * (d / N), axis=0)")]),
        "erf from tl.math, hints to the cache": ((), [("tl.erf(", "tl.math.erf("), ("mask=mask, other=0.0).to(tl.float32)", 'mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)')]),
        "sum by a combine function": ((), [("@triton.jit\ndef layernorm_gelu", "@triton.jit\ndef plus(a, b):\n    return a + b\n\n\n@triton.jit\ndef layernorm_gelu"), ("tl.sum(g, axis=0)", "tl.reduce(g, 0, plus)")]),
        "a print on the device": ((), [("    mean =", '    if row == 0:\n        tl.device_print("first element", tl.sum(tl.where(offs == 0, g, 0.0), 0))\n    mean =')]),
        "one warp a row": ((), [('"num_warps": 8 if block >= 4096 else 4', '"num_warps": 16 if block >= 4096 else 1')]),
        "a grid of two dimensions": ((), [(ROW, "row = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)).to(tl.int64)"), ('"grid": (p.M,)', '"grid": (p.M, 1) if p.M % 2 else (p.M // 2, 2)')]),
    }
