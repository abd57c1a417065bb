"""Right answers to numpy questions get full points whatever container or number type they come in."""

import pytest

from grader import questions
from grader.judge import referee
from grader.judge.record import PASS
from grader.proofs.numpy_honest import FORMS

ALL = [(question, name) for question, forms in FORMS.items() for name in forms]


@pytest.mark.parametrize("question, name", ALL, ids=[": ".join(row) for row in ALL])
def test_a_right_form_passes(question, name):
    verdict = referee.grade_one(
        FORMS[question][name] + "\n", questions.find(question), seed=2026, eager=False
    )
    assert verdict.verdict == PASS, str(verdict)
