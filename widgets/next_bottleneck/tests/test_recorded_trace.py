"""The window shows the trace's own bars, wherever it is, and its numbers are theirs."""

import re

import pytest

from kernels.next_bottleneck import cost
from widgets import units
from widgets.next_bottleneck.recorded_trace import CELLS, SLOTS
from widgets.registry import find

TRACE = find("recorded_trace")


def seen(**inputs):
    return TRACE.run(**TRACE.inputs(inputs))


@pytest.mark.parametrize("run", ["eager", "graph"])
@pytest.mark.parametrize(("zoom", "middle"), [(2, 0), (2, 100), (8, 37), (64, 100)])
def test_a_window_stays_in_the_step_and_shows_every_launch_that_touches_it(run, zoom, middle):
    r, trace = seen(run=run, zoom=zoom, middle=middle), cost.trace(run)
    end = r.begin_s + r.window_s
    assert r.begin_s >= 0 and end <= r.step_s * (1 + 1e-9) and r.window_s * zoom == pytest.approx(r.step_s)
    met = [i for i, one in enumerate(trace.launches, 1) if one.start_s < end and one.end_s > r.begin_s]
    assert [one.number for one in r.launches] == met and r.count == len(met)
    assert 0 <= r.works_share <= 1 and r.busy_s == pytest.approx(r.works_share * r.window_s)
    (scene,) = TRACE.scenes(r)
    assert [row[0] for row in scene.table.rows] == (met or [0]), (
        "a window before the first kernel has a row that says so"
    )


def test_two_halves_hold_the_whole_steps_busy_time():
    for run in ("eager", "graph"):
        halves = [seen(run=run, zoom=2, middle=middle) for middle in (0, 100)]
        assert sum(half.busy_s for half in halves) == pytest.approx(cost.trace(run).busy_s)
        assert halves[0].step_percent == pytest.approx(100 * cost.trace(run).busy_s / halves[0].step_s)


def test_gaps_and_kernels_make_the_time_from_the_first_kernel_to_the_last_end():
    trace = cost.trace("eager")
    both = [seen(zoom=2, middle=middle).launches for middle in (0, 100)]
    every = {one.number: one for half in both for one in half}.values()
    assert len(every) == len(trace.launches)
    total = sum(one.gap_s for one in every) + trace.busy_s
    assert total == pytest.approx(max(one.end_s for one in trace.launches) - trace.launches[0].start_s)


def test_slots_of_the_trace_can_be_lit_and_their_shares_are_the_whole():
    known = {one.slot for one in cost.trace("graph").launches}
    assert known == set(SLOTS) and {"attention", "experts", "head"} <= known
    assert sum(seen(run="graph", slot=slot).slot_share for slot in known) == pytest.approx(1)
    lit = seen(run="graph", slot="attention")
    (scene,) = TRACE.scenes(lit)
    bars = {
        m["id"]: m["role"] for m in scene.marks if m["t"] == "rect" and re.fullmatch(r"launch\d+", m["id"])
    }
    own = {f"launch{one.number}" for one in lit.launches if one.slot == "attention"}
    assert own and {bars[id] for id in own} == {"memory"}, "it keeps its colour"
    assert {role for id, role in bars.items() if id not in own} == {"overhead"}, "and the others step back"


def test_the_overview_has_a_role_for_each_part_of_the_step():
    (scene,) = TRACE.scenes(seen(run="graph"))
    (overview,) = (mark for mark in scene.marks if mark["id"] == "all")
    lengths = overview["runs"][1::2]
    assert sum(lengths) == CELLS and len(lengths) > 8, "layers alternate"


def test_a_model_says_that_it_is_no_record():
    (scene,) = TRACE.scenes(seen())
    measured = cost.trace("eager").measured
    assert bool(scene.warning) != measured and ("recorded on" in scene.summary) == measured


def test_the_question_asks_for_the_step_without_the_profiler_and_only_one_figure_is_a_share_of_work():
    r, asked = seen(), TRACE.prediction
    (scene,) = TRACE.scenes(r)
    (shown,) = (one for one in scene.figures if "at work" in one.label)
    assert shown.label.endswith("no profiler") and getattr(r, asked.answer) == shown.value
    assert f"{1e3 * r.alone_s:.0f} ms in all" in asked.question, "the time without the profiler, too"
    assert r.step_percent < r.alone_percent == pytest.approx(100 * r.kernels_s / r.alone_s)
    ((_, numbers),) = scene.formula
    assert numbers.endswith(f"{{works:{shown.text}}}")
    assert "under the profiler" in next(m["s"] for m in scene.marks if m["id"] == "whole-time")


@pytest.mark.parametrize("width", [340, 720])
@pytest.mark.parametrize("preset", TRACE.presets)
def test_both_ways_are_drawn_on_one_clock_with_their_share_at_work(preset, width):
    r = seen(**TRACE.presets[preset])
    (scene,) = TRACE.scenes(r, width=width)
    marks = {mark["id"]: mark for mark in scene.marks}
    eager, graph = (cost.trace(run) for run in ("eager", "graph"))
    for run, trace in (("eager", eager), ("graph", graph)):
        share = marks[f"{run}-work"]["w"] / marks[f"{run}-alone"]["w"]
        assert share == pytest.approx(trace.busy_s / trace.alone_s, abs=2e-3)
        assert f"{units.number(100 * trace.busy_s / trace.alone_s)}%" in marks[f"{run}-said"]["s"]
    ratio = marks["eager-alone"]["w"] / marks["graph-alone"]["w"]
    assert (
        ratio
        == pytest.approx(r.graph_speedup, rel=2e-3)
        == pytest.approx(eager.alone_s / graph.alone_s, rel=2e-3)
    )
    assert marks[f"{r.run}-said"].get("b") and scene.figures[0].text in marks[f"{r.run}-said"]["s"]


@pytest.mark.parametrize("run", ["eager", "graph"])
def test_the_quotient_that_is_shown_gives_the_percentage_that_is_shown(run):
    """424 / 454 would be 93.4%, so the formula shows four digits."""
    (scene,) = TRACE.scenes(seen(run=run))
    ((_, numbers),) = scene.formula
    (work, work_unit), (step, step_unit) = re.findall(r"([\d.]+)\s(ms|µs)", numbers)
    scale = {"ms": 1e-3, "µs": 1e-6}
    share = 100 * float(work) * scale[work_unit] / (float(step) * scale[step_unit])
    assert f"{units.number(share)}%" == scene.figures[0].text
