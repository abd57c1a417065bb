"""Cases at which an answer's own comparisons and divisions are just even."""

import numpy as np
import pytest

from grader import questions
from grader.judge.kernel_evidence import ON_EDGE, KernelEvidence
from grader.proofs.right import edited, right
from grader.questions import on_edge
from grader.questions.model import Case

NORM, WINDOW, FORWARD = "roofline.layernorm_gelu", "flash_attention.window_softcap", "flash_attention.forward"
PLAN = "    return {"
FORMS = {
    "two sizes that a condition compares": (NORM, "if p.M < p.N - 3: pass", lambda s: s["M"] == s["N"] - 3),
    "a condition that is one off": (NORM, "if p.N >= p.M + 12: pass", lambda s: s["N"] == s["M"] + 11),
    "the larger of two numbers": (NORM, "max(p.N, 1777)", lambda s: s["N"] == 1777),
    "a division without a remainder": (NORM, "(p.N + 5) // 96", lambda s: (s["N"] + 5) % 96 == 0),
    "the last number before the next block": (NORM, "triton.cdiv(p.M, 40)", lambda s: s["M"] % 40 == 39),
}


def at_edges(question: str, answer: str, seed: int) -> list[Case]:
    asked = KernelEvidence(questions.find(question), answer, seed)
    return [asked.cases[purpose] for purpose in ON_EDGE if purpose in asked.cases]


@pytest.mark.parametrize("form", FORMS)
def test_a_case_is_where_numbers_of_a_cell_meet(form):
    question, line, there = FORMS[form]
    head = right(question)
    at = head.rindex("def launch")
    body = head.index(":\n", at) + 2
    found = at_edges(question, f"{head[:body]}    {line}\n{head[body:]}", 3)
    assert any(there(case.sizes) for case in found), [case.sizes for case in found]
    assert len(found) <= on_edge.MOST and all(case.crossed for case in found)


def test_an_edge_in_a_kernel_is_met():
    answer = edited(right(WINDOW), [("- W", "- W - tl.minimum(N - W, 7) * 0")])
    assert any(case.sizes["N"] - case.sizes["W"] in (6, 7, 8) for case in at_edges(WINDOW, answer, 3))


def test_a_remainder_is_solved_for():
    question = questions.find(FORWARD)

    def gaps(case: Case) -> dict:
        return {(1, 0, 0, True): {((case.sizes["N"] - case.sizes["M"]) % 128, 128)}}

    found = on_edge.search(question, gaps, list(question.public), np.random.default_rng(0))
    assert any((case.sizes["N"] - case.sizes["M"]) % 128 == 127 for case in found)
