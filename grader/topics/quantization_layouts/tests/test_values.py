"""Hidden cases hold the values that packed weights and activations have in practice."""

import numpy as np
import pytest

from grader import questions
from grader.topics.quantization_layouts.own_layout.cases import ONE_CODE
from grader.topics.quantization_layouts.shared import NANS, SMALL_SCALES, equal_words


def plain(case) -> bool:
    return case.values.startswith("normal")


def drawn(name: str, wanted) -> list[tuple]:
    """Return (case, inputs) of the hidden cases that are wanted."""
    question, rng = questions.find(f"quantization_layouts.{name}"), np.random.default_rng(5)
    of = question.prepare.weights if question.prepare else question.inputs
    found = [(case, of(case, rng)) for case in question.hidden(rng) if wanted(case)]
    assert found
    return found


@pytest.mark.parametrize("name", ["w4a16_gemv", "w4a16_gemm"])
def test_words_and_whole_groups_repeat_each_end_of_the_codes(name):
    for code in (0, 15):
        whole = 0
        for case, inputs in drawn(name, plain):
            equal = inputs["w"].view(np.uint32) == np.uint32(code * 0x11111111)
            whole += equal.reshape(case.sizes["N"], -1, case.sizes["G"] // 8).all(axis=2).sum()
        assert whole > 20
    assert (equal_words(np.random.default_rng(0), (99,), 9).view(np.uint32) & 15 >= 9).all()


@pytest.mark.parametrize("name", ["w4a16_gemv", "w4a16_gemm", "kbit_gemm"])
def test_negative_scales_make_no_tolerance_smaller(name):
    question = questions.find(f"quantization_layouts.{name}")
    for case, inputs in drawn(name, plain)[:9]:
        of_signs = [
            question.tolerance(some, case, question.reference(some, case))["y"]
            for some in (inputs, inputs | {"s": -inputs["s"]})
        ]
        np.testing.assert_allclose(*of_signs, rtol=1e-9)
        assert (of_signs[0] >= 0).all()


@pytest.mark.parametrize("name", ["kbit_gemm", "grouped_kbit"])
def test_blocks_of_planes_repeat_one_code(name):
    for case, inputs in drawn(name, plain):
        alike = np.isin(inputs["w"], (0, -1)).all(axis=-3)
        assert alike.size < 99 or 0.05 < alike.mean() < 0.3, case.kind


def test_blocks_of_own_codes_are_equal_now_and_then():
    for case, inputs in drawn("own_layout", plain):
        codes = inputs["codes"].reshape(case.sizes["N"], -1, 32)
        alike = (codes == codes[:, :, :1]).all(axis=2)
        assert alike.size < 99 or case.kind == ONE_CODE or 0.03 < alike.mean() < 0.3, case.kind


def test_a_nan_lies_in_each_third_of_a_long_x():
    cases = drawn("w4a16_gemv", lambda case: case.values in NANS)
    thirds = [3 * int(np.flatnonzero(np.isnan(i["x"].astype(float)))[0]) // c.sizes["K"] for c, i in cases]
    assert thirds == [0, 1, 2] and min(c.sizes["K"] for c, _ in cases) > 30_000


def test_gates_far_below_zero_alone_decide_some_blocks():
    """A silu that is 0 from -12 on has scales of 0 there."""
    cases = drawn("quantize_blocks", lambda case: case.values == "closed gates")
    question = questions.find("quantization_layouts.quantize_blocks")
    assert len(cases) == 2
    for case, inputs in cases:
        cut = inputs | {"u": np.where(inputs["g"].astype(float) < -12, 0, inputs["u"].astype(float))}
        lost = (question.reference(cut, case)["s"] == 0) & (question.reference(inputs, case)["s"] > 0)
        assert lost.mean() > 0.2


PACKED = ["w4a16_gemv", "w4a16_gemm", "kbit_gemm", "grouped_kbit"]


@pytest.mark.parametrize("name", PACKED)
def test_numbers_beyond_fp16_are_too_small_for_it_and_too_large(name):
    for _, inputs in drawn(name, lambda case: case.values.startswith("beyond fp16")):
        for one in (inputs["x"], inputs["s"]):
            size = np.abs(one.astype(np.float64))
            assert size.max() > 65504 and 0 < size[size > 0].min() < 2**-25


@pytest.mark.parametrize("name", PACKED)
def test_a_result_in_fp32_is_beyond_fp16(name):
    question = questions.find(f"quantization_layouts.{name}")
    for case, inputs in drawn(name, lambda case: case.values.startswith("exact") and case.dtype == "fp16"):
        assert np.abs(question.reference(inputs, case)["y"]).max() > 65504


@pytest.mark.parametrize("name", ["w4a16_gemv", "w4a16_gemm", "kbit_gemm", "own_layout"])
def test_fp16_scales_are_subnormal_somewhere(name):
    for case, inputs in drawn(name, lambda case: case.values == SMALL_SCALES):
        scales = inputs["scales" if name == "own_layout" else "s"]
        subnormal = (scales > 0) & (scales < np.finfo(np.float16).tiny)
        assert case.dtype == "fp16" and subnormal.mean() > 0.5
