"""Every honest tiling keeps every budget at every size that may be drawn, and what a budget is for exceeds it."""

import numpy as np
import pytest

from grader import questions
from grader.checks.tests import spent

SIZES = 60  # metered cases drawn here; 1,000 passed when a budget was last changed
GEMM, SCALED, NORM = "gemm_tiling.tiled_gemm", "gemm_tiling.block_scaled_gemm", "roofline.layernorm_gelu"

HONEST = {
    GEMM: {
        "the solution": lambda c: spent.gemm(c, 128, 256, 64),
        "64 x 128": lambda c: spent.gemm(c, 64, 128),
        "64 x 128, groups of 4": lambda c: spent.gemm(c, 64, 128, group=4),
        "128 x 64, by columns": lambda c: spent.gemm(c, 128, 64, group=4, by_columns=True),
        "128 x 128, groups of 4": lambda c: spent.gemm(c, 128, 128, 64, 4),
        "256 x 64, groups of 2": lambda c: spent.gemm(c, 256, 64, group=2),
        "two sums, steps of 16": lambda c: spent.gemm(c, 64, 128, 16, outside=2),
    },
    SCALED: {
        "the solution": lambda c: spent.block_scaled(c, 128, 128),
        "64 x 128": lambda c: spent.block_scaled(c, 64, 128),
        "64 x 64": lambda c: spent.block_scaled(c, 64, 64),
        "256 x 64": lambda c: spent.block_scaled(c, 256, 64),
        "steps of 64": lambda c: spent.block_scaled(c, 128, 128, 64),
        "each scale by itself": lambda c: spent.block_scaled(c, 64, 64, 64, outside=3),
    },
    NORM: {
        "a row a program": lambda c: spent.norm(c),
        "four rows a program": lambda c: spent.norm(c, rows=4),
        "an erf of one's own": lambda c: spent.norm(c, work=60),
    },
}  # fmt: skip

# (question, part, what is done, which budget says so)
WASTEFUL = {
    "row by row, 64 x 128": (GEMM, "grouping", lambda c: spent.gemm(c, 64, 128, group=1), "unique bytes per wave, all waves"),
    "row by row, 128 x 128": (GEMM, "grouping", lambda c: spent.gemm(c, 128, 128, group=1), "unique bytes per wave, all waves"),
    "too small": (GEMM, "speed", lambda c: spent.gemm(c, 64, 64), "all loads"),
    "16 x 128": (GEMM, "traffic", lambda c: spent.gemm(c, 16, 128), "read of B"),
    "a dot that never runs": (GEMM, "speed", lambda c: spent.gemm(c, 64, 128) | {("all", "load", "dot"): 0}, "FLOP in tl.dot"),
    "a dot that is thrown away": (GEMM, "speed", lambda c: spent.gemm(c, 64, 128, 16, outside=32), "operations beside tl.dot"),
    "scaled: 32 x 64": (SCALED, "speed", lambda c: spent.block_scaled(c, 32, 64), "all loads"),
    "scaled: 16 x 16": (SCALED, "traffic", lambda c: spent.block_scaled(c, 16, 16), "read of A"),
    "scaled: a dot that is thrown away": (SCALED, "speed", lambda c: spent.block_scaled(c, 64, 64, outside=256), "operations beside tl.dot"),
    "x three times": (NORM, "traffic", lambda c: spent.norm(c, reads=3), "read of x"),
    "GELU kept in scratch": (NORM, "traffic", lambda c: spent.norm(c, kept=16), "scratch, loaded and stored"),
    "GELU by a long series": (NORM, "speed", lambda c: spent.norm(c, work=200), "operations"),
}  # fmt: skip


def metered(question: str, count: int):
    return [questions.find(question).metered(np.random.default_rng([7, seed])) for seed in range(count)]


@pytest.mark.parametrize("question, form", [(q, form) for q, forms in HONEST.items() for form in forms])
def test_an_honest_form_keeps_every_budget(question, form):
    for case in metered(question, SIZES):
        for part, budgets in questions.find(question).budgets.items():
            assert spent.over(budgets(case), HONEST[question][form](case)) == [], (part, case)


@pytest.mark.parametrize("waste", WASTEFUL)
def test_waste_is_over_its_budget(waste):
    question, part, form, what = WASTEFUL[waste]
    for case in metered(question, SIZES):
        assert what in spent.over(questions.find(question).budgets[part](case), form(case)), case


@pytest.mark.parametrize("question", HONEST)
def test_budgets_can_be_read(question):
    found = questions.find(question)
    for case in metered(question, 3):
        for budget in [b for budgets in found.budgets.values() for b in budgets(case)]:
            assert budget.model and budget.look, budget.what
            assert any(letter.isdigit() for letter in budget.model) or "quarter" in budget.model, budget.model


@pytest.mark.parametrize("question", HONEST)
def test_metered_sizes_are_drawn(question):
    assert len({tuple(case.sizes.values()) for case in metered(question, 20)}) > 10
