"""Six profiles and a score: every case is solvable, waits come before work, and nothing is told before a guess."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.next_bottleneck import cost
from widgets import units
from widgets.next_bottleneck.profiler_detective import CASES, GAME, NAMES
from widgets.registry import find
from widgets.scene import NARROW, WIDE

DETECTIVE = find("profiler_detective")
OWN = "your own numbers"
SOLVED = {name: CASES[case].answer for name, case in GAME.items()}
EITHER = pytest.mark.parametrize("width", [WIDE, NARROW])
EACH = pytest.mark.parametrize("case", cost.CASES, ids=lambda case: case.name)


def seen(**inputs):
    return DETECTIVE.run(**DETECTIVE.inputs(inputs))


def drawn(width=WIDE, **inputs):
    (scene,) = DETECTIVE.scenes(seen(**inputs), width=width)
    return scene


def one(**inputs):
    return seen(**inputs).profile


def answered(case, guess) -> dict:
    """The inputs that name a suspect in a case, whether it is one of the six or not."""
    of_six = {known: name for name, known in GAME.items()}
    return {"case": case, of_six.get(case, "diagnosis"): guess}


def words(scene) -> str:
    return " ".join(mark["s"] for mark in scene.marks if mark["t"] == "text")


def marks_of(scene) -> dict:
    return {mark["id"]: mark for mark in scene.marks}


@EACH
def test_each_case_is_solved_by_its_answer_alone(case):
    for guess in cost.PATHS:
        profile = one(**answered(case.name, guess))
        assert profile.right == (guess == case.answer) and profile.path == cost.PATHS[case.answer]
    assert "Solved: " in words(drawn(**answered(case.name, case.answer)))


def test_the_six_have_six_culprits_and_a_score():
    assert len(set(SOLVED.values())) == 6
    start, done = seen(), seen(**SOLVED)
    assert (start.right, start.wrong, start.still_open) == (1, 0, 5), "the first is an example"
    assert (done.right, done.wrong, done.still_open) == (6, 0, 0)
    slip = seen(**{**SOLVED, "experts": "communication", "training": "not yet"})
    assert (slip.right, slip.wrong, slip.still_open) == (4, 1, 1)
    assert drawn(**SOLVED).figures[0].text == "6 of 6"
    assert len({drawn(**values).takeaway for values in DETECTIVE.presets.values()}) == 5


@EITHER
def test_each_suspect_stamps_its_own_small_trace(width):
    marks = marks_of(drawn(width, experts="communication", decoder="launches"))
    stamps = [marks[f"stamp{i}"]["s"][0] for i in range(6)]
    assert stamps == ["✓", "2", "3", "✗", "5", "6"]
    fills = {i: {m["role"] for id, m in marks.items() if id.startswith(f"t{i}-")} for i in range(6)}
    assert [i for i in fills if "hot" in fills[i]] == [0], "only a solved one shows what decides"
    assert marks["stamp0"]["role"] == "useful" and marks["stamp3"]["role"] == "hot"


@EITHER
@pytest.mark.parametrize("name, case", GAME.items())
def test_a_click_on_a_small_trace_opens_it_and_one_on_a_lane_accuses_it(width, name, case):
    marks = marks_of(drawn(width, case=case))
    assert [way["input"] for way in marks["pull"]["drag"]] == [name] and marks["pull"]["late"]
    assert [marks[f"t{i}-step"]["set"] for i in range(6)] == [{"case": one} for one in GAME.values()]
    for suspect in NAMES:
        assert marks[f"lane-{suspect}"]["set"] == {name: suspect}
    assert [marks[f"name{i}"]["set"][name] for i in range(7)] == list(NAMES)


@EACH
@EITHER
def test_only_the_lane_that_decides_is_the_first_over_its_line(case, width):
    """What the rule under the picture says, from the marks alone: ends of bars against dashed lines, from the top."""
    marks = marks_of(drawn(width, case=case.name))

    def ends(id):
        return marks[id]["x"] + marks[id]["w"]

    over = {
        "input": ends("p-input") > marks["line-input0"]["x"] + 0.01,
        "launches": "p-gap0" in marks and ends("p-gap0") > marks["line-launches0"]["x"] + 0.01,
        "stragglers": ends("p-ranks") < marks["line-stragglers0"]["x"] - 0.01,
        "communication": marks["p-nccl"]["x"] < marks["line-communication0"]["x"] - 0.01,
        "memory": marks["p-memory0"]["y"] <= marks["line-memory0"]["y"],
        "compute": marks["p-compute0"]["y"] <= marks["line-compute0"]["y"],
    }
    assert next((name for name, crossed in over.items() if crossed), "implementation") == case.answer


def test_a_wrong_suspect_hears_its_own_figure_and_not_who_it_was():
    scene = drawn(case="one hot expert", experts="launches")
    assert "No, 0% ≤ 10%: this lane is within its line." in words(scene)
    tempting = drawn(case="one hot expert", experts="communication")
    assert "Not yet, 30% > 10%: a lane above is over its line, too." in words(tempting)
    for one_of in (scene, tempting):
        assert marks_of(one_of)["pull"]["role"] == "hot" and "your suspect is wrong" in one_of.summary
        assert "slow rank" not in one_of.summary + one_of.takeaway.replace("gaps, slow rank, NCCL", "")
        assert not any(id.startswith("path") for id in marks_of(one_of))


EVIDENCE = {  # what is lit in the trace -> its marks
    "input": "p-input", "launches": "p-gap0", "stragglers": "p-ranks-wait", "communication": "p-nccl",
    "memory": "p-memory0", "compute": "p-compute0", "implementation": "p-own0",
}  # fmt: skip


@EACH
@EITHER
def test_what_decided_is_lit_in_the_trace_once_it_is_solved_and_nothing_else(case, width):
    before, after = (
        {
            id
            for id, m in marks_of(drawn(width, **one_of)).items()
            if id.startswith("p-") and m["role"] == "hot"
        }
        for one_of in (answered(case.name, "not yet"), answered(case.name, case.answer))
    )
    profile, lit = one(case=case.name), EVIDENCE[case.answer]
    assert not before and lit in after and {id.rstrip("012345") for id in after} == {lit.rstrip("0")}
    assert units.percent(profile.asked[-1].value, 0) in words(
        drawn(width, **answered(case.name, case.answer))
    ) or (case.answer == "stragglers")


@pytest.mark.parametrize("case", [case for case in cost.CASES if case.worked], ids=lambda case: case.name)
def test_the_formula_of_a_solved_case_gives_its_deciding_figure(case):
    sums = re.sub(r" (TFLOP/s|TB/s|ms)$", "", case.worked).replace("·", "*")
    sums = sums.replace(" µs", "e-6").replace(" ms", "e-3")
    profile = one(**answered(case.name, case.answer))
    assert eval(sums) == pytest.approx(profile.asked[-1].value, rel=1e-6)
    ((_, worked),) = drawn(**answered(case.name, case.answer)).formula
    assert worked.startswith(f"{case.worked} = {units.percent(profile.asked[-1].value, 0)}")


@given(
    st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.sampled_from([1.0, 1.05, 1.1, 2.0]),
    st.sampled_from([1.0, 100.0, 1000.0]), st.integers(1, 100), st.integers(1, 100),
)  # fmt: skip
def test_the_first_wait_over_its_limit_decides(waits, gaps, shown, skew, intensity, flops, bandwidth):
    r = one(case=OWN, input_wait=waits, launch_gaps=gaps, communication=shown, rank_skew=skew,
            intensity=intensity, compute_share=flops, bandwidth_share=bandwidth)  # fmt: skip
    over = {
        "input": waits > 10,
        "launches": gaps > 10,
        "stragglers": skew > 1.05,
        "communication": shown > 10,
    }
    first = next((name for name, hit in over.items() if hit), None)
    if first:
        assert r.bottleneck == first and [a.hit for a in r.asked] == [False] * (len(r.asked) - 1) + [True]
    else:
        roof = bandwidth if intensity < r.ridge else flops
        assert r.bottleneck == (r.bound if roof >= 70 else "implementation") and len(r.asked) == 5
    assert r.work_share == pytest.approx(1 - (waits + gaps + shown) / 100)
    assert r.at_roof_ratio <= 1 / (1 - r.work_share) if r.work_share < 1 else True


@EACH
@EITHER
def test_nothing_is_told_before_a_suspect_is_named(case, width):
    scene = drawn(width, **answered(case.name, "not yet"))
    assert not any(id.startswith("path") for id in marks_of(scene))
    assert case.story not in words(scene) and "Solved" not in words(scene) and "hot" not in dict(scene.legend)
    assert len(marks_of(scene)) == len(scene.marks)
    (pair,) = scene.formula
    assert "first over its line" in pair[0] and pair[1].startswith("waits > 10%")


def test_two_weeks_on_the_wrong_kernel_could_never_have_paid():
    """45% of the time waits for input: kernels at their roof would bring a third, no wait for input 1.8x."""
    r = one(case="two weeks on the wrong kernel")
    assert r.bottleneck == "input" and len(r.asked) == 1
    assert r.at_roof_ratio == pytest.approx(1.35, abs=0.01)
    assert r.at_roof_ratio < 1 / (1 - r.input_wait_share)


def test_worked_figures_of_the_detective():
    """A GEMM or LayerNorm at 2.8 of 3.35 TB/s is near its roof; cache reads at 1.9 are not."""
    assert one(case="a LayerNorm").roof_share == pytest.approx(0.84, rel=0.01)
    irregular = one(case="cache reads out of order")
    assert irregular.roof_share == pytest.approx(0.567, abs=0.001)
    assert irregular.bottleneck == "implementation"
    assert one().gap_percent == pytest.approx(20)
    assert seen().waiting == 4
    assert drawn(**SOLVED).figures[-1].text == "4" and len(drawn().figures) == 3, "told at the end"


def test_a_step_of_waits_alone_is_a_sentence():
    with pytest.raises(ValueError, match="must be at most 95% together, got 180%; leave some time"):
        seen(case=OWN, input_wait=90, launch_gaps=90)


@EACH
@EITHER
def test_a_trace_is_as_long_and_its_counters_as_high_as_its_shares(case, width):
    marks, p = marks_of(drawn(width, case=case.name)), one(case=case.name)
    whole, shown = marks["lane-input"]["w"], p.exposed_communication_share
    assert marks["p-input"]["w"] == pytest.approx(whole * p.input_wait_share, abs=0.01)
    assert marks["p-nccl"]["w"] == pytest.approx(whole * shown, abs=0.01)
    for kind, share in (("kernel", p.work_share), ("own", p.work_share), ("gap", p.launch_gap_share)):
        bars = [m for id, m in marks.items() if re.fullmatch(rf"p-{kind}\d", id)]
        assert sum(m["w"] for m in bars) == pytest.approx(whole * share, abs=0.1)
        assert len(bars) == (6 if p.launch_gap_share else kind != "gap"), "a border is always a gap"
    works = whole * (1 - shown - p.input_wait_share)  # of this GPU, for which all wait
    wait = marks["p-ranks-wait"]
    assert marks["p-ranks"]["w"] == pytest.approx(works / p.rank_skew, abs=0.01)
    assert wait["w"] == pytest.approx(works - works / p.rank_skew, abs=0.01)
    assert wait["x"] + wait["w"] == pytest.approx(
        marks["lane-stragglers"]["x"] + whole * (1 - shown), abs=0.02
    )
    for id, share in (("compute", p.compute_share), ("memory", p.bandwidth_share)):
        room, first = marks[f"lane-{id}"], marks[f"p-{id}0"]
        assert first["h"] == pytest.approx(room["h"] * share, abs=0.01)
        assert (first["x"], first["w"]) == (marks["p-kernel0"]["x"], marks["p-kernel0"]["w"]), (
            "while a kernel runs"
        )
        assert marks[f"line-{id}0"]["y"] == pytest.approx(room["y"] + 0.3 * room["h"], abs=0.01)


@EITHER
def test_each_suspect_has_its_limit_and_then_its_figure_next_to_it(width):
    marks = marks_of(drawn(width, decoder="not yet"))
    assert [marks[f"rule{i}"]["s"] for i in range(7)] == [
        "> 10%", "> 10%", "> 1.05×", "> 10%", "≥ 70%", "≥ 70%", "else",
    ]  # fmt: skip
    assert cost.WAIT_SHARE == 0.1 and cost.SKEW == 1.05 and cost.NEAR_ROOF == 0.7
    marks = marks_of(drawn(width, case="one hot expert", experts="stragglers"))
    assert marks["rule2"]["s"] == ("2.6× > 1.05×" if width == WIDE else "2.6×")
    assert marks["rule2"]["role"] == "hot" and marks["rule0"]["s"] == "✓ 0%"
    assert marks["rule3"]["s"] == "> 10%", "what comes after the first over its line isn't asked"
