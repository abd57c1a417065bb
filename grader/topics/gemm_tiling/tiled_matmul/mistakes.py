"""List the mistakes of *tiled matmul*, a row each."""

from grader.questions import Mistake
from grader.topics.gemm_tiling.tiled_matmul.cases import step_loads
from kernels.gemm_tiling import reference

COUNTED = """
def counted(a, b, bm, bn, bk, columns=None):
    n = b.shape[1] if columns is None else columns
    loads = np.zeros((-(-len(a) // bm), -(-n // bn), -(-len(b) // bk)), int)
    for i, j, s in np.ndindex(loads.shape):
        steps = slice(s * bk, s * bk + bk)
        loads[i, j, s] = a[i * bm : i * bm + bm, steps].size + b[steps, j * bn : j * bn + bn].size
    return loads


"""


MISTAKES = (
    Mistake(
        "one number",
        "loads has an element for each tile and each step along K, and its sum is tile_loads",
        cell=COUNTED
        + "def tiled_matmul(a, b, bm, bn, bk):\n    return a.astype(float) @ b.astype(float), counted(a, b, bm, bn, bk).sum()",
    ),
    Mistake(
        "full tiles",
        "ragged tiles are counted as full ones: a slice past the end is shorter",
        cell=COUNTED
        + "def tiled_matmul(a, b, bm, bn, bk):\n    return a.astype(float) @ b.astype(float), counted(a, b, bm, bn, bk) * 0 + (bm + bn) * bk",
    ),
    Mistake(
        "no ragged tiles",
        "the ragged tiles and steps are missing: // rounds their number down, so round up, -(-m // bm)",
        cell="def tiled_matmul(a, b, bm, bn, bk):\n    m, k, n = len(a) // bm * bm, len(b) // bk * bk, b.shape[1] // bn * bn\n    c = np.zeros((len(a), b.shape[1]))\n    c[:m, :n] = a[:m, :k].astype(float) @ b[:k, :n]\n    return c, np.full((m // bm, n // bn, k // bk), (bm + bn) * bk)",
    ),
    Mistake(
        "never cleared",
        "the accumulator still holds the sum of the tile before: set it to 0 for each tile of C, inside both loops over tiles",
        cell=COUNTED
        + "def tiled_matmul(a, b, bm, bn, bk):\n    c, acc = np.zeros((len(a), b.shape[1])), 0\n    for i, j in np.ndindex(-(-len(a) // bm), -(-b.shape[1] // bn)):\n        rows, columns = slice(i * bm, i * bm + bm), slice(j * bn, j * bn + bn)\n        acc = acc + a[rows].astype(float) @ b[:, columns]\n        c[rows, columns] = acc\n    return c, counted(a, b, bm, bn, bk)",
    ),
    Mistake(
        "last step alone",
        "this is only the last step's product: each step along K adds its product to the tile, acc = acc + ...",
        cell=COUNTED
        + "def tiled_matmul(a, b, bm, bn, bk):\n    last = (len(b) - 1) // bk * bk\n    return a[:, last:].astype(float) @ b[last:], counted(a, b, bm, bn, bk)",
    ),
    Mistake(
        "A alone",
        "a step loads a piece of A and a piece of B",
        cell=COUNTED
        + "def tiled_matmul(a, b, bm, bn, bk):\n    return a.astype(float) @ b.astype(float), counted(a, b[:, :0], bm, bn, bk, b.shape[1])",
    ),
)


SHORTCUTS = {
    "whole tiles alone": lambda a, b, bm, bn, bk: (
        reference.gemm(a[:, : len(b) // bk * bk], b[: len(b) // bk * bk]),
        step_loads(len(a), b.shape[1], len(b), bm, bn, bk),
    ),
}
