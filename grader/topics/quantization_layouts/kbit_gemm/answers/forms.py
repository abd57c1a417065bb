"""List right answers to *kbit gemm* in other forms."""

from grader.topics.quantization_layouts.shared_mistakes_kbit import DOT
from grader.topics.quantization_layouts.shared_mistakes_kbit import LEVEL
from grader.topics.quantization_layouts.shared_mistakes_kbit import LOOP
from grader.topics.quantization_layouts.shared_mistakes_kbit import NUMBER
from grader.topics.quantization_layouts.shared_mistakes_kbit import tile

FORMS = {
        "X on the left": ((), [("acc = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)", "acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)"), (DOT, "acc = tl.dot(tl.trans(x), tl.trans(weight), acc)"), ("    y = y_ptr", "    acc = tl.trans(acc)\n    y = y_ptr")]),
        "levels in registers": ((), [("    column = tl.arange(0, 32)\n", "    column = tl.arange(0, 32)\n    levels = tl.load(c_ptr + tl.arange(0, 2**BITS) * stride_cl)\n"), (LEVEL, "level = tl.reshape(tl.gather(levels, tl.reshape(code, (BLOCK_N * BLOCK_K,)), 0), (BLOCK_N, WORDS, 32))")]),
        "levels chosen one by one": (("flow",), [(LEVEL, "level = tl.zeros((BLOCK_N, WORDS, 32), tl.float32)\n        for i in tl.static_range(2**BITS):\n            level = tl.where(code == i, tl.load(c_ptr + i * stride_cl).to(tl.float32), level)")]),
        "a column for each bit, narrow products": ((), "kbit_by_columns"),
        "a GEMV for a single row": ((), "kbit_gemv_for_one"),
        "split along K, with a second kernel, planes from the top": ((), "kbit_split_k"),
        "scaled in 16 bits": ((), [(NUMBER, "number = level * s[:, :, None]")]),
        "added, not accumulated": ((), [(DOT, "acc += tl.dot(weight, x)")]),
        "a while loop from the last block": ((), [(f"    for start in {LOOP}:", "    start = tl.cdiv(K, BLOCK_K) * BLOCK_K\n    while start > 0:\n        start -= BLOCK_K")]),
        "blocks of 128 columns": (("flow",), tile(32, 4)),
        "sixteen rows of W": (("traffic",), tile(16, 8)),
    }
