"""Quantize a few numbers in each block format, to see the effect of an outlier on its group."""

import math
import struct
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

from kernels import require


def _minifloat(exponent_bits: int, mantissa_bits: int, top: float) -> tuple[float, ...]:
    """Return all non-negative values up to `top`, subnormals included, in the order of their codes."""
    bias, steps = 2 ** (exponent_bits - 1) - 1, 2**mantissa_bits
    values = [m / steps * 2.0 ** (1 - bias) for m in range(steps)]
    for exponent in range(1, 2**exponent_bits):
        values += [(1 + m / steps) * 2.0 ** (exponent - bias) for m in range(steps)]
    return tuple(value for value in values if value <= top)


@cache
def element_values(name: str) -> tuple[float, ...]:
    """Return the non-negative values of a small float, 'e4m3' (to 448), 'e5m2' (to 57344) or 'e2m1' (to 6)."""
    known = {"e4m3": (4, 3, 448.0), "e5m2": (5, 2, 57344.0), "e2m1": (2, 1, 6.0)}
    require.one_of(tuple(known), name=name)
    return _minifloat(*known[name])


@cache
def normal_codebook(bits: int) -> tuple[float, ...]:
    """Return 2^bits levels in [-1, 1], equally likely under a bell curve, as a k-bit codebook stores them."""
    require.count(bits=bits)
    require.at_most(8, "a codebook wider than a byte is no codebook", bits=bits)
    levels = [NormalDist().inv_cdf((i + 0.5) / 2**bits) for i in range(2**bits)]
    return tuple(level / levels[-1] for level in levels)


def _nearest(levels: Sequence[float], value: float) -> float:
    """Return the closest level, clipped at the ends, and between two the one of even code (the hardware's rule)."""
    right = bisect_left(levels, value)
    if right == 0 or right == len(levels):
        return levels[min(right, len(levels) - 1)]
    below, above = value - levels[right - 1], levels[right] - value
    if below == above:
        return levels[right - right % 2]
    return levels[right - 1] if below < above else levels[right]


def _fp16(value: float) -> float:
    return struct.unpack("e", struct.pack("e", min(value, 65504.0)))[0]


@dataclass(frozen=True)
class BlockFormat:
    """Hold a format. `levels` are whole numbers (symmetric, affine), a small float or a codebook. `scale` is a scale's form."""

    name: str
    bits: int
    levels: str
    scale: str  # fp16, power of two (E8M0), or e4m3 under one fp32 of the tensor
    fixed_group: int | None = None
    zero_bits: int = 0

    @property
    def scale_bits(self) -> int:
        return 16 if self.scale == "fp16" else 8

    def bits_per_weight(self, group: int) -> float:
        return self.bits + (self.scale_bits + self.zero_bits) / group


BLOCK_FORMATS = {
    f.name: f
    for f in (
        BlockFormat("int8", 8, "symmetric", "fp16"),
        BlockFormat("int4", 4, "symmetric", "fp16"),
        BlockFormat("int4 with zero point", 4, "affine", "fp16", zero_bits=4),
        BlockFormat("int2 with zero point", 2, "affine", "fp16", zero_bits=2),
        BlockFormat("fp8 e4m3", 8, "e4m3", "fp16"),
        BlockFormat("fp8 e5m2", 8, "e5m2", "fp16"),
        BlockFormat("fp4 e2m1", 4, "e2m1", "fp16"),
        BlockFormat("mxfp4", 4, "e2m1", "power of two", fixed_group=32),
        BlockFormat("nvfp4", 4, "e2m1", "e4m3", fixed_group=16),
        *(BlockFormat(f"codebook, {k} bits", k, "codebook", "fp16") for k in (2, 3, 4, 5)),
    )
}


@dataclass(frozen=True)
class Quantized:
    values: tuple[float, ...]  # after packing and unpacking
    scales: tuple[float, ...]  # one a group
    group: int
    bits_per_weight: float


def _affine(block: Sequence[float], bits: int) -> tuple[list[float], float]:
    """Return s = (max - min) / (2^b - 1), with zero inside the range so that zero keeps a code of its own."""
    low, high = min(*block, 0.0), max(*block, 0.0)
    scale = _fp16((high - low) / (2**bits - 1))
    if scale == 0:
        return [0.0] * len(block), 0.0
    zero = min(max(round(-low / scale), 0), 2**bits - 1)
    codes = (min(max(round(value / scale) + zero, 0), 2**bits - 1) for value in block)
    return [(code - zero) * scale for code in codes], scale


def _scale(form: BlockFormat, largest: float, top: float, tensor_scale: float) -> float:
    if form.scale == "power of two":
        return (
            2.0 ** max(-127, math.floor(math.log2(largest)) - math.floor(math.log2(top))) if largest else 0.0
        )
    if form.scale == "e4m3":
        kept = _nearest(element_values("e4m3"), largest / top / tensor_scale) if tensor_scale else 0.0
        return kept * tensor_scale
    return _fp16(largest / top)


def _scaled(block: Sequence[float], form: BlockFormat, tensor_scale: float) -> tuple[list[float], float]:
    """Quantize with one scale a group, so that the largest magnitude lands on the format's largest level."""
    if form.levels == "symmetric":
        levels = (2 ** (form.bits - 1) - 1,)
    else:
        levels = normal_codebook(form.bits) if form.levels == "codebook" else element_values(form.levels)
    scale = _scale(form, max(abs(value) for value in block), levels[-1], tensor_scale)
    if scale == 0:
        return [0.0] * len(block), 0.0
    if form.levels == "symmetric":
        return [min(max(round(value / scale), -levels[-1]), levels[-1]) * scale for value in block], scale
    if form.levels == "codebook":
        return [_nearest(levels, value / scale) * scale for value in block], scale
    return [math.copysign(_nearest(levels, abs(value) / scale) * scale, value) for value in block], scale


def quantize(
    values: Sequence[float], name: str, group: int | None = None, *, fixed: bool = True
) -> Quantized:
    """Pack and unpack `values`, one scale for every `group` values (all if None).

    A format with a block of its own keeps it, unless `fixed` is false.
    """
    require.not_empty(values=values)
    require.one_of(tuple(BLOCK_FORMATS), format=name)
    form = BLOCK_FORMATS[name]
    group = (fixed and form.fixed_group) or group or len(values)
    require.count(group=group)
    for value in values:
        require.not_negative(magnitude=abs(value))
    largest = max(abs(value) for value in values)
    tensor_scale = largest / (element_values("e2m1")[-1] * element_values("e4m3")[-1])
    unpacked, scales = [], []
    for start in range(0, len(values), group):
        block = values[start : start + group]
        kept, scale = (
            _affine(block, form.bits) if form.levels == "affine" else _scaled(block, form, tensor_scale)
        )
        unpacked += kept
        scales.append(scale)
    return Quantized(tuple(unpacked), tuple(scales), group, form.bits_per_weight(group))


def group_levels(block: Sequence[float], name: str, scale: float) -> tuple[float, ...]:
    """Return every value that a group with this scale can hold."""
    require.not_empty(block=block)
    require.one_of(tuple(BLOCK_FORMATS), format=name)
    form = BLOCK_FORMATS[name]
    if scale == 0:
        return (0.0,)
    if form.levels == "affine":
        zero = min(max(round(-min(*block, 0.0) / scale), 0), 2**form.bits - 1)
        return tuple((code - zero) * scale for code in range(2**form.bits))
    if form.levels == "symmetric":
        most = 2 ** (form.bits - 1) - 1
        return tuple(code * scale for code in range(-most, most + 1))
    if form.levels == "codebook":
        return tuple(level * scale for level in normal_codebook(form.bits))
    positive = tuple(value * scale for value in element_values(form.levels))
    return tuple(-value for value in reversed(positive[1:])) + positive


def rms(values: Sequence[float]) -> float:
    require.not_empty(values=values)
    return math.sqrt(sum(value * value for value in values) / len(values))


def rms_error(values: Sequence[float], unpacked: Sequence[float], leave_out: Sequence[int] = ()) -> float:
    """Return the root mean square error, without the positions left out (an outlier judges itself too kindly)."""
    if len(values) != len(unpacked):
        raise ValueError(
            f"unpacked must be as long as values ({len(values)}), got {len(unpacked)}; pair them up"
        )
    return rms([a - b for i, (a, b) in enumerate(zip(values, unpacked, strict=True)) if i not in leave_out])


def bell_values(count: int, spread: float = 1.0) -> tuple[float, ...]:
    """Return bell-shaped numbers without a random generator, the quantiles in a fixed shuffled order."""
    require.count(count=count)
    require.positive(spread=spread)
    stride = next(s for s in range(int(count * 0.618) + 1, 2 * count + 2) if math.gcd(s, count) == 1)
    return tuple(NormalDist(0, spread).inv_cdf((i * stride % count + 0.5) / count) for i in range(count))


def with_outlier(values: Sequence[float], position: int, times: float) -> tuple[float, ...]:
    """Return the same numbers with one made `times` the typical size (their root mean square)."""
    require.whole(position=position)
    require.at_most(len(values) - 1, "positions count from 0", position=position)
    require.not_negative(times=times)
    outlier = times * rms(values)
    return tuple(outlier if i == position else value for i, value in enumerate(values))
