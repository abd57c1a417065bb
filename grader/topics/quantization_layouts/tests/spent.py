"""What a kernel of given blocks would spend on a packed layer: {(tensor, access, count): amount}."""

import math

from grader.questions import Case
from grader.topics.tests.spent import over  # noqa: F401  who looks for waste here finds both


def layer(
    case: Case, rows: int, step: int, m_rows: int = 16, *, reads=1, wide=0, work=3.0, parts=1, lanes_step=0
) -> dict:
    """Programs of `rows` rows of W and `m_rows` of X, `step` columns at a time, K in `parts`; `wide` bytes a weight in scratch."""
    n, k, group, m = (case.sizes.get(s, 1) for s in "NKGM")
    programs, times = math.ceil(n / rows), math.ceil(m / m_rows)
    words, scales = n * k // 2 * times * reads, 2 * n * k // group * times * max(1, math.ceil(group / step))
    sectors = words * max(1.0, 64 / (lanes_step or step))
    return {
        ("w", "load", "dedup"): words,
        ("w", "load", "sectors"): sectors,
        ("w", "load", "programs"): programs * times * parts,
        ("s", "load", "dedup"): scales,
        ("z", "load", "dedup"): scales // 2,
        ("x", "load", "dedup"): 2 * m * k * programs,
        ("y", "store", "dedup"): 2 * m * n,
        ("y", "store", "programs"): programs * times,
        ("scratch", "any", "dedup"): 8 * parts * m * n * (parts > 1) + 2 * wide * n * k,
        ("all", "load", "dot"): 2 * 16 * math.ceil(m / 16) * n * k if "M" in case.sizes else 0,
        ("all", "load", "operations"): work * programs * rows * math.ceil(k / step) * step,
    }
