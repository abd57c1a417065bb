"""Inputs that are regular but for one place: what each way draws, and an answer that guesses a row from its ends fails."""

from dataclasses import replace

import numpy as np
import pytest

from grader import questions
from grader.judge import referee
from grader.proofs.right import edited, inward, kernel_questions, right
from grader.questions import reach, regular
from grader.questions.model import ANYTHING

COUNTS = 5, 16, 40, 1000


def odd_places(found: np.ndarray, made: np.ndarray) -> list[list[int]]:
    """Return where rows differ from what is regular."""
    return [np.flatnonzero(row != want).tolist() for row, want in zip(found, made, strict=True)]


@pytest.mark.parametrize("count", COUNTS)
def test_the_odd_number_is_drawn_and_neither_first_nor_middle_nor_last(count):
    rng = np.random.default_rng(count)
    value = rng.standard_normal((30, count)).astype(np.float16)
    for made in (regular.constant(value, False), regular.constant(value, True), regular.in_steps(value, rng)):
        found = regular.but_for_one(made, value, rng)
        places = odd_places(found, made)
        assert max(map(len, places)) == 1 and places.count([]) <= 2  # a drawn number may be the regular one
        odd = [(row, place) for row, some in enumerate(places) for place in some]
        assert all(found[at] == value[at] for at in odd)
        assert not {place for _, place in odd} & {0, count // 2, (count - 1) // 2, count - 1}


def test_a_row_without_such_a_place_stays():
    value, rng = np.arange(8.0).reshape(2, 4), np.random.default_rng(0)
    assert (regular.but_for_one(regular.constant(value, True), value, rng) == value).all()


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp8e4nv"])
def test_steps_are_exact_in_few_bits(dtype):
    value = np.random.default_rng(0).standard_normal((1, 16)).astype(regular.DTYPES[dtype])
    steps = np.diff(regular.in_steps(value, np.random.default_rng(0))[0].astype(float))
    assert (steps == steps[0]).all() and steps[0] > 0


def test_whole_numbers_stay_between_those_that_there_are():
    value = np.arange(2, 16, dtype=np.uint8)[None].repeat(3, 0)
    steps = regular.in_steps(value, np.random.default_rng(0))
    assert steps.min() == 2 and steps.max() <= 15 and (regular.constant(value, False) == 8).all()


def test_numbers_of_which_none_is_negative_stay_so():
    weights = np.random.default_rng(0).dirichlet(np.ones(8), 5).astype(np.float32)
    assert regular.in_steps(weights, np.random.default_rng(0)).min() > 0


def test_tokens_choose_alike_but_for_one_and_none_an_expert_twice():
    question = questions.find("moe_routing.order")
    case = next(c for c in reach.hidden(question, np.random.default_rng(1)) if c.kind == regular.CONSTANT)
    ids = question.drawn_inputs(case, np.random.default_rng(2))["topk_ids"]
    assert (ids != ids[0]).any(axis=1).sum() == 1
    assert all(len({*token}) == len(token) for token in ids.tolist())


@pytest.mark.parametrize("question", kernel_questions(), ids=lambda one: one.id)
def test_a_check_has_each_kind_once(question):
    kinds = [case.kind for case in reach.hidden(question, np.random.default_rng(3))]
    wanted = [*regular.KINDS] if question.alike or question.regular else []
    assert [kind for kind in kinds if kind in regular.KINDS] == wanted


def test_a_kernel_that_guesses_a_block_from_its_ends_fails():
    question = questions.find("roofline.doubled")
    ends = "tl.sum(tl.where({} == offs % BLOCK, x, 0), 0)"
    first, last = ends.format(0), ends.format("BLOCK - 1")
    source = edited(right(question.id), [("2 * x", f"2 * tl.where({first} == {last}, {first}, x)")])
    free = inward(question, compared=(ANYTHING,))
    assert referee.grade_one(source, replace(free, regular={"x": "numbers"}), seed=5).points == 0
    assert referee.grade_one(source, free, seed=5).points == question.points
