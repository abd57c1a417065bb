"""Compute quantized layers in float64, and turn weights into codes. This is the only reference of the topic.

A weight is W (N outputs, K inputs) and a layer is Y = X @ W.T. Codes are uint8 in W's shape, with one scale for each
group of neighbours along K. `values(q)` are exactly a kernel's factors, and rounding happens only in the quantizers.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from kernels import require
from kernels.quantization_layouts.cost_blocks import element_values, normal_codebook

DTYPES = {  # of scales and of eight-bit floats, without torch, so that the concept labs can do without it
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp8": np.dtype(ml_dtypes.float8_e4m3fn),
}
GROUPS = (32, 64, 128)
MIDDLE = 8  # the code for zero of a 4-bit weight without a zero point
E2M1 = np.array(element_values("e2m1"))
E4M3_TOP = element_values("e4m3")[-1]
MX_BLOCK, NV_BLOCK = 32, 16


@dataclass(frozen=True)
class Int4:
    """Hold w = (code - zero) * scale. Without zero points the zero is 8."""

    codes: np.ndarray  # uint8 (N, K), 0 to 15
    scales: np.ndarray  # fp16 or bf16 (N, K / group)
    zeros: np.ndarray | None  # uint8 (N, K / group), 0 to 15
    group: int
    bits: int = 4


@dataclass(frozen=True)
class KBit:
    """w = codebook[code] * scale, the scale being the largest magnitude of its block."""

    codes: np.ndarray  # uint8 (N, K), below 2^bits
    scales: np.ndarray  # fp16 or bf16 (N, K / group)
    codebook: np.ndarray  # 2^bits levels in the scales' dtype, ascending
    group: int
    bits: int


@dataclass(frozen=True)
class Scaled:
    """Hold w = number * scale, for eight-bit numbers (int8 or fp8) with a scale for each row, or fp4 with one a
    block."""

    numbers: np.ndarray  # int8, fp8, or the values of e2m1
    scales: np.ndarray  # fp32, one for each `group` numbers of a row
    group: int
    whole: float = 1.0  # a factor within all scales, which NVFP4 keeps once for a tensor


def linear(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return X @ W.T, both taken as they are. Leading axes (experts) go in pairs."""
    return x.astype(np.float64) @ np.swapaxes(w.astype(np.float64), -1, -2)


def values(q: Int4 | KBit | Scaled) -> np.ndarray:
    """Return the weights that the codes mean."""
    if isinstance(q, Int4):
        zeros = MIDDLE if q.zeros is None else along_k(q.zeros, q.group)
        return (q.codes.astype(np.float64) - zeros) * along_k(q.scales, q.group)
    if isinstance(q, KBit):
        return q.codebook.astype(np.float64)[q.codes] * along_k(q.scales, q.group)
    return q.numbers.astype(np.float64) * along_k(q.scales, q.group)


def along_k(of_groups: np.ndarray, group: int) -> np.ndarray:
    return np.repeat(of_groups.astype(np.float64), group, axis=-1)


def quantize_int4(w: np.ndarray, group: int = 128, zero_points: bool = False, dtype: str = "fp16") -> Int4:
    """Round to nearest. Symmetric codes use -7 to 7, and with zero points all 16 codes are used and 0 is among them."""
    blocks = in_groups(w, group)
    if zero_points:
        low, high = np.minimum(blocks.min(-1), 0), np.maximum(blocks.max(-1), 0)
        scales = stored((high - low) / 15, dtype)
        step = reciprocal_scale(scales)
        zeros = np.clip(np.rint(-low * step), 0, 15)
        codes = np.clip(np.rint(blocks * step[..., None]) + zeros[..., None], 0, 15)
        return Int4(as_codes(codes, w), scales, zeros.astype(np.uint8), group)
    scales = stored(np.abs(blocks).max(-1) / 7, dtype)
    codes = np.clip(np.rint(blocks * reciprocal_scale(scales)[..., None]), -7, 7) + MIDDLE
    return Int4(as_codes(codes, w), scales, None, group)


def quantize_kbit(w: np.ndarray, bits: int, group: int = 32, dtype: str = "fp16", codebook=None) -> KBit:
    """Quantize to the nearest level of a codebook, whose default levels are the quantiles of a bell curve."""
    require.one_of((2, 3, 4, 5), bits=bits)
    if codebook is None:
        codebook = normal_codebook(bits)
    levels = np.asarray(codebook, np.float64).astype(DTYPES[dtype])
    if len(levels) != 2**bits or (np.diff(levels.astype(np.float64)) < 0).any():
        raise ValueError(
            f"codebook must be {2**bits} ascending levels, got {len(levels)}; sort them, one for each code"
        )
    blocks = in_groups(w, group)
    scales = stored(np.abs(blocks).max(-1), dtype)
    codes = nearest(levels.astype(np.float64), blocks * reciprocal_scale(scales)[..., None])
    return KBit(as_codes(codes, w), scales, levels, group, bits)


def bit_planes(codes: np.ndarray, bits: int) -> np.ndarray:
    """Return uint32 (N, K / 32, bits). Word b holds bit b of 32 neighbours, the first in its lowest bit."""
    require.one_of((1, 2, 3, 4, 5), bits=bits)
    n, k = codes.shape
    if k % 32:
        raise ValueError(f"K must be a multiple of 32 for bit planes, got {k}; pad the weight along K")
    if codes.size and codes.max() >= 2**bits:
        raise ValueError(f"codes must be below {2**bits}, got {codes.max()}; take more bits")
    each = codes.reshape(n, k // 32, 32, 1).astype(np.uint32) >> np.arange(bits, dtype=np.uint32) & 1
    return (each << np.arange(32, dtype=np.uint32)[:, None]).sum(2, dtype=np.uint32)


def from_bit_planes(planes: np.ndarray) -> np.ndarray:
    """Return the codes again, uint8 (N, K)."""
    n, words, bits = planes.shape
    codes = np.zeros((n, 32 * words), np.uint8)
    for bit in range(bits):
        # the lowest byte first, as its bits
        plane = np.ascontiguousarray(planes[:, :, bit], "<u4").view(np.uint8)
        codes |= np.unpackbits(plane, axis=1, bitorder="little") << bit
    return codes


def quantize_int8(w: np.ndarray) -> Scaled:
    """Quantize symmetrically with one fp32 scale a row, weights a channel (W8A16, W8A8), activations a token (W8A8)."""
    blocks = in_groups(w, w.shape[1], any_group=True)
    scales = (np.abs(blocks).max(-1) / 127).astype(np.float32)
    return Scaled(
        np.rint(w.astype(np.float64) * reciprocal_scale(scales)).astype(np.int8), scales, w.shape[1]
    )


def linear_w8a8(x: Scaled, w: Scaled) -> np.ndarray:
    """Multiply and sum whole numbers exactly, then apply one scale per token times one per channel."""
    total = x.numbers.astype(np.int64) @ w.numbers.astype(np.int64).T
    return total * x.scales.astype(np.float64) * w.scales.astype(np.float64).T


def quantize_fp8(w: np.ndarray, per_row: bool = True) -> Scaled:
    """Quantize to E4M3 with one fp32 scale a row, or one for the whole tensor."""
    blocks = in_groups(w, w.shape[1], any_group=True)
    largest = np.abs(blocks).max(-1)
    scales = (largest / E4M3_TOP if per_row else np.full_like(largest, largest.max() / E4M3_TOP)).astype(
        np.float32
    )
    kept = np.clip(w.astype(np.float64) * reciprocal_scale(scales), -E4M3_TOP, E4M3_TOP)
    return Scaled(kept.astype(DTYPES["fp8"]), scales, w.shape[1])


def quantize_mxfp4(w: np.ndarray) -> Scaled:
    """Quantize to E2M1 under one power of two (E8M0) for each 32, so that the largest magnitude lands in the top
    binade."""
    blocks = in_groups(w, MX_BLOCK)
    with np.errstate(divide="ignore"):
        exponents = np.floor(np.log2(np.abs(blocks).max(-1))) - 2
    scales = np.where(np.isfinite(exponents), 2.0 ** np.maximum(exponents, -127), 0.0)
    return Scaled(e2m1(blocks, scales).reshape(w.shape), scales, MX_BLOCK)


def quantize_nvfp4(w: np.ndarray) -> Scaled:
    """Quantize to E2M1 with an E4M3 scale for each 16, and one fp32 scale for the whole tensor."""
    blocks = in_groups(w, NV_BLOCK, any_group=True)
    largest = np.abs(blocks).max(-1)
    tensor_scale = np.float64(np.float32(largest.max() / (E2M1[-1] * E4M3_TOP)))
    kept = (
        (largest / E2M1[-1] * reciprocal_scale(np.array(tensor_scale)))
        .astype(DTYPES["fp8"])
        .astype(np.float64)
    )
    scales = kept * tensor_scale
    return Scaled(e2m1(blocks, scales).reshape(w.shape), scales, NV_BLOCK, float(tensor_scale))


def e2m1(blocks: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return the nearest values of E2M1, -6 to 6, once divided by the scale."""
    x = blocks * reciprocal_scale(scales)[..., None]
    return np.copysign(E2M1[nearest(E2M1, np.abs(x))], x)


def nearest(levels: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the code of the closest level, half-way between two the even one."""
    middles = (levels[1:] + levels[:-1]) / 2
    low, high = (np.searchsorted(middles, x, side) for side in ("left", "right"))
    return np.where((low != high) & (low % 2 == 1), high, low)


def in_groups(w: np.ndarray, group: int, any_group: bool = False) -> np.ndarray:
    """float64 (N, K / group, group), once the weight is known to be one."""
    if w.ndim != 2:
        raise ValueError(f"w must be (N, K), got {w.shape}; quantize one matrix at a time")
    if not any_group:
        require.one_of(GROUPS, group=group)
    if w.shape[1] % group:
        raise ValueError(f"group must be a divisor of K = {w.shape[1]}, got {group}; pad K or take another")
    blocks = w.astype(np.float64)
    if not np.isfinite(blocks).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(blocks))[0])
        raise ValueError(
            f"w must be finite, got {blocks[row, column]} at row {row}, column {column}; repair the checkpoint"
        )
    return blocks.reshape(w.shape[0], -1, group)


def stored(scales: np.ndarray, dtype: str) -> np.ndarray:
    require.one_of(("fp16", "bf16"), dtype=dtype)
    return np.minimum(scales, 65504.0).astype(DTYPES[dtype])


def reciprocal_scale(scales: np.ndarray) -> np.ndarray:
    """Return one over the scale as it is stored, 0 for a group of zeros."""
    scales = scales.astype(np.float64)
    return np.divide(1.0, scales, out=np.zeros_like(scales), where=scales > 0)


def as_codes(codes: np.ndarray, w: np.ndarray) -> np.ndarray:
    return codes.astype(np.uint8).reshape(w.shape)


def error_bound(q: Int4 | KBit) -> np.ndarray:
    """Return the most by which a quantized weight may miss, (N, K), half of the widest step between levels.

    A scale is rounded to 16 bits after the largest magnitude was found, so that magnitude may be 2^-8 (bf16) outside.
    """
    step = 1.0 if isinstance(q, Int4) else float(np.diff(q.codebook.astype(np.float64)).max())
    outside = 2.0**-8 * (15 if isinstance(q, Int4) else 1)
    tiny = 16 * float(np.finfo(np.float16).smallest_subnormal)  # below it fp16 has no scale left
    return (step / 2 + outside) * along_k(q.scales, q.group) + tiny
