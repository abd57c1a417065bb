"""Budgets that honest blocks keep and waste does not, cases that right 16-bit answers pass, and a bar that takes them."""

from functools import partial

import numpy as np
import pytest

from grader import questions
from grader.proofs.right import kernel_questions
from grader.questions.draws import rounded
from grader.topics.quantization_layouts.quantize_blocks import cases as quantize
from grader.topics.quantization_layouts.shared_wanted import codes_of, int4
from grader.topics.quantization_layouts.tests import spent
from grader.topics.quantization_layouts.tests.limits import assert_right
from kernels.quantization_layouts import checkpoints, reference

GEMV, GEMM = (questions.find(f"quantization_layouts.w4a16_{name}") for name in ("gemv", "gemm"))
KERNELS = {question.name: question for question in (GEMV, GEMM)}
HONEST = {
    "w4a16_gemv": {
        "the solution": dict(rows=16, step=512),
        "eight rows": dict(rows=8, step=256),
        "four rows, long steps": dict(rows=4, step=1024, work=4),
        "K in four parts": dict(rows=32, step=256, parts=4),
        "steps of half a group": dict(rows=16, step=64),
    },
    "w4a16_gemm": {
        "the solution": dict(rows=64, step=128),
        "narrow tiles": dict(rows=32, step=256),
        "steps of half a group": dict(rows=64, step=64),
        "K in two parts": dict(rows=64, step=128, parts=2),
    },
}
WASTEFUL = {
    "a row a program": ("w4a16_gemv", "traffic", dict(rows=1, step=512), "read of x"),
    "words twice": ("w4a16_gemv", "traffic", dict(rows=16, step=512, reads=2), "read of the words"),
    "short steps": ("w4a16_gemv", "traffic", dict(rows=16, step=32), "read of the scales"),
    "unpacked into scratch": (
        "w4a16_gemv",
        "traffic",
        dict(rows=16, step=512, wide=2),
        "scratch, loaded and stored",
    ),
    "half a sector": ("w4a16_gemv", "speed", dict(rows=16, step=128, lanes_step=32), "sectors of the words"),
    "few programs": ("w4a16_gemv", "speed", dict(rows=64, step=512), "programs that read the words"),
    "much work": ("w4a16_gemv", "speed", dict(rows=16, step=128, work=30), "operations of every kind"),
    "sixteen rows of W": ("w4a16_gemm", "traffic", dict(rows=16, step=128), "read of X"),
    "eight rows of X": ("w4a16_gemm", "traffic", dict(rows=64, step=128, m_rows=8), "read of the words"),
    "codes in bytes, in scratch": (
        "w4a16_gemm",
        "traffic",
        dict(rows=64, step=128, wide=1),
        "scratch, loaded and stored",
    ),
    "few tiles": ("w4a16_gemm", "speed", dict(rows=128, step=128), "programs that read the words"),
    "unpacked for every row of X": (
        "w4a16_gemm",
        "speed",
        dict(rows=64, step=128, work=27),
        "operations of every kind",
    ),
}


def metered(name: str) -> list:
    return [KERNELS[name].metered(np.random.default_rng([5, seed])) for seed in range(20)]


@pytest.mark.parametrize("name, form", [(name, form) for name, forms in HONEST.items() for form in forms])
def test_honest_blocks_keep_every_budget(name, form):
    for case in metered(name):
        for part, budgets in KERNELS[name].budgets.items():
            assert spent.over(budgets(case), spent.layer(case, **HONEST[name][form])) == [], (part, case)


@pytest.mark.parametrize("waste", WASTEFUL)
def test_waste_is_over_its_budget(waste):
    name, part, form, what = WASTEFUL[waste]
    for case in metered(name):
        assert what in spent.over(KERNELS[name].budgets[part](case), spent.layer(case, **form)), case


@pytest.mark.parametrize("name", KERNELS)
def test_budgets_can_be_read_and_their_sizes_are_drawn(name):
    drawn = metered(name)
    assert len({tuple(case.sizes.values()) for case in drawn}) > 10
    for budget in [b for budgets in KERNELS[name].budgets.values() for b in budgets(drawn[0])]:
        assert budget.model and budget.look and any(letter.isdigit() for letter in budget.model)


def test_a_word_is_read_as_it_is_packed():
    codes = np.random.default_rng(3).integers(0, 16, (5, 64)).astype(np.uint8)
    words = checkpoints.packed_words(codes, checkpoints.GPTQ_ORDER)
    assert (codes_of({"w": words}) == codes).all() and words.min() < 0  # the sign is one of them


def in_16_bits(inputs: dict, case, step: int) -> dict:
    """Weights rounded to x's dtype, products summed in fp32 a step at a time, y rounded to its own."""
    w = rounded(reference.values(int4(inputs, case)), case.dtype).astype(np.float32)
    x, total = inputs["x"].astype(np.float32), np.float32(0)
    for k in range(0, case.sizes["K"], step):
        total = total + x[..., k : k + step] @ w[:, k : k + step].T
    return {"y": rounded(total, case.dtypes.get("y", case.dtype)).astype(np.float64)}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("step", (32, 512))
def test_what_16_bits_and_fp32_sums_give_is_right(name, step):
    assert_right(KERNELS[name], partial(in_16_bits, step=step), seeds=3)


@pytest.mark.parametrize("m", (0, 7))
def test_the_bar_multiplies_with_a_dense_weight_of_the_packed_ones_shape(m):
    torch = pytest.importorskip("torch")
    from grader.topics.quantization_layouts.bar import BARS, dense_of

    rows = (m,) if m else ()
    t = {
        "w": torch.zeros(48, 16, dtype=torch.int32),
        "x": torch.randn(*rows, 128, dtype=torch.bfloat16),
        "y": torch.zeros(*rows, 48, dtype=torch.bfloat16),
    }
    timed = [one for one in kernel_questions() if one.slug == "quantization_layouts" and one.speed]
    assert {question.speed.bar for question in timed} == set(BARS)
    BARS["linear_in_16_bits"](t)
    assert dense_of(t).shape == (48, 128) and dense_of(t) is dense_of(t)
    torch.testing.assert_close(t["y"], t["x"] @ dense_of(t).T, rtol=2e-2, atol=1e-1)


def test_the_bar_of_activations_gives_codes_and_scales_of_the_reference():
    torch = pytest.importorskip("torch")
    from grader.topics.quantization_layouts.bar import gated_and_quantized

    question = questions.find("quantization_layouts.quantize_blocks")
    case = quantize.case(6, 384, "fp32")
    inputs = question.inputs(case, np.random.default_rng(3))
    t = {name: torch.from_numpy(value) for name, value in inputs.items()}
    t |= {"q": torch.empty(6, 384, dtype=torch.float8_e4m3fn), "s": torch.empty(6, 3)}
    gated_and_quantized(t)
    want, allowed = (
        question.reference(inputs, case),
        question.tolerance(inputs, case, question.reference(inputs, case)),
    )
    for name in "qs":
        assert (np.abs(t[name].float().numpy() - want[name]) <= allowed[name]).all()


@pytest.mark.parametrize("name", KERNELS)
def test_no_time_can_beat_the_packed_bytes_and_full_points_ask_for_less(name):
    speed = KERNELS[name].speed
    flops, moved = speed.bound(speed.case)
    n, k, group, m = (speed.case.sizes.get(s, 1) for s in "NKGM")
    dense = 2 * (n * k + m * n + m * k)
    assert flops == 2 * m * n * k and n * k / 2 < moved < 0.3 * dense
    assert 1.3 * moved / dense < speed.full < speed.none <= 3
