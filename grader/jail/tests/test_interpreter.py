"""The interpreter computes what a GPU would: each small kernel runs in the real jail and is held to numpy."""

import ml_dtypes
import numpy as np
import pytest

from grader.jailer import jail

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2

ELEMENTWISE = """
@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, N, B: tl.constexpr):
    i = tl.arange(0, B)
    m = i < N
    x = tl.load(x_ptr + i, mask=m, other=0.0)
    y = tl.load(y_ptr + i, mask=m, other=0.0)
    tl.store(o_ptr + i, {expression}, mask=m)

def launch(p):
    return {{"steps": [{{"kernel": kernel, "grid": (1,), "constexprs": {{"B": triton.next_power_of_2(p.N)}}}}]}}
"""


def tensor(name, dtype, shape, role="in"):
    strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
    return {
        "name": name,
        "dtype": dtype,
        "shape": list(shape),
        "strides": strides,
        "axes": "mnk"[: len(shape)],
        "role": role,
    }


def elementwise(expression, x, y, kinds):
    task = {
        "source": ELEMENTWISE.format(expression=expression), "sizes": {"N": x.size}, "sm_count": 4,
        "tensors": [tensor("x", kinds[0], x.shape), tensor("y", kinds[1], y.shape), tensor("o", kinds[2], x.shape, "out")],
    }  # fmt: skip
    outcome = jail("interpret").ask(task, {"x": x, "y": y})
    assert outcome.error is None, outcome.error
    return outcome.arrays["o"]


@pytest.fixture
def pair():
    rng = np.random.default_rng(7)
    return rng.standard_normal(500).astype(BF16), (rng.standard_normal(500) + 3).astype(BF16)


@pytest.mark.parametrize(
    "expression, want",
    [
        ("x + y", lambda x, y: (x.astype(np.float32) + y.astype(np.float32)).astype(BF16)),
        ("x * y", lambda x, y: (x.astype(np.float32) * y.astype(np.float32)).astype(BF16)),
        ("x - y", lambda x, y: (x.astype(np.float32) - y.astype(np.float32)).astype(BF16)),
        ("tl.maximum(x, y)", lambda x, y: np.maximum(x, y)),
        ("tl.where(x > 0, x, y)", lambda x, y: np.where(x > 0, x, y)),
        ("tl.where(m & (tl.load(x_ptr) == tl.load(x_ptr)), x, y)", lambda x, y: x),
        ("-x", lambda x, y: -x),
        ("tl.abs(x)", lambda x, y: np.abs(x)),
    ],
)
def test_bf16_arithmetic_rounds_as_a_gpu_does(pair, expression, want):
    x, y = pair
    assert np.array_equal(elementwise(expression, x, y, ["bf16"] * 3), want(x, y))


def test_fp32_to_bf16_rounds_to_nearest_even():
    x = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    assert np.array_equal(elementwise("x.to(tl.bfloat16)", x, x, ["fp32", "fp32", "bf16"]), x.astype(BF16))


@pytest.mark.parametrize("kind, dtype, largest", [("fp8e4nv", E4M3, 448.0), ("fp8e5", E5M2, 57344.0)])
def test_fp8_casts_round_and_saturate(kind, dtype, largest):
    x = np.concatenate([np.random.default_rng(2).standard_normal(500) * 20, [1e6, -1e6, 0.0, np.nan]]).astype(
        np.float32
    )
    got = elementwise(
        f"x.to(tl.{'float8e4nv' if kind == 'fp8e4nv' else 'float8e5'})", x, x, ["fp32", "fp32", kind]
    )
    want = np.clip(x, -largest, largest).astype(dtype)
    assert np.array_equal(got.view(np.uint8), want.view(np.uint8))


def test_every_fp8_code_reads_as_its_number():
    codes = np.arange(256, dtype=np.uint8)
    x = codes.view(E4M3)
    got = elementwise("x.to(tl.float32)", x, x, ["fp8e4nv", "fp8e4nv", "fp32"])
    assert np.array_equal(got, x.astype(np.float32), equal_nan=True)


DOT = """
@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, N, B: tl.constexpr):
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    acc = tl.dot(tl.load(x_ptr + at), tl.load(y_ptr + at){precision})
    tl.store(o_ptr + at, acc.to(o_ptr.dtype.element_ty))

def launch(p):
    return {{"steps": [{{"kernel": kernel, "grid": (1,), "constexprs": {{"B": 32}}}}]}}
"""


def dot(x, y, kinds, precision=""):
    task = {
        "source": DOT.format(precision=precision), "sizes": {"N": 32}, "sm_count": 4,
        "tensors": [tensor("x", kinds[0], x.shape), tensor("y", kinds[1], y.shape), tensor("o", kinds[2], x.shape, "out")],
    }  # fmt: skip
    outcome = jail("interpret").ask(task, {"x": x, "y": y})
    assert outcome.error is None, outcome.error
    return outcome.arrays["o"].reshape(x.shape), outcome.header["launches"][0]


@pytest.mark.parametrize("kind, dtype", [("bf16", BF16), ("fp16", np.float16), ("fp8e4nv", E4M3)])
def test_dot_of_narrow_floats_sums_in_fp32(kind, dtype):
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal((32, 32)).astype(np.float32).astype(dtype) for _ in range(2))
    got, launch = dot(x, y, [kind, kind, "fp32"])
    assert np.allclose(got, x.astype(np.float64) @ y.astype(np.float64), atol=1e-4)
    assert launch["flops"] == 2 * 32**3


def test_fp32_dot_takes_tf32_unless_asked_for_ieee():
    rng = np.random.default_rng(4)
    x, y = (rng.standard_normal((32, 32)).astype(np.float32) for _ in range(2))
    exact = x.astype(np.float64) @ y.astype(np.float64)
    loose, _ = dot(x, y, ["fp32"] * 3)
    ieee, _ = dot(x, y, ["fp32"] * 3, ", input_precision='ieee'")
    assert np.abs(ieee - exact).max() < 1e-4 < np.abs(loose - exact).max() < 3e-2


def test_masked_lanes_without_other_are_poison():
    x = np.ones(5, np.float32)
    got = elementwise("tl.sum(tl.load(x_ptr + i, mask=m)) + x", x, x, ["fp32"] * 3)
    assert np.isnan(got).all()


def test_a_maximum_meets_poison_too():
    x = np.ones(5, np.float32)
    got = elementwise("tl.max(tl.load(x_ptr + i, mask=m), 0) + x", x, x, ["fp32"] * 3)
    assert (got > 1e30).all()


def test_a_scalar_load_with_other_of_zero_gives_zero():
    x = np.ones(5, np.float32)
    got = elementwise("x + tl.load(x_ptr + N, mask=N < 0, other=0)", x, x, ["fp32"] * 3)
    assert np.array_equal(got, x)


DESCRIBED = """
@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, N, B: tl.constexpr):
    at = tl.program_id(0) * B
    x = tl.make_tensor_descriptor(x_ptr, (N,), (1,), (B,)).load([at])
    y = tl.load(tl.make_block_ptr(y_ptr, (N,), (1,), (at,), (B,), (0,)), boundary_check=(0,), padding_option="zero")
    tl.store(tl.make_block_ptr(o_ptr, (N,), (1,), (at,), (B,), (0,)), x + y, boundary_check=(0,))

def launch(p):
    return {"steps": [{"kernel": kernel, "grid": (triton.cdiv(p.N, 64),), "constexprs": {"B": 64}}]}
"""


def test_descriptors_and_block_pointers_stop_at_the_end():
    x = np.arange(100, dtype=np.float32)
    task = {
        "source": DESCRIBED, "sizes": {"N": 100}, "sm_count": 4,
        "tensors": [tensor("x", "fp32", x.shape), tensor("y", "fp32", x.shape), tensor("o", "fp32", x.shape, "out")],
    }  # fmt: skip
    outcome = jail("interpret").ask(task, {"x": x, "y": x})
    assert outcome.error is None, outcome.error
    assert np.array_equal(outcome.arrays["o"], x + x)
    loads = {
        name: kinds["load"]
        for name, kinds in outcome.header["launches"][0]["tensors"].items()
        if "load" in kinds
    }
    assert {name: counts["requested"] for name, counts in loads.items()} == {"x": 400, "y": 400}
