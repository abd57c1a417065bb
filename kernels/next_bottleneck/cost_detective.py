"""Find a bottleneck from its symptoms by one flowchart, which rules out waiting before it judges work."""

from dataclasses import dataclass, field

from kernels import parts, require
from kernels.next_bottleneck.cost_metrics import NEAR_ROOF

# the source's limit for launch gaps that call for action, applied here to the other waits too
WAIT_SHARE = 0.10
SKEW = 1.05

PATHS = {  # bottleneck -> what to try, in this order
    "input": ("more data workers", "a preprocessing service", "tokens prepared beforehand"),
    "launches": ("CUDA Graphs", "torch.compile", "fusion by hand"),
    "stragglers": ("expert capacity or bias", "an even tensor-parallel split", "take the slow node out"),
    "communication": ("overlap it with the backward pass", "smaller or fewer bytes", "placement by topology"),
    "memory": ("narrower numbers", "fusion", "compile the graph", "speculation, or experts"),
    "compute": ("tensor cores in use", "compile the graph", "FP8", "overlap what still waits"),
    "implementation": ("instruction mix: are tensor cores used", "access patterns", "occupancy, tile sizes"),
}

PATTERNS = (  # seen in a trace, likely cause, first thing to try, trade-off to check
    ("small gaps between many kernels", "launch overhead", "compile, graphs or fusion", "warm-up, debugging"),
    ("large memory spikes", "unfused intermediates", "FlashAttention, custom fusion", "numerics, upkeep"),
    ("low FLOP/s at high bandwidth", "memory-bound work", "precision, batching", "accuracy, cache pressure"),
    ("NCCL while the GPU is idle", "serial communication", "gradient overlap", "bucket size, schedule"),
    ("some GPUs wait for others", "uneven work", "capacity, balance, even splits", "routing quality"),
    ("repeated large allocations", "buffers not reused", "memory planning, pools", "recompute, allocator"),
    (
        "periodic drops of utilization",
        "input not pipelined",
        "workers, pretokenized data",
        "storage, freshness",
    ),
)


@dataclass(frozen=True)
class Symptoms:
    """Hold shares of the wall clock, and of the roofs for the rest of the time."""

    input_wait_share: float = 0.0
    launch_gap_share: float = 0.0
    exposed_communication_share: float = 0.0
    rank_skew: float = 1.0  # slowest rank over the mean
    intensity: float = 1.0
    ridge: float = 295.2
    compute_share: float = 0.0
    bandwidth_share: float = 0.0


@dataclass(frozen=True)
class Check:
    question: str
    value: float
    limit: float
    hit: bool


@dataclass(frozen=True)
class Diagnosis:
    bottleneck: str
    checks: tuple[Check, ...]  # as asked, up to the one that decided

    @property
    def path(self) -> tuple[str, ...]:
        return PATHS[self.bottleneck]


def diagnose(seen: Symptoms) -> Diagnosis:
    """Test for input, launches, stragglers and communication, in this order, then for memory or compute by the near roof."""
    require.share(input_wait_share=seen.input_wait_share, launch_gap_share=seen.launch_gap_share)
    require.share(exposed_communication_share=seen.exposed_communication_share)
    require.share(compute_share=seen.compute_share, bandwidth_share=seen.bandwidth_share)
    require.positive(rank_skew=seen.rank_skew, intensity=seen.intensity, ridge=seen.ridge)
    bound = "memory" if seen.intensity < seen.ridge else "compute"
    roof = seen.bandwidth_share if bound == "memory" else seen.compute_share
    asked = (
        ("input", "Does the GPU wait for input?", seen.input_wait_share, WAIT_SHARE),
        ("launches", "Are there gaps between kernels?", seen.launch_gap_share, WAIT_SHARE),
        ("stragglers", "Do ranks wait for a slow one?", seen.rank_skew, SKEW),
        ("communication", "Does communication show?", seen.exposed_communication_share, WAIT_SHARE),
    )
    checks = []
    for name, question, value, limit in asked:
        checks.append(Check(question, value, limit, value > limit))
        if value > limit:
            return Diagnosis(name, tuple(checks))
    checks.append(Check(f"Is the {bound} roof near?", roof, NEAR_ROOF, roof >= NEAR_ROOF))
    return Diagnosis(bound if roof >= NEAR_ROOF else "implementation", tuple(checks))


def gap_share(launches: int, gap_s: float, work_s: float) -> float:
    """Share of the wall clock that the gaps between kernels take."""
    require.count(launches=launches)
    require.positive(gap_s=gap_s, work_s=work_s)
    return launches * gap_s / (launches * gap_s + work_s)


def counters(
    intensity: float, *, of_bandwidth: float = 0.0, of_flops: float = 0.0, ridge: float = 295.2
) -> dict:
    """Return both counters from one. A kernel's FLOPs are its bytes multiplied by its intensity."""
    require.positive(intensity=intensity, ridge=ridge)
    require.share(of_bandwidth=of_bandwidth, of_flops=of_flops)
    if bool(of_bandwidth) == bool(of_flops):
        raise ValueError(
            "of_bandwidth or of_flops must be given, got both or none; each follows from the other"
        )
    moved = of_bandwidth or of_flops * ridge / intensity
    return {"intensity": intensity, "bandwidth_share": moved, "compute_share": moved * intensity / ridge}


@dataclass(frozen=True)
class Case:
    name: str
    title: str  # the known facts before it is solved
    story: str
    seen: Symptoms
    answer: str
    worked: str = ""  # the deciding figure, of the numbers in the story


_GEMM_4096 = 1365.3
CASES = (
    Case(
        "many thin bars",
        "one layer of a decoder",
        "50 launches a layer, 10 µs lost at each, next to 2 ms of work.",
        Symptoms(launch_gap_share=gap_share(50, 10e-6, 2e-3), **counters(1.0, of_bandwidth=0.6)),
        "launches",
        "50 · 10 µs / (50 · 10 µs + 2 ms)",
    ),
    Case(
        "a LayerNorm",
        "a LayerNorm on an H100",
        "15 TFLOP/s at 2.8 TB/s on an H100.",
        Symptoms(intensity=15 / 2.8, compute_share=15 / 989, bandwidth_share=2.8 / 3.35),
        "memory",
        "2.8 / 3.35 TB/s",
    ),
    Case(
        "batch-1 decode",
        "a 70B model, one user",
        "70B on 8 H100: kernels end to end, 85% of bandwidth, little arithmetic.",
        Symptoms(**counters(1.0, of_bandwidth=0.85)),
        "memory",
    ),
    Case(
        "gradients at the end",
        "training on eight GPUs",
        "62.5 of 311.9 ms are NCCL bars over an idle GPU.",
        Symptoms(exposed_communication_share=62.5 / 311.9, **counters(_GEMM_4096, of_flops=0.4)),
        "communication",
        "62.5 / 311.9 ms",
    ),
    Case(
        "one hot expert",
        "experts on eight GPUs",
        "Seven GPUs wait at every all-to-all for the eighth.",
        Symptoms(exposed_communication_share=0.3, rank_skew=2.6, **counters(40.0, of_bandwidth=0.5)),
        "stragglers",
    ),
    Case(
        "two weeks on the wrong kernel",
        "decode, two weeks later",
        "A kernel made 5 times faster, and latency as before: tokens come late.",
        Symptoms(input_wait_share=0.45, launch_gap_share=0.12, **counters(1.0, of_bandwidth=0.4)),
        "input",
    ),
    Case(
        "a large GEMM",
        "a GEMM, 4096 cubed",
        "4096 cubed at 780 TFLOP/s.",
        Symptoms(**counters(_GEMM_4096, of_flops=780 / 989)),
        "compute",
        "780 / 989 TFLOP/s",
    ),
    Case(
        "a GEMM of width 4097",
        "a GEMM, 4097 wide",
        "One wider than 4096: 55 TFLOP/s, no tensor-core instruction in the mix.",
        Symptoms(intensity=_GEMM_4096, compute_share=55 / 989, bandwidth_share=0.02),
        "implementation",
        "55 / 989 TFLOP/s",
    ),
    Case(
        "cache reads out of order",
        "decode attention",
        "Decode attention at 1.9 of 3.35 TB/s.",
        Symptoms(**counters(8.0, of_bandwidth=1.9 / 3.35)),
        "implementation",
        "1.9 / 3.35 TB/s",
    ),
)


@dataclass(frozen=True)
class StepCase:
    """Hold the worked case: a decode step by parts, and the cut of each fix."""

    shares: dict[str, float] = field(
        default_factory=lambda: {
            "GEMM": 0.42,
            "attention": 0.28,
            "norm and activation": 0.12,
            "softmax and top-k": 0.08,
            "launch gaps": 0.10,
        }
    )
    cuts: dict[str, float] = field(
        default_factory=lambda: {
            "attention": 0.5,  # int8 cache: half the bytes
            "norm and activation": 0.5,  # two kernels fused: two passes over memory for four
            "launch gaps": 0.75,  # 120 launches a layer become 30
        }
    )

    @property
    def outside_gemm(self) -> float:
        return 1 - self.shares["GEMM"]

    @property
    def speedup(self) -> float:
        return 1 / sum(parts.cut(self.shares, self.cuts).values())

    def gemm_ceiling(self, bandwidth_share: float = 2.8 / 3.35) -> float:
        """Return the gain of a perfect GEMM, if the present one already reaches this share of its roof."""
        require.share(bandwidth_share=bandwidth_share)
        return 1 / (1 - self.shares["GEMM"] * (1 - bandwidth_share))


def launch_cut(kernels_before: int, kernels_after: int) -> float:
    """Share of the launch gaps that goes with the kernels that are gone."""
    require.count(kernels_before=kernels_before, kernels_after=kernels_after)
    require.at_most(kernels_before, "fusing makes fewer", kernels_after=kernels_after)
    return 1 - kernels_after / kernels_before
