"""List right answers to *residual norm* in other forms."""

from grader.topics.next_bottleneck.residual_norm.mistakes import ADD, LOAD_R, LOAD_X, NORM, ROW

FORMS = {
        "four rows a program": ((), "norm_four_rows"),
        "persistent programs": ((), "norm_persistent"),
        "rows in pieces, the sum in registers": ((), "norm_in_pieces"),
        "a sum in 16 bits, which rounds as often": ((), [(ADD, "r = x + r"), (LOAD_X, LOAD_X.removesuffix(".to(tl.float32)")), (LOAD_R, LOAD_R.removesuffix(".to(tl.float32)"))]),
        "a root and a division": ((), [(NORM, "y = wide / tl.sqrt(tl.sum(wide * wide, 0) / N + eps) * w")]),
        "the weight first": ((), [(NORM, "y = w * wide * tl.rsqrt(tl.sum(wide * (wide / N), 0) + eps)")]),
        "sixteen warps": ((), [('"num_warps": 8 if block >= 4096 else 4', '"num_warps": 16')]),
        "a warp for every 512 numbers": ((), [('8 if block >= 4096 else 4', 'min(16, max(1, block // 512))')]),
        "a grid of two dimensions": ((), [(ROW, "    row = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)).to(tl.int64)\n"), ('"grid": (p.M,)', '"grid": (p.M, 1) if p.M % 2 else (p.M // 2, 2)')]),
    }
