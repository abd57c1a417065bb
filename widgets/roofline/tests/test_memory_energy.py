"""Power, split by where the accesses are served."""

import math

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


def drawn(width, **inputs):
    return {mark["id"]: mark for mark in ENERGY.scene(energy(**inputs), width=width).marks}


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_true_areas_are_energies_and_what_has_none_is_hollow(width):
    marks = drawn(width)
    registers, shared = (marks[f"level{i}"]["w"] * marks[f"level{i}"]["h"] for i in (0, 1))
    far = math.pi * marks["level3"]["r"] ** 2
    assert far / shared == pytest.approx(1280, rel=0.02)  # marks are rounded
    assert shared / registers == pytest.approx(50, rel=0.1)
    assert marks["level2"]["t"] == "path" and "closed" not in marks["level2"]


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("near", ["registers", "shared memory"])
def test_only_a_framed_and_titled_part_is_magnified_and_hbm_is_so_too(width, near):
    marks = drawn(width, near=near)
    frame, wall = marks["magnified"]["p"], marks["magnified-hbm"]
    left, right, top, bottom = min(frame[::2]), max(frame[::2]), min(frame[1::2]), max(frame[1::2])
    assert f"{CLOSER**2} times the area" in marks["magnified-title"]["s"]
    assert bottom < marks["level3"]["y"], "what is magnified stands apart from the true places"
    for i in (0, 1):
        true, large = marks[f"level{i}"], marks[f"magnified{i}"]
        middle = true["x"] + true["w"] / 2
        assert math.pi * large["r"] ** 2 == pytest.approx(CLOSER**2 * true["w"] * true["h"], rel=0.1)
        assert large["x"] == pytest.approx(middle, abs=0.1)
        assert left < large["x"] - large["r"] and large["x"] + large["r"] < wall["x"]
        assert top < large["y"] - large["r"] and large["y"] + large["r"] < bottom
        for side in (-1, 1):
            leader = marks[f"leader{i}{side}"]
            assert leader["y"] == bottom and abs(leader["x2"] - middle) < 4 and true["y"] - leader["y2"] < 5
    bend = (wall["h"] / 2) ** 2 / (2 * CLOSER * marks["level3"]["r"])
    assert bend < 1.5, "HBM's edge is as good as straight"
    cut = (wall["x"] + wall["w"], wall["y"], wall["y"] + wall["h"])
    assert cut == (right, top, bottom), "the frame cuts HBM on all other sides"


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_each_level_is_as_far_as_its_time_and_none_lies_within_another(width):
    marks, rungs = drawn(width), energy().rungs
    far = marks["level3"]
    ring = marks["level2"]["p"]
    near = [marks[id]["x"] + marks[id]["w"] / 2 for id in ("level0", "level1")]
    ends = [
        *near,
        (min(ring[::2]) + max(ring[::2])) / 2,
        far["x"] - far["r"],
    ]
    span = math.log(rungs[3].latency_s / rungs[0].latency_s)
    for rung, end in zip(rungs, ends, strict=True):
        share = math.log(rung.latency_s / rungs[0].latency_s) / span
        assert (end - ends[0]) / (ends[3] - ends[0]) == pytest.approx(share, abs=0.01)
    assert max(ring[::2]) < far["x"] - far["r"] and far["x"] + far["r"] <= width


def test_what_is_saved_is_said_in_whole_words():
    """No '1 GPUs', no '0 homes'; and what no longer comes from HBM is not said to."""

    def said(**inputs):
        scene = ENERGY.scene(energy(**inputs))
        fleet = " ".join(m["s"] for m in scene.marks if m["id"].startswith("fleet"))
        return fleet, scene.takeaway, scene.summary

    fleet, _, summary = said(gpus=1)
    assert fleet.startswith("1 GPU saves 320") and "less than half of what one home takes" in fleet
    assert "over 1 GPU." in summary
    assert "homes" not in said(moved_percent=0)[0] and "250 homes" in said()[0]
    none = said(moved_percent=100)[1]
    assert "Nothing comes from HBM" in none and "still comes" not in none


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("moved", [0, 50, 95, 100])
def test_watts_stand_beside_their_bar(moved, width):
    marks = drawn(width, moved_percent=moved)
    end = marks["before-far"]["x"] + marks["before-far"]["w"]
    for id in ("before-watts", "after-watts"):
        assert 0 < marks[id]["x"] - end < 90
