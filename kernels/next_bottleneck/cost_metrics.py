"""Read utilization and latency: the meaning of each number, and the pairs of numbers that can't both be true."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernels import require

NEAR_ROOF = 0.7  # a kernel above this share of its roof is doing well, and one below needs a look at its code

TARGETS = {  # seconds, from "Performance Engineering"
    "time to first token": {"acceptable": 0.5, "feels responsive": 0.2},
    "between tokens": {"comfortable reading": 0.05, "real-time speech": 0.025},
}

# Pairs that the source gives for batch-1 decode on an H100 (arithmetic share, bandwidth share). At 1 FLOP/byte 85% of
# the bandwidth is 0.3% of the arithmetic. 2% would take about 7 requests, 8% about 27.
REPORTED_DECODE_PAIRS = ((0.02, 0.85), (0.08, 0.88))


def mfu(model_flops: float, time_s: float, peak_flop_s: float, devices: int = 1) -> float:
    """Return model FLOPs utilization: the FLOPs that the model needs over those that the machines could do."""
    require.not_negative(model_flops=model_flops)
    require.positive(time_s=time_s, peak_flop_s=peak_flop_s)
    require.count(devices=devices)
    return model_flops / (time_s * peak_flop_s * devices)


def hfu(
    model_flops: float, recomputed_flops: float, time_s: float, peak_flop_s: float, devices: int = 1
) -> float:
    """Return hardware FLOPs utilization, which counts all executed FLOPs, recomputation included."""
    require.not_negative(recomputed_flops=recomputed_flops)
    return mfu(model_flops + recomputed_flops, time_s, peak_flop_s, devices)


def mbu(bytes_moved: float, time_s: float, bandwidth_byte_s: float) -> float:
    """Return model bandwidth utilization, the lens for decoding."""
    require.not_negative(bytes_moved=bytes_moved)
    require.positive(time_s=time_s, bandwidth_byte_s=bandwidth_byte_s)
    return bytes_moved / (time_s * bandwidth_byte_s)


def mfu_behind(mbu: float, intensity: float, ridge: float) -> float:
    """Return the arithmetic share that a bandwidth share implies at this intensity, as the two are not independent."""
    require.share(mbu=mbu)
    require.not_negative(intensity=intensity)
    require.positive(ridge=ridge)
    return mbu * intensity / ridge


def intensity_behind(mfu: float, mbu: float, ridge: float) -> float:
    """Return the FLOP/byte of the work that shows both shares. In fp16 decode it is about the batch."""
    require.share(mfu=mfu, mbu=mbu)
    require.positive(mbu=mbu, ridge=ridge)
    return mfu * ridge / mbu


@dataclass(frozen=True)
class KernelDiagnosis:
    intensity: float
    ridge: float
    compute_share: float
    bandwidth_share: float

    @property
    def bound(self) -> str:
        return "memory" if self.intensity < self.ridge else "compute"

    @property
    def roof_share(self) -> float:
        return self.bandwidth_share if self.bound == "memory" else self.compute_share

    @property
    def at_roof(self) -> bool:
        return self.roof_share >= NEAR_ROOF

    @property
    def lever(self) -> str:
        """Return what can still help: a better implementation, fewer bytes, or fewer FLOPs."""
        if not self.at_roof:
            return "implementation"
        return "fewer bytes" if self.bound == "memory" else "fewer FLOPs"


def diagnose_kernel(
    flop_s: float, byte_s: float, peak_flop_s: float, bandwidth_byte_s: float
) -> KernelDiagnosis:
    """Put a profiled kernel under the roofline, with achieved FLOP/s and byte/s against the two peaks."""
    require.not_negative(flop_s=flop_s)
    require.positive(byte_s=byte_s, peak_flop_s=peak_flop_s, bandwidth_byte_s=bandwidth_byte_s)
    return KernelDiagnosis(
        flop_s / byte_s, peak_flop_s / bandwidth_byte_s, flop_s / peak_flop_s, byte_s / bandwidth_byte_s
    )


def request_s(first_token_s: float, between_tokens_s: float, tokens: int) -> float:
    """Return a request's latency, the first token's time plus the later tokens' at their pace."""
    require.not_negative(first_token_s=first_token_s, between_tokens_s=between_tokens_s)
    require.count(tokens=tokens)
    return first_token_s + (tokens - 1) * between_tokens_s


def tokens_per_s(requests: float, between_tokens_s: float) -> float:
    """Return the aggregate rate of requests that each get a token every `between_tokens_s`."""
    require.not_negative(requests=requests)
    require.positive(between_tokens_s=between_tokens_s)
    return requests / between_tokens_s


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of the values do not exceed. P99 is 0.99."""
    require.not_empty(values=values)
    require.share(share=share)
    return sorted(values)[max(0, math.ceil(round(share * len(values), 9)) - 1)]
