"""tl.dot against sums in fp64, by what the operands' rounding allows."""

import numpy as np
import pytest
import triton
import triton.language as tl

from tilescope.machine.floats import tf32

from .machine_for_tests import BF16, E4M3, E5M2, on_machine

RNG = np.random.default_rng(11)


@triton.jit
def product(a, b, o, N: tl.constexpr, PRECISION: tl.constexpr, OUT: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    x, y = tl.load(a + at), tl.load(b + at)
    tl.store(o + at, tl.dot(x, y, input_precision=PRECISION, out_dtype=OUT))


def multiply(a, b, out=np.float32, precision="ieee", kind=tl.float32):
    o = np.zeros(a.shape, out)
    ran = on_machine(
        product, (1,), {"a": a, "b": b, "o": o}, {"N": len(a), "PRECISION": precision, "OUT": kind}
    )
    assert ran.report.error is None, ran.report.error
    return o.astype(np.float64), ran


@pytest.mark.parametrize(
    "dtype, name", [(np.float16, "fp16"), (BF16, "bf16"), (E4M3, "fp8e4nv"), (E5M2, "fp8e5")]
)
def test_narrow_operands_are_multiplied_exactly_and_summed_in_fp32(dtype, name):
    a, b = (RNG.standard_normal((32, 32)).astype(dtype) for _ in range(2))
    found, ran = multiply(a, b)
    np.testing.assert_allclose(found, a.astype(float) @ b.astype(float), rtol=1e-5, atol=1e-5)
    assert ran.launch.dots == {name: 2 * 32**3} and ran.launch.flops == 2 * 32**3


def test_fp32_as_tensor_cores_take_it():
    a, b = (RNG.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
    exact = a.astype(float) @ b.astype(float)
    kept = tf32(a).astype(float) @ tf32(b).astype(float)
    found = {p: multiply(a, b, precision=p) for p in ("tf32", "tf32x3", "ieee")}
    np.testing.assert_allclose(found["tf32"][0], kept, rtol=1e-5, atol=1e-5)
    worst = {p: np.abs(values - exact).max() for p, (values, _) in found.items()}
    assert worst["ieee"] < 1e-5 and worst["tf32x3"] < 2e-5 < 1e-3 < worst["tf32"]
    assert [next(iter(ran.launch.dots)) for _, ran in found.values()] == [
        "fp32:tf32",
        "fp32:tf32x3",
        "fp32:ieee",
    ]


def test_parts_of_bf16():
    a, b = (RNG.standard_normal((32, 32)).astype(np.float32) for _ in range(2))
    exact = a.astype(float) @ b.astype(float)
    worst = [np.abs(multiply(a, b, precision=p)[0] - exact).max() for p in ("bf16x6", "bf16x3")]
    plain = np.abs(a.astype(BF16).astype(float) @ b.astype(BF16).astype(float) - exact).max()
    assert worst[0] < 5e-5 < worst[1] < 5e-3 < plain


def test_int8_sums_exactly():
    a, b = (RNG.integers(-128, 128, (64, 64)).astype(np.int8) for _ in range(2))
    found, ran = multiply(a, b, np.int32, kind=tl.int32)
    assert (found == a.astype(int) @ b.astype(int)).all()
    assert ran.launch.dots == {"i8": 2 * 64**3}


def test_an_fp16_sum_is_rounded_to_fp16():
    a, b = (RNG.standard_normal((32, 32)).astype(np.float16) for _ in range(2))
    found, _ = multiply(a, b, np.float16, kind=tl.float16)
    np.testing.assert_allclose(found, a.astype(float) @ b.astype(float), rtol=2e-3, atol=2e-3)


@triton.jit
def batched(a, b, c, o, K: tl.constexpr):
    n, i = tl.arange(0, 2), tl.arange(0, K)
    at = n[:, None, None] * K * K + i[None, :, None] * K + i[None, None, :]
    tl.store(o + at, tl.dot(tl.load(a + at), tl.load(b + at), tl.load(c + at)))


def test_a_batch_is_added_to_what_is_there():
    a, b = (RNG.standard_normal((2, 16, 16)).astype(np.float16) for _ in range(2))
    c, o = RNG.standard_normal((2, 16, 16)).astype(np.float32), np.zeros((2, 16, 16), np.float32)
    ran = on_machine(batched, (1,), {"a": a, "b": b, "c": c, "o": o}, {"K": 16})
    np.testing.assert_allclose(o, a.astype(float) @ b.astype(float) + c, rtol=1e-5, atol=1e-5)
    assert ran.launch.flops == 2 * 2 * 16**3


@triton.jit
def carried(a, b, o, STEPS: tl.constexpr, ONCE: tl.constexpr):
    i, k = tl.arange(0, 16), tl.arange(0, 32)
    x, y = tl.load(a + i[:, None] * 32 + k[None, :]), tl.load(b + k[:, None] * 16 + i[None, :])
    sums = tl.zeros((16, 16), tl.float32)
    for _ in range(STEPS):
        sums = sums + tl.dot(x, y) if ONCE else tl.dot(x, y, sums)
    tl.store(o + i[:, None] * 16 + i[None, :], sums)


@pytest.mark.parametrize("once, most", [(True, 1e-6), (False, 0.1)])
def test_sums_that_stay_in_fp8_tensor_cores_lose_bits(once, most):
    """An H200 loses 7% of 4,096 positive products so, and next to nothing if fp32 adds up each step."""
    a, b = np.full((16, 32), 1.125).astype(E4M3), np.full((32, 16), 1.125).astype(E4M3)
    o = np.zeros((16, 16), np.float32)
    assert (
        on_machine(carried, (1,), {"a": a, "b": b, "o": o}, {"STEPS": 128, "ONCE": once}).report.error is None
    )
    lost = 1 - o / (128 * 32 * 1.125**2)
    assert (lost <= most).all() and (lost > most / 4).all() == (not once)
