"""Codebook layers: budgets that honest blocks keep, routings that are legal, mistakes that differ from what is right."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from grader import questions
from grader.judge.compare import difference
from grader.questions import Case
from grader.questions.draws import rounded
from grader.topics.quantization_layouts.grouped_kbit.cases import to_experts
from grader.topics.quantization_layouts.grouped_kbit.mistakes import by_other_rows, owner
from grader.topics.quantization_layouts.shared_kbit import routed, rows_of_experts, sizes, traffic
from grader.topics.quantization_layouts.shared_mistakes_kbit import codes_by, would
from grader.topics.quantization_layouts.shared_wanted import codes_of_planes, product, weights
from grader.topics.quantization_layouts.tests import spent
from grader.topics.quantization_layouts.tests.limits import assert_right
from kernels.quantization_layouts import reference

KBIT, EXPERTS = (questions.find(f"quantization_layouts.{name}") for name in ("kbit_gemm", "grouped_kbit"))
KERNELS = {question.name: question for question in (KBIT, EXPERTS)}
HONEST = {
    "the solution": dict(rows=32, words=8),
    "wide tiles of W": dict(rows=64, words=8),
    "long steps": dict(rows=32, words=16),
    "more work": dict(rows=32, words=8, work=4.5),
}
WASTEFUL = {
    "sixteen rows of W": ("traffic", dict(rows=16, words=8), "read of X"),
    "eight rows of X": ("traffic", dict(rows=32, words=8, m_rows=4), "read of the planes"),
    "codes in bytes, in scratch": ("traffic", dict(rows=32, words=8, wide=1), "scratch, loaded and stored"),
    "half a sector": ("flow", dict(rows=32, words=4), "sectors of the planes"),
    "few programs": ("flow", dict(rows=256, words=8), "programs that read the planes"),
    "a choice among levels": ("flow", dict(rows=32, words=8, work=9), "operations outside tl.dot"),
    "no tensor cores": ("flow", dict(rows=32, words=8, dots=0), "FLOP in tl.dot"),
}


def spent_by(case, rows: int, words: int, m_rows: int = 16, *, wide=0, work=3.2, dots=1) -> dict:
    """Programs of `rows` rows of W for each expert, `words` words a step, `m_rows` rows of X at a time."""
    bits, n, k, m = (case.sizes[s] for s in ("BITS", "N", "K", "M"))
    counts = [count for count in rows_of_experts(case) if count]
    times, tiles = sum(math.ceil(count / m_rows) for count in counts), math.ceil(n / rows)
    planes = n * k * bits // 8 * times
    return {
        ("w", "load", "dedup"): planes,
        ("w", "load", "sectors"): planes * max(1.0, 8 / words),
        ("w", "load", "programs"): tiles * len(counts),
        ("r", "load", "dedup"): 8 * len(counts) * tiles,
        ("s", "load", "dedup"): 2 * n * k // 32 * times,
        ("x", "load", "dedup"): 2 * m * k * tiles,
        ("y", "store", "dedup"): 2 * m * n,
        ("scratch", "any", "dedup"): 2 * wide * n * k * times,
        ("all", "load", "dot"): 2 * m_rows * times * tiles * rows * k * dots,
        ("all", "load", "operations"): work * times * tiles * rows * k,
    }


def metered(name: str) -> list:
    return [KERNELS[name].metered(np.random.default_rng([5, seed])) for seed in range(20)]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("form", HONEST)
def test_honest_blocks_keep_every_budget(name, form):
    for case in metered(name):
        for part, budgets in KERNELS[name].budgets.items():
            assert spent.over(budgets(case), spent_by(case, **HONEST[form])) == [], (part, case)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("waste", WASTEFUL)
def test_waste_is_over_its_budget(name, waste):
    part, form, what = WASTEFUL[waste]
    for case in metered(name):
        assert what in spent.over(KERNELS[name].budgets[part](case), spent_by(case, **form)), case


@pytest.mark.parametrize("name", KERNELS)
def test_budgets_can_be_read_and_their_sizes_are_drawn(name):
    drawn = metered(name)
    assert len({(*case.sizes.values(), case.values) for case in drawn}) > 10
    assert {case.sizes["BITS"] for case in drawn} == {2, 3, 4, 5}
    for budget in [b for budgets in KERNELS[name].budgets.values() for b in budgets(drawn[0])]:
        assert budget.model and budget.look and any(letter.isdigit() for letter in budget.model)


def test_an_expert_without_rows_allows_no_bytes():
    one = to_experts(4, 200, 1024, [0, 5, 0])
    two = to_experts(4, 200, 1024, [17, 5, 0])
    planes = 200 * 1024 * 4 / 8
    assert [(b.least, b.most) for b in traffic(one)[:1]] == [(planes, planes)]
    assert [(b.least, b.most) for b in traffic(two)[:1]] == [(2 * planes, 3 * planes)]


@pytest.mark.parametrize("bits", (2, 3, 4, 5))
def test_planes_are_read_as_they_are_made(bits):
    codes = np.random.default_rng(bits).integers(0, 2**bits, (6, 96)).astype(np.uint8)
    planes = np.moveaxis(reference.bit_planes(codes, bits), -1, 0).view(np.int32)
    assert (codes_of_planes(planes) == codes).all() and planes.min() < 0  # the sign is one of them
    of_experts = np.stack([planes, planes[:, ::-1]])
    assert (codes_of_planes(of_experts) == np.stack([codes, codes[::-1]])).all()
    assert (codes_by(of_experts) == codes_of_planes(of_experts)).all()


def test_every_routing_is_legal_and_a_size_of_ones_own_is_routed_too():
    for seed in range(20):
        for case in EXPERTS.hidden(np.random.default_rng(seed)):
            r = EXPERTS.inputs(case, np.random.default_rng(seed))["r"]
            assert r[0] == 0 and r[-1] == case.sizes["M"] and (np.diff(r) >= 0).all()
            assert len(r) == case.sizes["E"] + 1
            assert np.diff(r).tolist() == rows_of_experts(case)
    bare = Case(sizes(3, 8, 64, 30, experts=5))
    routings = [routed(bare, np.random.default_rng(seed)) for seed in range(9)]
    assert {sum(r) for r in routings} == {30} and any(0 in r for r in routings)


@pytest.mark.parametrize("name", ["w4a16_gemv", *KERNELS, "own_layout"])
def test_a_size_of_ones_own_that_cannot_be_is_told_in_a_sentence(name):
    question = questions.find(f"quantization_layouts.{name}")
    for wrong in ({"K": 100}, {"BITS": 7}):
        case = replace(question.public[0], sizes={**question.public[0].sizes, **wrong})
        if set(wrong) <= set(question.public[0].sizes):
            with pytest.raises(ValueError, match="must be"):
                question.drawn(case, np.random.default_rng(1))


@pytest.mark.parametrize("name", KERNELS)
def test_every_number_of_bits_is_in_every_check(name):
    for seed in range(20):
        drawn = KERNELS[name].hidden(np.random.default_rng(seed))
        assert {case.sizes["BITS"] for case in drawn} == {2, 3, 4, 5}


def in_16_bits(inputs: dict, case, step: int) -> dict:
    """Weights rounded to x's dtype, products summed in fp32 a step at a time, y rounded to its own."""
    w, total = rounded(weights(inputs, case), case.dtype).astype(np.float32), np.float32(0)
    for k in range(0, case.sizes["K"], step):
        total = total + product(inputs, w, slice(k, k + step)).astype(np.float32)
    return {"y": rounded(total, case.dtypes.get("y", case.dtype)).astype(np.float64)}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("step", (32, 512))
def test_what_16_bits_and_fp32_sums_give_is_right(name, step):
    assert_right(KERNELS[name], partial(in_16_bits, step=step), seeds=3)


def test_a_layer_with_nothing_exchanged_is_right():
    for case in EXPERTS.public:
        inputs = EXPERTS.inputs(case, np.random.default_rng(1))
        want = EXPERTS.reference(inputs, case)
        allowed = EXPERTS.tolerance(inputs, case, want)
        by_row = by_other_rows(lambda r, rows, experts: owner(r, rows))
        for got in (would()(inputs, case), by_row(inputs, case)):
            assert difference("y", got["y"], want["y"], allowed["y"]) is None
