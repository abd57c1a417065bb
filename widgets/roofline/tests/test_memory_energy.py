"""Power, split by where the accesses are served."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.roofline import cost
from widgets.registry import find
from widgets.roofline.memory_energy import CLOSER
from widgets.scene import NARROW, WIDE

ENERGY = find("memory_energy")


def energy(**inputs):
    return ENERGY.run(**ENERGY.inputs(inputs))


@given(st.integers(0, 100), st.sampled_from([0.1, 1.0, 2.0]), st.sampled_from(["registers", "shared memory"]))
def test_power_is_the_sum_of_both_levels(moved, accesses, near):
    r = energy(moved_percent=moved, accesses=accesses, near=near)
    far = accesses * 1e12 * (1 - moved / 100) * cost.LEVELS["HBM"].energy_j
    close = accesses * 1e12 * moved / 100 * cost.LEVELS[near].energy_j
    assert r.after_w == pytest.approx(far + close)
    assert (r.left_in_hbm_w, r.near_w) == (pytest.approx(far), pytest.approx(close, abs=1e-9))
    assert r.before_w - r.after_w == pytest.approx(r.saved_w, abs=1e-9)


@given(st.integers(1, 100000))
def test_a_fleet_saves_what_its_gpus_save(gpus):
    r = energy(gpus=gpus)
    assert r.fleet_saved_w == pytest.approx(gpus * r.saved_w)
    assert r.year_usd == pytest.approx(r.fleet_saved_w * 8760 / 1000 * 0.1)


def test_moving_more_never_costs_more():
    powers = [energy(moved_percent=percent).after_w for percent in range(0, 101, 5)]
    assert powers == sorted(powers, reverse=True)


def test_more_than_the_board_may_draw_is_said():
    assert "older process" in ENERGY.scene(energy(accesses=2.0)).warning
    assert not ENERGY.scene(energy()).warning


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_areas_are_energies_and_what_has_none_is_hollow(width):
    marks = {mark["id"]: mark for mark in ENERGY.scene(energy(), width=width).marks}
    registers, shared, far = (marks[id]["r"] for id in ("inset0", "inset1", "level3"))
    assert (shared / registers) ** 2 == pytest.approx(50, rel=0.01)
    assert (CLOSER * far / shared) ** 2 == pytest.approx(1280, rel=0.01)
    assert marks["level2"]["t"] == "path" and "closed" not in marks["level2"]
    for i in (0, 1):
        assert marks[f"level{i}-name"]["y"] - marks[f"level{i}"]["y2"] < 24, "a name stands at its mark"


def test_a_phone_leads_from_the_ring_on_hbm_s_disc_to_its_name():
    marks = {mark["id"]: mark for mark in ENERGY.scene(energy(), width=NARROW).marks}
    ring, name = marks["level2"]["p"], marks["level2-name"]
    over, below = marks["l2-over"], marks["l2-below"]
    assert min(ring[::2]) < over["x"] < max(ring[::2]) and over["y"] >= max(ring[1::2])
    assert over["x2"] == below["x"] and over["y2"] <= below["y"] < below["y2"] <= name["y"] - 9
    assert "l2-over" not in {mark["id"] for mark in ENERGY.scene(energy(), width=WIDE).marks}
