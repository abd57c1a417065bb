"""List the mistakes of *gemm bytes*, a row each."""

from grader.questions import Mistake
from kernels.gemm_tiling import cost

MISTAKES = (
    Mistake(
        "no store",
        "C is written, too: its m * n elements are missing",
        cell="def gemm_bytes(m, n, k, bm, bn, e):\n    return (m * k * -(-n // bn) + k * n * -(-m // bm)) * e",
    ),
    Mistake(
        "bytes of C alone",
        "the loads are counted in elements and C in bytes: multiply the sum of both by elem_bytes",
        cell="def gemm_bytes(m, n, k, bm, bn, e):\n    return m * k * -(-n // bn) + k * n * -(-m // bm) + m * n * e",
    ),
    Mistake(
        "bytes of the loads alone",
        "the loads are counted in bytes and C in elements: multiply the sum of both by elem_bytes",
        cell="def gemm_bytes(m, n, k, bm, bn, e):\n    return (m * k * -(-n // bn) + k * n * -(-m // bm)) * e + m * n",
    ),
    Mistake(
        "compulsory",
        "these are the bytes of each matrix once; the tiles read A and B again and again",
        cell="def gemm_bytes(m, n, k, bm, bn, e):\n    return (m * k + k * n + m * n) * e",
    ),
)


SHORTCUTS = {
    "two bytes always": lambda m, n, k, bm, bn, e: cost.gemm_bytes(m, n, k, bm, bn, 2),
    "floor": lambda m, n, k, bm, bn, e: (m * k * (n // bn) + k * n * (m // bm) + m * n) * e,
}
