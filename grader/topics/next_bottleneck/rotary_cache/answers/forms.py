"""List right answers to *rotary cache* in other forms."""

from grader.topics.next_bottleneck.rotary_cache.mistakes import GRID, SCALE, TURN

FORMS = {
        "a row's heads one after another": (("speed",), "rotary_row_by_row"),
        "all heads of a row in one block": ((), "rotary_all_heads"),
        "the other half loaded again": (("traffic", "speed"), "rotary_partner_again"),
        "a root and a division": ((), [(SCALE, "scale = 1 / tl.sqrt((tl.sum(a * a, 0) + tl.sum(b * b, 0)) / (2 * HALF) + eps)")]),
        "fused multiply-adds": ((), [(TURN, "return tl.fma(a, cos, -b * sin), tl.fma(b, cos, a * sin)")]),
        "one sum of both halves": ((), [(SCALE, "scale = tl.rsqrt(tl.sum(a * a + b * b, 0) / (2 * HALF) + eps)")]),
        "four warps": ((), [('"num_warps": 1', '"num_warps": 4')]),
        "heads along the first axis": ((), [("row = tl.program_id(0)", "row = tl.program_id(1)"), ("head = tl.program_id(1)\n", "head = tl.program_id(0)\n"), (GRID, '"grid": (p.H + 2 * p.G, p.T)')]),
    }
