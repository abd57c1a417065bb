"""Handle bf16 and fp8, which numpy lacks: their bits as fp32, and fp32 rounded to them.

Where ml_dtypes is installed arrays carry its types, so that other libraries can read them. Its arithmetic is
never used.
"""

from dataclasses import replace

import numpy as np

try:
    import ml_dtypes

    BF16, E4M3, E5M2 = map(np.dtype, (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2))
except ImportError:  # in a browser tab, the same bits under names of our own
    BF16, E4M3, E5M2 = (np.dtype([(n, f"<u{size}")]) for n, size in (("bf16", 2), ("e4m3", 1), ("e5m2", 1)))

NARROW = frozenset({BF16, E4M3, E5M2})
MANTISSA = {E4M3: 3, E5M2: 2}
LARGEST_FP8 = {E4M3: 448.0, E5M2: 57344.0}
NAN = {BF16: 0x7FC0, E4M3: 0x7F, E5M2: 0x7E}
SIGN, QUIET_NAN = 0x80, np.uint32(0x7FC00000)


def meant(bits: int, to: np.dtype) -> float:
    """Return the number that a pattern without its sign means."""
    mantissa = MANTISSA[to]
    bias = (1 << 6 - mantissa) - 1
    if bits > int(np.float32(LARGEST_FP8[to]).view(np.uint32) >> 23 - mantissa) - (127 - bias << mantissa):
        return np.inf if to == E5M2 and bits == 0x7C else np.nan
    exponent, fraction = bits >> mantissa, bits & (1 << mantissa) - 1
    if exponent == 0:
        return fraction * 2.0 ** (1 - bias - mantissa)
    return (1 + fraction / (1 << mantissa)) * 2.0 ** (exponent - bias)


def table(to: np.dtype) -> np.ndarray:
    """Return the fp32 number of every pattern. A NaN keeps its sign."""
    half = np.array([meant(bits, to) for bits in range(SIGN)], np.float32)
    both = np.concatenate([half, -half])
    raw = both.view(np.uint32).copy()
    signs = np.repeat(np.array([0, 1 << 31], np.uint32), SIGN)
    raw[np.isnan(both)] = (QUIET_NAN | signs)[np.isnan(both)]
    return raw.view(np.float32)


WIDE = {to: table(to) for to in MANTISSA}


def widened(x: np.ndarray) -> np.ndarray:
    """Return bf16 or fp8 as fp32, exactly, and anything else unchanged."""
    if x.dtype not in NARROW:
        return x
    raw = x.view(f"u{x.dtype.itemsize}")
    if x.dtype == BF16:
        return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return WIDE[x.dtype][raw]


def converted(x: np.ndarray, to: np.dtype) -> np.ndarray:
    """Return numbers as another type, rounded to the nearest, ties to even.
    Past fp8's largest is infinite or NaN."""
    x = widened(np.asarray(x))
    if to not in NARROW:
        return x.astype(to, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        wide = x.astype(np.float32, copy=False)
    return to_bf16(wide) if to == BF16 else to_fp8(wide, to)


def to_bf16(wide: np.ndarray) -> np.ndarray:
    raw = wide.view(np.uint32)
    near = (raw + (np.uint32(0x7FFF) + (raw >> np.uint32(16) & np.uint32(1)))) >> np.uint32(16)
    nan = raw >> np.uint32(16) & np.uint32(0x8000) | np.uint32(NAN[BF16])
    return np.where(np.isnan(wide), nan, near).astype(np.uint16).view(BF16)


def to_fp8(wide: np.ndarray, to: np.dtype) -> np.ndarray:
    steps = WIDE[to][:SIGN]
    count = int(np.isfinite(steps).sum())
    steps = np.append(steps[:count], 2 * steps[count - 1] - steps[count - 2]).astype(np.float64)
    between = (steps[1:] + steps[:-1]) / 2
    with np.errstate(invalid="ignore"):
        size = np.abs(wide).astype(np.float64)
    near = np.searchsorted(between, size, "left")  # a tie goes down,
    tie = (near < count) & (size == between[np.minimum(near, count - 1)]) & (near & 1 == 1)
    near = near + tie  # and up to the even one
    beyond = 0x7C if to == E5M2 else NAN[to]
    near = np.where(near >= count, beyond, near)
    near = np.where(np.isnan(wide), NAN[to], near)
    return (near | np.where(np.signbit(wide), SIGN, 0)).astype(np.uint8).view(to)


def in_fp32(factory):
    """Let a factory of operations on floats see bf16 as fp32. The result is rounded once."""

    def made(op):
        kinds = [type.dtype for type in (*op.operand_types, *op.result_types)]
        if not NARROW.intersection(kinds):
            return factory(op)
        to = op.result_types[0].dtype
        perform = factory(
            replace(op, operand_types=_wide(op.operand_types), result_types=_wide(op.result_types))
        )
        if to not in NARROW:
            return lambda *x: perform(*map(widened, x))
        return lambda *x: converted(perform(*map(widened, x)), to)

    return made


def _wide(types: list) -> list:
    return [replace(type, scalar="f32") if type.dtype in NARROW else type for type in types]
