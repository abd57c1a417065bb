"""The first kernels: their budgets can be read and met, right fp32 answers pass, and each wrong answer has words of its own."""

import numpy as np
import pytest

from grader import questions
from grader.judge.compare import difference
from grader.proofs.necessity import Drawn

RUNGS = {q.name: q for q in questions.load().values() if q.notebook == "first_kernels"}
ROOFLINE = [q for q in questions.load().values() if q.slug == "roofline"]
SEEDS = range(5)


@pytest.mark.parametrize("name", RUNGS)
def test_each_rung_has_a_launch_of_its_own(name):
    same = [q for q in questions.load().values() if q.entry == RUNGS[name].entry]
    assert same == [RUNGS[name]] and RUNGS[name].entry == f"launch_{name}"


@pytest.mark.parametrize("name", RUNGS)
def test_budgets_are_sums_that_can_be_read(name):
    drawn = [RUNGS[name].metered(np.random.default_rng(seed)) for seed in range(30)]
    assert len({tuple(case.sizes.values()) for case in drawn}) > 1
    for case in drawn:
        for budget in RUNGS[name].budgets["traffic"](case):
            assert 0 <= budget.least <= budget.most and budget.look
            assert any(letter.isdigit() for letter in budget.model), budget.model


def in_fp32(question, inputs: dict, case) -> dict:
    """What a kernel stores: the exact outputs rounded to fp32, moved by a few of its last places."""
    want = question.reference(inputs, case)
    return {name: (v * (1 + 2.0**-23)).astype(np.float32) for name, v in want.items()}


@pytest.mark.parametrize("name", RUNGS)
def test_what_fp32_can_compute_is_right_and_a_little_less_is_not(name):
    for seed in SEEDS:
        drawn = Drawn(RUNGS[name], seed)
        for i in range(len(drawn.cases)):
            inputs, case, want, allowed = drawn.prepared(i)
            got = in_fp32(RUNGS[name], inputs, case)
            for output, target in want.items():
                assert difference(output, got[output], target, allowed[output]) is None, (case, output)
                off = target.copy()
                off.flat[np.where(np.isfinite(target), np.abs(target), 0).argmax()] *= 1.02
                assert difference(output, off, target, allowed[output]), (case, output)


@pytest.mark.parametrize("question", ROOFLINE, ids=lambda question: question.name)
def test_no_two_mistakes_of_a_question_are_told_alike(question):
    said = [row.sentence for row in question.mistakes if row.sentence]
    assert len(said) == len(set(said))


def test_a_rung_without_names_for_its_mistakes_is_the_one_that_the_compiler_judges():
    named = {name: [row for row in question.mistakes if row.sentence] for name, question in RUNGS.items()}
    assert [name for name, rows in named.items() if not rows] == ["tile_settings"]


def test_an_infinity_explains_nothing_but_itself():
    """`infinity in the sum` gives minus infinity; a finite sum is not that, however wrong."""
    from grader.judge.diagnose import _rounding_slack

    would = np.array([-np.inf, 4.0])
    assert _rounding_slack(would)[0] == 0 and _rounding_slack(would)[1] > 0
