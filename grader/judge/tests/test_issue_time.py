"""Time by counts: what a lesson teaches never looks worse, and a check names the limit that is the larger."""

import pytest

from grader import questions
from grader.judge import parts
from grader.judge.kernel_evidence import METERED
from grader.judge.traffic import limits_of_time, spent
from grader.proofs import honest
from grader.questions.account import account
from grader.questions.timed import CHIP
from kernels import machines

SEED = 2026
BETTER = {  # lab 02 teaches the first form of each pair: codes as the bits of floats, two at a time
    "no conversion": ("quantization_layouts.w4a16_gemv", honest.AS_IT_STANDS, "by conversion"),
    "two codes in an OR": ("quantization_layouts.w4a16_gemm", honest.AS_IT_STANDS, "scaled after each group"),
}


def metered(question, form: str):
    evidence = parts.gather(question, honest.source(question, form), SEED)
    evidence.cases = {METERED: evidence.known[METERED]}  # no other is lowered
    try:
        return evidence.run(METERED)
    finally:
        evidence.end()


@pytest.mark.parametrize("pair", BETTER)
def test_what_a_lesson_teaches_takes_less_time(pair):
    name, *forms = BETTER[pair]
    question = questions.find(name)
    runs = [metered(question, form) for form in forms]
    limit = next(b for b in account(question, "speed", runs[0].case) if b.count == "time")
    better, plain = (spent(run, limit) for run in runs)
    assert 1.5 * better < plain <= limit.most
    times = machines.times(runs[1].launches, CHIP)
    assert max(times, key=times.get) == machines.ISSUE
    assert limits_of_time(times, limit).startswith("operations ") and limits_of_time(times, limit).endswith(
        "for each weight"
    )


def test_addresses_and_masks_start_for_nothing():
    launch = {"tensors": {}, "dots": {}, "operations": {"float": 128, "int": 0, "address": 1 << 40}}
    assert machines.total([launch], CHIP) == pytest.approx(1 / (CHIP.sms * CHIP.clock_hz))


def test_exact_dots_are_done_by_the_lanes():
    launch = {"tensors": {}, "dots": {"fp32:ieee": 2**40}, "operations": {}}
    assert machines.times([launch], CHIP)[machines.ISSUE] == pytest.approx(2**40 / 67e12, rel=0.1)
    assert machines.times([launch], CHIP)[machines.MATRIX] == 0
