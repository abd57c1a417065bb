"""Comparisons of numbers with constants that a question doesn't allow."""

import pytest

from grader import questions
from grader.judge import comparing
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import KernelEvidence
from grader.proofs.right import edited, right
from grader.questions.criteria_text import compared, table
from grader.questions.model import ANYTHING, ONE_ANOTHER, KernelQuestion

SMOOTHED, NORM, ATTENTION, DECODE, BLOCKS, GEMV = (
    "roofline.smoothed",
    "next_bottleneck.residual_norm",
    "flash_attention.forward",
    "flash_attention.split_decode",
    "quantization_layouts.quantize_blocks",
    "quantization_layouts.w4a16_gemv",
)


def judged(question: str, *changes: tuple[str, str]) -> None:
    asked = KernelEvidence(questions.find(question), edited(right(question), changes), 5)
    try:
        comparing.judge(asked)
    finally:
        asked.end()


RESCALED = "        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])\n"
FEWER = "        if tl.max(m_new - m, 0) > {}:\n            acc = acc * alpha[:, None]\n        acc = tl.dot(p.to(v.dtype), v, acc)\n"
COMPARED = {
    "a scalar apart": (
        SMOOTHED,
        ("        h = ", "        if alpha == 0.5:\n            h = h * 2\n        h = "),
        "numbers of alpha with 0.5",
    ),
    "a floor": (
        NORM,
        ("wide * wide", "tl.maximum(wide * wide, 1e-9)"),
        "numbers of r and x with 1e-09",
    ),
    "a floor of another kind": (
        NORM,
        ("wide * wide", "wide * wide * tl.exp2(-tl.floor(wide * 0.1))"),
        "rounds numbers of r and x to whole numbers",
    ),
    "a block whose largest magnitude is 0": (
        NORM,
        ("    y = wide", "    if tl.max(tl.abs(wide), 0) == 0:\n        wide = wide * 0\n    y = wide"),
        "a maximum, a sum or a product of many numbers of r and x with 0",
    ),
    "a block of one number": (
        NORM,
        ("    y = wide", "    wide = tl.where(tl.max(wide, 0) == tl.min(wide, 0), 1.0, wide)\n    y = wide"),
        "many numbers of r and x with other numbers",
    ),
    "a tile of one code": (
        GEMV,
        (
            "        value = ",
            "        if tl.max(tl.max(w, 1), 0) == 7:\n            acc = acc * 2\n        value = ",
        ),
        "many numbers of w with 7",
    ),
    "a far maximum": (ATTENTION, (RESCALED, FEWER.format(12.0)), "many numbers of k, q and scale with 12"),
    "faint splits, as scratch tells": (
        DECODE,
        ("    parts = ", "    weight = tl.where(weight < 1e-20, 0.0, weight)\n    parts = "),
        "many numbers of k, q and scale with 1e-20",
    ),
}


@pytest.mark.parametrize("name", COMPARED)
def test_a_comparison_with_a_constant_fails(name):
    question, change, said = COMPARED[name]
    with pytest.raises(Failed, match=said) as failed:
        judged(question, change)
    assert compared(questions.find(question)) in failed.value.look


@pytest.mark.parametrize(
    "question, changes",
    [(ATTENTION, ((RESCALED, FEWER.format(8.0)),)), (BLOCKS, ()), (SMOOTHED, ())],
    ids=["a maximum that grows", "a scale of 0", "nothing"],
)
def test_what_a_question_allows_passes(question, changes):
    judged(question, *changes)


def test_each_exception_is_a_number_of_its_question():
    asked = [one for one in questions.load().values() if isinstance(one, KernelQuestion) and one.compared]
    assert len(asked) > 5
    for question in asked:
        numbers = [one for one in question.compared if one not in (ANYTHING, ONE_ANOTHER)]
        assert numbers == [f"{float(one):g}" for one in numbers], question.id


def test_the_table_says_what_numbers_are_compared_with():
    assert (
        "compared only with one another, 0, infinities, 448 and -448, and not rounded to whole numbers"
        in table(questions.find(BLOCKS))
    )
    assert "Floats are compared" not in table(questions.find("sampling_fusion.draw"))
