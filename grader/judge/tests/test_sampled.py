"""What drawn programs of a case say about where to look."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from grader import questions
from grader.box.warm import Outcome
from grader.judge.kernel_evidence import EVERY_PROGRAM
from grader.judge.sampled import takes_long, together
from tilescope.machine.errors import OverLimit


def test_dtypes_and_strides_are_named_where_they_differ_from_the_first_case():
    question = questions.find("gemm_tiling.tiled_gemm")
    plain = question.public[0]
    assert together(question, replace(plain, sizes={})) == "the sizes of this case"
    both = replace(plain, dtype="bf16" if plain.dtype != "bf16" else "fp16", layout={"a": "transposed"})
    assert together(question, both) == (
        "the sizes of this case, its dtypes and its strides, which count together"
    )


@pytest.mark.parametrize(("limit", "long"), [("seconds", True), ("operations", False)])
def test_a_corner_that_takes_the_machine_too_long_is_left_out(limit, long):
    report = OverLimit(limit, f"the launches need more {limit}").report()
    ran = SimpleNamespace(outcome=Outcome(header={"error": report}))
    evidence = SimpleNamespace(
        runs={}, cases={EVERY_PROGRAM: None}, plan=lambda _: None, run=lambda *_, **__: ran
    )
    assert takes_long(evidence, EVERY_PROGRAM) == long


def test_an_error_of_the_answer_itself_leaves_no_corner_out():
    forged = {"stage": "kernel", "kind": "OverLimit", "message": "", "what": "seconds"}
    evidence = SimpleNamespace(runs={}, cases={EVERY_PROGRAM: None}, plan=lambda _: forged)
    assert not takes_long(evidence, EVERY_PROGRAM)
