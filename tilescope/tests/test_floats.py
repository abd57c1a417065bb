"""Conversions against numbers worked out in fp64, exhaustively where a type is small."""

import numpy as np
import pytest

from tilescope.machine.floats import cut, rounded, tf32, to_integer

from .machine_for_tests import BF16, E4M3, E5M2
from .test_elementwise import apply, same

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NaNs and overflows are what is tested


def every(dtype) -> np.ndarray:
    bits = np.arange(1 << 8 * np.dtype(dtype).itemsize)
    return bits.astype(f"u{np.dtype(dtype).itemsize}").view(dtype)


def table(dtype) -> np.ndarray:
    """All finite values of a narrow type, sorted."""
    values = every(dtype).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


def nearest(x: np.ndarray, dtype) -> np.ndarray:
    """The nearest value of a table, the even one of two that are as near; the ends beyond it."""
    values = table(dtype)
    even = every(dtype)[(every(dtype).view(f"u{np.dtype(dtype).itemsize}") & 1) == 0].astype(np.float64)
    right = np.clip(np.searchsorted(values, x), 1, len(values) - 1)
    low, high = values[right - 1], values[right]
    tie = np.where(np.isin(low, even), low, high)
    found = np.where(x - low < high - x, low, np.where(x - low > high - x, high, tie))
    return np.where(x <= values[0], values[0], np.where(x >= values[-1], values[-1], found))


@pytest.mark.parametrize("source", [np.float16, BF16])
@pytest.mark.parametrize("to", [E4M3, E5M2])
def test_fp8_rounds_to_the_nearest_and_saturates(source, to):
    x = every(source)
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        found = rounded(x, np.dtype(to)).astype(np.float64)
        wanted = nearest(np.where(np.isnan(wide), 0, wide), to)
    assert np.isnan(found[np.isnan(wide)]).all()
    assert (found == wanted)[~np.isnan(wide)].all()


@pytest.mark.parametrize("to", [np.float16, BF16])
def test_fp32_to_sixteen_bits(to):
    rng = np.random.default_rng(1)
    x = np.ldexp(rng.uniform(1, 2, 20000), rng.integers(-30, 14, 20000)).astype(np.float32)
    x *= rng.choice(np.float32([-1, 1]), x.size)
    same(rounded(x, np.dtype(to)), np.copysign(nearest(x.astype(np.float64), to), x).astype(to))
    assert np.isinf(rounded(np.float32([70000.0]), np.dtype(np.float16))).all()


@pytest.mark.parametrize("to", [np.float16, BF16])
def test_toward_zero_never_grows(to):
    rng = np.random.default_rng(2)
    x = (rng.standard_normal(20000) * 10.0 ** rng.integers(-5, 5, 20000)).astype(np.float32)
    found = cut(x, np.dtype(to)).astype(np.float64)
    values = table(to)
    magnitude = values[values >= 0]
    wanted = magnitude[np.searchsorted(magnitude, np.abs(x.astype(np.float64)), side="right") - 1]
    assert (np.abs(found) == wanted).all()
    assert (np.signbit(found) == np.signbit(x)).all()
    assert cut(np.float32([1e30, np.inf]), np.dtype(np.float16)).astype(float).tolist() == [65504.0, np.inf]


def test_the_operation_reads_how_it_rounds():
    x = np.float32([1 + 2**-8 + 2**-12])
    assert apply("tt.fp_to_fp", x, out="bf16", rounding=1)[0] == np.float32(1 + 2**-7)
    assert apply("tt.fp_to_fp", x, out="bf16", rounding=0)[0] == 1
    assert apply("arith.truncf", x, out="bf16")[0] == np.float32(1 + 2**-7)
    assert apply("arith.extf", every(E4M3)[:8], out="f32").tolist() == [k * 2.0**-9 for k in range(8)]


def test_tf32_keeps_ten_bits_and_ties_go_away_from_zero():
    one = np.float32(1)
    x = np.float32([one + 2**-11, -(one + 2**-11), one + 2**-12, np.inf, np.nan, 3.0])
    same(tf32(x), [1 + 2**-10, -(1 + 2**-10), 1, np.inf, np.nan, 3])


def test_to_integers_as_ptx():
    x = np.float32([np.nan, np.inf, -np.inf, 3e9, -3e9, 1.9, -1.9, 300, -0.5])
    top, low = 2**31 - 1, -(2**31)
    same(to_integer(x, np.dtype(np.int32), True), [0, top, low, top, low, 1, -1, 300, 0])
    unsigned = to_integer(x, np.dtype(np.int32), False).view(np.uint32)
    assert unsigned.tolist() == [0, 2**32 - 1, 0, 3000000000, 0, 1, 0, 300, 0]
    long = to_integer(x, np.dtype(np.int64), True)
    assert long.tolist() == [-(2**63), 2**63 - 1, -(2**63), 3 * 10**9, -3 * 10**9, 1, -1, 300, 0]
    assert to_integer(np.float64([np.nan]), np.dtype(np.int32), True)[0] == low


def test_from_integers():
    same(apply("arith.sitofp", np.int32([-3, 16777217]), out="f32"), [-3.0, 16777216.0])
    same(apply("arith.uitofp", np.int32([-1]), out="f32"), [4294967296.0])
    same(apply("arith.sitofp", np.array([True, False]), out="f32"), [-1.0, 0.0])
    same(apply("arith.uitofp", np.array([True, False]), out="f32"), [1.0, 0.0])
    assert apply("arith.sitofp", np.int32([257]), out="bf16")[0] == 256
    same(apply("arith.fptosi", np.float32([-2.7, np.nan]), out="i32"), [-2, 0])
    same(apply("arith.fptoui", np.float32([2.7, -4.0]), out="i32"), [2, 0])
