"""Loads and products that numbers of an input steer although the question doesn't allow it."""

import pytest

from grader import questions
from grader.judge import steering
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import KernelEvidence
from grader.proofs.right import edited, right
from grader.questions.criteria_text import steered, table
from grader.questions.model import DOT, SCRATCH, WEIGHTS

COMBINE, NORM, GROUPED = (
    "moe_routing.fused_combine",
    "next_bottleneck.residual_norm",
    "moe_routing.grouped_gemm",
)
ATTENTION, DECODE = "flash_attention.forward", "flash_attention.split_decode"


def evidence(question: str, *changes: tuple[str, str]) -> KernelEvidence:
    return KernelEvidence(questions.find(question), edited(right(question), changes), 5)


def judged(question: str, *changes: tuple[str, str]) -> None:
    asked = evidence(question, *changes)
    try:
        steering.judge(asked)
    finally:
        asked.end()


STEERED = {
    "a slot of weight 0 is left out": (
        COMBINE,
        ("mask=mask_h, other=0.0)  # (BLOCK,)", "mask=mask_h & (weight != 0), other=0.0)"),
        "loads rows, and numbers of topk_weights decide which elements",
    ),
    "a row of zeros needs no weight": (
        NORM,
        ("w_ptr + offs, mask=mask", "w_ptr + offs, mask=mask & (tl.max(tl.abs(wide), 0) > 0)"),
        "loads w, and numbers of r and x decide which elements",
    ),
    "a tile of zeros isn't multiplied": (
        GROUPED,
        (
            "            gate = tl.dot(x, w_gate, gate)\n",
            "            if tl.max(tl.max(tl.abs(x.to(tl.float32)), 1), 0) > 0:\n"
            "                gate = tl.dot(x, w_gate, gate)\n",
        ),
        "multiplies by tl.dot, and numbers of x decide whether it does",
    ),
    "splits without weight aren't fetched, as scratch tells": (
        DECODE,
        ("mask=mask[:, None], other=0.0)\n    out", "mask=(weight > 0)[:, None], other=0.0)\n    out"),
        "loads scratch, and numbers of k and q decide which elements",
    ),
    "at one size alone": (
        COMBINE,
        (
            "mask=mask_h, other=0.0)  # (BLOCK,)",
            "mask=mask_h & ((weight != 0) | (TOP_K != 2) | (BLOCK < 64)), other=0.0)",
        ),
        "numbers of topk_weights",
    ),
}


@pytest.mark.parametrize("name", STEERED)
def test_a_load_that_numbers_steer_fails(name):
    question, change, said = STEERED[name]
    with pytest.raises(Failed, match=said) as failed:
        judged(question, change)
    assert steered(questions.find(question)) in failed.value.look


RESCALED = (
    "        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])\n",
    "        if tl.min(alpha, 0) < 1:\n            acc = acc * alpha[:, None]\n        acc = tl.dot(p.to(v.dtype), v, acc)\n",
)


@pytest.mark.parametrize(
    "question, changes",
    [(COMBINE, ()), (GROUPED, ()), (DECODE, ()), (ATTENTION, (RESCALED,))],
    ids=["rows by index", "tiles by expert", "scratch", "a branch that loads nothing"],
)
def test_what_a_question_allows_passes(question, changes):
    judged(question, *changes)


def test_each_exception_names_tensors_of_its_question():
    asked = [question for question in questions.load().values() if getattr(question, "steered", ())]
    assert len(asked) > 5
    for question in asked:
        inputs = {one.name for one in question.tensors if one.role != "out"} | {WEIGHTS}
        targets = {one.name for one in question.tensors} | {SCRATCH, WEIGHTS, DOT}
        for row in question.steered:
            assert row.by in inputs and targets.issuperset(row.of), (question.id, row)


def test_the_table_says_what_may_steer():
    assert "don't decide what is loaded or multiplied by `tl.dot`. |" not in table(questions.find(GROUPED))
    assert "except those of `sorted_token_ids` (everything) and `expert_ids` (everything)" in table(
        questions.find(GROUPED)
    )
    assert "`w` (which elements of `c`)" in table(questions.find("quantization_layouts.kbit_gemm"))
    assert "decide what is loaded. Floats" in table(questions.find(NORM))
