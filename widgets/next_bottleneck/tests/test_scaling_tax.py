"""The fleet's books: every GPU paid for is counted once, and the source's tax and days come out."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets import units
from widgets.registry import find
from widgets.scene import extent

FLEET = find("scaling_tax")
ADDED = st.sampled_from(next(one for one in FLEET.controls if one.name == "added_ms").stops)
AT_30 = 211.2  # ms that 128 GPUs add where they reach 30%
SIZES = st.sampled_from([8, 16, 128, 1024, 16384])


def fleet(**inputs):
    return FLEET.run(**FLEET.inputs(inputs))


@given(SIZES, st.integers(30, 75), ADDED, st.integers(0, 50), st.integers(0, 30))
def test_every_gpu_is_counted_once_and_none_works_better_than_in_its_node(
    gpus, local, added, slow, operating
):
    r = fleet(gpus=gpus, local_mfu=local, added_ms=added, slow=slow, operating=operating)
    assert r.useful_gpus + r.tax_gpus + r.waiting_gpus + r.operating_gpus == pytest.approx(gpus)
    assert min(r.useful_gpus, r.tax_gpus + 1e-9, r.waiting_gpus + 1e-9, r.operating_gpus + 1e-9) >= 0
    assert r.mfu == pytest.approx(r.fleet_mfu * (1 - slow / 100) * (1 - operating / 100))
    assert r.mfu <= r.fleet_mfu <= r.local_mfu
    gpu_shares = [one / gpus for one in (r.useful_gpus, r.tax_gpus, r.waiting_gpus, r.operating_gpus)]
    assert gpu_shares == pytest.approx(r.parts.shares), "squares and bars show the same shares"
    assert r.useful_gpus == pytest.approx(gpus * r.mfu / r.local_mfu)
    assert r.parts.tax_s / r.mean_step_s == pytest.approx(r.tax_gpus / gpus)
    assert r.parts.wait_s / r.mean_step_s == pytest.approx(r.waiting_gpus / gpus)
    shares = [one.mfu for one in r.curve]
    assert shares == sorted(shares, reverse=True) and shares[0] == r.local_mfu
    assert next(one.mfu for one in r.curve if one.gpus == 128) == r.measured_mfu


def test_the_tax_of_128_gpus():
    """65% falls to 48%: 26.2%; 245 ms a step are 181 in one node's pace."""
    r = fleet()
    assert r.tax == pytest.approx(0.262, abs=0.0006) and not r.regression
    assert r.parts.work_s == pytest.approx(181e-3) and r.step_s == pytest.approx(245e-3, rel=0.001)
    assert r.lost_gpus == pytest.approx(33.5, abs=0.05)


def test_92_percent_busy_and_30_useful():
    assert fleet(added_ms=AT_30).tax == pytest.approx(0.538, abs=0.001)


def test_one_node_at_nine_tenths_costs_all_a_tenth_and_shows_as_a_regression():
    slow, well = fleet(slow=10), fleet()
    assert slow.mfu == pytest.approx(0.9 * well.mfu) and slow.step_s == pytest.approx(well.step_s / 0.9)
    assert slow.regression and FLEET.scene(slow).warning and not FLEET.scene(well).warning
    assert not fleet(slow=3).regression  # within three points of the usual tax


def test_a_percent_of_ten_thousand_is_a_hundred():
    assert fleet(gpus=10000).one_percent_gpus == pytest.approx(100)


def test_thirty_days_of_a_benchmark_in_production():
    """10 to 20% make 33 to 37.5 days; the source's 35 to 40 take up to 25%."""
    days = [fleet(operating=share).production_days for share in (10, 20, 25)]
    assert days == pytest.approx([33.3, 37.5, 40], abs=0.05)


def test_traces_of_a_thousand_gpus_are_half_a_terabyte():
    assert next(one.trace_bytes for one in fleet().curve if one.gpus == 1024) == pytest.approx(512e9)


@given(SIZES, st.integers(30, 74), ADDED)
def test_a_better_node_has_a_shorter_step_and_so_has_its_fleet(gpus, local, added):
    """The same work at a larger share of the peak; the fleet's step is the node's and what the fleet adds, which stays."""
    worse, better = (fleet(gpus=gpus, local_mfu=one, added_ms=added) for one in (local, local + 1))
    assert better.parts.work_s == pytest.approx(worse.parts.work_s * local / (local + 1))
    assert better.parts.work_s < worse.parts.work_s and better.step_s < worse.step_s
    for r in (worse, better):
        assert r.step_s == pytest.approx(r.parts.work_s + r.parts.tax_s)
        assert r.parts.tax_s == pytest.approx(added * 1e-3 * math.log2(gpus / 8) / 4)
        assert r.mfu == pytest.approx(r.local_mfu * r.parts.work_s / r.step_s)
    assert better.tax >= worse.tax and better.mfu > worse.mfu


def test_65_to_75_percent_takes_24_ms_off_the_node_and_off_the_fleet():
    was, now = fleet(), fleet(local_mfu=75)
    assert now.parts.work_s == pytest.approx(156.9e-3, abs=1e-4) and now.step_s == pytest.approx(
        221e-3, abs=1e-4
    )
    assert was.step_s - now.step_s == pytest.approx(was.parts.work_s - now.parts.work_s)
    scene = FLEET.scene(now)
    words = " ".join(part for pair in scene.formula for part in pair)
    assert "157" in words and "64.1" in words and "221" in words and "53.2%" in scene.summary
    assert "stays" in scene.takeaway and "a larger share" in scene.takeaway
    assert [one for one in scene.marks if one["id"] == "nodes-end"][0]["s"].startswith("221")


@pytest.mark.parametrize("width", [720, 340])
def test_the_node_s_end_is_pulled_to_its_mfu(width):
    marks = {m["id"]: m for m in FLEET.scene(fleet(local_mfu=75), width=width).marks}
    assert marks["pull-node"]["x"] == marks["node-step"]["x"] < marks["pull-slow"]["x"]
    before = {m["id"]: m for m in FLEET.scene(fleet(), width=width).marks}
    assert marks["pull-node"]["x"] < before["pull-node"]["x"]


@given(SIZES, ADDED, st.integers(0, 50), st.integers(0, 30))
def test_a_fleet_never_changes_its_nodes_own_step(gpus, added, slow, operating):
    r = fleet(gpus=gpus, added_ms=added, slow=slow, operating=operating)
    assert r.parts.work_s == fleet().parts.work_s
    assert r.step_s >= r.parts.work_s and r.mean_step_s == pytest.approx(r.step_s / (1 - operating / 100))


@pytest.mark.parametrize("width", [720, 340])
@pytest.mark.parametrize("state", [{}, {"slow": 10}, {"added_ms": AT_30}, {"gpus": 10000}, {"operating": 20}])
def test_one_time_axis_for_all_states_and_every_bar_is_as_long_as_its_time(state, width):
    r, first = fleet(**state), fleet()
    marks, usual = ({m["id"]: m for m in FLEET.scene(one, width=width).marks} for one in (r, first))
    ticks = [id for id in usual if id.startswith("time-")]
    assert ticks and all(marks[id] == usual[id] for id in ticks)
    assert marks["node-step"] == usual["node-step"]
    unit = (marks["time-line"]["x2"] - marks["time-line"]["x"]) / 0.5
    bars = [m for id, m in marks.items() if id.startswith("node0-")]
    assert sum(m["w"] for m in bars) == pytest.approx(r.mean_step_s * unit, abs=0.1)
    assert marks["node0-useful"]["w"] == pytest.approx(0.181 * unit, abs=0.1)


def test_words_formula_figures_and_warning_say_the_same_of_a_slow_node():
    r = fleet(slow=10)
    scene = FLEET.scene(r)
    (_, tax), _, (_, step) = scene.formula
    assert "33.5%" in tax and "272" in step and "33.5%" in scene.warning and "26.2%" in scene.warning
    assert "33.5%" in {one.text for one in scene.figures}
    assert next(m["s"] for m in scene.marks if m["id"] == "nodes-end").startswith("272")


def test_the_counter_is_drawn_and_does_not_move_with_the_tax():
    drawn = []
    for state in ({}, {"added_ms": AT_30}):
        scene = FLEET.scene(fleet(**state))
        drawn += [m for m in scene.marks if m["id"] in ("busy", "busy-name")]
    assert drawn[:2] == drawn[2:] and "92%" in drawn[1]["s"]
    assert "92%" in scene.takeaway and "30%" in scene.takeaway


def test_a_step_beyond_the_axis_is_torn_and_says_so():
    torn = FLEET.scene(fleet(gpus=16384, added_ms=AT_30)).marks
    assert any(m["id"] == "torn0" for m in torn)
    assert not any(m["id"] == "torn0" for m in FLEET.scene(fleet()).marks)


@pytest.mark.parametrize("width", [720, 340])
@pytest.mark.parametrize("slow", [0, 5, 10, 50])
def test_no_knob_stands_on_the_fleet_s_point_or_on_the_slow_node_s_stripe(slow, width):
    gpus = next(one for one in FLEET.controls if one.name == "gpus").stops
    for state in ({}, {"added_ms": AT_30}, {"added_ms": 0.0}):
        for size in gpus:
            marks = {m["id"]: m for m in FLEET.scene(fleet(gpus=size, slow=slow, **state), width=width).marks}
            point = marks["here"]
            knobs = [m for m in marks.values() if m["t"] == "handle"]
            for knob in knobs:
                assert math.hypot(knob["x"] - point["x"], knob["y"] - point["y"]) > 10, (size, knob["id"])
            for stripe in (m for m in marks.values() if m["role"] == "hot" and m["id"].endswith("-idle")):
                left, top, right, low = extent(stripe)
                assert all(
                    k["y"] + 9 <= top or k["y"] - 9 >= low or not left - 9 < k["x"] < right + 9 for k in knobs
                ), (size, state)


@pytest.mark.parametrize("gpus", [8, 128, 1024, 16384])
def test_the_curve_is_pulled_by_what_128_gpus_add(gpus):
    """Wherever on the curve the knob stands: at a value's place the curve of that value runs."""
    for knob in (m for m in FLEET.scene(fleet(gpus=gpus)).marks if m["id"] == "pull-measured"):
        (pull,) = knob["drag"]
        for at, to in list(zip(pull["at"], pull["to"], strict=True))[::10]:
            moved = next(m for m in FLEET.scene(fleet(gpus=gpus, added_ms=to)).marks if m["id"] == knob["id"])
            assert moved["y"] == pytest.approx(at, abs=0.02)


def test_the_curve_s_knob_says_what_its_own_gpus_add_and_what_128_add():
    tips = [
        m["tip"] for g in (128, 1024) for m in FLEET.scene(fleet(gpus=g)).marks if m["id"] == "pull-measured"
    ]
    r = fleet()
    at = {one.gpus: one.step_s - r.parts.work_s for one in r.curve}
    assert (
        tips[0] == f"1,024 GPUs add {units.seconds(at[1024])} to a step, as 128 add {units.seconds(at[128])}"
    )
    assert tips[1] == f"128 GPUs add {units.seconds(at[128])} to a step"
