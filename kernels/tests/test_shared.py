"""What every cost model leans on: checked numbers, parts of a whole, machines."""

import math
from fractions import Fraction

import pytest

from kernels import parts, require
from kernels.machines import MACHINES, REGISTER_BYTES, Machine, machine
from kernels.tests.figures import REFUSAL
from kernels.tests.properties import given, st

BOOST_GHZ = {
    "V100": 1.53,
    "T4": 1.59,
    "A100": 1.41,
    "RTX 4090": 2.52,
    "H100": 1.83,
    "H200": 1.83,
    "B200": 1.86,
}
NONSENSE = [math.nan, math.inf, -math.inf, -1, "3", None, True]


@pytest.mark.parametrize("value", NONSENSE)
@pytest.mark.parametrize(
    "rule", [require.positive, require.not_negative, require.share, require.whole, require.count]
)
def test_nonsense_is_refused_in_one_form(rule, value):
    with pytest.raises(ValueError, match=REFUSAL) as error:
        rule(time_s=value)
    assert str(error.value).startswith("time_s must be ")


def test_each_rule_takes_its_edge():
    require.positive(a=1e-30, b=Fraction(1, 3))
    require.not_negative(a=0)
    require.share(a=0, b=1)
    require.whole(a=0)
    require.count(a=1)
    for rule, edge in (
        (require.positive, 0),
        (require.share, 1.001),
        (require.whole, 2.0),
        (require.count, 0),
    ):
        with pytest.raises(ValueError, match=REFUSAL):
            rule(a=edge)


def test_one_of_at_most_and_not_empty():
    require.one_of(("a", "b"), letter="a")
    require.at_most(3, "choose fewer", drafts=3)
    for refused in (
        lambda: require.one_of(("a", "b"), letter="c"),
        lambda: require.at_most(3, "choose fewer", drafts=4),
        lambda: require.not_empty(loads=[]),
    ):
        with pytest.raises(ValueError, match=REFUSAL):
            refused()


def test_parts_of_a_whole():
    before_s = parts.split(10, {"gemm": 0.5, "gaps": 0.3, "rest": 0.2})
    assert before_s == {"gemm": 5, "gaps": 3, "rest": 2}
    after_s = parts.cut(before_s, {"gaps": 1.0, "gemm": 0.8})
    assert after_s == pytest.approx({"gemm": 1, "gaps": 0, "rest": 2})
    assert parts.largest(before_s) == "gemm" and parts.largest(after_s) == "rest"
    assert parts.largest(before_s, leave_out={"gemm"}) == "gaps"
    assert parts.shares(after_s)["rest"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: parts.split(10, {"a": 0.5, "b": 0.4}),
        lambda: parts.split(0, {"a": 1.0}),
        lambda: parts.split(1, {}),
        lambda: parts.cut({"a": 1.0}, {"b": 0.5}),
        lambda: parts.cut({"a": 1.0}, {"a": 1.5}),
        lambda: parts.shares({"a": 0.0}),
        lambda: parts.largest({"a": 1.0}, leave_out={"a"}),
        lambda: parts.share_behind(3.0, 2.0),
        lambda: parts.share_behind(1.0, 1.0),
    ],
)
def test_parts_refuse_what_is_no_whole(refused):
    with pytest.raises(ValueError, match=REFUSAL):
        refused()


@given(share=st.floats(0.01, 1), factor=st.floats(1.1, 100))
def test_amdahl_and_its_inverse_agree(share, factor):
    whole = parts.amdahl(share, factor)
    assert 1 <= whole <= factor * (1 + 1e-9)
    assert parts.share_behind(min(whole, factor), factor) == pytest.approx(share, rel=1e-6)


@pytest.mark.parametrize("name", MACHINES)
def test_the_two_roofs_of_a_machine_meet_at_its_ridge(name):
    one = machine(name)
    for dtype in one.flops:
        ridge = one.ridge(dtype)
        assert one.attainable(ridge, dtype) == pytest.approx(one.rate(dtype))
        assert one.attainable(ridge / 2, dtype) == pytest.approx(one.rate(dtype) / 2)
        assert one.attainable(2 * ridge, dtype) == one.rate(dtype)


@pytest.mark.parametrize("name", MACHINES)
def test_the_parts_of_a_machine_make_its_stated_peaks(name):
    """Two ways to each figure: what one multiprocessor does in a cycle, times all of them, is the datasheet's peak."""
    one = machine(name)
    assert one.clock_hz == pytest.approx(BOOST_GHZ[name] * 1e9, rel=0.005)
    # an fp32 peak may be quoted at a higher clock than the matrix units hold, up to a seventh
    assert 0.99 < one.rate("fp32") / (2 * one.lanes * one.sms * one.clock_hz) < 1.15


def test_a_machine_that_says_too_little_has_no_clock():
    with pytest.raises(ValueError, match=REFUSAL):
        _ = Machine("measured", 2026, {"fp16": 1e15}, 4e12, 1e11, 1e7, 132, 1).clock_hz


@pytest.mark.parametrize("name", MACHINES)
def test_what_one_block_may_have_fits_its_multiprocessor(name):
    one = machine(name)
    assert one.shared_bytes // 2 < one.sram_bytes <= one.shared_bytes < one.l2_bytes
    assert one.blocks * 2 <= one.warps <= 64 and one.warps * 32 * 4 <= REGISTER_BYTES // 4
    assert one.bandwidth < one.shared_bandwidth


def test_registers_and_shared_memory_of_the_h100_are_those_of_the_source():
    """33 MB of registers; 228 KB of shared memory on each of 132 multiprocessors."""
    one = machine("H100")
    assert (one.register_bytes / 2**20, one.sms, one.shared_bytes) == (33, 132, 228 * 1024)


def test_unknown_machines_and_dtypes_are_refused():
    for refused in (lambda: machine("H1000"), lambda: machine("V100").rate("fp4")):
        with pytest.raises(ValueError, match=REFUSAL):
            refused()
