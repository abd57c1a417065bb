"""List right answers to *order* in other forms."""

from grader.topics.moe_routing.order.mistakes import BLOCK_LINE
from grader.topics.moe_routing.order.mistakes import RANK
from grader.topics.moe_routing.order.mistakes import WHOLE

FORMS = {
        "three launches, with a scan of its own": ((), "order_scanned"),
        "rounded up by cdiv": ((), [(WHOLE, "whole = tl.cdiv(total, TILE) * TILE")]),
        "ranks from the end": ((), [(RANK, "rank = tl.sum(picked.to(tl.int32), 0)[None, :] - tl.cumsum(picked.to(tl.int32), 0, reverse=True)")]),
        "the last program stores the offsets": ((), [("if block == 0:", "if block == blocks - 1:")]),
        "a while loop over blocks": ((), [("    for b in range(0, blocks):", "    b = block * 0 - 1\n    while b < blocks - 1:\n        b += 1")]),
        "sixteen warps": ((), [('"num_warps": 8', '"num_warps": 16')]),
        "64 lanes of experts at least": ((), [("max(16, triton", "max(64, triton")]),
        "blocks of 32 tokens": (("traffic",), [(BLOCK_LINE, "    block = 32\n")]),
    }
