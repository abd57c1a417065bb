"""The flowchart: every case of the table is solved, waits come before work, and a wait caps what kernels bring."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.next_bottleneck import cost
from widgets.next_bottleneck import profiler_detective
from widgets.registry import find
from widgets.scene import NARROW, WIDE

DETECTIVE = find("profiler_detective")
OWN = "your own numbers"


def seen(**inputs):
    return DETECTIVE.run(**DETECTIVE.inputs(inputs))


@pytest.mark.parametrize("case", cost.CASES, ids=lambda case: case.name)
def test_each_case_is_solved_and_only_its_last_step_tells(case):
    r = seen(case=case.name, diagnosis=case.answer)
    assert r.right and r.bottleneck == case.answer and r.path == cost.PATHS[case.answer]
    scenes = DETECTIVE.scenes(r)
    assert len(scenes) == 6 and "not asked" not in scenes[len(r.asked)].caption
    told = [any(mark["id"] == "path" for mark in scene.marks) for scene in scenes]
    assert told == [False] * len(r.asked) + [True] * (6 - len(r.asked))
    assert DETECTIVE.stepper.start(r) == 5, "solved opens with its answer"


@given(
    st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.sampled_from([1.0, 1.05, 1.1, 2.0]),
    st.sampled_from([1.0, 100.0, 1000.0]), st.integers(1, 100), st.integers(1, 100),
)  # fmt: skip
def test_the_first_wait_over_its_limit_decides(waits, gaps, shown, skew, intensity, flops, bandwidth):
    r = seen(case=OWN, input_wait=waits, launch_gaps=gaps, communication=shown, rank_skew=skew,
             intensity=intensity, compute_share=flops, bandwidth_share=bandwidth)  # fmt: skip
    over = {
        "input": waits > 10,
        "launches": gaps > 10,
        "stragglers": skew > 1.05,
        "communication": shown > 10,
    }
    first = next((name for name, hit in over.items() if hit), None)
    if first:
        assert r.bottleneck == first and [one.hit for one in r.asked] == [False] * (len(r.asked) - 1) + [True]
    else:
        roof = bandwidth if intensity < r.ridge else flops
        assert r.bottleneck == (r.bound if roof >= 70 else "implementation") and len(r.asked) == 5
    assert r.work_share == pytest.approx(1 - (waits + gaps + shown) / 100)
    assert r.at_roof_ratio <= 1 / (1 - r.work_share) if r.work_share < 1 else True


@pytest.mark.parametrize("case", cost.CASES, ids=lambda case: case.name)
def test_nothing_is_told_before_a_diagnosis(case):
    r = seen(case=case.name)
    for scene in DETECTIVE.scenes(r):
        ids = {mark["id"] for mark in scene.marks}
        assert not ids & {"verdict", "path"} and not any(id.endswith("-a") for id in ids)
        said = f"{scene.summary} {scene.caption} {scene.takeaway} {scene.formula}".lower()
        assert f"it is {case.answer}" not in said and " roof" not in scene.summary
        shown = " ".join(mark["s"] for mark in scene.marks if mark["t"] == "text")
        assert case.story not in shown and case.title in shown and ": counts" not in shown
        assert not any("roof" in row[0] for row in scene.table.rows)
        assert {f.label for f in scene.figures} == {"of the FLOP/s", "of the bandwidth"}


def test_a_wrong_suspect_is_said_to_be_wrong():
    r = seen(case="many thin bars", diagnosis="memory")
    last = DETECTIVE.scenes(r)[-1]
    assert not r.right and "not right: it is launch overhead" in last.summary
    assert next(m for m in last.marks if m["id"] == "suspect-memory")["role"] == "hot"


def test_two_weeks_on_the_wrong_kernel_could_never_have_paid():
    """45% of the time waits for input: kernels at their roof would bring a third, no wait for input 1.8x."""
    r = seen(case="two weeks on the wrong kernel")
    assert r.bottleneck == "input" and len(r.asked) == 1
    assert r.at_roof_ratio == pytest.approx(1.35, abs=0.01)
    assert r.at_roof_ratio < 1 / (1 - r.input_wait_share)


def test_worked_figures_of_the_detective():
    """A GEMM or LayerNorm at 2.8 of 3.35 TB/s is near its roof; cache reads at 1.9 are not."""
    assert seen(case="a LayerNorm").roof_share == pytest.approx(0.84, rel=0.01)
    irregular = seen(case="cache reads out of order")
    assert (
        irregular.roof_share == pytest.approx(0.567, abs=0.001) and irregular.bottleneck == "implementation"
    )


def test_a_step_of_waits_alone_is_a_sentence():
    with pytest.raises(ValueError, match="must be at most 95% together, got 180%; leave some time"):
        seen(case=OWN, input_wait=90, launch_gaps=90)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_fifty_launches_are_fifty_thin_bars_with_a_fifth_of_gaps(width):
    r = seen()
    bars = [m for m in DETECTIVE.scenes(r, width=width)[-1].marks if m["id"].startswith("kernel")]
    assert len(bars) == r.kernels == 50 and r.gap_percent == pytest.approx(20)
    pitch = bars[1]["x"] - bars[0]["x"]
    assert bars[0]["w"] / pitch == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize("case", cost.CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_gauges_are_as_long_as_the_counters_say_and_a_guess_names_the_one_that_counts(case, width):
    r = seen(case=case.name, diagnosis=case.answer)
    marks = {mark["id"]: mark for mark in DETECTIVE.scenes(r, width=width)[-1].marks}
    whole = marks["gauge0-all"]["w"]
    assert marks["gauge0"]["w"] == pytest.approx(whole * r.compute_share, abs=0.01)
    assert marks["gauge1"]["w"] == pytest.approx(whole * r.bandwidth_share, abs=0.01)
    assert marks["gauge0-near"]["x"] - marks["gauge0"]["x"] == pytest.approx(whole * 0.7, abs=0.01)
    counting = [i for i in (0, 1) if ": counts" in marks[f"gauge{i}-name"]["s"]]
    assert counting == [0 if r.bound == "compute" else 1]


def test_the_story_comes_with_the_guess():
    said = next(m["s"] for m in DETECTIVE.scenes(seen(diagnosis="memory"))[-1].marks if m["id"] == "story0")
    assert "50 launches a layer" in said and " us " not in said


@pytest.mark.parametrize("width", [720, 340])
@pytest.mark.parametrize(
    "case", [name for name in DETECTIVE.controls[0].stops if name != profiler_detective.OWN]
)
def test_gaps_are_drawn_where_there_are_some_and_nowhere_else(case, width):
    """A kernel's lane with gaps is told from one without: by what fills them, not by a slit."""
    r = DETECTIVE.run(**DETECTIVE.inputs({"case": case}))
    marks = DETECTIVE.scenes(r, width=width)[-1].marks
    gaps = [m for m in marks if m["id"].startswith("gap") and m["id"][3:].isdigit()]
    kernels = [m for m in marks if m["id"].startswith("kernel") and m["id"][6:].isdigit()]
    assert len(gaps) == (len(kernels) if r.launch_gap_share else 0)
    assert {m["role"] for m in gaps} <= {"overhead"}
    ends = [(a["x"] + a["w"], b["x"]) for a, b in zip(kernels, kernels[1:], strict=False)]
    if not r.launch_gap_share:
        assert all(0 <= b - a < 0.7 for a, b in ends)
    else:
        share = sum(m["w"] for m in gaps) / sum(m["w"] for m in (*gaps, *kernels))
        assert share == pytest.approx(r.launch_gap_share / (r.launch_gap_share + r.work_share), abs=0.02)
