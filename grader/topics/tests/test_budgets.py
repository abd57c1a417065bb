"""Every honest tiling keeps every budget at every size that may be drawn, and what a budget is for exceeds it."""

import math
from functools import cache

import numpy as np
import pytest

from grader import questions
from grader.judge.kernel_evidence import between
from grader.topics.tests import spent

SIZES = 8  # metered cases drawn here; 1,000 passed when a budget was last changed
GEMM, SCALED, NORM = "gemm_tiling.tiled_gemm", "gemm_tiling.block_scaled_gemm", "roofline.layernorm_gelu"
FORWARD, DECODE = "flash_attention.forward", "flash_attention.split_decode"
WINDOW, BACKWARD = "flash_attention.window_softcap", "flash_attention.backward"
DRAW, MASKED, FILTERED = (f"sampling_fusion.{name}" for name in ("draw", "masked_draw", "filtered_draw"))
GROUPED = "sampling_fusion.grouped_draw"
ORDER, GATED, COMBINED = (f"moe_routing.{name}" for name in ("order", "grouped_gemm", "fused_combine"))
TILES = [(rows, keys) for rows in (16, 32, 64, 128) for keys in (32, 64, 128, 256)]

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
        "eight rows a program": lambda c: spent.norm(c, rows=8),
    },
    FORWARD: {
        "the solution": lambda c: spent.attention(c, 128, 64),
        "64 x 32, normalised at every step": lambda c: spent.attention(c, 64, 32, more=2),
        **{
            f"{rows} x {keys}": lambda c, t=(rows, keys): spent.attention(c, *t)
            for rows, keys in TILES
            if rows > 32
        },
    },
    DECODE: {
        "the solution": lambda c: spent.decode(c, 64),
        "tiles of 128": lambda c: spent.decode(c, 128),
        "tiles of 256": lambda c: spent.decode(c, 256),
        "a split a tile": lambda c: spent.decode(c, 64, chunk=64),
    },
    WINDOW: {f"{rows} x {keys}": lambda c, t=(rows, keys): spent.attention(c, *t) for rows, keys in TILES},
    DRAW: {
        "a program a row": lambda c: spent.draw(c),
        "two launches": lambda c: spent.draw(c, chunk=1024),
        "two launches, chunks of 64": lambda c: spent.draw(c, chunk=64),
        "two branches": lambda c: spent.draw(c, work=24),
        "two rows a program": lambda c: spent.draw(c, rows=2),
    },
    MASKED: {
        "a program a row": lambda c: spent.draw(c),
        "a word a lane": lambda c: spent.draw(c, by_word=32),
    },
    FILTERED: {"a program a row": lambda c: spent.draw(c)},
    GROUPED: {
        "64 groups again": lambda c: spent.grouped(c),
        "few groups again": lambda c: spent.grouped(c, again=3),
        "a logarithm for every logit": lambda c: spent.grouped(c, work=16),
    },
    ORDER: {
        "the solution": lambda c: spent.order(c),
        "blocks of 128": lambda c: spent.order(c, block=128),
        "choices once": lambda c: spent.order(c, reads=1),
        "twice the work": lambda c: spent.order(c, work=20),
    },
    GATED: {
        "the solution": lambda c: spent.gated(c, 32),
        "64 columns": lambda c: spent.gated(c, 64),
        "128 columns, steps of 32": lambda c: spent.gated(c, 128, step=32),
    },
    COMBINED: {
        "the solution": lambda c: spent.combined(c),
        "strips of 256": lambda c: spent.combined(c, strip=256),
        "four tokens a program": lambda c: spent.combined(c, tokens=4),
    },
    BACKWARD: {
        "the solution": lambda c: spent.backward(c, 64, 64),
        "128 x 64": lambda c: spent.backward(c, 128, 64),
        "64 x 128": lambda c: spent.backward(c, 64, 128),
        "128 x 128": lambda c: spent.backward(c, 128, 128),
        "dq by atomics": lambda c: spent.backward(c, 64, 64, atomics=True),
    },
}

# (question, part, what is done, which budget says so)
WASTEFUL = {
    "row by row, 64 x 128": (
        GEMM,
        "grouping",
        lambda c: spent.gemm(c, 64, 128, group=1),
        "unique bytes per wave, all waves",
    ),
    "row by row, 128 x 128": (
        GEMM,
        "grouping",
        lambda c: spent.gemm(c, 128, 128, group=1),
        "unique bytes per wave, all waves",
    ),
    "too small": (GEMM, "speed", lambda c: spent.gemm(c, 64, 64), "all loads"),
    "16 x 128": (GEMM, "traffic", lambda c: spent.gemm(c, 16, 128), "read of B"),
    "a dot that never runs": (
        GEMM,
        "speed",
        lambda c: spent.gemm(c, 64, 128) | {("all", "load", "dot"): 0},
        "FLOP in tl.dot",
    ),
    "a dot that is thrown away": (
        GEMM,
        "speed",
        lambda c: spent.gemm(c, 64, 128, 16, outside=32),
        "operations outside tl.dot",
    ),
    "a dot on widened operands": (
        GEMM,
        "speed",
        lambda c: spent.gemm(c, 64, 128) | {("all", "load", "wide dot"): 2.0 * math.prod(c.sizes.values())},
        "FLOP in tl.dot on operands widened to fp32",
    ),
    "scaled: 32 x 64": (SCALED, "speed", lambda c: spent.block_scaled(c, 32, 64), "all loads"),
    "scaled: 16 x 16": (SCALED, "traffic", lambda c: spent.block_scaled(c, 16, 16), "read of A"),
    "scaled: a dot that is thrown away": (
        SCALED,
        "speed",
        lambda c: spent.block_scaled(c, 64, 64, outside=256),
        "operations outside tl.dot",
    ),
    "x three times": (NORM, "traffic", lambda c: spent.norm(c, reads=3), "read of x"),
    "GELU kept in scratch": (NORM, "traffic", lambda c: spent.norm(c, kept=16), "scratch, loaded and stored"),
    **{
        f"keys behind the diagonal, {rows} x {keys}": (
            FORWARD,
            "traffic",
            lambda c, t=(rows, keys): spent.attention(c, *t, skips=False),
            "FLOP in tl.dot",
        )
        for rows, keys in TILES
    },
    **{
        f"keys before the window, {rows} x {keys}": (
            WINDOW,
            "traffic",
            lambda c, t=(rows, keys): spent.attention(c, *t, starts=False),
            "FLOP in tl.dot",
        )
        for rows, keys in TILES
    },
    "scores in scratch": (
        FORWARD,
        "traffic",
        lambda c: spent.attention(c, 64, 64, kept=2 * c.sizes["N"]),
        "scratch, loaded and stored",
    ),
    "an accumulator in scratch": (
        FORWARD,
        "traffic",
        lambda c: spent.attention(c, 64, 64, kept=8 * c.sizes["D"]),
        "scratch, loaded and stored",
    ),
    "products by fused multiply-adds": (
        FORWARD,
        "traffic",
        lambda c: spent.attention(c, 64, 64, more=c.sizes["D"]),
        "operations outside tl.dot",
    ),
    "rows of 32": (FORWARD, "speed", lambda c: spent.attention(c, 32, 64), "all loads"),
    "a program for each query head": (
        DECODE,
        "traffic",
        lambda c: spent.decode(c, 64, readers=4),
        "read of K",
    ),
    "a program for each key head": (
        DECODE,
        "traffic",
        lambda c: spent.decode(c, 64, chunk=c.sizes["N"]),
        "programs that read the cache",
    ),
    "a split for every 8 keys": (
        DECODE,
        "speed",
        lambda c: spent.decode(c, 64, chunk=8),
        "everything loaded and stored",
    ),
    "backward: every pair": (
        BACKWARD,
        "traffic",
        lambda c: spent.backward(c, 64, 64, skips=False),
        "FLOP in tl.dot",
    ),
    "backward: tiles of 16": (BACKWARD, "traffic", lambda c: spent.backward(c, 16, 16), "all loads"),
    "backward: tiles of 32": (BACKWARD, "speed", lambda c: spent.backward(c, 32, 32), "all loads"),
    "logits twice": (DRAW, "traffic", lambda c: spent.draw(c, reads=2), "read of the logits"),
    "scores kept in scratch": (
        DRAW,
        "traffic",
        lambda c: spent.draw(c, chunk=1),
        "scratch, loaded and stored",
    ),
    "a loop in each lane": (DRAW, "speed", lambda c: spent.draw(c, work=100), "operations"),
    "masked: logits twice": (MASKED, "traffic", lambda c: spent.draw(c, reads=2), "read of the logits"),
    "grouped: logits twice": (GROUPED, "traffic", lambda c: spent.grouped(c, reads=2), "read of the logits"),
    "grouped: 128 groups again": (
        GROUPED,
        "traffic",
        lambda c: spent.grouped(c, again=128),
        "read of the logits",
    ),
    "grouped: logits kept in scratch": (
        GROUPED,
        "traffic",
        lambda c: spent.grouped(c, kept=4),
        "scratch, loaded and stored",
    ),
    "grouped: every logit sorted": (GROUPED, "speed", lambda c: spent.grouped(c, work=60), "operations"),
    "filtered: logits twice": (FILTERED, "traffic", lambda c: spent.draw(c, reads=2), "read of the logits"),
    "norm: one program": (NORM, "speed", lambda c: spent.norm(c, rows=c.sizes["M"]), "programs that store y"),
    "draw: one program": (DRAW, "speed", lambda c: spent.draw(c, rows=4), "programs that read the logits"),
    "forward: a program a head": (
        FORWARD,
        "speed",
        lambda c: spent.attention(c, 128, 64) | {("o", "store", "programs"): 2},
        "programs that store o",
    ),
    "backward: a program a head": (
        BACKWARD,
        "speed",
        lambda c: spent.backward(c, 64, 64) | {("dk", "store", "programs"): 2},
        "programs that store dk",
    ),
    "order: choices three times": (
        ORDER,
        "traffic",
        lambda c: spent.order(c, reads=3),
        "read of the choices",
    ),
    "order: one program clears": (
        ORDER,
        "speed",
        lambda c: spent.order(c) | {("sorted_token_ids", "store", "programs"): 1},
        "programs that store sorted_token_ids",
    ),
    "order: blocks of 32": (
        ORDER,
        "traffic",
        lambda c: spent.order(c, block=32),
        "scratch, loaded and stored",
    ),
    "order: sorted lists in scratch": (
        ORDER,
        "traffic",
        lambda c: spent.order(c, kept=40),
        "scratch, loaded and stored",
    ),
    "order: by atomics": (
        ORDER,
        "traffic",
        lambda c: spent.order(c) | {("all", "atomic", "dedup"): 4},
        "atomics",
    ),
    "order: few programs": (
        ORDER,
        "speed",
        lambda c: spent.order(c, block=256),
        "programs that read the choices",
    ),
    "order: a comparison of all pairs": (
        ORDER,
        "speed",
        lambda c: spent.order(c, work=40),
        "operations of every kind",
    ),
    "gated: strips of 16": (GATED, "traffic", lambda c: spent.gated(c, 16), "read of x"),
    "gated: weights twice": (GATED, "traffic", lambda c: spent.gated(c, 32, times=2), "read of the weights"),
    "gated: gate and up kept": (
        GATED,
        "traffic",
        lambda c: spent.gated(c, 32, kept=16),
        "scratch, loaded and stored",
    ),
    "gated: without tensor cores": (
        GATED,
        "speed",
        lambda c: spent.gated(c, 32, in_dot=False),
        "FLOP in tl.dot",
    ),
    "gated: few programs": (GATED, "speed", lambda c: spent.gated(c, 256), "programs that read the weights"),
    "combined: rows twice": (COMBINED, "traffic", lambda c: spent.combined(c, reads=2), "read of the rows"),
    "combined: two kernels": (
        COMBINED,
        "traffic",
        lambda c: spent.combined(c, kept=4),
        "scratch, loaded and stored",
    ),
    "combined: strips of 64": (
        COMBINED,
        "traffic",
        lambda c: spent.combined(c, strip=64),
        "read of inv_permuted_idx",
    ),
    "combined: few programs": (
        COMBINED,
        "speed",
        lambda c: spent.combined(c, tokens=8),
        "programs that read the rows",
    ),
    "combined: work thrown away": (COMBINED, "speed", lambda c: spent.combined(c, work=20), "operations"),
    "gemm: each product twice": (
        GEMM,
        "speed",
        lambda c: (
            spent.gemm(c, 128, 256, 64) | {("all", "load", "dot"): 2 * 2 * math.prod(c.sizes.values()) * 1.2}
        ),
        "FLOP in tl.dot",
    ),
    "gemm: four programs": (
        GEMM,
        "speed",
        lambda c: spent.gemm(c, 64, 128) | {("c", "store", "programs"): 4},
        "programs that store c",
    ),
    "scaled: one program": (
        SCALED,
        "speed",
        lambda c: spent.block_scaled(c, 64, 64) | {("c", "store", "programs"): 1},
        "programs that store c",
    ),
    "backward: a program a head for dq": (
        BACKWARD,
        "speed",
        lambda c: spent.backward(c, 64, 64) | {("dq", "store", "programs"): 2},
        "programs that store dq",
    ),
    "backward: a program a head for delta": (
        BACKWARD,
        "speed",
        lambda c: spent.backward(c, 64, 64) | {("o", "load", "programs"): 2},
        "programs that load o",
    ),
    "order: compared as floats": (
        ORDER,
        "speed",
        lambda c: spent.order(c, work=50),
        "operations of every kind",
    ),
    "combined: dots thrown away": (
        COMBINED,
        "speed",
        lambda c: spent.combined(c) | {("all", "load", "dot"): 13e6 * c.sizes["T"]},
        "operations of every kind",
    ),
    "masked: one program": (
        MASKED,
        "traffic",
        lambda c: spent.draw(c, rows=4),
        "programs that read the logits",
    ),
    "window: a program a head": (
        WINDOW,
        "traffic",
        lambda c: spent.attention(c, 128, 64) | {("o", "store", "programs"): 2},
        "programs that store o",
    ),
    "GELU by a long series": (NORM, "speed", lambda c: spent.norm(c, work=200), "operations"),
}


@cache
def metered(question: str, count: int):
    return [questions.find(question).metered(np.random.default_rng([7, seed])) for seed in range(count)]


@pytest.mark.parametrize("question, form", [(q, form) for q, forms in HONEST.items() for form in forms])
def test_an_honest_form_keeps_every_budget(question, form):
    for case in metered(question, SIZES):
        for part, budgets in questions.find(question).budgets.items():
            assert spent.over(budgets(case), HONEST[question][form](case)) == [], (part, case)


@pytest.mark.parametrize("rows, keys", TILES)
def test_few_rows_lose_no_traffic(rows, keys):
    for case in metered(FORWARD, SIZES):
        budgets = questions.find(FORWARD).budgets["traffic"](case)
        assert spent.over(budgets, spent.attention(case, rows, keys)) == [], case


@pytest.mark.parametrize("waste", WASTEFUL)
def test_waste_is_over_its_budget(waste):
    question, part, form, what = WASTEFUL[waste]
    for case in metered(question, SIZES):
        assert what in spent.over(questions.find(question).budgets[part](case), form(case)), case


@pytest.mark.parametrize("form", HONEST[GEMM])
def test_programs_that_are_grouped_keep_to_their_patches_at_every_size_between(form):
    for case, budgets in grouping_between():
        assert spent.over(budgets, HONEST[GEMM][form](case)) == [], case


def test_programs_that_walk_along_rows_do_so_at_every_size_between():
    for case, budgets in grouping_between():
        assert spent.over(budgets, spent.gemm(case, 64, 128, group=1)) != [], case


def grouping_between():
    question = questions.find(GEMM)
    for seed, small in enumerate(metered(GEMM, SIZES)):
        case = between(small, question.compile_case, np.random.default_rng(seed))
        yield case, question.budgets["grouping"](case)


@pytest.mark.parametrize("question", HONEST)
def test_budgets_can_be_read(question):
    found = questions.find(question)
    for case in metered(question, 3):
        for budget in [b for budgets in found.budgets.values() for b in budgets(case)]:
            assert budget.model and budget.look, budget.what
            assert any(letter.isdigit() for letter in budget.model), budget.model


@pytest.mark.parametrize("question", HONEST)
def test_metered_sizes_are_drawn(question):
    assert len({tuple(case.sizes.values()) for case in metered(question, 20)}) > 10
