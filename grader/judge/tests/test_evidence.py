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


WALKS = [("grid = (triton.cdiv(p.M, 16), triton.cdiv(p.N, 32))", "grid = (1, 1)")]
WHOLE = [
    (
        '{"BLOCK_M": 16, "BLOCK_N": 32}',
        '{"BLOCK_M": triton.next_power_of_2(p.M), "BLOCK_N": triton.next_power_of_2(p.N)}',
    )
]
ASKED = {  # what a first kernel is asked for in words: the edits that leave it out, and what is missed
    "h is read back": (
        "smoothed",
        [
            (
                "h = (1 - alpha) * h +",
                "h = (1 - alpha) * tl.load(y_ptr + (t - 1) * M + offs, mask=mask & (t > 0), other=0.0) +",
            ),
            ("mask=mask)\n        h", "mask=mask, other=0.0)\n        h"),
        ],
        "outputs read back",
    ),
    "one block and no tiles": ("subtracted", [*WALKS, *WHOLE], "programs that store y"),
    "a number of each for every result": (
        "outer_difference",
        [
            (
                "tl.load(a_ptr + offs_m, mask=offs_m < M)  # (BLOCK_M,)",
                "tl.load(a_ptr + offs_m[:, None] + 0 * offs_n[None, :], mask=(offs_m[:, None] < M) & (offs_n[None, :] < N), other=0.0)",
            ),
            ("a[:, None]", "a"),
        ],
        "read of a, lane by lane",
    ),
    "a row after another": (
        "sum_and_max",
        [
            ("m_ptr, N, BLOCK", "m_ptr, M, N, BLOCK"),
            (
                "    row = tl.program_id(0)\n    offs = tl.arange(0, BLOCK)\n    mask = offs < N\n",
                "    offs = tl.arange(0, BLOCK)\n    mask = offs < N\n    for row in range(0, M):\n",
            ),
            ("    x = tl.load", "        x = tl.load"),
            ("    tl.store(s", "        tl.store(s"),
            ("    tl.store(m", "        tl.store(m"),
            ('"grid": (p.M,)', '"grid": (1,)'),
        ],
        "programs that store s",
    ),
    "a dead dot": (
        "small_product",
        [
            (
                "    c = tl.dot(a, b)\n",
                "    c = tl.sum(a.to(tl.float32)[:, :, None] * b.to(tl.float32)[None, :, :], 1)\n    c += 0.0 * tl.dot(a, b)\n",
            ),
        ],
        "operations beside tl.dot",
    ),
}


@pytest.mark.parametrize("what", ASKED)
def test_what_a_first_kernel_is_asked_for_is_looked_at(what):
    name, edits, missed = ASKED[what]
    verdict = judge(changed(f"roofline.{name}", *edits), f"roofline.{name}")
    assert lost(verdict) == ["traffic"] and missed in verdict.parts[1].came, str(verdict)
