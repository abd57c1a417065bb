"""What no answer can buy: points for wrong results, or the blame laid on a busy machine."""

import pytest

from grader import questions
from grader.judge import referee
from grader.judge.kernel_evidence import KernelEvidence
from grader.judge.record import FAIL, INCONCLUSIVE
from grader.proofs.right import edited, right

SEED = 2026  # the same hidden cases every time: a red test is a change


def judge(source: str, question, **more):
    question = questions.find(question) if isinstance(question, str) else question
    return referee.grade_one(source, question, **{"seed": SEED, "eager": False, **more})


IN_A_CROWD = """
@triton.jit
def doubled(x_ptr, y_ptr, crowd_ptr, N, BLOCK: tl.constexpr):
    tl.atomic_add(crowd_ptr, 1)
    if tl.load(crowd_ptr) > 0:
        offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + offs, {value} * tl.load(x_ptr + offs, mask=offs < N, other=0.0), mask=offs < N)


def launch_doubled(p):
    scratch = {{"crowd": ((1,), "int32", 0)}}
    {grid}
    return {{"scratch": scratch, "steps": [{{"kernel": doubled, "grid": (grid,), "constexprs": {{"BLOCK": 64}}}}]}}
"""


@pytest.mark.parametrize(
    "value, grid, verdict",
    [
        ("2", "grid = 3000", INCONCLUSIVE),
        ("3", "grid = 3000", FAIL),
        ("(2 + (N > 300))", "grid = 3000", FAIL),
    ],
    ids=["right", "wrong", "wrong in hidden cases"],
)
def test_what_is_wrong_in_the_order_that_ran_is_the_answers_fault(value, grid, verdict):
    judged = judge(IN_A_CROWD.format(value=value, grid=grid), "roofline.doubled")
    assert judged.verdict == verdict, str(judged)
    assert verdict == INCONCLUSIVE or "is" in judged.parts[0].came


def lost(verdict) -> list[str]:
    return [part.name for part in verdict.parts if part.state == FAIL]


def changed(question: str, *edits) -> str:
    return edited(right(question), edits)


COMBINE = "moe_routing.fused_combine"
AGAIN = (
    ("PICKS: tl.constexpr, BLOCK", "AGAIN: tl.constexpr, PICKS: tl.constexpr, BLOCK"),
    (
        "            acc += weight",
        "            if AGAIN:\n"
        "                y = tl.maximum(y, tl.load(rows_ptr + row * stride_rowsr + offs_h * stride_rowsh, mask=mask_h, other=0.0))\n"
        "            acc += weight",
    ),
    ('{"PICKS"', '{"AGAIN": p.H == 2048, "PICKS"'),
)


def test_a_compiled_case_that_runs_whole_has_all_budgets():
    """Its size is known to all, so a kernel may be thrifty everywhere else."""
    verdict = judge(changed(COMBINE, *AGAIN), COMBINE)
    assert lost(verdict) == ["traffic", "speed"], str(verdict)
    assert "at the size that is compiled" in str(verdict)


def test_no_case_is_told_by_the_machine_that_it_names():
    for question in (COMBINE, "gemm_tiling.tiled_gemm", "roofline.doubled"):
        evidence = KernelEvidence(questions.find(question), "", seed=7)
        assert len({case.sm_count for case in evidence.cases.values()}) == 1
