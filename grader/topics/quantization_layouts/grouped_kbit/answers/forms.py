"""List right answers to *grouped kbit* in other forms."""

from grader.topics.quantization_layouts.shared_mistakes_kbit import DOT
from grader.topics.quantization_layouts.shared_mistakes_kbit import NUMBER
from grader.topics.quantization_layouts.shared_mistakes_kbit import tile

FORMS = {
        "a program for every tile there may be": ((), "experts_all_tiles"),
        "each tile looks for its expert": ((), "experts_searched"),
        "tiles of 32 rows": ((), [('"BLOCK_M": 16', '"BLOCK_M": 32')]),
        "scaled in 16 bits": ((), [(NUMBER, "number = level * s[:, :, None]")]),
        "added, not accumulated": ((), [(DOT, "acc += tl.dot(weight, x)")]),
        "a while loop over the rows": ((), [("    for top in range(first, last, BLOCK_M):", "    top = first - BLOCK_M\n    while top < last - BLOCK_M:\n        top += BLOCK_M")]),
        "64 rows of W": ((), [*tile(64, 8), ('"num_warps": 4', '"num_warps": 8')]),
        "blocks of 128 columns": (("flow",), tile(32, 4)),
        "sixteen rows of W": (("traffic",), tile(16, 8)),
    }
