"""The contents that the lab of first kernels promises are in hidden cases of each of its questions."""

import numpy as np
import pytest

from grader import questions
from grader.judge.kernel_evidence import HIDDEN, METERED, KernelEvidence
from grader.topics.roofline.shared import TOO_LARGE

FIRST = [one for one in questions.load().values() if one.notebook == "first_kernels" and one.compiles]
*TWO_PARTS, LAST = FIRST
TINY = np.finfo(np.float32).tiny


def contents(question, seed: int) -> np.ndarray:
    """Return all numbers of the hidden cases of a check."""
    evidence = KernelEvidence(question, "", seed)
    drawn = [evidence.draw(purpose)[0] for purpose in evidence.cases if HIDDEN <= purpose < METERED]
    return np.concatenate([array.astype(np.float32).ravel() for one in drawn for array in one.values()])


@pytest.mark.parametrize("question", TWO_PARTS, ids=lambda one: one.id)
def test_hidden_cases_hold_what_the_lab_says(question):
    assert [part.name for part in question.parts] == ["values", "traffic"] and len(LAST.parts) == 3
    held = contents(question, 5)
    assert np.isinf(held).any()
    summed = {"sum_and_max", "long_mean", "smoothed", "small_product"}
    if question.id.split(".")[1] in summed:
        return
    zeros, sizes = held[held == 0], np.abs(held)
    assert np.isnan(held).any() and len(set(np.signbit(zeros))) == 2
    assert ((sizes > 0) & (sizes < TINY)).any() and (sizes[np.isfinite(sizes)] > 3e38).any()


def test_a_sum_that_fp32_does_not_hold_is_infinite_beside_a_finite_maximum():
    question = questions.find("roofline.sum_and_max")
    case = next(c for c in question.hidden(np.random.default_rng(5)) if c.values == TOO_LARGE)
    inputs = question.inputs(case, np.random.default_rng(6))
    wanted = question.reference(inputs, case)
    assert np.isposinf(wanted["s"][1:]).all() and np.isfinite(wanted["m"]).all()
