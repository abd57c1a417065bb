"""What the kernels compile to, on a machine without their GPU."""

import pytest

from kernels.tests.compiled import report

SHARED = 48 * 1024  # more would cost programs per multiprocessor
FEW_BYTES = 64  # the assembler may trade a few bytes of stack for a whole further program per multiprocessor


NAMED = ("usual, many 90", "greedy, many 90", "plain, many 90", "everything, many 90")


@pytest.fixture(scope="module", params=["some", pytest.param("all", marks=pytest.mark.slow)])
def compiled(request):
    return report("kernels.sampling_fusion.tests.compile_all", *NAMED, everything=request.param == "all")


def test_nothing_spills_and_everything_fits(compiled):
    for name, facts in compiled.items():
        assert facts["spilled"] <= FEW_BYTES, (name, facts)
        assert facts["shared"] <= SHARED, (name, facts)


def test_programs_fit_beside_each_other(compiled):
    """65536 registers, 256 threads a program: a read hides its latency behind other programs, if they fit."""
    for name, programs in (
        ("usual, many 90 read", 8),
        ("usual, many 90 finish", 2),
        ("greedy, many 90 finish", 8),
        ("plain, many 90 read", 4),
        ("everything, many 90 read", 2),
    ):
        assert compiled[name]["registers"] * 256 * programs <= 65536, name
