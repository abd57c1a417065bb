"""No size that anybody knows is the largest: along each axis a hidden case goes further than all others."""

import numpy as np
import pytest

from grader import questions
from grader.proofs.wasteful_ranks import longest

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
        hidden = largest(question.hidden(rng), {})
        for axis, size in known.items():
            if axis in OF_A_SET or (question.slug, axis) in BY_THE_COMPILED_CASE:
                continue
            assert hidden[axis] > min(size, BOUNDED.get(question.id, size + 1) - 1), axis


RANKS = [question for question in questions.load().values() if question.kind == "ranks"]


@pytest.mark.parametrize("question", RANKS, ids=lambda one: one.id)
def test_hidden_cases_of_ranks_go_beyond_all_others(question):
    known = longest(question.public)
    for seed in range(3):
        hidden = longest(question.hidden(np.random.default_rng(seed)))
        axes = [axis for axis in known if axis != OF_RANKS.get(question.name)]
        assert not [axis for axis in axes if hidden[axis] <= known[axis]]
