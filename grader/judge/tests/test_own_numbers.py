"""No answer may be wrong for numbers between those that its own text names, nor for infinities of either sign."""

import numpy as np
import pytest

from grader import questions
from grader.judge import referee
from grader.judge.branches import Reader
from grader.judge.compare import difference
from grader.judge.kernel_evidence import OWN_NUMBERS, KernelEvidence
from grader.judge.record import PASS
from grader.proofs.right import edited, right
from grader.questions import WHOLE, load, own_numbers, own_scalars
from grader.topics.tests.test_right_passes import RIGHT

NORM = "roofline.layernorm_gelu"
COMBINE = "moe_routing.fused_combine"
RESIDUAL = "next_bottleneck.residual_norm"
MEAN = "    mean = tl.sum(g, axis=0) / N\n"
ENOUGH = 40  # numbers for each band
FREE = [question for question in load().values() if question.compiles and question.free]


def lost(question: str, *edits) -> tuple[list[str], str]:
    verdict = referee.grade_one(edited(right(question), edits), questions.find(question), seed=3)
    return [part.name for part in verdict.parts if part.state != PASS], str(verdict)


@pytest.mark.parametrize(
    "question, line, more",
    [
        pytest.param(
            NORM, MEAN, "    g = tl.where((x > 200.0) & (x < 2000.0), x * 1.01, g)\n", marks=pytest.mark.slow
        ),
        (NORM, MEAN, "    g = tl.where(x * x > 4e6, g * 1.01, g)\n"),
        ("roofline.doubled", "    tl.store(", "    x = tl.where((x > 1e5) & (x < 100001.0), x + 1, x)\n"),
    ],
)
def test_a_band_of_values_between_numbers_of_the_cell_is_met(question, line, more):
    parts, said = lost(question, (line, more + line))
    assert "values" in parts and own_numbers.KIND in said, said


def test_a_band_of_a_scalar_between_numbers_of_the_cell_is_met():
    """By a case with such a scalar, or by the one that draws it from all that it may be."""
    edit = "/ N + eps)", "/ N + tl.where((eps > 3.0) & (eps < 9.0), eps * 1.1, eps))"
    parts, said = lost(NORM, edit)
    assert "values" in parts and (own_scalars.KIND in said or "another eps" in said), said


@pytest.mark.slow
def test_a_band_of_values_is_met_where_several_axes_are_long():
    band = (
        "    g = tl.where((x > 12.0) & (x < 900.0) & (tl.num_programs(0) > 400) & (N > 1100), x * 1.01, g)\n"
    )
    parts, said = lost(NORM, (MEAN, band + MEAN))
    assert "values" in parts, said


@pytest.mark.parametrize(
    "question, edit",
    [
        (NORM, (MEAN, '    g = tl.where(x == float("-inf"), 0.0, g)\n' + MEAN)),
        (
            RESIDUAL,
            ("    tl.store(y_ptr", '    y = tl.where(wide == float("-inf"), 0.0, y)\n    tl.store(y_ptr'),
        ),
        pytest.param(
            COMBINE,
            ("weight * y.to(tl.float32)", 'weight * tl.where(y == float("-inf"), 0.0, y.to(tl.float32))'),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            COMBINE, ("acc.to(", 'tl.where(acc == float("-inf"), 0.0, acc).to('), marks=pytest.mark.slow
        ),
    ],
)
def test_minus_infinity_must_go_where_the_formula_sends_it(question, edit):
    parts, said = lost(question, edit)
    assert "values" in parts, said


@pytest.mark.parametrize("question", FREE, ids=lambda one: one.id)
def test_inputs_have_numbers_of_every_band_and_stay_within_what_is_free(question):
    own = own_numbers.ends([0.02, 3.5, 100, 2000, 1e9])
    for seed in range(4):
        rng = np.random.default_rng(seed)
        known = [*question.public, *question.hidden(rng)]
        case = own_numbers.drawn(question, known, own, rng)
        inputs = own_numbers.held(question, case, question.drawn_inputs(case, rng), own, rng)
        for name, free in question.free.items():
            x = np.abs(inputs[name].astype(np.float64))
            x = x[np.isfinite(x)]
            least, most = own_numbers.limits(free, inputs[name].dtype)
            assert x.max() <= 1.01 * most
            inside = own[(own > least) & (own < most)]
            if free.along == WHOLE or x.size < ENOUGH * len(inside):
                continue
            for low, high in zip(inside, [*inside[1:], most], strict=True):
                assert ((x > 0.85 * low) & (x <= high)).any(), (case, name, low)


@pytest.mark.parametrize("question", [q for q in FREE if q.id in RIGHT], ids=lambda one: one.id)
def test_a_right_answer_in_fp32_passes_near_any_numbers(question):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        own = own_numbers.ends([10.0 ** rng.uniform(-4, 20) for _ in range(20)])
        known = [*question.public, *question.hidden(rng)]
        case = own_numbers.drawn(question, known, own, rng)
        inputs = own_numbers.held(question, case, question.drawn_inputs(case, rng), own, rng)
        want = question.reference(inputs, case)
        allowed = question.tolerance(inputs, case, want)
        for way in RIGHT[question.id]:
            with np.errstate(all="ignore"):
                got = way(inputs, case)
            if question.agree:  # such as tokens whose scores are as close as rounding
                assert question.agree(inputs, case, got, want) == "", (seed, case)
                continue
            for name in want:
                worst = difference(name, got[name], want[name], allowed[name])
                assert worst is None, f"seed {seed}, {case}: {worst.sentence()}"


def test_an_answer_gets_such_a_case_once_it_is_asked_for():
    evidence = KernelEvidence(questions.find(NORM), right(NORM), 3)
    assert OWN_NUMBERS not in evidence.known and OWN_NUMBERS in evidence.cases


def test_numbers_are_read_in_every_form():
    cell = "LOW = '1e5'\n\ndef launch(p):\n    return {'steps': [-2.5, 2**7, 1e300, 1e999, 40000]}\n"
    assert {1e5, -2.5, 128, 1e300, 40000} <= set(Reader(cell, "launch").constants())
    assert {1e5, 2.5, 200.0} <= set(own_numbers.ends(Reader(cell, "launch").constants()))
    assert 200.0 in own_numbers.ends([0x43480000])
