"""Count what fewer bits cost and save: bits per weight, bytes of a model, bytes and FLOPs of one linear layer.

Units are SI and part of every name: `_s` seconds, `_bytes`, `_byte_s` byte/s, `_flop_s` FLOP/s. The k-bit tables keep
the microseconds (`_us`) they were reported in.
"""

import math
from dataclasses import dataclass

from kernels import require
from kernels.quantization_layouts import kbit_tables
from kernels.quantization_layouts.cost_accounting import (
    block_speedup,
    block_us,
    calibration,
    concurrency_ratios,
    fastest_families,
    filled_ratios,
    first_without_a_win,
    from_calibration,
    kernel_family,
    measured,
    measured_m,
    memory_by_bits,
    workload_ratio,
)
from kernels.quantization_layouts.cost_blocks import (
    BLOCK_FORMATS,
    BlockFormat,
    Quantized,
    bell_values,
    element_values,
    group_levels,
    normal_codebook,
    quantize,
    rms,
    rms_error,
    with_outlier,
)
from kernels.quantization_layouts.cost_capacity import (
    REPORTED_PAGED_AND_QUANTIZED_GAIN,
    REPORTED_PAGED_GAIN,
    Capacity,
    fragmentation_waste,
    kv_bytes_per_token,
    paged_gain,
    serving_capacity,
)
from kernels.quantization_layouts.cost_fragments import (
    fragment_element,
    fragment_owner,
    nibble_of,
    unpack_instructions,
)
from kernels.quantization_layouts.cost_kbit import (
    Linear,
    best_kernel,
    block_linears,
    break_even_users,
    candidates,
    dense_family,
    dequant_floor_s,
    instruction_share,
    layer_linears,
    linear_us,
    model_us,
    session_m,
    shape_speedups,
    user_ratio,
    weighted_ratio,
)
from kernels.quantization_layouts.cost_layout import packed_bytes, stream_bytes, unpack_per_weight, unpack_s
from kernels.quantization_layouts.cost_payoff import (
    PLACEMENTS,
    Payoff,
    break_even_batch,
    dequant_s_per_weight,
    payoff,
    stored_step_s,
    weights_streamed,
)

__all__ = [
    "BLOCK_FORMATS",
    "FORMATS",
    "PLACEMENTS",
    "REPORTED_DEVICES_4090",
    "REPORTED_PAGED_AND_QUANTIZED_GAIN",
    "REPORTED_PAGED_GAIN",
    "BlockFormat",
    "Capacity",
    "Format",
    "Linear",
    "LinearCost",
    "Payoff",
    "Quantized",
    "bell_values",
    "best_kernel",
    "bits_per_weight",
    "block_linears",
    "block_speedup",
    "block_us",
    "break_even_batch",
    "break_even_users",
    "calibration",
    "candidates",
    "compression",
    "concurrency_ratios",
    "dense_family",
    "dequant_floor_s",
    "dequant_s_per_weight",
    "devices_needed",
    "element_values",
    "fastest_families",
    "filled_ratios",
    "first_without_a_win",
    "fragment_element",
    "fragment_owner",
    "fragmentation_waste",
    "from_calibration",
    "group_levels",
    "instruction_share",
    "kbit_tables",
    "kernel_family",
    "kv_bytes_per_token",
    "layer_linears",
    "linear_cost",
    "linear_us",
    "metadata_share",
    "model_bytes",
    "measured",
    "measured_m",
    "memory_by_bits",
    "model_us",
    "nibble_of",
    "normal_codebook",
    "packed_bytes",
    "paged_gain",
    "payoff",
    "quantize",
    "rms",
    "rms_error",
    "serving_capacity",
    "session_m",
    "shape_speedups",
    "stored_step_s",
    "stream_bytes",
    "two_level_bits",
    "unpack_instructions",
    "unpack_per_weight",
    "unpack_s",
    "user_ratio",
    "weighted_ratio",
    "weights_streamed",
    "with_outlier",
    "workload_ratio",
]

# "k-bit deployment" on a 70B model: bits -> RTX 4090 cards (24 GB) that hold it, according to the source. 35 GB need
# two and 140 GB need six, so the source's "comfortably on one" and "four" do not add up.
REPORTED_DEVICES_4090 = {4: 1, 16: 4}


def bits_per_weight(
    bits: float, group: int | None = None, scale_bits: float = 16, zero_bits: float = 0
) -> float:
    """Return the payload plus each weight's part of its group's scale and zero point. Without a group there is neither."""
    require.positive(bits=bits)
    require.not_negative(scale_bits=scale_bits, zero_bits=zero_bits)
    if group is None:
        return bits
    require.count(group=group)
    return bits + (scale_bits + zero_bits) / group


def metadata_share(
    bits: float, group: int, scale_bits: float = 16, zero_bits: float = 0, of_bits: float | None = None
) -> float:
    """Return scales and zero points as a share of the payload, or of the `of_bits` weights replaced (16)."""
    extra = bits_per_weight(bits, group, scale_bits, zero_bits) - bits
    base = bits if of_bits is None else of_bits
    require.positive(of_bits=base)
    return extra / base


def two_level_bits(
    bits: float,
    block: int,
    sub_block: int,
    sub_scale_bits: float,
    sub_min_bits: float,
    block_scale_bits: float,
) -> float:
    """Quantize as k-quants do. Each sub-block has a small scale and minimum, themselves scaled once a super-block."""
    require.positive(bits=bits)
    require.count(block=block, sub_block=sub_block)
    require.not_negative(sub_scale_bits=sub_scale_bits, sub_min_bits=sub_min_bits)
    require.not_negative(block_scale_bits=block_scale_bits)
    if block % sub_block:
        raise ValueError(f"block must be a multiple of sub_block {sub_block}, got {block}; use 256 and 32")
    return bits + (sub_scale_bits + sub_min_bits) / sub_block + block_scale_bits / block


@dataclass(frozen=True)
class Format:
    """Hold a way to store weights, and the kernels that run this format fast."""

    name: str
    bits: float  # payload of one weight
    bits_per_weight: float
    activation_bits: int
    kernels: tuple[str, ...]
    note: str


def _format(name, bits, group, activation_bits, kernels, note, scale_bits=16, zero_bits=0) -> Format:
    total = bits_per_weight(bits, group, scale_bits, zero_bits)
    return Format(name, bits, total, activation_bits, kernels, note)


FORMATS = {
    f.name: f
    for f in (
        _format("bf16", 16, None, 16, ("cuBLAS", "CUTLASS", "Triton"), "the reference; no quirks"),
        _format("fp8 (E4M3 / E5M2)", 8, None, 8, ("CUTLASS", "cuBLAS"), "fp8 activations; scales to manage"),
        _format("int8 W8A8", 8, None, 8, ("SmoothQuant", "CUTLASS"), "int8 activations; per-channel scales"),
        _format("int8 W8A16", 8, 128, 16, ("Marlin", "CUTLASS"), "16-bit activations; group scales"),
        _format("int4 W4A16", 4, 128, 16, ("Marlin", "Machete", "AWQ"), "kernel and group size must agree"),
        _format("2-bit, mixed", 2, 64, 16, ("specialised",), "outliers often kept wider; gains diminish"),
        _format("ternary", math.log2(3), None, 8, ("specialised",), "trained so, not compressed afterwards"),
        _format("MXFP4", 4, 32, 16, ("Triton", "CUTLASS"), "power-of-two scale, blocks of 32", scale_bits=8),
        _format("NVFP4", 4, 16, 4, ("CUTLASS",), "fp8 scale, blocks of 16, one fp32 a tensor", scale_bits=8),
        Format(
            "GGUF Q4_K",
            4,
            two_level_bits(4, 256, 32, 6, 6, 32),
            16,
            ("llama.cpp",),
            "sub-blocks of 32 in super-blocks of 256",
        ),
    )
}


def model_bytes(parameters: float, bits_per_weight: float = 16) -> float:
    require.positive(parameters=parameters, bits_per_weight=bits_per_weight)
    return parameters * bits_per_weight / 8


def compression(bits_per_weight: float, from_bits: float = 16) -> float:
    """Return the compression factor of the weights against `from_bits`."""
    require.positive(bits_per_weight=bits_per_weight, from_bits=from_bits)
    return from_bits / bits_per_weight


def devices_needed(model_bytes: float, memory_bytes: float, reserve_bytes: float = 0) -> int:
    """Return the number of cards whose memory, less `reserve_bytes` each, holds the weights."""
    require.positive(model_bytes=model_bytes, memory_bytes=memory_bytes)
    require.not_negative(reserve_bytes=reserve_bytes)
    require.positive(**{"memory_bytes less reserve_bytes": memory_bytes - reserve_bytes})
    return math.ceil(model_bytes / (memory_bytes - reserve_bytes))


@dataclass(frozen=True)
class LinearCost:
    """Hold the cost of Y[m, n] = X[m, k] @ W[n, k], each byte once."""

    flops: float
    weight_bytes: float
    metadata_bytes: float
    activation_bytes: float  # X and Y

    @property
    def bytes_moved(self) -> float:
        return self.weight_bytes + self.metadata_bytes + self.activation_bytes

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes_moved


def linear_cost(
    m: int,
    n: int,
    k: int,
    *,
    bits: float = 16,
    group: int | None = None,
    scale_bits: float = 16,
    zero_bits: float = 0,
    codebook_entries: int = 0,
    element_bytes: float = 2,
) -> LinearCost:
    """Count one linear layer with packed weights. Groups run along k, and a last partial group is paid in full."""
    require.count(m=m, n=n, k=k)
    require.positive(bits=bits, element_bytes=element_bytes)
    require.not_negative(scale_bits=scale_bits, zero_bits=zero_bits)
    require.whole(codebook_entries=codebook_entries)
    groups = 0
    if group is not None:
        require.count(group=group)
        groups = n * math.ceil(k / group)
    metadata = groups * (scale_bits + zero_bits) / 8 + codebook_entries * element_bytes
    return LinearCost(2.0 * m * n * k, n * k * bits / 8, metadata, (m * k + m * n) * element_bytes)
