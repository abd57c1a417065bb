"""A kernel that fails its check, walked through: which case, which program, which line."""

import pytest

import grader
import tilescope
from grader import notebook, questions, stepping
from tilescope.scenes import opening, scene
from tilescope.steps import Steps

QUESTION = questions.find("roofline.doubled")
SIZES = sorted(case.sizes["N"] for case in QUESTION.public)
CELL = """import triton
import triton.language as tl

@triton.jit
def doubled(x_ptr, y_ptr, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.store(y_ptr + offs, FACTOR * x)

def launch_doubled(p):
    constants = {"BLOCK": 64, "FACTOR": 2}
    return {"steps": [{"kernel": doubled, "grid": (p.N // 64,), "constexprs": constants}]}
"""


def opened(cell: str, **how):
    recording = stepping.recorded(cell, QUESTION, **how)
    steps = Steps(recording)
    shown = scene(steps, opening(steps))
    return (
        recording,
        shown,
        [mark["tip"] for mark in shown["marks"] if mark["role"] == "hot" and mark.get("pick")],
    )


def test_an_access_outside_opens_at_its_program_and_line():
    recording, shown, hot = opened(CELL.replace("tl.load(x_ptr + offs)", "tl.load(x_ptr + offs + 1)"))
    assert (recording.kernel, recording.ids, shown["line"]) == ("doubled", [recording.grid[0] - 1, 0, 0], 7)
    assert hot and hot[0].startswith("lane 63: x[") and "outside its" in hot[0]


def test_a_wrong_value_opens_at_the_store_that_wrote_it():
    recording, shown, hot = opened(CELL.replace('"FACTOR": 2', '"FACTOR": 3'))
    assert shown["line"] == 8 and len(hot) == 1
    (finding,) = recording.findings
    assert f"y[{finding['element']}]" in finding["message"] and f"y[{finding['element']}]" in hot[0]
    assert finding["programs"] == [[finding["element"] // 64, 0, 0]] == [recording.ids]
    assert recording.source[0].startswith("def doubled(") and recording.first_line == 5


RACES = {
    "of programs": ("y_ptr + offs, FACTOR * x", "y_ptr + offs % 64, FACTOR * x", "program"),
    "of lanes": (
        "FACTOR * x)",
        "FACTOR * x)\n    y = tl.load(y_ptr + (offs ^ 1))\n    tl.store(y_ptr + (offs ^ 1), y)",
        "no tl.debug_barrier() is between",
    ),
}


@pytest.mark.parametrize("name", RACES)
def test_a_race_opens_at_the_line_that_its_finding_names(name):
    before, after, words = RACES[name]
    recording, shown, _ = opened(CELL.replace(before, after))
    finding = recording.findings[0]
    assert finding["kind"] == "race" and words in finding["message"], finding
    assert shown["line"] == finding["line"] and recording.ids in finding["programs"]


def test_a_hidden_kind_opens_on_a_case_that_may_be_shown():
    cell = CELL.replace('"FACTOR": 2', f'"FACTOR": 2 if p.N in {SIZES} else 3')
    recording, _, hot = opened(cell)
    assert hot and recording.grid[0] * 64 not in SIZES
    again, _, _ = opened(cell)
    assert (
        again.grid == recording.grid and again.findings == recording.findings
    )  # the numbers are no secret ones


def test_a_case_and_a_program_can_be_named():
    recording, _, hot = opened(CELL, case=0, program=0)
    assert recording.ids == [0, 0, 0] and recording.findings == [] and not hot
    with pytest.raises(stepping.NothingToStep, match="program must be in the grid"):
        opened(CELL, case=0, program=999)
    with pytest.raises(notebook.Stop, match="step needs a kernel's answer"):
        grader.step("def reuse(): ...", question="gemm_tiling.reuse")


def test_a_failed_check_says_how_to_walk_and_walks(monkeypatch):
    pytest.importorskip("anywidget")
    monkeypatch.setattr(notebook.record, "save", lambda verdict: None)
    failed = grader.check("roofline.doubled", CELL.replace("FACTOR * x", "FACTOR + x"))
    assert "_.step() in the next cell" in str(failed) and "_.step() in the next cell" in failed._repr_html_()
    stepper = failed.step()
    assert type(stepper).__name__ == "Stepper" and stepper.recording.findings[0]["line"] == 8
    passed = grader.check("roofline.doubled", CELL)
    assert "_.step()" not in str(passed)
    with pytest.raises(ValueError, match="step needs a kernel that failed"):
        passed.step()


def test_what_was_tried_is_shown_right_or_wrong():
    pytest.importorskip("anywidget")
    tried = grader.run(CELL, 0, question="roofline.doubled")
    assert not tried.error and tilescope.show(tried).recording.findings == []
    tried = grader.run(CELL.replace("FACTOR * x", "FACTOR + x"), {"N": 192}, question="roofline.doubled")
    recording = tilescope.show(tried).recording
    assert tried.error and recording.grid[0] == 3 and recording.findings[0]["line"] == 8
