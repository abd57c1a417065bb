"""List right answers to *w4a16 gemv* in other forms."""

from grader.topics.quantization_layouts.w4a16_gemv.mistakes import LOOP
from grader.topics.quantization_layouts.w4a16_gemv.mistakes import SUMMED
from grader.topics.quantization_layouts.w4a16_gemv.mistakes import VALUE
from grader.topics.quantization_layouts.w4a16_gemv.mistakes import blocks

FORMS = {
        "by conversion": ((), [(VALUE, "(code - 8).to(tl.float32)")]),
        "the eights taken apart": ((), [("8388616.0", "8388608.0"), (SUMMED, "acc += (tl.sum(value * x[None, :, :], 2) - 8 * tl.sum(x, 1)[None, :]) * s.to(tl.float32)")]),
        "one code after another": ((), "gemv_code_by_code"),
        "a column for each code": ((), "gemv_by_columns"),
        "on tensor cores": ((), "gemv_on_tensor_cores"),
        "split along K, with a second kernel": ((), "gemv_split_k"),
        "weights rounded to 16 bits": ((), [(SUMMED, "acc += tl.sum((value * s.to(tl.float32)[:, :, None]).to(x_ptr.dtype.element_ty).to(tl.float32) * x[None, :, :], 2)")]),
        "sixteen rows, four warps": ((), [*blocks(16, 32), ('"num_warps": 1', '"num_warps": 4')]),
        "a while loop from the last block": ((), [(f"    for start in {LOOP}:", "    start = tl.cdiv(K // 8, WORDS) * WORDS\n    while start > 0:\n        start -= WORDS")]),
        "assumptions, a barrier and a print": ((), [("    mask_n = ", '    tl.assume(K > 0)\n    tl.debug_barrier()\n    if tl.program_id(0) == 0:\n        tl.device_print("rows", N)\n    mask_n = ')]),
        "words by the address of their bytes": ((), [("w = tl.load(w_ptr + offs_n[:, None] * stride_wn + word[None, :] * stride_wk,", "at = 4 * (offs_n[:, None] * stride_wn + word[None, :] * stride_wk).to(tl.int64)\n        first = w_ptr.to(tl.pointer_type(tl.uint8), bitcast=True)\n        w = tl.load((first + at).to(tl.pointer_type(tl.int32), bitcast=True),")]),
        "words of 128 with two rows": (("traffic",), blocks(2, 128)),
    }
