"""The fleet's books: every GPU paid for is counted once, and the source's tax and days come out."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets import units
from widgets.registry import find

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
    assert (
        r.useful_gpus == pytest.approx(gpus * r.parts.shares[0]) == pytest.approx(gpus * r.mfu / r.local_mfu)
    )
    assert r.tax_gpus == pytest.approx(gpus * r.tax), "the tax is the same with and without a slow node"
    well = fleet(gpus=gpus, local_mfu=local, added_ms=added)
    slowed = fleet(gpus=gpus, local_mfu=local, added_ms=added, slow=slow)
    assert r.tax_gpus == pytest.approx(well.lost_gpus)
    assert r.waiting_gpus == pytest.approx(well.useful_gpus - slowed.useful_gpus, abs=1e-9)
    assert r.operating_gpus == pytest.approx(slowed.useful_gpus - r.useful_gpus, abs=1e-9)
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
    said = next(one["s"] for one in scene.marks if one["id"] == "step")
    assert (
        said == f"a step of {units.seconds(now.parts.work_s)} takes {units.seconds(now.step_s)}"
        and "221" in said
    )


@given(SIZES, ADDED, st.integers(0, 50), st.integers(0, 30))
def test_a_fleet_never_changes_its_nodes_own_step(gpus, added, slow, operating):
    r = fleet(gpus=gpus, added_ms=added, slow=slow, operating=operating)
    assert r.parts.work_s == fleet().parts.work_s
    assert r.step_s >= r.parts.work_s and r.mean_step_s == pytest.approx(r.step_s / (1 - operating / 100))


STATES = [{}, {"slow": 10}, {"added_ms": AT_30}, {"gpus": 10000}, {"gpus": 8, "slow": 25}, {"operating": 20}]


@pytest.mark.parametrize("width", [720, 340])
@pytest.mark.parametrize("state", STATES, ids=str)
def test_every_gpu_that_is_paid_for_has_its_square_and_each_kind_its_share(state, width):
    r = fleet(**state)
    marks = {m["id"]: m for m in FLEET.scene(r, width=width).marks}
    squares = [m for id, m in marks.items() if id.startswith("gpu")]
    counted = {
        role: sum(m["role"] == role for m in squares) for role in ("useful", "network", "idle", "overhead")
    }
    kinds = (r.useful_gpus, r.tax_gpus, r.waiting_gpus, r.operating_gpus)
    assert sum(counted.values()) == min(128, r.gpus)
    for (role, cells), gpus in zip(counted.items(), kinds, strict=True):
        assert cells == pytest.approx(gpus / r.gpus * len(squares), abs=1.01)
        said = marks.get(f"field-{role}")
        assert (said is None) == (gpus < 1e-9) and (said is None or said["s"].startswith(units.number(gpus)))
    left = {role: min((m["x"] for m in squares if m["role"] == role), default=None) for role in counted}
    seen = [x for x in left.values() if x is not None]
    assert seen == sorted(seen), "from the left: work, tax, waiting, operating"


@pytest.mark.parametrize("width", [720, 340])
@pytest.mark.parametrize("state", STATES, ids=str)
def test_the_knobs_are_at_the_ends_of_what_they_change(state, width):
    r = fleet(**state)
    marks = {m["id"]: m for m in FLEET.scene(r, width=width).marks}
    squares = [m for id, m in marks.items() if id.startswith("gpu")]
    end = max(m["x"] + m["w"] for m in squares) + 2
    assert marks["pull-added"]["x"] == pytest.approx(end * r.useful_gpus / r.gpus, abs=0.02)
    assert marks["pull-slow"]["x"] == pytest.approx(end * (r.useful_gpus + r.tax_gpus) / r.gpus, abs=0.02)
    now = marks[f"size{r.gpus}-work"]
    assert marks["pull-gpus"]["x"] == pytest.approx(now["x"] + now["w"] / 2, abs=0.02)


@pytest.mark.parametrize("state", STATES, ids=str)
def test_where_an_edge_is_pulled_to_there_it_stands(state):
    for knob in (m for m in FLEET.scene(fleet(**state)).marks if m["t"] == "handle"):
        (pull,) = knob["drag"]
        for at, to in list(zip(pull["at"], pull["to"], strict=True))[::9]:
            moved = next(
                m for m in FLEET.scene(fleet(**{**state, pull["input"]: to})).marks if m["id"] == knob["id"]
            )
            assert moved["x"] == pytest.approx(at, abs=0.02)


@pytest.mark.parametrize("state", STATES, ids=str)
def test_the_columns_of_all_sizes_are_those_fleets_own(state):
    r, scene = fleet(**state), FLEET.scene(fleet(**state))
    marks = {m["id"]: m for m in scene.marks}
    for one in r.curve:
        other = fleet(**{**state, "gpus": one.gpus})
        assert one.work_share == pytest.approx(other.useful_gpus / other.gpus)
        parts = [marks[f"size{one.gpus}-{kind}"]["h"] for kind in ("work", "network", "idle", "overhead")]
        assert [part / sum(parts) for part in parts] == pytest.approx(one.shares, abs=0.001)
        lost = (other.tax_gpus, other.waiting_gpus, other.operating_gpus)
        assert one.shares == pytest.approx([part / other.gpus for part in (other.useful_gpus, *lost)])
        assert marks[f"size{one.gpus}-share"]["s"] == units.percent(one.work_share, 0)
    assert marks[f"size{r.gpus}-share"]["role"] == "useful"


def test_words_formula_figures_and_warning_say_the_same_of_a_slow_node():
    r = fleet(slow=10)
    scene = FLEET.scene(r)
    (_, tax), (_, step) = scene.formula
    assert "33.5%" in tax and "272" in step and "33.5%" in scene.warning and "26.2%" in scene.warning
    assert "33.5%" in {one.text for one in scene.figures}
    assert "272" in next(m["s"] for m in scene.marks if m["id"] == "step")
    assert scene.takeaway.endswith("costs 9.45 GPUs.") and units.number(r.waiting_gpus) == "9.45"


def test_the_counter_is_drawn_and_does_not_move_with_the_tax():
    drawn = []
    for state in ({}, {"added_ms": AT_30}):
        scene = FLEET.scene(fleet(**state))
        drawn += [m for m in scene.marks if m["id"] in ("busy", "busy-name")]
    assert drawn[:2] == drawn[2:] and "92%" in drawn[1]["s"]
    assert "92%" in scene.takeaway and scene.takeaway.endswith(f"work of {scene.figures[0].text}.")


@pytest.mark.parametrize("gpus", [16, 32, 64, 128])
@pytest.mark.parametrize("width", [720, 340])
def test_the_slow_node_is_framed_and_has_eight_boxes(gpus, width):
    marks = {m["id"]: m for m in FLEET.scene(fleet(gpus=gpus, slow=10), width=width).marks}
    corners = marks["slow-node"]["p"]
    right, low = max(corners[::2]), max(corners[1::2])
    inside = [
        m
        for id, m in marks.items()
        if id.startswith("gpu") and m["x"] + m["w"] <= right + 0.1 and m["y"] + m["h"] <= low + 0.1
    ]
    assert len(inside) == 8


@pytest.mark.parametrize("state", [{}, {"gpus": 8, "slow": 10}, {"gpus": 256, "slow": 10}])
def test_no_node_is_framed_where_none_is_slow_or_a_box_is_more_than_a_gpu(state):
    assert "slow-node" not in {m["id"] for m in FLEET.scene(fleet(**state)).marks}
