"""Figures of the sources as rows of a table: (source, given, formula, expected, tolerance).

A tolerance is "exact", a percentage such as "0.5%" (relative), or a number (absolute).
"""

import pytest

BEYOND = "Beyond attention"
GEMM_MOE = "GEMM & MoE kernels"
KBIT = "k-bit deployment"
PERF = "Performance Engineering"
REAL = "Real kernels"


def near(expect, tolerance):
    if tolerance == "exact":
        return expect
    if isinstance(tolerance, str):
        return pytest.approx(expect, rel=float(tolerance.removesuffix("%")) / 100)
    return pytest.approx(expect, abs=tolerance)


def table(rows):
    """The decorator that runs a test once a row, named after what was given."""
    return pytest.mark.parametrize(
        "source, given, formula, expect, tolerance", rows, ids=[f"{row[0]}: {row[1]}" for row in rows]
    )


def hold(formula, expect, tolerance):
    got = formula()
    if isinstance(expect, (list, tuple)):
        assert list(got) == [near(value, tolerance) for value in expect]
    else:
        assert got == near(expect, tolerance)


REFUSAL = r"^.+ must be .+, got .+; .+$"  # the one form of an error
