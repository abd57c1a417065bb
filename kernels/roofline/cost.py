"""Find what limits an operation: bytes, arithmetic or launches (roofline, chip, decode, energy, fusion, launches).

Units are SI and part of every name: `_s` seconds, `_bytes`, `_byte_s` byte/s, `_flop_s` FLOP/s, `_j`, `_w`.
"""

from dataclasses import dataclass

from kernels import require
from kernels.roofline.cost_chip import (
    SECTOR_BYTES,
    WARP,
    Residence,
    busy_share,
    bytes_in_flight,
    instructions_per_element,
    residence,
    sectors,
    useful_share,
    warp_sectors,
    waves,
)
from kernels.roofline.cost_decode import (
    DecodeStep,
    batch_at_ridge,
    decode_intensity,
    decode_step,
    tokens_intensity,
    weight_bytes_per_device,
)
from kernels.roofline.cost_energy import (
    LEVELS,
    REPORTED_HBM_OVER_SRAM,
    Level,
    annual_energy_j,
    energy_per_access_j,
    fleet_power_saved_w,
    latency_ratio,
    memory_power_w,
    power_saved_w,
    read_all_s,
)
from kernels.roofline.cost_fusion import (
    ChainTraffic,
    chain_traffic,
    gemm_weights_bytes,
    row_kernel_bytes,
    row_vector_bytes,
    tensor_bytes,
)
from kernels.roofline.cost_launch import (
    COMPILE_CUTS,
    GRAPH_FIRST_SHARE,
    CompileDividend,
    LaunchShare,
    ahead_gaps_s,
    calls_to_amortise,
    compile_dividend,
    graph_pass_s,
    graphs_first,
    launch_overhead_s,
    launch_share,
)

__all__ = [
    "COMPILE_CUTS",
    "GRAPH_FIRST_SHARE",
    "LEVELS",
    "REPORTED_HBM_OVER_SRAM",
    "REPORTED_INTENSITY",
    "SECTOR_BYTES",
    "WARP",
    "ahead_gaps_s",
    "ChainTraffic",
    "CompileDividend",
    "DecodeStep",
    "IronLaw",
    "LaunchShare",
    "Level",
    "Operation",
    "Residence",
    "annual_energy_j",
    "attainable_flop_s",
    "attention",
    "batch_at_ridge",
    "bound",
    "busy_share",
    "bytes_in_flight",
    "calls_to_amortise",
    "chain_traffic",
    "common_operations",
    "compile_dividend",
    "cost_per_token_ratio",
    "decode_intensity",
    "decode_operation",
    "decode_step",
    "elementwise",
    "energy_per_access_j",
    "fleet_power_saved_w",
    "gemm",
    "gemm_weights_bytes",
    "graph_pass_s",
    "graphs_first",
    "instructions_per_element",
    "intensity",
    "iron_law",
    "latency_ratio",
    "launch_overhead_s",
    "launch_share",
    "memory_power_w",
    "power_saved_w",
    "read_all_s",
    "residence",
    "ridge",
    "row_kernel_bytes",
    "row_vector_bytes",
    "sectors",
    "tensor_bytes",
    "tensor_core_aligned",
    "tokens_intensity",
    "useful_share",
    "warp_sectors",
    "waves",
    "weight_bytes_per_device",
]

# What "Performance Engineering" gives for the usual operations, FLOP/byte from and to.
REPORTED_INTENSITY = {
    "GEMM 4096": (1365.0, 1365.4),
    "attention 2048, scores in HBM": (50.0, 200.0),
    "GELU": (1.0, 3.0),
    "LayerNorm": (1.0, 3.0),
    "decode, batch 1": (1.0, 2.0),
}


def ridge(peak_flop_s: float, bandwidth_byte_s: float) -> float:
    """Return the FLOP/byte at which the two roofs meet. Memory is the limit below the ridge, arithmetic above."""
    require.positive(peak_flop_s=peak_flop_s, bandwidth_byte_s=bandwidth_byte_s)
    return peak_flop_s / bandwidth_byte_s


def intensity(flops: float, bytes_moved: float) -> float:
    """Return the FLOP per byte moved, a property of how the work is written, not of the machine."""
    require.not_negative(flops=flops)
    require.positive(bytes_moved=bytes_moved)
    return flops / bytes_moved


def attainable_flop_s(intensity: float, peak_flop_s: float, bandwidth_byte_s: float) -> float:
    """Return the roof above this intensity, in FLOP/s."""
    require.not_negative(intensity=intensity)
    require.positive(peak_flop_s=peak_flop_s, bandwidth_byte_s=bandwidth_byte_s)
    return min(peak_flop_s, bandwidth_byte_s * intensity)


def bound(intensity: float, ridge: float) -> str:
    """Return 'memory' left of the ridge, 'compute' from the ridge on."""
    require.not_negative(intensity=intensity)
    require.positive(ridge=ridge)
    return "memory" if intensity < ridge else "compute"


@dataclass(frozen=True)
class IronLaw:
    memory_s: float
    compute_s: float
    overhead_s: float

    @property
    def serial_s(self) -> float:
        """Return the time without overlap, when the three terms add."""
        return self.memory_s + self.compute_s + self.overhead_s

    @property
    def overlapped_s(self) -> float:
        """Return the time when memory and arithmetic overlap perfectly, so the slower one shows."""
        return max(self.memory_s, self.compute_s) + self.overhead_s

    @property
    def binding(self) -> str:
        terms = {"memory": self.memory_s, "compute": self.compute_s, "overhead": self.overhead_s}
        return max(terms, key=terms.__getitem__)


def iron_law(
    flops: float,
    bytes_moved: float,
    overhead_s: float,
    *,
    peak_flop_s: float,
    bandwidth_byte_s: float,
    efficiency: float = 1.0,
) -> IronLaw:
    """Return the three terms of the iron law. `efficiency` is the share of the peak that the arithmetic reaches."""
    require.not_negative(flops=flops, bytes_moved=bytes_moved, overhead_s=overhead_s)
    require.positive(peak_flop_s=peak_flop_s, bandwidth_byte_s=bandwidth_byte_s, efficiency=efficiency)
    require.share(efficiency=efficiency)
    return IronLaw(bytes_moved / bandwidth_byte_s, flops / (peak_flop_s * efficiency), overhead_s)


@dataclass(frozen=True)
class Operation:
    """Hold a point on the roofline, with the work and the bytes that it must move."""

    name: str
    flops: float
    bytes_moved: float

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes_moved


def gemm(m: int, n: int, k: int, element_bytes: float = 2.0, name: str = "GEMM") -> Operation:
    """Count C = A @ B with each matrix moved once, which no tiling can beat."""
    require.count(m=m, n=n, k=k)
    require.positive(element_bytes=element_bytes)
    return Operation(name, 2.0 * m * n * k, element_bytes * (m * k + k * n + m * n))


def elementwise(
    elements: int, flops_per_element: float, element_bytes: float = 2.0, name: str = "element-wise"
) -> Operation:
    """Count one read and one write per element. GELU is about 5 operations, LayerNorm about 8."""
    require.count(elements=elements)
    require.positive(flops_per_element=flops_per_element, element_bytes=element_bytes)
    return Operation(name, flops_per_element * elements, 2 * element_bytes * elements)


def attention(
    sequence: int, head_dim: int, element_bytes: float = 2.0, *, scores_in_hbm: bool, name: str = "attention"
) -> Operation:
    """Count one head. Q, K, V, Y move once, and the scores and probabilities are each written and read when kept in
    HBM.

    The source says both 50 to 200 FLOP/byte (at 2048) and near 10 for the naive form. These bytes give 60.
    """
    require.count(sequence=sequence, head_dim=head_dim)
    require.positive(element_bytes=element_bytes)
    elements = 4 * sequence * head_dim + (4 * sequence**2 if scores_in_hbm else 0)
    return Operation(name, 4.0 * sequence**2 * head_dim, element_bytes * elements)


def decode_operation(
    batch: int, d_in: int, d_out: int, element_bytes: float = 2.0, name: str = "decode"
) -> Operation:
    """Count one linear layer of a decode step, a GEMM whose M is the batch."""
    return gemm(batch, d_out, d_in, element_bytes, name)


def common_operations(element_bytes: float = 2.0) -> tuple[Operation, ...]:
    """Return the usual suspects, placed on the roofline by their own counts."""
    return (
        gemm(4096, 4096, 4096, element_bytes, "GEMM 4096"),
        attention(2048, 128, element_bytes, scores_in_hbm=True, name="attention 2048, scores in HBM"),
        attention(2048, 128, element_bytes, scores_in_hbm=False, name="attention 2048, tiled"),
        elementwise(4096**2, 5, element_bytes, "GELU"),
        elementwise(4096**2, 8, element_bytes, "LayerNorm"),
        decode_operation(1, 4096, 4096, element_bytes, "decode, batch 1"),
        gemm(1024, 4096, 4096, element_bytes, "prefill, 1024 tokens"),
    )


def cost_per_token_ratio(utilization_before: float, utilization_after: float) -> float:
    """Return the factor by which a token gets cheaper when the same machine does useful work for more of its time."""
    require.positive(utilization_before=utilization_before, utilization_after=utilization_after)
    require.share(utilization_before=utilization_before, utilization_after=utilization_after)
    return utilization_after / utilization_before


def tensor_core_aligned(*sizes: int, element_bits: int = 16) -> bool:
    """Return whether every size is a multiple of 16 bytes (8 halves). If not, the fast path may be lost."""
    require.one_of((4, 8, 16, 32), element_bits=element_bits)
    for size in sizes:
        require.count(size=size)
    return all(size * element_bits % 128 == 0 for size in sizes)
