"""Closed by default: no quantity that the machine counts is without a bound, and what no question names is bounded too."""

import math

import numpy as np
import pytest

from grader import questions
from grader.judge import referee
from grader.judge.record import FAIL, PASS
from grader.proofs.right import edited, kernel_questions, right
from grader.questions.account import BYTES, account, bounds

QUESTIONS = {question.id: question for question in kernel_questions()}
SEED = 2026


def every(question) -> list:
    case = question.metered(np.random.default_rng(3))
    return [budget for part in question.budgets for budget in account(question, part, case)]


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_quantity_of_a_question_has_a_bound(question):
    row = QUESTIONS[question]
    found = every(row)
    for tensor in row.tensors:
        access = "load" if tensor.role == "in" else "store"
        assert any(bounds(budget, tensor.name, access) for budget in found), f"{access} of {tensor.name}"
    of_scratch = [b for b in found if b.tensor in ("scratch", "all") and b.access in ("load", "any")]
    assert any(b.count in BYTES and math.isfinite(b.most) for b in of_scratch), "scratch"
    for count in ("work", "sectors"):
        assert any(b.count == count and math.isfinite(b.most) for b in found), count
    assert any(b.count == "programs" and b.least > 0 for b in found), "programs"
    assert row.most_launches < 5


def judge(question: str, *edits):
    return referee.grade_one(edited(right(question), edits), questions.find(question), seed=SEED, eager=False)


def lost(verdict) -> list[str]:
    return [part.name for part in verdict.parts if part.state == FAIL]


WASTE = """    waste = tl.arange(0, 1024)
    for turn in range(64):
        waste = waste * 3 + turn
"""
MORE = {  # a right answer that does too much of what no question names: the edits, and what the report says
    "whole numbers": ("roofline.doubled", [("    x =", WASTE + "    x ="), ("2 * x", "tl.where(tl.sum(waste, 0) == 7, 0.0, 2 * x)")], "operations of every kind"),
    "an input again": (
        "roofline.small_product",
        [("    c = tl.dot", "    a = tl.maximum(a, tl.load(a_ptr + down * K + across, mask=(down < M) & (across < K), other=0.0))\n    c = tl.dot")],
        "read of a",
    ),
    "an output read back": (
        "roofline.doubled",
        [("    tl.store(y_ptr + offs,", "    tl.store(y_ptr + offs, x)\n    x = x + 0 * tl.load(y_ptr + offs)\n    tl.store(y_ptr + offs,")],
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MORE)
def test_what_no_question_names_is_bounded(name):
    question, edits, said = MORE[name]
    verdict = judge(question, *edits)
    assert lost(verdict) == ["traffic"] and said in str(verdict), str(verdict)


def test_an_answer_is_thrifty_at_every_size():
    """Rows of other lengths than those that are metered or compiled are read four times."""
    four = "    for again in range(3):\n        x = tl.maximum(x, tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0).to(tl.float32))\n"
    more = [
        ("    g = 0.5", "    if N != 4096 and (N < 900 or N > 1100):\n" + four.replace("    ", "        ", 1).replace("\n        x", "\n            x") + "    g = 0.5"),
    ]  # fmt: skip
    verdict = judge("roofline.layernorm_gelu", *more)
    assert "traffic" in lost(verdict) and "a hidden case" in str(verdict), str(verdict)
    assert judge("roofline.layernorm_gelu").verdict == PASS
