"""What an answer of given tiles would spend on a case, by the cost models: {(tensor, access, count): amount}."""

import math

from grader.questions import Budget, Case
from kernels.gemm_tiling import cost as gemm_cost
from kernels.roofline import cost as roofline_cost


def gemm(
    case: Case, bm: int, bn: int, bk: int = 32, group: int = 8, outside: float = 1.0, by_columns=False
) -> dict:
    """A tiled GEMM; `outside` operations an element of the tile after each step along K."""
    m, n, k = (case.sizes[s] for s in "MNK")
    rows, columns, steps = math.ceil(m / bm), math.ceil(n / bn), math.ceil(k / bk)
    waves = (m, n, k, bm, bn) if not by_columns else (n, m, k, bn, bm)
    padded = rows * bm * columns * bn * steps
    return {
        ("a", "load", "dedup"): 2 * m * k * columns,
        ("b", "load", "dedup"): 2 * k * n * rows,
        ("c", "store", "dedup"): 2 * m * n,
        ("scratch", "any", "dedup"): 0,
        ("all", "load", "dedup"): 2 * gemm_cost.tile_loads(m, n, k, bm, bn),
        ("all", "load", "wave"): sum(gemm_cost.unique_bytes_per_wave(*waves, group, case.sm_count)),
        ("all", "load", "dot"): 2 * padded * bk,
        ("all", "load", "operations"): outside * padded + padded / steps,
    }


def block_scaled(case: Case, bm: int, bn: int, bk: int = 128, outside: float = 2.0) -> dict:
    m, n, k = (case.sizes[s] for s in "MNK")
    rows, columns, steps = math.ceil(m / bm), math.ceil(n / bn), math.ceil(k / bk)
    padded = rows * bm * columns * bn * steps
    sa, sb = 4 * m * steps * columns, 4 * steps * rows * columns
    loads = gemm_cost.tile_loads(m, n, k, bm, bn)
    return {
        ("a", "load", "dedup"): m * k * columns,
        ("b", "load", "dedup"): k * n * rows,
        ("sa", "load", "dedup"): sa,
        ("sb", "load", "dedup"): sb,
        ("c", "store", "dedup"): 2 * m * n,
        ("scratch", "any", "dedup"): 0,
        ("all", "load", "dedup"): loads + sa + sb,
        ("all", "load", "dot"): 2 * padded * bk,
        ("all", "load", "operations"): outside * padded + padded / steps,
    }


def norm(case: Case, rows: int = 1, reads: int = 1, work: float = 15.0, kept: int = 0) -> dict:
    """`rows` rows a program, x read `reads` times, `kept` bytes an element in scratch."""
    m, n = case.sizes["M"], case.sizes["N"]
    size, block = roofline_cost.tensor_bytes(m, n), 1 << (n - 1).bit_length()
    vector = roofline_cost.row_vector_bytes(math.ceil(m / rows), n)
    return {
        ("x", "load", "dedup"): reads * size,
        ("y", "store", "dedup"): size,
        ("w", "load", "dedup"): vector,
        ("b", "load", "dedup"): vector,
        ("scratch", "any", "dedup"): kept * m * n,
        ("x", "load", "sectors"): reads * size,
        ("y", "store", "sectors"): size,
        ("all", "load", "operations"): work * math.ceil(m / rows) * rows * block,
    }


def over(budgets: list[Budget], spent: dict) -> list[str]:
    """The budgets that are not kept. A budget of something that `spent` doesn't know is an error."""
    found = []
    for budget in budgets:
        tensor, access = (
            ("all", "load") if budget.count in ("operations", "dot") else (budget.tensor, budget.access)
        )
        amount = spent[tensor, access, budget.count]
        if not budget.least <= amount <= budget.most:
            found.append(budget.what)
    return found
