"""Count the bytes of an all-reduce, and the part of communication that arithmetic doesn't hide."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from kernels import require

# "Performance Engineering": share of a step that is useful, by GPUs. Its bars are compute 100 plus the exposed part.
REPORTED_OVERLAP_EFFICIENCY = {8: 0.90, 1024: 0.18}
REPORTED_GRADIENT_PARAMETERS = 8.03e9  # "a 7B model" with 16.1 GB of fp16 gradients has 8.03e9 parameters


def ring_factor(devices: int) -> float:
    """Return the volume, in payloads, that each device sends in a ring all-reduce (reduce-scatter, then all-gather)."""
    require.count(devices=devices)
    return 2 * (devices - 1) / devices


@dataclass(frozen=True)
class AllReduce:
    payload_bytes: float
    sent_bytes: float
    transfer_s: float
    latency_s: float

    @property
    def total_s(self) -> float:
        return self.latency_s + self.transfer_s

    @property
    def latency_over_transfer(self) -> float:
        return self.latency_s / self.transfer_s if self.transfer_s else math.inf


def all_reduce(
    payload_bytes: float,
    devices: int,
    link_byte_s: float,
    launch_s: float = 5e-6,
    *,
    algorithm: str = "ring",
    hop_s: float = 0.0,
) -> AllReduce:
    """Count an all-reduce. A ring sends 2(N-1)/N payloads in 2(N-1) hops, a tree sends 2 payloads in 2 log2(N) hops."""
    require.not_negative(payload_bytes=payload_bytes, launch_s=launch_s, hop_s=hop_s)
    require.positive(link_byte_s=link_byte_s)
    require.one_of(("ring", "tree"), algorithm=algorithm)
    require.count(devices=devices)
    if algorithm == "ring":
        sent, hops = ring_factor(devices) * payload_bytes, 2 * (devices - 1)
    else:
        sent, hops = (2 * payload_bytes if devices > 1 else 0.0), 2 * math.ceil(math.log2(devices))
    return AllReduce(payload_bytes, sent, sent / link_byte_s, launch_s + hops * hop_s)


def activation_message(
    hidden: int, batch: int, link_byte_s: float, launch_s: float = 5e-6, element_bytes: float = 2
) -> AllReduce:
    """Return the source's tensor-parallel all-reduce, with about twice the batch's hidden states on the link."""
    require.count(hidden=hidden, batch=batch)
    require.positive(link_byte_s=link_byte_s, element_bytes=element_bytes)
    require.not_negative(launch_s=launch_s)
    payload = hidden * batch * element_bytes
    return AllReduce(payload, 2 * payload, 2 * payload / link_byte_s, launch_s)


def sent_s(timeline: Sequence["Bucket"], now_s: float) -> float:
    """Return how long the link has been busy with these buckets until a moment of the backward pass."""
    return sum(min(one.end_s, now_s) - one.start_s for one in timeline if one.start_s < now_s)


def exposed_s(communication_s: float, window_s: float) -> float:
    """Return the seconds of communication that no computation covers."""
    require.not_negative(communication_s=communication_s, window_s=window_s)
    return max(0.0, communication_s - window_s)


@dataclass(frozen=True)
class TrainingStep:
    forward_s: float
    backward_s: float
    communication_s: float
    sm_share: float = 0.0  # SMs the collective takes from the backward pass while it runs

    @property
    def serial_s(self) -> float:
        return self.forward_s + self.backward_s + self.communication_s

    @property
    def exposed_s(self) -> float:
        return exposed_s(self.communication_s, self.backward_s)

    @property
    def interference_s(self) -> float:
        """Return the time lost because the backward pass runs on fewer SMs during the overlap."""
        return min(self.communication_s, self.backward_s) * self.sm_share

    @property
    def overlapped_s(self) -> float:
        return self.forward_s + self.backward_s + self.exposed_s + self.interference_s

    @property
    def speedup(self) -> float:
        return self.serial_s / self.overlapped_s


def training_step(
    parameters: float,
    tokens: int,
    *,
    devices: int,
    peak_flop_s: float,
    link_byte_s: float,
    mfu: float = 0.4,
    gradient_bytes: float = 2,
    sm_share: float = 0.0,
) -> TrainingStep:
    """Return a data-parallel step, 2 FLOP a parameter and token forward, 4 backward, then the gradients in a ring."""
    require.positive(parameters=parameters, peak_flop_s=peak_flop_s, mfu=mfu, gradient_bytes=gradient_bytes)
    require.count(tokens=tokens)
    require.share(mfu=mfu, sm_share=sm_share)
    forward_s = 2 * parameters * tokens / (peak_flop_s * mfu)
    payload = parameters * gradient_bytes
    moved = all_reduce(payload, devices, link_byte_s, launch_s=0.0)
    return TrainingStep(forward_s, 2 * forward_s, moved.transfer_s, sm_share)


def sm_share_taken(sms_taken: int, sms: int = 132) -> float:
    """Compute throughput that a collective's own blocks take away."""
    require.whole(sms_taken=sms_taken)
    require.count(sms=sms)
    require.at_most(sms, "a GPU has no more", sms_taken=sms_taken)
    return sms_taken / sms


class Bucket(NamedTuple):  # there may be a hundred thousand
    ready_s: float  # its gradients are computed
    start_s: float  # the link is free
    end_s: float


def bucket_timeline(
    gradient_bytes: float,
    bucket_bytes: float,
    backward_s: float,
    *,
    devices: int,
    link_byte_s: float,
    launch_s: float = 5e-6,
) -> list[Bucket]:
    """Buckets fill evenly over the backward pass and leave one after another. Small ones pay launches, large ones
    start late. Time after `backward_s` is exposed.
    """
    require.positive(gradient_bytes=gradient_bytes, bucket_bytes=bucket_bytes, backward_s=backward_s)
    count = math.ceil(gradient_bytes / bucket_bytes)
    require.at_most(100_000, "take larger buckets", buckets=count)
    free_s, timeline = 0.0, []

    @cache  # all but the last have one size
    def took_s(size: float) -> float:
        return all_reduce(size, devices, link_byte_s, launch_s).total_s

    for index in range(count):
        filled = min((index + 1) * bucket_bytes, gradient_bytes)
        size = filled - index * bucket_bytes
        ready_s = backward_s * filled / gradient_bytes
        start_s = max(ready_s, free_s)
        free_s = start_s + took_s(size)
        timeline.append(Bucket(ready_s, start_s, free_s))
    return timeline


def overlap_efficiency(compute_s: float, exposed_s: float) -> float:
    """Return the time of computing over the time of the step."""
    require.positive(compute_s=compute_s)
    require.not_negative(exposed_s=exposed_s)
    return compute_s / (compute_s + exposed_s)


def reported_exposed_share(gpus: float) -> float:
    """Return exposed communication over compute, by a power law between the two reported ends."""
    (few, high), (many, low) = REPORTED_OVERLAP_EFFICIENCY.items()
    require.positive(gpus=gpus)
    if not few <= gpus <= many:
        raise ValueError(f"gpus must be from {few} to {many}, got {gpus}; nothing is reported beyond")
    start, end = 1 / high - 1, 1 / low - 1
    return start * (end / start) ** (math.log(gpus / few) / math.log(many / few))
