"""Explain why one hot expert slows every GPU: loads, placement, replication, the all-to-all, and the busiest device.

A placement gives, for each expert, the devices that hold a copy. Copies share its tokens evenly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kernels import require
from kernels.expert_load_balance.cost_placement import (
    Placement,
    contiguous,
    greedy,
    replicate,
    round_robin,
    slots_used,
)
from kernels.expert_load_balance.cost_search import optimum, searched
from kernels.expert_load_balance.cost_sends import (
    WAYS,
    Copied,
    Send,
    break_even_pairs,
    copied,
    places_hit,
    sends,
)
from kernels.routing import assignments, capacity_limit, drops, expert_loads, hot_loads, imbalance

__all__ = [
    "Copied",
    "DeviceWork",
    "EpStep",
    "Placement",
    "Send",
    "WAYS",
    "alltoall_bytes",
    "alltoall_s",
    "assignments",
    "auxiliary_loss",
    "bias_step",
    "break_even_pairs",
    "capacity_limit",
    "contiguous",
    "copied",
    "device_loads",
    "device_work",
    "drops",
    "ep_step",
    "expert_loads",
    "expert_memory_bytes",
    "greedy",
    "hot_loads",
    "imbalance",
    "optimum",
    "places_hit",
    "replicate",
    "round_robin",
    "searched",
    "sends",
    "slots_used",
    "sparse_layer_s",
]


def device_loads(loads: Sequence[float], placement: Placement, devices: int) -> list[float]:
    """Return the tokens that each device runs."""
    require.not_empty(loads=loads)
    require.not_negative(**{f"load of expert {i}": load for i, load in enumerate(loads)})
    require.count(devices=devices)
    if len(placement) != len(loads):
        raise ValueError(
            f"placement must be one entry an expert ({len(loads)}), got {len(placement)}; place every expert"
        )
    held = [0.0] * devices
    for load, copies in zip(loads, placement, strict=True):
        require.not_empty(copies=copies)
        for device in copies:
            require.one_of(range(devices), device=device)
            held[device] += load / len(copies)
    return held


@dataclass(frozen=True)
class EpStep:
    """Hold one expert-parallel layer: dispatch, experts, combine. All devices wait for the busiest."""

    device_tokens: tuple[float, ...]
    token_s: float
    fixed_s: float  # what every device pays, however few its tokens
    communication_s: float
    dropped: int

    @property
    def experts_s(self) -> float:
        return self.fixed_s + max(self.device_tokens) * self.token_s

    @property
    def step_s(self) -> float:
        return self.experts_s + self.communication_s

    @property
    def balanced_step_s(self) -> float:
        """Return the step's time with the same work spread evenly."""
        mean = sum(self.device_tokens) / len(self.device_tokens)
        return self.fixed_s + mean * self.token_s + self.communication_s

    @property
    def slowdown(self) -> float:
        return self.step_s / self.balanced_step_s

    @property
    def imbalance(self) -> float:
        return imbalance(self.device_tokens)

    @property
    def idle_share(self) -> float:
        """Return the share of all devices' time with the experts that is spent waiting for the busiest."""
        return 1 - 1 / self.imbalance

    @property
    def busiest(self) -> int:
        return max(range(len(self.device_tokens)), key=self.device_tokens.__getitem__)


def ep_step(
    loads: Sequence[int],
    placement: Placement,
    devices: int,
    *,
    token_s: float,
    fixed_s: float = 0.0,
    communication_s: float = 0.0,
    capacity: int | None = None,
) -> EpStep:
    """Return the layer's time with `token_s` per token on its device. Beyond `capacity` an expert drops tokens."""
    require.positive(token_s=token_s)
    require.not_negative(fixed_s=fixed_s, communication_s=communication_s)
    lost = drops(loads, capacity)
    kept = [load - out for load, out in zip(loads, lost, strict=True)]
    require.positive(**{"sum of loads": sum(kept)})
    held = device_loads(kept, placement, devices)
    return EpStep(tuple(held), token_s, fixed_s, communication_s, sum(lost))


def alltoall_bytes(
    tokens: int, top_k: int, hidden: int, devices: int, element_bytes: float = 2, *, combine: bool = False
) -> float:
    """Return the bytes that one device sends for its `tokens`, a hidden state per (token, expert) pair that leaves.

    Dispatch and combine each send the same bytes, and `combine` counts both.
    """
    require.count(tokens=tokens, top_k=top_k, hidden=hidden, devices=devices)
    require.positive(element_bytes=element_bytes)
    once = tokens * top_k * hidden * element_bytes * (devices - 1) / devices
    return 2 * once if combine else once


def alltoall_s(
    sent_bytes: float, link_byte_s: float, launch_s: float = 0.0, receiver_imbalance: float = 1.0
) -> float:
    """Return the time of an exchange. It lasts as long as its busiest receiver, so the hot expert's device takes that
    much more."""
    require.not_negative(sent_bytes=sent_bytes, launch_s=launch_s)
    require.positive(link_byte_s=link_byte_s, receiver_imbalance=receiver_imbalance)
    if receiver_imbalance < 1:
        raise ValueError(
            f"receiver_imbalance must be at least 1, got {receiver_imbalance:g}; the busiest is over the mean"
        )
    return launch_s + sent_bytes * receiver_imbalance / link_byte_s


def sparse_layer_s(
    dense_s: float, active_ratio: float, imbalance: float = 1.0, communication_s: float = 0.0
) -> float:
    """Return the time of a dense layer made sparse, `active_ratio` of its work, times the imbalance, plus the exchange.

    An active part of one eighth still loses where imbalance and exchange exceed the saving.
    """
    require.positive(dense_s=dense_s, imbalance=imbalance)
    require.share(active_ratio=active_ratio)
    require.not_negative(communication_s=communication_s)
    return dense_s * active_ratio * imbalance + communication_s


def expert_memory_bytes(
    slots: int, hidden: int, intermediate: int, matrices: int = 3, bits: float = 16
) -> float:
    """Return the bytes of the experts' weights, copies included. That is why more experts aren't free."""
    require.count(slots=slots, hidden=hidden, intermediate=intermediate, matrices=matrices)
    require.positive(bits=bits)
    return slots * matrices * hidden * intermediate * bits / 8


@dataclass(frozen=True)
class DeviceWork:
    """Hold the work of one device between the two exchanges, each byte once."""

    flops: float
    weight_bytes: float
    row_bytes: float  # in and out

    @property
    def bytes_moved(self) -> float:
        return self.weight_bytes + self.row_bytes


def device_work(
    rows: int, read: int, hidden: int, intermediate: int, matrices: int = 3, element_bytes: float = 2
) -> DeviceWork:
    """Count `rows` pairs through the `read` experts that got at least one. The other experts' weights are not read."""
    require.count(rows=rows, read=read, hidden=hidden, intermediate=intermediate, matrices=matrices)
    require.at_most(rows, "an expert without a row is not read", read=read)
    require.positive(element_bytes=element_bytes)
    return DeviceWork(
        flops=2.0 * rows * matrices * hidden * intermediate,
        weight_bytes=expert_memory_bytes(read, hidden, intermediate, matrices, 8 * element_bytes),
        row_bytes=2 * rows * hidden * element_bytes,
    )


def auxiliary_loss(loads: Sequence[float], mean_probabilities: Sequence[float]) -> float:
    """Return E x sum of (share of tokens x mean router probability), which is 1 when even, more when both favour the
    same."""
    require.not_empty(loads=loads)
    require.not_negative(**{f"load of expert {i}": load for i, load in enumerate(loads)})
    require.share(**{f"probability of expert {i}": p for i, p in enumerate(mean_probabilities)})
    require.positive(**{"sum of loads": sum(loads)})
    if len(loads) != len(mean_probabilities):
        raise ValueError(
            f"mean_probabilities must be one an expert ({len(loads)}), got {len(mean_probabilities)}; "
            "pair them up"
        )
    return len(loads) * sum(load / sum(loads) * p for load, p in zip(loads, mean_probabilities, strict=True))


def bias_step(biases: Sequence[float], loads: Sequence[float], rate: float) -> list[float]:
    """Balance without a loss. The choice bias of a busy expert falls by `rate`, of an idle one rises."""
    require.not_empty(biases=biases)
    require.positive(rate=rate)
    if len(biases) != len(loads):
        raise ValueError(f"biases must be one an expert ({len(loads)}), got {len(biases)}; pair them up")
    mean = sum(loads) / len(loads)
    return [bias + rate * ((load < mean) - (load > mean)) for bias, load in zip(biases, loads, strict=True)]
