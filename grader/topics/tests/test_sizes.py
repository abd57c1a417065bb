"""No size that anybody knows is the largest: along each axis a hidden case goes further than all others, and to the end of
what the lab says."""

import re
from dataclasses import replace

import numpy as np
import pytest

from grader import questions
from grader.proofs.wasteful_ranks import longest
from grader.questions import UpTo
from grader.questions.criteria_text import table
from grader.questions.reach import CROSSED, NEAR, crossings, ends, hidden, pool, unreached, words
from grader.topics.roofline.shared import ENDLESS, TOO_LARGE

KERNELS = [question for question in questions.load().values() if question.compiles]
# sizes of a fixed set, and rows of attention, which the compiled case has in full
OF_A_SET = {"TILE", "BITS", "D", "G"}
BY_THE_COMPILED_CASE = {("flash_attention", "M")}
OF_RANKS = {"replicated_layer": (3, 1)}  # argument 3 says of four ranks who holds what
BOUNDED = {"roofline.sum_and_max": 1024, "roofline.small_product": 32, "sampling_fusion.filtered_draw": 2048}


def largest(cases, found: dict) -> dict:
    for case in cases:
        for axis, size in case.sizes.items():
            found[axis] = max(found.get(axis, 0), size)
    return found


@pytest.mark.parametrize("question", KERNELS, ids=lambda one: one.id)
def test_hidden_cases_go_beyond_all_others(question):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        timed = [question.speed.case] if question.speed else []
        metered = [question.metered(rng)] if question.metered else []
        compiled = [question.compile_case] if question.compile_case else []
        known = largest([*question.public, *metered, *compiled, *timed], {})
        drawn = largest(hidden(question, rng), {})
        for axis, size in known.items():
            if axis in OF_A_SET or (question.slug, axis) in BY_THE_COMPILED_CASE:
                continue
            assert drawn[axis] > min(size, BOUNDED.get(question.id, size + 1) - 1), axis


@pytest.mark.parametrize("question", KERNELS, ids=lambda one: one.id)
def test_cases_go_as_far_as_the_lab_says(question):
    assert unreached(question) == []
    assert "Sizes: " in table(question)


@pytest.mark.parametrize("question", KERNELS, ids=lambda one: one.id)
def test_no_drawn_size_is_below_the_least(question):
    for seed in range(12):
        for case in ends(question, np.random.default_rng(seed)):
            for axis, one in question.up_to.items():
                assert case.sizes[axis] >= (one.least if isinstance(one, UpTo) else min(one)), (seed, axis)


@pytest.mark.parametrize("question", KERNELS, ids=lambda one: one.id)
def test_every_axis_is_long_with_all_values_and_dtypes(question):
    """In the pool, of which a check has a fifth at least."""
    drawn = [*question.public, *question.hidden(np.random.default_rng(1))]
    found, axes = (
        pool(question, drawn),
        [axis for axis, one in question.up_to.items() if isinstance(one, UpTo)],
    )
    met = {(axis, words(kind), kind.dtype) for one in found for axis in one.long for kind in one.kinds}
    assert {(axis, words(case), case.dtype) for axis in axes for case in drawn} <= met
    assert len(found) <= 5 * CROSSED


@pytest.mark.parametrize("question", KERNELS, ids=lambda one: one.id)
def test_a_crossing_is_a_case_of_the_question(question):
    rng = np.random.default_rng(3)
    cases = crossings(question, list(question.hidden(rng)), rng)
    assert cases and all(case.crossed for case in cases)
    far = {axis for axis, one in question.up_to.items() if isinstance(one, UpTo)}
    for case in cases:
        long = set(re.sub(".*with ", "", case.kind).removesuffix(" large").split(" and "))
        assert long <= far and all(case.sizes[axis] <= question.up_to[axis].most for axis in long), case
    case = min(cases, key=lambda one: np.prod([*one.sizes.values()], dtype=float))
    inputs = question.drawn_inputs(case, np.random.default_rng(1))
    for tensor in question.tensors:
        if tensor.role != "out":
            assert inputs[tensor.name].shape == tensor.sizes(case.sizes), (tensor.name, case)


def test_kinds_of_values_share_a_case():
    """Each in rows of its own, with what all rows have in common."""
    question = questions.find("roofline.sum_and_max")
    rng = np.random.default_rng(3)
    shared = [case for case in crossings(question, list(question.hidden(rng)), rng) if case.parts]
    for case in shared:
        x = question.drawn_inputs(case, rng)["x"]
        last = 0
        for part in case.parts:
            rows, last = x[last : last + part.sizes["M"]], last + part.sizes["M"]
            below = part.values not in ("normal", ENDLESS, TOO_LARGE)
            assert (rows.max() < -1) == below and (np.isfinite(rows).all() or part.values == ENDLESS), (
                part.values
            )
        assert last == len(x) == case.sizes["M"]
    assert {case.kind for case in shared} == {"M large", "N large"}
    assert all(len(case.parts) == 6 for case in shared)


def test_an_end_is_long_along_one_axis():
    question = questions.find("gemm_tiling.tiled_gemm")
    for seed in range(3):
        found = ends(question, np.random.default_rng(seed))
        for axis, case in zip("MNK", found, strict=True):
            most = question.up_to[axis].most
            assert most - NEAR < case.sizes[axis] <= most
            assert all(size == 2 for name, size in case.sizes.items() if name != axis)


def test_a_promise_that_no_case_keeps_is_named():
    question = questions.find("gemm_tiling.tiled_gemm")

    def said(**changed) -> str:
        return "; ".join(unreached(replace(question, up_to=question.up_to | changed)))

    assert said(K=UpTo(4095)).startswith("K is up to 4,095, and a case has ")
    assert "K is 64 or 128, and cases have " in said(K=(64, 128))
    short = replace(question, sized=lambda **sizes: replace(question.public[0], sizes={**sizes, "N": 64}))
    assert unreached(short) == ["N is up to 100,000, and no case goes there"]
    open_axis = replace(question, up_to={axis: question.up_to[axis] for axis in "MN"})
    assert unreached(open_axis) == ["K has no largest size in up_to, so an answer may stop anywhere"]


RANKS = [question for question in questions.load().values() if question.kind == "ranks"]


@pytest.mark.parametrize("question", RANKS, ids=lambda one: one.id)
def test_hidden_cases_of_ranks_go_beyond_all_others(question):
    known = longest(question.public)
    for seed in range(3):
        hidden = longest(question.hidden(np.random.default_rng(seed)))
        axes = [axis for axis in known if axis != OF_RANKS.get(question.name)]
        assert not [axis for axis in axes if hidden[axis] <= known[axis]]
