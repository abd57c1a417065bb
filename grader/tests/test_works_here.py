"""Whether this copy of the course works on this machine; a student edition brings this test alone."""

import ast
import json

import pytest

from grader import questions
from grader.judge import referee
from grader.judge.record import FAIL
from grader.paths import ROOT
from widgets.answer import answer
from widgets.registry import every, find


@pytest.mark.parametrize("name", [simulator.name for simulator in every()])
def test_a_simulator_answers(name):
    assert "error" not in answer(find(name))


def notebooks() -> list:
    """Lessons and concept labs, which run on any machine."""
    rooms = ("course/*.ipynb", "course/[0-9]*/*.ipynb", "labs/*/concepts.ipynb")
    found = [path for room in rooms for path in ROOT.glob(room)]
    assert len(found) > 15, "lessons and labs must be here"
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


@pytest.mark.parametrize("notebook", notebooks())
def test_what_a_notebook_imports_is_here(notebook):
    cells = json.loads((ROOT / notebook).read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for node in (node for source in sources for node in ast.parse(source).body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(ast.unparse(node), {})  # the course's own cells


def test_an_untouched_answer_is_not_started_and_a_wrong_one_fails():
    question = next(q for q in questions.load().values() if q.kind == "numpy")
    for body, said in (("raise NotImplementedError", "not started"), ("return 'no'", "must be")):
        verdict = referee.grade_one(f"def {question.entry}(*given):\n    {body}\n", question, seed=2026)
        assert verdict.verdict == FAIL and said in str(verdict), verdict
