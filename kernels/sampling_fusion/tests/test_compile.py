"""What the kernels compile to, on a machine without their GPU."""

import pytest

from kernels.tests.compiled import report

SHARED = 48 * 1024  # more would cost programs per multiprocessor
FEW_BYTES = 64  # the assembler may trade a few bytes of stack for a whole further program per multiprocessor


@pytest.fixture(scope="module")
def compiled():
    return report("kernels.sampling_fusion.tests.compile_all")


def test_nothing_spills_and_everything_fits(compiled):
    for name, facts in compiled.items():
        assert facts["spilled"] <= FEW_BYTES, (name, facts)
        assert facts["shared"] <= SHARED, (name, facts)


def test_the_usual_launch_leaves_room_for_four_programs_a_multiprocessor(compiled):
    """65536 registers: a scan hides its latency behind others only if others fit."""
    for name, facts in compiled.items():
        if name.startswith(("usual", "greedy")):
            assert facts["registers"] * 256 * 3 <= 65536, (name, facts)
