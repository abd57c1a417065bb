"""Share mistakes among questions of gemm tiling."""

import math

from grader.questions import Case
from grader.questions.families import family

BLOCKS = (16, 32, 64, 128)


def pieces(case: Case, block: int) -> list[slice]:
    return [slice(k, k + block) for k in range(0, case.sizes["K"], block)]


SUM = "close, but off in the third digit of a long sum: is the accumulator fp32 from first to last?"
TAIL = "this is the product over only part of K: does the loop run to cdiv(K, BLOCK_K), and does each mask along K compare with K?"


def ends_early(part) -> tuple:
    """Loops over K that end too soon, of a product whose first columns `part(k_end)` gives."""
    return (
        family("one block of K", TAIL, *(part(lambda k, b=b: min(k, b)) for b in BLOCKS)),
        family(
            "tail left out",
            "the last, ragged block of K is left out: does the loop run to cdiv(K, BLOCK_K), and does each mask along K compare with K?",
            *(part(lambda k, b=b: k // b * b) for b in BLOCKS),
        ),
        family(
            "one step short",
            "the last step is left out if K is one more than a multiple of the block: range(0, K, BLOCK_K) runs cdiv(K, BLOCK_K) times",
            *(part(lambda k, b=b: math.ceil((k - 1) / b) * b) for b in BLOCKS),
        ),
    )
