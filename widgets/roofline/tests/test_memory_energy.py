"""Power, split by where the accesses are served."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.roofline import cost
from widgets.registry import find
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
    assert "older process" in ENERGY.scenes(energy(accesses=2.0))[-1].warning
    assert not ENERGY.scenes(energy())[-1].warning


def drawn(width, **inputs):
    return [
        {mark["id"]: mark for mark in scene.marks} for scene in ENERGY.scenes(energy(**inputs), width=width)
    ]


EITHER = pytest.mark.parametrize("width", [NARROW, WIDE])


@EITHER
@pytest.mark.parametrize("moved", [0, 5, 50, 95, 100])
def test_all_that_fly_are_all_that_pay(width, moved):
    """The bar is as long as the accesses that arrived, and at the end it is the share that still goes to HBM."""
    steps, r = drawn(width, moved_percent=moved), energy(moved_percent=moved)
    before = -1
    for marks in steps:
        blocks = [m for id, m in marks.items() if id.startswith("pay")]
        assert len(blocks) >= before and not set(marks) & {
            f"pay{i}" for i in range(20) if f"access{i}" not in marks
        }
        before = len(blocks)
    last, whole = steps[-1], steps[-1]["after-whole"]["w"]
    assert before == r.shown_far and sum(id.startswith("access") for id in last) == r.shown == 20
    assert last["before-bar"]["w"] == pytest.approx(whole)
    assert sum(m["w"] + 1 for id, m in last.items() if id.startswith("pay")) == pytest.approx(
        whole * r.shown_far / 20, abs=0.2
    )
    assert last["pull-moved"]["x"] == pytest.approx(
        last["after-whole"]["x"] + whole * r.shown_far / 20, abs=0.01
    )
    assert r.shown_after_j / r.shown_before_j == pytest.approx(r.after_w / r.before_w)


@EITHER
@pytest.mark.parametrize("near", ["registers", "shared memory"])
def test_all_fly_at_one_speed_so_distance_is_time(width, near):
    steps, lengths = drawn(width, near=near), set()
    start = steps[0]["core"]["x"] + steps[0]["core"]["w"]
    for before, after in zip(steps, steps[1:], strict=False):
        for id in set(before) & set(after):
            one, other = before[id], after[id]
            flying = id.startswith("access") and one["y"] == other["y"] and other["x"] < one["x"]
            if flying and one["y"] < steps[0]["before-whole"]["y"]:
                lengths.add(round(one["x"] - other["x"], 1))
    assert len(lengths) <= 2 and max(lengths) - min(lengths) < 0.11, "in 15 ns all come as far"
    far, tick = steps[0]["far-level"], steps[0]["ns-tick2"]["x"]
    assert far["x"] + far["w"] / 2 == pytest.approx(tick) and tick > start


@EITHER
@pytest.mark.parametrize("near", ["registers", "shared memory"])
def test_the_area_of_a_square_is_the_energy_of_an_access(width, near):
    last = drawn(width, near=near)[-1]
    far, close = last["far-level"], last["near-level"]
    assert far["w"] == far["h"] and close["w"] == close["h"]
    ratio = (far["w"] / close["w"]) ** 2
    assert ratio == pytest.approx(energy(near=near).hbm_over_near, rel=0.05)


def test_what_is_on_its_way_is_counted():
    for i, scene in enumerate(ENERGY.scenes(energy())):
        flying = [m for m in scene.marks if m["id"].startswith("access") and "there in" in m["tip"]]
        if i < 39:
            verb = "is on its way" if len(flying) == 1 else "are on their way"
            assert f"{len(flying)} {verb}" in scene.caption
    assert "All 20 accesses" in scene.caption and not flying


def test_what_is_saved_is_said_in_whole_words():
    """No '1 GPUs', no '0 homes'; and what no longer comes from HBM is not said to."""

    def said(**inputs):
        scene = ENERGY.scenes(energy(**inputs))[-1]
        fleet = " ".join(m["s"] for m in scene.marks if m["id"].startswith("fleet"))
        return fleet, scene.takeaway, scene.summary

    fleet, _, summary = said(gpus=1)
    assert fleet.startswith("1 GPU saves 320") and "less than half of what one home takes" in fleet
    assert "over 1 GPU;" in summary
    assert "homes" not in said(moved_percent=0)[0] and "250 homes" in said()[0]
    none = said(moved_percent=100)[1]
    assert "Nothing comes from HBM" in none and "still comes" not in none
