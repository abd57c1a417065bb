"""Inputs whose numbers coincide: each way does what it says, and an answer that singles them out fails."""

from dataclasses import replace

import numpy as np
import pytest

from grader import questions
from grader.judge import referee
from grader.proofs.right import edited, right
from grader.questions import coincidences, reach
from grader.questions.model import ANYTHING

VALUE = np.arange(1.0, 13.0).reshape(3, 4)


@pytest.mark.parametrize("seed", range(4))
def test_each_way_makes_numbers_coincide(seed):
    rng = np.random.default_rng(seed)
    assert np.ptp(coincidences.equal(VALUE, rng), axis=1).max() == 0
    cancelled = coincidences.cancelling(VALUE[:2], rng)
    assert 0 in [np.abs(cancelled.sum(axis)).max() for axis in (0, 1)]
    alike = coincidences.beginning_alike(VALUE, rng)
    assert (alike[:, :2] == VALUE[0, :2]).all()
    assert (alike[:, -1] == alike[:, 0]).all() and np.ptp(alike[:, 2]) > 0
    assert (coincidences.zeros(np.ones((40, 40)), rng) == 0).mean() > coincidences.ZEROS
    assert (coincidences.cancelling(np.arange(16, dtype=np.uint8), rng) == 8).all()


def test_ascending_numbers_that_cancel_stay_ascending():
    levels = coincidences.cancelling(np.array([-0.9, -0.2, 0.3, 0.7]), np.random.default_rng(0))
    assert abs(levels.sum()) < 1e-12 and (np.diff(levels) > 0).all()
    assert (coincidences.beginning_alike(levels, np.random.default_rng(0)) == levels).all()


def test_inputs_become_copies_of_one_another():
    inputs = {"a": np.arange(3.0), "b": np.arange(10.0, 15.0), "n": np.arange(2)}
    kind = next(kind for kind, way in coincidences.KINDS.items() if way is None)
    found = coincidences.applied(kind, ("a", "b"), inputs, np.random.default_rng(0))
    assert found["b"].tolist() == [0, 1, 2, 13, 14] and inputs["b"][0] == 10


def test_a_check_has_each_way():
    question = questions.find("gemm_tiling.tiled_gemm")
    kinds = [case.kind for case in reach.hidden(question, np.random.default_rng(3))]
    assert set(coincidences.KINDS) <= set(kinds)


def test_a_kernel_that_singles_out_equal_numbers_fails():
    question = questions.find("roofline.doubled")
    trap = [("2 * x", "tl.where(tl.max(x, 0) == tl.min(x, 0), 1, 2) * x")]
    source = edited(right(question.id), trap)
    plain = replace(question, in_corners=None, free={}, compared=(ANYTHING,))
    assert referee.grade_one(source, plain, seed=5).points == 0
    assert referee.grade_one(source, replace(plain, alike=()), seed=5).points == question.points
