"""Launches, graphs and compiling: the parts of a pass, added up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets import units
from widgets.registry import find
from widgets.scene import NARROW, WIDE, extent

LAUNCH = find("launch_overhead")


def launches(**inputs):
    return LAUNCH.run(**LAUNCH.inputs(inputs))


BLOCKS = ("gap", "work", "late", "ahead", "replay")
STATES = st.fixed_dictionaries(
    {
        "kernels": st.integers(1, 200),
        "launch_us": st.sampled_from([1.0, 7.5, 20.0]),
        "work_ms": st.sampled_from([0.05, 2.0, 20.0]),
        "layers": st.sampled_from([1, 70, 128]),
        "elementwise_percent": st.sampled_from([0, 40, 100]),
    }
)


@given(STATES)
def test_a_pass_is_its_parts(inputs):
    r = launches(**inputs)
    for p in (r.eager, r.ahead, r.graph, r.compiled, r.both):
        assert p.total_s == pytest.approx(p.gemm_s + p.elementwise_s + p.launches_s)
        assert p.speedup == pytest.approx(r.eager.total_s / p.total_s)
        assert p.gemm_s == pytest.approx(r.eager.gemm_s)
    assert r.eager.launches_s == pytest.approx(
        inputs["kernels"] * inputs["launch_us"] * 1e-6 * inputs["layers"]
    )
    assert r.eager.total_s - r.eager.launches_s == pytest.approx(inputs["work_ms"] * 1e-3 * inputs["layers"])
    assert r.graph.launches_s == r.both.launches_s == r.graph_s == pytest.approx(10e-6)


@given(STATES)
def test_the_rule_of_ten_percent_is_what_it_warns_by(inputs):
    """It warns where the GPU waits although the host runs ahead, because a graph gains nothing where it doesn't."""
    r = launches(**inputs)
    assert bool(LAUNCH.scenes(r)[-1].warning) == r.try_graphs_first == (r.ahead_share > 0.10)
    assert r.ahead_share == pytest.approx(r.ahead.launches_s / r.ahead.total_s)
    assert r.graph_over_ahead == pytest.approx(r.ahead.total_s / r.graph.total_s)


def test_no_graph_is_urged_where_running_ahead_hides_as_much():
    calm, tiny = LAUNCH.scenes(launches())[-1], LAUNCH.scenes(launches(work_ms=0.2))[-1]
    assert launches().graph_over_ahead == pytest.approx(1) and not calm.warning
    assert [f.role for f in calm.figures] == ["hot", "useful"], "a graph that adds nothing is no figure"
    assert [f.text for f in tiny.figures] == ["71.4%", "60.3%", "2.4× as fast"]
    assert "if the host waits" in calm.figures[0].label and "capture a graph" in tiny.warning


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("compiling", [False, True])
def test_each_pass_says_the_share_that_it_waits_as_its_bar_shows_it(width, compiling):
    r = launches(compiling=compiling, work_ms=0.2)
    marks = {m["id"]: m for m in LAUNCH.scenes(r, width=width)[-1].marks}
    assert ("pass-name4" in marks) == compiling and len(r.shown) == (5 if compiling else 3)
    for i, p in enumerate(r.shown):
        parts = [marks[f"pass-{i}-{k}"]["w"] for k in range(3)]
        assert parts[2] / sum(parts) == pytest.approx(p.launches_s / p.total_s, abs=0.001)
        words = marks[f"pass-waits{i}"]
        assert words["s"].endswith(units.percent(p.launches_s / p.total_s, 1))
        assert words["role"] == ("hot" if p.launches_s > 0.1 * p.total_s else "useful")


def test_a_faster_gpu_makes_the_share_larger_and_the_launches_no_shorter():
    slow, fast = launches(work_ms=2.0), launches(work_ms=1.0)
    assert fast.overhead_s == slow.overhead_s
    assert fast.overhead_share > slow.overhead_share
    assert slow.eager.total_s / fast.eager.total_s < 2


def test_a_graph_of_one_kernel_gains_nothing():
    assert launches(kernels=1).graph.speedup == pytest.approx(1)


def test_no_launch_stands_in_the_timeline_longer_than_it_is():
    r = launches()
    marks = {mark["id"]: mark for mark in LAUNCH.scenes(r)[-1].marks}
    assert marks["gap0"]["w"] / marks["work0"]["w"] == pytest.approx(10 / 40, rel=0.05)
    assert marks["graph-gap"]["w"] == pytest.approx(marks["gap0"]["w"]), "a graph's launch is drawn whole"


@pytest.mark.parametrize("inputs", LAUNCH.presets.values(), ids=LAUNCH.presets)
def test_the_last_caption_says_both_times(inputs):
    r = launches(**inputs)
    shown, work_s = min(8, r.kernels), r.work_s / r.layers / r.kernels
    said = LAUNCH.scenes(r)[-1].caption
    for seconds in (shown * (r.launch_s + work_s), r.graph_s + shown * work_s):
        assert units.seconds(seconds) in said


@pytest.mark.parametrize("percent", [0, 20, 40, 75, 100])
def test_the_timelines_kernels_are_of_their_kind(percent):
    """Equally long kernels: as large a part of the eight is element-wise as of the work."""
    marks = LAUNCH.scenes(launches(elementwise_percent=percent))[-1].marks
    for lane in ("work", "ahead", "replay"):
        kinds = [mark["role"] for mark in marks if mark["id"].removeprefix(lane).isdigit()]
        assert len(kinds) == 8 and set(kinds) <= {"compute", "memory"}
        assert kinds.count("memory") == int(8 * percent / 100)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("inputs", LAUNCH.presets.values(), ids=LAUNCH.presets)
def test_the_time_gained_is_measured_off_wherever_there_is_some(width, inputs):
    """From where the graph is done to where the launched kernels are, as long as the words say."""
    r = launches(**inputs)
    marks = {mark["id"]: mark for mark in LAUNCH.scenes(r, width=width)[-1].marks}
    shown = min(8, r.kernels)
    gained_s = shown * r.launch_s - r.graph_s
    assert marks["gained"]["s"] == f"{units.seconds(gained_s)} less than waiting"
    last = marks[f"replay{shown - 1}"]
    assert marks["gain"]["p"][0] == pytest.approx(last["x"] + last["w"], abs=1.6)
    assert marks["gain"]["p"][4] == pytest.approx(marks["now0"]["x"])
    assert extent(marks["gained"])[1] > marks["now0"]["y2"], "no line through the words"


def test_a_layer_of_one_kernel_is_drawn_and_said_as_one():
    scene = LAUNCH.scenes(launches(kernels=1))[-1]
    marks = {m["id"]: m for m in scene.marks}
    gemm, rest = marks["work0"], marks["work0-rest"]
    assert (gemm["role"], rest["role"]) == ("compute", "memory")
    assert rest["w"] / (gemm["w"] + rest["w"]) == pytest.approx(0.4, abs=0.01)
    assert gemm["x"] + gemm["w"] == pytest.approx(rest["x"], abs=0.02)
    said = " ".join((scene.summary, scene.caption, *(m.get("s", "") for m in scene.marks)))
    assert "1 kernels" not in said and "1 launches" not in said and "1 layers" not in said


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("preset", LAUNCH.presets)
def test_nothing_is_drawn_before_its_time(preset, width):
    """No block reaches beyond the clock's hand, and between two steps the view waits for it."""
    for scene in LAUNCH.scenes(LAUNCH.run(**LAUNCH.inputs(LAUNCH.presets[preset])), width=width):
        marks = {m["id"]: m for m in scene.marks}
        timed = [m for m in scene.marks if "clock" in m]
        blocks = [m for m in scene.marks if m["id"].rstrip("0123456789") in BLOCKS]
        assert all(m["clock"] == "now0" for m in blocks)
        assert all(m["x"] + m["w"] <= marks["now0"]["x"] + 1.6 for m in timed if m["t"] == "rect")
    assert len(blocks) >= 3


@given(STATES)
def test_a_host_that_runs_ahead_hides_what_a_queue_hides(inputs):
    """Go launch by launch: a kernel starts when the one before is done and its launch has come."""
    r = launches(**inputs)
    count, each_s = inputs["kernels"] * inputs["layers"], r.work_s / inputs["kernels"] / inputs["layers"]
    launched_s = done_s = 0.0
    for _ in range(count):
        launched_s += r.launch_s
        done_s = max(done_s, launched_s) + each_s
    assert r.ahead.total_s == pytest.approx(done_s)
    assert r.work_s < r.ahead.total_s <= r.eager.total_s * (1 + 1e-12)


def test_long_kernels_hide_launches_and_short_ones_do_not():
    assert launches().ahead.launches_s == pytest.approx(10e-6)
    assert launches(work_ms=0.2).ahead.launches_s == pytest.approx(10e-6 + 49 * 6e-6)
    assert "runs ahead" in LAUNCH.scenes(launches())[-1].takeaway
    assert "host waits for each" in LAUNCH.scenes(launches())[-1].figures[0].label


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("inputs", LAUNCH.presets.values(), ids=LAUNCH.presets)
def test_the_lane_that_runs_ahead_is_a_queue(width, inputs):
    """Launch by launch: a kernel starts when the one before is done and its launch has come."""
    r = launches(**inputs)
    marks = {m["id"]: m for m in LAUNCH.scenes(r, width=width)[-1].marks}
    shown, each_s = min(8, r.kernels), r.work_s / r.layers / r.kernels
    left = marks["gap0"]["x"]
    unit = (marks["now0"]["x"] - left) / (shown * (r.launch_s + each_s))
    done_s = 0.0
    for i in range(shown):
        start_s = max(done_s, (i + 1) * r.launch_s)
        assert marks[f"ahead{i}"]["x"] == pytest.approx(left + start_s * unit, abs=0.02)
        waited = marks[f"late{i}"]["w"] if f"late{i}" in marks else 0
        assert waited == pytest.approx((start_s - done_s) * unit, abs=0.02)
        done_s = start_s + each_s
