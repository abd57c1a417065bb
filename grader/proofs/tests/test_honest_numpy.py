"""Right answers to numpy questions get full points whatever container or number type they come in."""

import pytest

from grader import questions
from grader.judge import referee
from grader.judge.record import PASS
from grader.proofs.honest import unusual

NUMPY = [question for question in questions.load().values() if question.kind == "numpy"]
ALL = [(question, name) for question in NUMPY for name in unusual(question)]


@pytest.mark.parametrize("question, name", ALL, ids=[f"{question.id}: {name}" for question, name in ALL])
def test_a_right_form_passes(question, name):
    verdict = referee.grade_one(unusual(question)[name] + "\n", question, seed=2026, eager=False)
    assert verdict.verdict == PASS, str(verdict)
