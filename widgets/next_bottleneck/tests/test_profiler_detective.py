"""Six profiles and a score: every case is solvable, waits come before work, and nothing is told before a guess."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.next_bottleneck import cost
from widgets.next_bottleneck.profiler_detective import CASES, GAME
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
    (profile,) = seen(**inputs).profiles
    return profile


def words(scene) -> str:
    return " ".join(mark["s"] for mark in scene.marks if mark["t"] == "text")


@EACH
def test_each_case_is_solved_by_its_answer_alone(case):
    for guess in cost.PATHS:
        profile = one(case=case.name, diagnosis=guess)
        assert profile.right == (guess == case.answer) and profile.path == cost.PATHS[case.answer]
    assert "Yes, " in words(drawn(case=case.name, diagnosis=case.answer))


def test_the_six_have_six_culprits_and_a_score():
    assert len(set(SOLVED.values())) == 6
    start, done = seen(), seen(**SOLVED)
    assert (start.right, start.wrong, start.still_open) == (0, 0, 6)
    assert (done.right, done.wrong, done.still_open) == (6, 0, 0)
    slip = seen(**{**SOLVED, "experts": "communication", "training": "not yet"})
    assert (slip.right, slip.wrong, slip.still_open) == (4, 1, 1)
    assert drawn(**SOLVED).figures[0].text == "6 of 6"
    assert len({drawn(**values).takeaway for values in DETECTIVE.presets.values()}) == 5


@EITHER
def test_one_guess_judges_its_row_and_no_other(width):
    scene = drawn(width, experts="communication")
    said = [mark for mark in scene.marks if mark["id"].endswith("-said")]
    assert [mark["id"] for mark in said] == ["p3-said"] and "Something else waits" in said[0]["s"]
    assert "rank" not in said[0]["s"], "a wrong suspect doesn't name the right one"
    knobs = {mark["id"]: mark["role"] for mark in scene.marks if mark["t"] == "handle"}
    assert len(knobs) == 6 and [id for id, role in knobs.items() if role != "now"] == ["p3-pull"]


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
    for scene in (drawn(width, case=case.name), drawn(width)):
        ids = {mark["id"] for mark in scene.marks}
        assert not any(id.endswith(("-a", "-said")) or id.startswith("path") for id in ids)
        assert case.story not in words(scene) and "Yes" not in words(scene)
        said = f"{scene.summary} {scene.takeaway} {scene.formula}".lower()
        assert "roof counts" not in said and "slow rank" not in said and "near the" not in said


def test_a_wrong_suspect_is_said_to_be_wrong():
    scene = drawn(case="many thin bars", diagnosis="memory")
    assert "wrong: it is launch gaps" in scene.summary
    assert next(m for m in scene.marks if m["t"] == "handle")["role"] == "hot"


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
    assert seen().profiles[0].gap_percent == pytest.approx(20)
    assert seen().waiting == 4
    assert [f.text for f in drawn(**SOLVED).figures][3] == "4" and len(drawn().figures) == 3, (
        "told at the end"
    )


def test_a_step_of_waits_alone_is_a_sentence():
    with pytest.raises(ValueError, match="must be at most 95% together, got 180%; leave some time"):
        seen(case=OWN, input_wait=90, launch_gaps=90)


@EACH
@EITHER
def test_a_trace_is_as_long_as_its_shares(case, width):
    marks = {mark["id"]: mark for mark in drawn(width, case=case.name).marks}
    p, whole = one(case=case.name), marks["p0-step"]["w"]
    assert marks.get("p0-input", {"w": 0})["w"] == pytest.approx(whole * p.input_wait_share, abs=0.01)
    shown = p.exposed_communication_share
    assert marks.get("p0-nccl", {"w": 0})["w"] == pytest.approx(whole * shown, abs=0.01)
    for kind, share in (("p0-kernel", p.work_share), ("p0-gap", p.launch_gap_share)):
        bars = [
            m
            for id, m in marks.items()
            if id.startswith(kind) and m["t"] == "rect" and id[len(kind) :].isdigit()
        ]
        assert sum(m["w"] for m in bars) == pytest.approx(whole * share, abs=0.1)
        assert len(bars) == (6 if p.launch_gap_share else kind == "p0-kernel"), "a border is always a gap"
    assert ("p0-ranks" in marks) == (p.rank_skew > 1), "one GPU has no others"
    if p.rank_skew > 1:
        assert marks["p0-ranks"]["w"] == pytest.approx(whole / p.rank_skew, abs=0.01)
    gauge = marks["p0-gauge0-all"]
    assert marks["p0-gauge0"]["w"] == pytest.approx(gauge["w"] * p.compute_share, abs=0.01)
    assert marks["p0-gauge0-near"]["x"] == pytest.approx(gauge["x"] + 0.7 * gauge["w"], abs=0.01)


def test_the_six_name_every_suspect_s_limit_over_its_stop():
    marks = {m["id"]: m for m in drawn().marks if m["t"] == "text"}
    said = [marks[f"head-limit{i}"]["s"] for i in range(7)]
    assert said == ["> 10%", "> 10%", "> 1.05×", "> 10%", "≥ 70%", "≥ 70%", "else"]
    assert cost.WAIT_SHARE == 0.1 and cost.SKEW == 1.05 and cost.NEAR_ROOF == 0.7
    assert all(marks[f"head-limit{i}"]["x"] == marks[f"p0-n{i + 1}"]["x"] for i in range(7))
