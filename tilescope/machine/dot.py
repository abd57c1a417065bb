"""Perform tl.dot. Operands are rounded as tensor cores take them, products are summed in fp32 (fp64, int32)
and added to the accumulator."""

from math import prod

import numpy as np

from .dtypes import NAMES
from .floats import tf32
from .meanings import pure
from .narrow import BF16, E4M3, E5M2, converted, widened
from .numbers_of import integer
from .tree import Op
from .values import full

# products that an FP8 tensor core adds up at a time, and the bits that its sums keep
AT_ONCE, FP8_BITS = 32, 14
TF32, TF32X3, IEEE, BF16X3, BF16X6 = range(5)
PRECISION = {TF32: "tf32", TF32X3: "tf32x3", IEEE: "ieee", BF16X3: "bf16x3", BF16X6: "bf16x6"}


def parts(x: np.ndarray, kept, count: int) -> list[np.ndarray]:
    """x as a sum of `count` numbers that a tensor core holds."""
    found = []
    for _ in range(count):
        found.append(kept(x))
        x = x - found[-1]
    return found


def to_bf16(x: np.ndarray) -> np.ndarray:
    return widened(converted(x, BF16))


def split_product(a: np.ndarray, b: np.ndarray, precision: int) -> np.ndarray:
    """Several products of parts, the small ones first."""
    kept, count = (tf32, 2) if precision == TF32X3 else (to_bf16, 2 if precision == BF16X3 else 3)
    a, b = parts(a, kept, count), parts(b, kept, count)
    pairs = sorted(
        ((i, j) for i in range(count) for j in range(count) if i + j < count), key=lambda p: -sum(p)
    )
    return sum(np.matmul(a[i], b[j]) for i, j in pairs)


def integer_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply int8 in fp64, which holds every sum exactly and is far quicker in numpy."""
    return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(np.int32)


def added_in_fp8_cores(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Add products of FP8 numbers to what was there before, as tensor cores of sm_89 and sm_90 do: of each they keep as many
    bits as the largest of all leaves them."""
    total = np.broadcast_to(c, (*a.shape[:-1], b.shape[-1])).astype(np.float64)
    for first in range(0, a.shape[-1], AT_ONCE):
        left, right = a[..., first : first + AT_ONCE], b[..., first : first + AT_ONCE, :]
        with np.errstate(invalid="ignore", over="ignore"):
            largest = np.maximum(
                np.abs(total), np.abs(left).max(-1)[..., None] * np.abs(right).max(-2)[..., None, :]
            )
            unit = np.ldexp(1.0, np.frexp(np.where(np.isfinite(largest), largest, 0.0))[1] - FP8_BITS)
            total = np.trunc(total / unit) * unit
            for k in range(left.shape[-1]):
                total += (
                    np.trunc(left[..., k, None].astype(np.float64) * right[..., k, None, :] / unit) * unit
                )
    return total.astype(np.float32)


@pure("tt.dot")
def dot(op: Op):
    shapes = [type.shape for type in op.operand_types[:2]]
    of, to = op.operand_types[0].dtype, op.result_types[0].dtype
    precision = integer(op, "inputPrecision", IEEE)

    def run(a, b, c):
        a, b = (full(x, shape) for x, shape in zip((a, b), shapes, strict=True))
        if of.kind == "i":
            return integer_product(a, b) + c
        if of == np.float32 and precision not in (TF32, IEEE):
            return (split_product(a, b, precision) + c).astype(to, copy=False)
        if of == np.float32 and precision == TF32:
            a, b = tf32(a), tf32(b)
        elif of.itemsize < 4:
            a, b = (widened(x).astype(np.float32, copy=False) for x in (a, b))
        if of in (E4M3, E5M2) and to == np.float32 and np.any(c):
            return added_in_fp8_cores(a, b, c)
        kind = np.promote_types(a.dtype, to)
        return (np.matmul(a, b, dtype=kind) + c).astype(to, copy=False)

    return run


def operand_kind(op: Op) -> str:
    """Under which name the FLOP of a dot are counted."""
    kinds = sorted({NAMES[type.dtype] for type in op.operand_types[:2]})
    precision = ":" + PRECISION[integer(op, "inputPrecision", IEEE)] if kinds == ["fp32"] else ""
    return "x".join(kinds) + precision


def flop(op: Op) -> int:
    left, right = (type.shape for type in op.operand_types[:2])
    return 2 * prod(left) * right[-1]
