"""Answers that do too much lose points, and the generator makes what it says."""

import ast

import pytest

from grader import questions
from grader.proofs import closed, right, wasteful

if not (right.ROOT / "solutions").exists():
    pytest.skip("solutions/, which is not handed out", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("no_jails_left")
SAMPLE = closed.tasks(everything=False)
QUICK = "roofline.doubled"


@pytest.mark.parametrize("way", wasteful.WAYS)
def test_a_first_kernel_that_does_too_much_loses_its_point(way):
    assert closed.judge(QUICK, way, closed.EVERYWHERE) == closed.DIES


@pytest.mark.slow
@pytest.mark.parametrize("task", SAMPLE, ids=lambda task: ", ".join(task))
def test_an_answer_that_does_too_much_loses_points(task):
    assert closed.judge(*task) != closed.LIVES


def test_every_question_is_asked_in_every_way():
    asked = closed.tasks(everything=True)
    assert {question for question, _, _ in asked} == {q.id for q in right.kernel_questions()}
    assert {way for _, way, _ in asked} == set(wasteful.WAYS)
    for question in right.kernel_questions():
        source = wasteful.cell(right.right(question.id), question.entry, "every store twice")
        ast.parse(source)
        assert "right_plan(p)" in source and f"def {question.entry}(p)" in source


def test_an_answer_that_does_no_more_would_live(monkeypatch):
    """So a generator that changes nothing is seen."""
    monkeypatch.setitem(wasteful.WAYS, "nothing", lambda copies, tops: wasteful.More())
    assert closed.judge(QUICK, "nothing", closed.EVERYWHERE) == closed.LIVES
    assert questions.find(QUICK).points == 3
