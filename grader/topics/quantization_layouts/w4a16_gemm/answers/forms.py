"""List right answers to *w4a16 gemm* in other forms."""

from grader.topics.quantization_layouts.w4a16_gemm.mistakes import DOT
from grader.topics.quantization_layouts.w4a16_gemm.mistakes import GEMM_LOOP
from grader.topics.quantization_layouts.w4a16_gemm.mistakes import NUMBER
from grader.topics.quantization_layouts.w4a16_gemm.mistakes import SCALE
from grader.topics.quantization_layouts.w4a16_gemm.mistakes import ZERO
from grader.topics.quantization_layouts.w4a16_gemm.mistakes import tile

FORMS = {
        "W on the left": ((), [("acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)", "acc = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)"), (DOT, "acc += tl.dot(tl.trans(number), tl.trans(x)) * s.to(tl.float32)[:, None]"), ("    y = y_ptr", "    acc = tl.trans(acc)\n    y = y_ptr")]),
        "zero points in fp32": ((), [(ZERO, "(z.to(tl.float32) + BASE)[:, None]"), ("number = number - ", "number = number.to(tl.float32) - "), ("        # columns in", "        number = number.to(dtype)\n        # columns in")]),
        "scaled in 16 bits, before the product": ((), [(NUMBER, f"number = (number - {ZERO}) * s[:, None]"), (SCALE, "")]),
        "columns in their own order": ((), [("tl.permute(tl.reshape(number, (BLOCK_N, WORDS // 4, 8, 4)), 2, 1, 3, 0)", "tl.trans(number)"), ("tl.permute(tl.reshape(x, (BLOCK_M, WORDS // 4, 8, 4)), 0, 2, 1, 3)", "x")]),
        "scaled after each group": ((), "gemm_scaled_after_each_group"),
        "a column for each code": ((), "gemm_by_columns"),
        "split along K, with a second kernel": ((), "gemm_split_k"),
        "narrow tiles, eight warps": ((), [*tile(32), ('"num_warps": 4, "num_stages": 4', '"num_warps": 8, "num_stages": 2')]),
        "a while loop": ((), [(f"    for g in {GEMM_LOOP}:", "    g = 0 * K - 1\n    while g < K // GROUP - 1:\n        g += 1")]),
        "sixteen rows of W": (("traffic",), tile(16)),
    }
