"""Compute the loads, placement, exchange and wait of an expert-parallel layer's step, device by device."""

from dataclasses import dataclass
from functools import lru_cache

from kernels.expert_load_balance import cost
from kernels.machines import machine

HIDDEN, INTERMEDIATE, ELEM_BYTES = 7168, 2048, 2  # one expert, three matrices of this size in 16 bits
MOST_SKEW, PULLS = 2.0, 20  # the halts of both knobs


@dataclass(frozen=True)
class Expert:
    routed: int
    kept: int
    dropped: int
    devices: tuple[int, ...]


@dataclass(frozen=True)
class Device:
    tokens: float
    travel_s: float  # its own rows, before it waits until the busiest has all
    experts_s: float
    idle_s: float
    held: tuple[tuple[int, float], ...]  # (expert, its tokens here)


@dataclass(frozen=True)
class Result:
    pattern: str
    placement: str
    tokens: int
    top_k: int
    hot_share: float
    skew: float
    devices: tuple[Device, ...]
    experts: tuple[Expert, ...]
    machine: str
    even_tokens: float  # of one expert
    capacity_tokens: int
    busiest: int
    busiest_tokens: float
    mean_tokens: float
    token_s: float
    exchange_s: float
    step_s: float
    balanced_step_s: float
    slowdown: float
    idle_share: float
    dropped: int
    dropped_share: float
    slots: int
    weight_bytes: float
    most_routed: int  # to one expert, wherever the knob of this pattern is pulled
    longest_step_s: float
    ridge_tokens: float  # below this number of tokens an expert's weights take longer to read than to use


def _loads(pattern: str, tokens: int, top_k: int, experts: int, hot_share: float, skew: float):
    if pattern == "hot":
        return cost.hot_loads(tokens, top_k, experts, hot_share)
    return cost.expert_loads(tokens, top_k, experts, skew if pattern == "tail" else 0.0)


def _placement(how: str, loads, devices: int, copies: int):
    if copies:
        return cost.replicate(loads, devices, copies)
    if how == "load":
        return cost.greedy(loads, devices)
    return (cost.contiguous if how == "number" else cost.round_robin)(len(loads), devices)


def _exchange_s(uneven: float, tokens: int, devices: int, top_k: int, machine_name: str) -> float:
    target = machine(machine_name)
    sent = cost.alltoall_bytes(max(1, tokens // devices), top_k, HIDDEN, devices, ELEM_BYTES, combine=True)
    return cost.alltoall_s(sent, target.link_bandwidth, 2 * target.launch_s, uneven)


@lru_cache(maxsize=256)
def _extremes(
    pattern, placement, copies, limit, devices, experts, top_k, tokens, machine_name
) -> tuple[int, float]:
    """Return the ends of both axes, the most that any pull of this pattern's knob gives, placed by number or as now."""
    token_s = 6 * HIDDEN * INTERMEDIATE / machine(machine_name).rate("fp16")
    most_routed, longest_s = 0, 0.0
    for pull in range(PULLS + 1):
        knob = "tail" if pattern == "tail" else "hot"
        wanted = _loads(knob, tokens, top_k, experts, pull / PULLS, MOST_SKEW * pull / PULLS)
        left = [min(load, limit) if limit else load for load in wanted]
        for some, homes in (
            (wanted, cost.contiguous(experts, devices)),
            (left, _placement(placement, left, devices, copies)),
        ):
            there = cost.device_loads(some, homes, devices)
            exchange_s = _exchange_s(cost.imbalance(there), tokens, devices, top_k, machine_name)
            longest_s = max(longest_s, max(there) * token_s + exchange_s)
        most_routed = max(most_routed, *wanted)
    return most_routed, longest_s


def run(pattern, placement, copies, capacity, hot_share, skew, devices, experts, top_k, tokens, machine_name):
    loads, target = _loads(pattern, tokens, top_k, experts, hot_share, skew), machine(machine_name)
    limit = cost.capacity_limit(tokens, top_k, experts, capacity) if capacity else None
    lost = cost.drops(loads, limit)
    kept = [load - out for load, out in zip(loads, lost, strict=True)]
    placed = _placement(placement, kept, devices, copies)
    token_s = 6 * HIDDEN * INTERMEDIATE / target.rate("fp16")
    held = cost.device_loads(kept, placed, devices)

    def exchange(uneven: float) -> float:
        return _exchange_s(uneven, tokens, devices, top_k, machine_name)

    def travel(received: float) -> float:  # a device sends an even share, whatever it receives
        return exchange(max(1.0, received / mean))

    most_routed, longest_s = _extremes(
        pattern, placement, copies, limit, devices, experts, top_k, tokens, machine_name
    )
    uneven = cost.imbalance(held)
    step = cost.ep_step(
        loads, placed, devices, token_s=token_s, communication_s=exchange(uneven), capacity=limit
    )
    mean = sum(held) / devices
    balanced = cost.EpStep((mean,) * devices, token_s, 0.0, exchange(1.0), 0).step_s
    most, slots = max(held), cost.slots_used(placed)
    here = [
        tuple((e, kept[e] / len(where)) for e, where in enumerate(placed) if d in where)
        for d in range(devices)
    ]
    return Result(
        pattern,
        placement,
        tokens,
        top_k,
        hot_share,
        skew,
        tuple(
            Device(n, travel(n), n * token_s, (most - n) * token_s, on)
            for n, on in zip(held, here, strict=True)
        ),
        tuple(Expert(*one) for one in zip(loads, kept, lost, placed, strict=True)),
        machine_name,
        sum(loads) / experts,
        limit or 0,
        step.busiest,
        most,
        mean,
        token_s,
        exchange(uneven),
        step.step_s,
        balanced,
        step.step_s / balanced,
        step.idle_share,
        step.dropped,
        step.dropped / sum(loads),
        slots,
        cost.expert_memory_bytes(slots, HIDDEN, INTERMEDIATE),
        most_routed,
        longest_s,
        target.ridge("fp16"),
    )
