"""Limits that count whole tiles leave no room for more tiles, where all programs run and where drawn ones do."""

from dataclasses import replace

import numpy as np
import pytest

from grader import questions
from grader.judge import budgets_at_scale, every_case, sampled
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import CORNER, METERED, WHOLE, KernelEvidence
from grader.proofs import honest
from grader.proofs.right import edited, right
from grader.topics.flash_attention.shared import LARGEST, case, of_tiles, shape_of
from grader.topics.flash_attention.split_decode.cases import decode_case
from kernels.flash_attention import cost

FORWARD, WINDOW = "flash_attention.forward", "flash_attention.window_softcap"
END = "tl.minimum(N, (tile + 1) * BLOCK_M + N - M)"
TO_THE_LAST_KEY = (END, f"tl.where(N >= 1300, N, {END})")
ROWS_OF_256 = ("block_m = 128 if p.M >= 1024 else 64", "block_m = 256"), ('"BLOCK_N": 64', '"BLOCK_N": 32')
LONG = case(1, 16, 2, 2200, 2200, 128, kind="several axes long", sm_count=20)


def evidence_of(question, answer: str, purpose: int, long) -> tuple:
    evidence = KernelEvidence(question, answer, 3)
    evidence.cases = {METERED: evidence.known[METERED], purpose: long}
    return evidence, question.parts[1]


def judge_drawn(answer: str) -> None:
    evidence, part = evidence_of(questions.find(FORWARD), answer, CORNER, LONG)
    sampled.judge_drawn(evidence, CORNER)
    budgets_at_scale.judge_run(evidence, part, CORNER, evidence.runs[CORNER])


def judge_whole(answer: str) -> None:
    long = replace(LONG, sizes=LONG.sizes | {"H": 1, "G": 1, "M": 1300, "N": 1300, "D": 32})
    evidence, part = evidence_of(questions.find(FORWARD), answer, WHOLE[0], long)
    evidence.run(WHOLE[0])
    every_case.judge(evidence, part)


def judge_estimated(answer: str) -> None:
    """Judge programs that may need one another, since a plan has scratch, by what some of them spend."""
    answer = answer.replace('return {"steps"', 'return {"scratch": {"s": ((1,), "fp32", 0)}, "steps"')
    evidence, part = evidence_of(questions.find(FORWARD), answer, CORNER, LONG)
    assert sampled.depends(evidence, CORNER)
    budgets_at_scale.judge_estimated(evidence, part, CORNER)


@pytest.mark.parametrize("judge", [judge_drawn, judge_whole, judge_estimated])
def test_a_loop_that_goes_to_the_last_key_fails(judge):
    with pytest.raises(Failed, match=r"FLOP in tl.dot.*the limit there"):
        judge(edited(right(FORWARD), [TO_THE_LAST_KEY]))


FORMS = "", "tiles of keys of 256", "diagonal apart", "rows of 256"
SOME = (judge_drawn, "rows of 256"), (judge_whole, "")  # of which the rest is judged in make proofs


@pytest.mark.parametrize(
    "judge, form",
    [
        pytest.param(judge, form, marks=[pytest.mark.slow] * ((judge, form) not in SOME))
        for judge in (judge_drawn, judge_whole, judge_estimated)
        for form in FORMS
    ],
)
def test_tiles_that_end_at_the_diagonal_keep_the_limits(judge, form):
    if form == "rows of 256":
        return judge(edited(right(FORWARD), ROWS_OF_256))
    judge(honest.source(questions.find(FORWARD), form) if form else right(FORWARD))


def test_half_of_a_cache_that_is_read_twice_fails_in_a_long_case_alone():
    question = questions.find("flash_attention.split_decode")
    (load,) = (line for line in right(question.id).splitlines() if "k = tl.load(k_base" in line)
    half = "mask=mask_n[None, :] & (keys[None, :] < N // 2) & (N > 5500)"
    again = load.replace("k = ", "k = tl.maximum(k, ").replace("mask=mask_n[None, :]", half)
    again = again.replace("other=0.0)", 'other=float("-inf"), volatile=True))')
    long = decode_case(1, 8, 2, 6000, 64, kind="several axes long", sm_count=20)
    evidence, part = evidence_of(
        question, edited(right(question.id), [(load, f"{load}\n{again}")]), WHOLE[0], long
    )
    evidence.run(WHOLE[0])
    with pytest.raises(Failed, match="read of K, a hidden case"):
        every_case.judge(evidence, part)


@pytest.mark.parametrize("long", [case(2, 2, 1, 333, 700, 32), case(1, 1, 1, 90, 500, 32, w=60)])
def test_the_shares_of_all_rows_are_one(long):
    s = long.sizes
    rows = np.repeat(np.arange(s["M"]), s["B"] * s["H"] * s["D"])
    written = {"o": np.stack([rows] * 4, axis=1)}
    assert of_tiles(long, LARGEST, cost.row_pairs)(written) == pytest.approx(1)
    for tiling in LARGEST:
        each = sum(cost.row_pairs(shape_of(long), tiling, row) for row in range(s["M"]))
        assert each == pytest.approx(cost.tiled_pairs(shape_of(long), tiling))
