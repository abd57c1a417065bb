"""Block scales: the small formats value for value, and what an outlier does to the numbers beside it."""

import math

import ml_dtypes
import numpy as np
import pytest

from kernels.quantization_layouts import cost
from kernels.tests.figures import REFUSAL
from kernels.tests.properties import given, st

SMALL = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m1": ml_dtypes.float4_e2m1fn}
WEIGHTS = cost.bell_values(1024)


@pytest.mark.parametrize("name", SMALL)
def test_small_floats_hold_the_values_of_their_format(name):
    bits = 4 if name == "e2m1" else 8
    codes = np.arange(2 ** (bits - 1), dtype=np.uint8)
    known = codes.view(SMALL[name]).astype(np.float64)
    assert cost.element_values(name) == tuple(known[np.isfinite(known)])


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_rounding_agrees_with_the_format_ties_included(name):
    levels = np.array(cost.element_values(name))
    ties = (levels[1:] + levels[:-1]) / 2
    values = np.concatenate([levels, ties, np.linspace(0, levels[-1], 1001)])
    scaled = np.concatenate([values, [levels[-1]]])  # the largest value sets the scale to exactly 1
    unpacked = cost.quantize(tuple(scaled), f"fp8 {name}").values
    np.testing.assert_array_equal(unpacked, scaled.astype(SMALL[name]).astype(np.float64))


def test_mxfp4_scales_are_powers_of_two_and_nvfp4_scales_are_fp8():
    values = cost.with_outlier(WEIGHTS, 3, 20)
    micro, nv = cost.quantize(values, "mxfp4"), cost.quantize(values, "nvfp4")
    assert (micro.group, nv.group) == (32, 16)
    assert all(math.frexp(scale)[0] == 0.5 for scale in micro.scales)
    tensor = max(map(abs, values)) / (6 * 448)
    assert all(scale / tensor in cost.element_values("e4m3") for scale in nv.scales)
    assert len(micro.scales) * 32 == len(nv.scales) * 16 == len(values)


@pytest.mark.parametrize(
    "largest, scale", [(6.0, 1.0), (4.0, 1.0), (7.9, 1.0), (8.0, 2.0), (3.9, 0.5), (0.75, 0.125)]
)
def test_mxfp4_takes_the_exponent_of_the_largest_value_less_two(largest, scale):
    got = cost.quantize([largest, -largest / 2, 0.0], "mxfp4")
    assert got.scales == (scale,)
    assert got.values[0] == min(6.0, float(np.float64(largest / scale).astype(SMALL["e2m1"]))) * scale


def test_integer_codes_by_hand():
    """Symmetric int4 of 7 has step 1; with a zero point, 0 to 15 has step 1 and -5 to 10 keeps its zero."""
    assert cost.quantize([7.0, 2.4, -3.6, 0.5], "int4").values == (7.0, 2.0, -4.0, 0.0)
    assert cost.quantize([15.0, 2.4, 14.6], "int4 with zero point").values == (15.0, 2.0, 15.0)
    assert cost.quantize([-15.0, -2.4], "int4 with zero point").values == (-15.0, -2.0)
    assert cost.quantize([-5.0, 10.0, 0.0, 3.2], "int4 with zero point").values == (-5.0, 10.0, 0.0, 3.0)
    for name in cost.BLOCK_FORMATS:
        assert cost.quantize([0.0, 0.0], name).scales == (0.0,)
        assert cost.quantize([0.0, 0.0], name).values == (0.0, 0.0)


@given(
    values=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40),
    name=st.sampled_from(["int8", "int4", "int4 with zero point"]),
    group=st.sampled_from([4, 16, 64]),
)
def test_the_error_stays_within_half_a_step_of_its_own_group(values, name, group):
    form, got = cost.BLOCK_FORMATS[name], cost.quantize(values, name, group)
    for i, (value, unpacked) in enumerate(zip(values, got.values, strict=True)):
        step = got.scales[i // group]
        slack = 2 ** (form.bits - 1) * max(step, 6e-8) * 2**-10  # the scale itself is rounded to fp16
        assert abs(value - unpacked) <= step / 2 + 2 * slack + 2e-5


@given(
    values=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40),
    name=st.sampled_from(list(cost.BLOCK_FORMATS)),
)
def test_signs_and_zeros_survive_in_every_format(values, name):
    for value, unpacked in zip(values, cost.quantize(values, name, 8).values, strict=True):
        assert math.isfinite(unpacked)
        if not name.startswith("codebook"):
            assert value * unpacked >= 0
            assert value != 0 or unpacked == 0


@given(
    values=st.lists(st.floats(-50, 50), min_size=1, max_size=16),
    name=st.sampled_from(list(cost.BLOCK_FORMATS)),
)
def test_what_is_kept_is_a_level_of_its_group(values, name):
    got = cost.quantize(values, name, 16)
    levels = cost.group_levels(values, name, got.scales[0])
    assert list(levels) == sorted(levels)
    assert all(any(value == level for level in levels) for value in got.values)


@pytest.mark.parametrize("name", ["int8", "int4", "int4 with zero point", "codebook, 4 bits"])
def test_a_group_scale_keeps_the_outlier_from_the_rest(name):
    """20x, the top of the range reported for outlier features: one scale for all spoils every other one."""
    values = cost.with_outlier(WEIGHTS, 500, 20)
    elsewhere = [i for i in range(1024) if i // 64 == 500 // 64]  # leave out the outlier's own group
    whole = cost.rms_error(values, cost.quantize(values, name).values, elsewhere)
    grouped = cost.rms_error(values, cost.quantize(values, name, 64).values, elsewhere)
    clean = cost.rms_error(WEIGHTS, cost.quantize(WEIGHTS, name, 64).values, elsewhere)
    assert grouped == clean and whole > 4 * clean


def test_fp8_shrugs_off_an_outlier_that_ruins_int4():
    values = cost.with_outlier(WEIGHTS, 500, 20)
    error = {
        name: cost.rms_error(values, cost.quantize(values, name).values, [500]) for name in cost.BLOCK_FORMATS
    }
    assert error["fp8 e4m3"] < error["int8"] < error["int4"]


def test_more_bits_and_smaller_groups_mean_less_error():
    error = {
        k: cost.rms_error(WEIGHTS, cost.quantize(WEIGHTS, f"codebook, {k} bits", 32).values)
        for k in (2, 3, 4, 5)
    }
    assert error[2] > error[3] > error[4] > error[5]
    groups = [
        cost.rms_error(WEIGHTS, cost.quantize(WEIGHTS, "int4", group).values) for group in (16, 64, 1024)
    ]
    assert groups == sorted(groups)
    four = {n: cost.rms_error(WEIGHTS, cost.quantize(WEIGHTS, n).values) for n in ("mxfp4", "nvfp4")}
    assert four["nvfp4"] < four["mxfp4"]


def test_bits_of_a_format_count_its_scales():
    assert cost.quantize(WEIGHTS, "int4", 64).bits_per_weight == cost.bits_per_weight(4, 64) == 4.25
    for name, listed in (("mxfp4", "MXFP4"), ("nvfp4", "NVFP4")):
        assert cost.quantize(WEIGHTS, name).bits_per_weight == cost.FORMATS[listed].bits_per_weight


def test_bell_values_are_a_standard_bell():
    assert sum(WEIGHTS) == pytest.approx(0, abs=1e-9)
    assert cost.rms(WEIGHTS) == pytest.approx(1, abs=0.01)
    assert len(set(WEIGHTS)) == 1024 and list(WEIGHTS) != sorted(WEIGHTS)
    assert cost.with_outlier(WEIGHTS, 7, 20)[7] == pytest.approx(20, rel=0.01)


@pytest.mark.parametrize("bits", [2, 3, 4, 5])
def test_codebooks_are_symmetric_and_fill_their_bits(bits):
    levels = cost.normal_codebook(bits)
    assert len(levels) == 2**bits and list(levels) == sorted(levels)
    assert levels == pytest.approx([-level for level in reversed(levels)]) and levels[-1] == 1


@pytest.mark.parametrize(
    "refused",
    [
        lambda: cost.quantize([], "int4"),
        lambda: cost.quantize([1.0], "int3"),
        lambda: cost.quantize([math.nan], "int4"),
        lambda: cost.quantize([1.0], "int4", -1),
        lambda: cost.element_values("e3m4"),
        lambda: cost.normal_codebook(9),
        lambda: cost.rms_error([1.0], [1.0, 2.0]),
        lambda: cost.with_outlier([1.0], 1, 20),
        lambda: cost.bell_values(0),
    ],
)
def test_nonsense_is_refused(refused):
    with pytest.raises(ValueError, match=REFUSAL):
        refused()


@pytest.mark.parametrize("name", ["mxfp4", "nvfp4"])
def test_a_block_of_its_own_gives_way_only_where_asked(name):
    own = cost.BLOCK_FORMATS[name].fixed_group
    assert cost.quantize(WEIGHTS, name, 8).group == own
    got = cost.quantize(WEIGHTS, name, 8, fixed=False)
    assert got.group == 8 and got.bits_per_weight == 4 + 8 / 8 and len(got.scales) == len(WEIGHTS) / 8
    assert cost.quantize(WEIGHTS, name, own, fixed=False) == cost.quantize(WEIGHTS, name)
