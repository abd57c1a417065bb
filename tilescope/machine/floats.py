"""Convert numbers between types as a GPU does: rounding, saturation and NaN."""

import numpy as np

from .meanings import pure
from .narrow import LARGEST_FP8, NARROW, converted, widened
from .numbers_of import integer
from .tree import Op
from .values import bits, unsigned

TF32_DROPS = 13  # bits of an fp32 mantissa that tensor cores leave out
TOWARD_ZERO = 0  # of tt.fp_to_fp's rounding


def rounded(x: np.ndarray, to: np.dtype) -> np.ndarray:
    """Round to nearest, ties to even. fp8 saturates, infinities too (cvt.rn.satfinite)."""
    if x.dtype == to:
        return x
    x = widened(x)
    if to in LARGEST_FP8:
        wide = x.astype(np.float32)
        x = np.where(np.isnan(wide), wide, np.clip(wide, -LARGEST_FP8[to], LARGEST_FP8[to]))
    return converted(x, to)


def cut(x: np.ndarray, to: np.dtype) -> np.ndarray:
    """Truncate toward zero. A value that was rounded away from zero goes one step back."""
    near = rounded(x, to)
    wide = widened(x).astype(np.float64)
    beyond = np.abs(widened(near).astype(np.float64)) > np.abs(wide)
    return np.where(
        beyond & np.isfinite(wide), bits(near) - beyond.astype(bits(near).dtype), bits(near)
    ).view(to)


def tf32(x: np.ndarray) -> np.ndarray:
    """fp32 with the 10 bits of mantissa that tensor cores keep, ties away from zero (cvt.rna.tf32)."""
    kept = (np.ascontiguousarray(x).view(np.uint32) + np.uint32(1 << (TF32_DROPS - 1))) & ~np.uint32(
        (1 << TF32_DROPS) - 1
    )
    return np.where(np.isfinite(x), kept.view(np.float32), x)


def to_integer(x: np.ndarray, to: np.dtype, signed: bool) -> np.ndarray:
    """Convert as PTX does, toward zero and clamped to the range. NaN gives 0, or the top bit if fp64 or 64
    bits take part.

    PTX has no conversions to fewer than 32 bits, so those keep the low bits of a conversion to 32.
    """
    width = max(32, 8 * to.itemsize)
    kind = np.dtype(f"{'i' if signed else 'u'}{width // 8}")
    low, high = float(np.iinfo(kind).min), float(np.iinfo(kind).max)
    wide = np.trunc(widened(x).astype(np.float64))
    inside = (wide > low) & (wide < high)
    held = np.where(wide >= high, np.iinfo(kind).max, np.where(wide <= low, np.iinfo(kind).min, 0)).astype(
        kind
    )
    held = np.where(inside, np.where(inside, wide, 0).astype(kind), held)
    top = np.array([1 << (width - 1)], f"u{width // 8}").view(kind)[0]
    of_nan = top if x.dtype == np.float64 or width == 64 else kind.type(0)
    return np.where(np.isnan(wide), of_nan, held).astype(to)


def from_integer(x: np.ndarray, to: np.dtype) -> np.ndarray:
    return converted(x.astype(np.float32), to) if to in NARROW else x.astype(to)


@pure("arith.extf", "arith.truncf", "tt.fp_to_fp")
def float_to_float(op: Op):
    to = op.result_types[0].dtype
    if "rounding" in op.attributes and integer(op, "rounding") == TOWARD_ZERO:
        return lambda x: cut(x, to)
    return lambda x: rounded(x, to)


@pure("arith.fptosi", "arith.fptoui")
def float_to_integer(op: Op):
    to, signed = op.result_types[0].dtype, op.name.endswith("si")
    if to.kind == "b":
        return lambda x: to_integer(x, np.dtype(np.int32), True) & 1 != 0
    return lambda x: to_integer(x, to, signed)


@pure("arith.sitofp")
def signed_to_float(op: Op):
    to = op.result_types[0].dtype
    return lambda x: from_integer(x if x.dtype != bool else -x.astype(np.int8), to)


@pure("arith.uitofp")
def unsigned_to_float(op: Op):
    to = op.result_types[0].dtype
    return lambda x: from_integer(unsigned(x), to)
