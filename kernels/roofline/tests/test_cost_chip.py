"""Sectors, waves and residence: by hand, and by what must hold for any input."""

import pytest

from kernels.machines import MACHINES, machine
from kernels.roofline import cost
from kernels.tests.figures import REFUSAL
from kernels.tests.properties import given, st

H200 = machine("H200")


@pytest.mark.parametrize(
    "load, expect",
    [
        ({"stride": 1}, 4),
        ({"stride": 1, "element_bytes": 2}, 2),
        ({"stride": 1, "element_bytes": 8}, 8),
        ({"stride": 1, "element_bytes": 1}, 1),
        ({"stride": 2}, 8),
        ({"stride": 4}, 16),
        ({"stride": 8}, 32),
        ({"stride": 4096}, 32),
        ({"stride": 0}, 1),
        ({"stride": 1, "offset": 1}, 5),
        ({"stride": 1, "offset": 8}, 4),
    ],
)
def test_sectors_of_a_warp_by_hand(load, expect):
    """32 lanes of 4 bytes are 128: four sectors side by side, 32 when each lane has its own."""
    assert cost.warp_sectors(**load) == expect


def test_an_element_across_a_border_needs_two_sectors():
    assert cost.sectors([28], 8) == 2 and cost.sectors([24], 8) == 1 and cost.sectors([]) == 0


def test_a_column_moves_eight_times_the_bytes_of_a_row():
    assert cost.useful_share(1) / cost.useful_share(4096) == 8
    assert cost.useful_share(1, 2) / cost.useful_share(4096, 2) == 16
    assert cost.useful_share(1, 4, 1) == 0.8


@given(stride=st.integers(0, 100), size=st.sampled_from((1, 2, 4, 8)), offset=st.integers(0, 64))
def test_a_warp_needs_its_bytes_at_least_and_two_sectors_a_lane_at_most(stride, size, offset):
    touched = cost.warp_sectors(stride, size, offset)
    assert 1 <= touched <= cost.WARP * (1 if 32 % size == 0 else 2)
    assert 0 < cost.useful_share(stride, size, offset) <= 1


def test_one_program_too_many_takes_a_second_wave():
    assert [cost.waves(n, 132) for n in (1, 132, 133, 264, 265)] == [1, 1, 2, 2, 3]
    assert cost.busy_share(132, 132) == 1 and cost.busy_share(133, 132) == 133 / 264


@pytest.mark.parametrize(
    "program, programs, occupancy, limit",
    [
        ((4, 32, 0), 16, 1.0, "warps"),
        ((4, 33, 0), 12, 0.75, "registers"),  # 33 are dealt as 40
        ((4, 128, 0), 4, 0.25, "registers"),
        ((8, 168, 96 * 1024), 1, 0.125, "registers"),
        ((4, 40, 48 * 1024), 4, 0.25, "shared memory"),
        ((1, 32, 0), 32, 0.5, "blocks"),
    ],
)
def test_residence_on_an_h200_by_hand(program, programs, occupancy, limit):
    """65,536 registers, 228 KiB, 64 warps, 32 blocks a multiprocessor."""
    assert cost.residence(*program, H200) == cost.Residence(programs, occupancy, limit)


@given(warps=st.integers(1, 16), registers=st.integers(16, 96), shared=st.integers(0, 60000))
def test_what_is_resident_fits(warps, registers, shared):
    for one in MACHINES.values():
        found = cost.residence(warps, registers, shared, one)
        assert found.programs * warps <= one.warps and found.programs <= one.blocks
        assert found.programs * warps * 32 * registers <= 65536
        assert found.programs * shared <= one.shared_bytes
        assert 0 < found.occupancy <= 1


def test_what_must_be_in_flight_is_the_product():
    assert cost.bytes_in_flight(4.8e12, 300e-9) == pytest.approx(1.44e6)


def test_an_element_of_a_stream_has_time_for_thirty_instructions():
    """16,384 x 4096 bf16 read and written at a copy's speed, 63.3 us; at 1.83 GHz."""
    assert cost.instructions_per_element(16384 * 4096, 63.3e-6, H200) == pytest.approx(29.2, abs=0.1)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: cost.sectors([0], 0),
        lambda: cost.warp_sectors(-1),
        lambda: cost.waves(0, 132),
        lambda: cost.residence(4, 256, 0, H200),
        lambda: cost.residence(4, 32, 228 * 1024, H200),
        lambda: cost.residence(16, 255, 0, H200),
        lambda: cost.residence(0, 32, 0, H200),
        lambda: cost.bytes_in_flight(0, 1),
        lambda: cost.instructions_per_element(0, 1, H200),
    ],
)
def test_nonsense_is_refused(refused):
    with pytest.raises(ValueError, match=REFUSAL):
        refused()
