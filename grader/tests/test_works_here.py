"""Whether this copy of the course works on this machine; a student edition brings this test alone."""

import json

import pytest

from grader import questions
from grader.judge import referee
from grader.judge.record import FAIL
from grader.places import ROOT
from widgets.answer import answer
from widgets.registry import every, find


@pytest.mark.parametrize("name", [simulator.name for simulator in every()])
def test_a_simulator_answers(name):
    assert "error" not in answer(find(name))


def labs() -> list:
    return sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("labs/*/concepts.ipynb"))


@pytest.mark.parametrize("lab", labs())
def test_what_a_lab_imports_is_here(lab):
    cells = json.loads((ROOT / lab).read_text(encoding="utf-8"))["cells"]
    imports = next(cell for cell in cells if cell["id"] == "imports")
    exec("".join(imports["source"]), {})  # the course's own locked cell, on no machine but this


def test_an_untouched_answer_is_not_started_and_a_wrong_one_fails():
    question = next(q for q in questions.load().values() if q.kind == "numpy")
    for body, said in (("raise NotImplementedError", "not started"), ("return 'no'", "must be")):
        verdict = referee.grade_one(f"def {question.entry}(*given):\n    {body}\n", question)
        assert verdict.verdict == FAIL and said in str(verdict), verdict
