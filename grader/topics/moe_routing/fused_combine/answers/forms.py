"""List right answers to *fused combine* in other forms."""

from grader.topics.moe_routing.fused_combine.mistakes import ADD
from grader.topics.moe_routing.fused_combine.mistakes import BLOCK
from grader.topics.moe_routing.fused_combine.mistakes import SLOTS

FORMS = {
        "all pairs in one block": ((), "combine_all_pairs"),
        "strips of 256": ((), [(BLOCK, "min(256, triton.next_power_of_2(p.H))")]),
        "eight warps": ((), [('"num_warps": 4', '"num_warps": 8')]),
        "from the last slot": ((), [(f"for slot in {SLOTS}:", f"for back in {SLOTS}:\n            slot = TOP_K - 1 - back")]),
        "a loop at run time": ((), [(SLOTS, "range(0, K)"), ("out_ptr, T, H,", "out_ptr, T, K, H,")]),
        "a fused multiply-add": ((), [(ADD, "acc = tl.fma(y.to(tl.float32), tl.zeros_like(acc) + weight, acc)")]),
        "four tokens a program": ((), [("    token = tl.program_id(0)\n", ""), ("    if token < T:\n", "    for token in range(4 * tl.program_id(0), tl.minimum(4 * tl.program_id(0) + 4, T)):\n"), ("max(1, p.T)", "max(1, triton.cdiv(p.T, 4))")]),
    }
