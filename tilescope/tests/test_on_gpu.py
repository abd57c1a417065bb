"""The machine beside a GPU: each operation on random inputs, the same text's kernel on both, to the last bits promised."""

import importlib.util

import numpy as np
import pytest

from tilescope.machine.dtypes import DTYPES
from tilescope.machine.read import read
from tilescope.machine.run import Launching, run
from tilescope.machine.storage import Storage
from tilescope.machine.verify import verify

pytestmark = pytest.mark.gpu
COUNT = 4096
SIDE = 32
SOURCE = """
import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, o_ptr, COUNT: tl.constexpr):
    at = tl.arange(0, COUNT)
    a, b, c = tl.load(a_ptr + at), tl.load(b_ptr + at), tl.load(c_ptr + at)
    tl.store(o_ptr + at, {expression})
"""
PRODUCT = """
import triton
import triton.language as tl

@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, o_ptr, COUNT: tl.constexpr):
    i = tl.arange(0, 32)
    at = i[:, None] * 32 + i[None, :]
    a, b, c = tl.load(a_ptr + at), tl.load(b_ptr + at), tl.load(c_ptr + at)
    tl.store(o_ptr + at, {expression})
"""
# (operands, result, expression, largest difference in steps of the result's type); fast exponentials: CUDA documents 2 + |1.17 x|
ELEMENTS = [
    *(
        ("i32", "i32", e, 0)
        for e in (
            "a + b",
            "a - b",
            "a * b",
            "a // (b | 1)",
            "a % (b | 1)",
            "a & b",
            "a | b",
            "a ^ b",
            "~a",
            "a << (b & 31)",
            "a >> (b & 31)",
            "tl.maximum(a, b)",
            "tl.minimum(a, b)",
            "tl.abs(a)",
            "tl.where(a < b, a, c)",
            "(a < b).to(tl.int32)",
            "tl.umulhi(a.to(tl.uint32), b.to(tl.uint32)).to(tl.int32)",
            "(a.to(tl.uint32) // (b | 1).to(tl.uint32)).to(tl.int32)",
            "(a.to(tl.uint32) >> 5).to(tl.int32)",
            "a.to(tl.int8).to(tl.int32)",
            "a.to(tl.int16).to(tl.int32)",
            "(a.to(tl.int64) * b >> 32).to(tl.int32)",
            "tl.philox(7, a, b, c, a)[0].to(tl.int32)",
            "tl.cumsum(a)",
            "tl.sort(a)",
            "libdevice.byte_perm(a, b, c)",
        )
    ),
    *(
        ("fp32", "fp32", e, 0)
        for e in (
            "a + b",
            "a - b",
            "a * b",
            "tl.maximum(a, b)",
            "tl.minimum(a, b)",
            "tl.abs(a)",
            "tl.floor(a)",
            "tl.ceil(a)",
            "tl.where(a < b, a, c)",
            "tl.fma(a, b, c)",
            "tl.div_rn(a, b)",
            "tl.sqrt_rn(tl.abs(a))",
            "tl.clamp(a, -1.0, 1.0)",
            "tl.rand(3, (a * 100).to(tl.int32))",
            "a.to(tl.float16).to(tl.float32)",
            "a.to(tl.bfloat16).to(tl.float32)",
            "a.to(tl.float8e5).to(tl.float32)",
            "a.to(tl.float8e4nv).to(tl.float32)",
            "a.to(tl.int32).to(tl.float32)",
            "(a * 1e6).to(tl.int32).to(tl.float32)",
            "a.to(tl.int32, bitcast=True).to(tl.float32)",
            "a.to(tl.float16, fp_downcast_rounding='rtz').to(tl.float32)",
            "(a / 0.0).to(tl.int32).to(tl.float32)",
            "((a - a) / 0.0).to(tl.int32).to(tl.float32)",
            "(a * 1e30).to(tl.int64).to(tl.float32)",
        )
    ),
    *(
        ("fp32", "fp32", e, steps)
        for e, steps in (
            ("a / b", 2),
            ("tl.exp(a)", 16),
            ("tl.exp2(a)", 3),
            ("tl.log(tl.abs(a))", 4),
            ("tl.log2(tl.abs(a))", 4),
            ("tl.sqrt(tl.abs(a))", 2),
            ("tl.rsqrt(tl.abs(a))", 4),
            ("tl.erf(a)", 4),
            ("tl.sigmoid(a)", 20),
            ("libdevice.tanh(a)", 4),
            ("libdevice.pow(tl.abs(a), b)", 16),
        )
    ),
    *(
        ("fp16", "fp16", e, 0)
        for e in ("a + b", "a * b", "tl.maximum(a, b)", "(a.to(tl.float32) * b).to(tl.float16)")
    ),
    *(
        ("bf16", "bf16", e, 0)
        for e in ("a + b", "a * b", "tl.maximum(a, b)", "(a.to(tl.float32) * b).to(tl.bfloat16)")
    ),
]
DOTS = [  # (operands, sum and result, expression, share of the sum of |a||b| that the order of a sum may change)
    ("fp16", "fp32", "tl.dot(a, b, c)", 2.0**-20),
    ("bf16", "fp32", "tl.dot(a, b, c)", 2.0**-20),
    ("fp32", "fp32", "tl.dot(a, b, c)", 2.0**-9),  # tensor cores drop the low bits of tf32, we round them
    ("fp32", "fp32", "tl.dot(a, b, c, input_precision='ieee')", 2.0**-20),
    ("fp8e4nv", "fp32", "tl.dot(a, b, c)", 2.0**-12),  # wgmma sums fp8 products in some 14 bits
    ("i8", "i32", "tl.dot(a, b, c, out_dtype=tl.int32)", 0.0),
]


def kernel_of(source: str, folder):
    path = folder / "made.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(f"made_{abs(hash(source))}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def drawn(kind: str, rng, large: bool) -> np.ndarray:
    count = COUNT if large else SIDE * SIDE
    if kind[0] == "i":
        info = np.iinfo(DTYPES[kind])
        return rng.integers(info.min, info.max, count, dtype=DTYPES[kind], endpoint=True)
    return (3 * rng.standard_normal(count)).astype(np.float32).astype(DTYPES[kind])


def on_machine(kernel, kinds: dict, arrays: dict, constants: dict) -> np.ndarray:
    from tilescope.lowering import text_of

    types = {name: f"*{kind}" for name, kind in kinds.items()} | {name: "constexpr" for name in constants}
    at = {(list(types).index(name),): value for name, value in constants.items()}
    module = read(text_of(kernel, types, at), cell=kernel.fn.__code__.co_filename)
    verify(module)
    stored = [
        Storage(n, i, a.copy(), "out" if n == "o_ptr" else "in") for i, (n, a) in enumerate(arrays.items())
    ]
    step = Launching(module, (1, 1, 1), [("tensor", name) for name in arrays])
    report = run([step], stored, wave=1)
    assert report.error is None, report.error
    return stored[-1].elements


def on_gpu(kernel, arrays: dict, constants: dict) -> np.ndarray:
    import torch

    from grader.bench.inside.buffers import TORCH
    from tilescope.machine.dtypes import NAMES

    there = {
        name: torch.from_numpy(a.view(np.uint8).copy()).cuda().view(TORCH[NAMES[a.dtype]])
        for name, a in arrays.items()
    }
    kernel[(1,)](*there.values(), **constants)
    return there["o_ptr"].view(torch.uint8).cpu().numpy().view(arrays["o_ptr"].dtype)


def both(source, kinds: dict, folder, large: bool):
    kernel, rng = kernel_of(source, folder), np.random.default_rng(7)
    arrays = {name: drawn(kind, rng, large) for name, kind in kinds.items()}
    constants = {"COUNT": COUNT}
    return on_machine(kernel, kinds, arrays, constants), on_gpu(kernel, arrays, constants), arrays


def steps_apart(one: np.ndarray, other: np.ndarray) -> int:
    """The largest difference in steps of their own type; NaN equals NaN."""
    if one.dtype.kind in "iu":
        return int(np.abs(one.astype(np.int64) - other.astype(np.int64)).max())
    wide = [x.astype(np.float64) for x in (one, other)]
    number = ~(np.isnan(wide[0]) & np.isnan(wide[1]))
    kind = np.dtype(f"i{one.dtype.itemsize}")
    ranks = [
        np.where(x.view(kind) < 0, np.iinfo(kind).min - x.view(kind).astype(np.int64), x.view(kind))
        for x in (one, other)
    ]
    return int(np.abs(ranks[0] - ranks[1])[number].max(initial=0))


@pytest.mark.parametrize(("operands", "result", "expression", "steps"), ELEMENTS, ids=lambda v: str(v))
def test_elements(operands, result, expression, steps, tmp_path):
    kinds = dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), operands) | {"o_ptr": result}
    mine, theirs, _ = both(SOURCE.format(expression=expression), kinds, tmp_path, True)
    assert steps_apart(mine, theirs) <= steps


@pytest.mark.parametrize(("operands", "result", "expression", "share"), DOTS, ids=lambda v: str(v))
def test_dots(operands, result, expression, share, tmp_path):
    kinds = {"a_ptr": operands, "b_ptr": operands, "c_ptr": result, "o_ptr": result}
    mine, theirs, arrays = both(PRODUCT.format(expression=expression), kinds, tmp_path, False)
    a, b = (np.abs(arrays[n].astype(np.float64)).reshape(SIDE, SIDE) for n in ("a_ptr", "b_ptr"))
    allowed = share * (a @ b + np.abs(arrays["c_ptr"].astype(np.float64)).reshape(SIDE, SIDE))
    off = np.abs(mine.astype(np.float64) - theirs.astype(np.float64)).reshape(SIDE, SIDE)
    assert (off <= allowed + 1e-30).all(), float((off / (allowed + 1e-30)).max())
