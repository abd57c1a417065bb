"""List right answers to *grouped gemm* in other forms."""

from grader.topics.moe_routing.grouped_gemm.mistakes import DOTS
from grader.topics.moe_routing.grouped_gemm.mistakes import LOOP
from grader.topics.moe_routing.grouped_gemm.mistakes import SILU
from grader.topics.moe_routing.grouped_gemm.mistakes import WIDTH

STEP = '"BLOCK_K": 64'
FORMS = {
        "persistent programs": ((), "gemm_persistent"),
        "added, not accumulated": ((), [(DOTS[0], "gate += tl.dot(x, w_gate)"), (DOTS[1], "up += tl.dot(x, w_up)")]),
        "weights on the left": ((), [("gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)", "gate = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)"), ("up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)", "up = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)"), (DOTS[0], "gate = tl.dot(tl.trans(w_gate), tl.trans(x), gate)"), (DOTS[1], "up = tl.dot(tl.trans(w_up), tl.trans(x), up)"), ("        at_h", "        h = tl.trans(h)\n        at_h")]),
        "a while loop": ((), [(f"        for start in {LOOP}:", "        start = H * 0 - BLOCK_K\n        while start < H - BLOCK_K:\n            start += BLOCK_K")]),
        "SiLU by its sigmoid": ((), [(SILU, "h = gate * tl.sigmoid(gate) * up")]),
        "steps of 32": ((), [(STEP, '"BLOCK_K": 32')]),
        "64 columns, eight warps": ((), [(WIDTH, "    width = 64\n"), ('"num_warps": 4', '"num_warps": 8')]),
        "strips first": ((), [("tl.program_id(1)", "tl.program_id(2)"), ("tl.program_id(0)", "tl.program_id(1)"), ("tl.program_id(2)", "tl.program_id(0)"), ("(max(1, most_tiles(p)), triton.cdiv(p.N, width))", "(triton.cdiv(p.N, width), max(1, most_tiles(p)))")]),
    }
