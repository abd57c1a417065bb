"""Place experts on devices: by number, by load, and with copies of the hottest."""

from collections.abc import Sequence

from kernels import require

Placement = tuple[tuple[int, ...], ...]  # for each expert, the devices of its copies


def _check(experts: int, devices: int) -> None:
    require.count(experts=experts, devices=devices)


def contiguous(experts: int, devices: int) -> Placement:
    """Put the first experts on the first device, and so on, so that hot neighbours share one."""
    _check(experts, devices)
    return tuple((expert * devices // experts,) for expert in range(experts))


def round_robin(experts: int, devices: int) -> Placement:
    """Deal experts to devices like cards."""
    _check(experts, devices)
    return tuple((expert % devices,) for expert in range(experts))


def slots_used(placement: Placement) -> int:
    """Return the number of expert weights held in all, copies counted."""
    return sum(len(copies) for copies in placement)


def _least_loaded(held: list[float], count: list[int], room: int, taken: Sequence[int]) -> int | None:
    free = [d for d in range(len(held)) if count[d] < room and d not in taken]
    return min(free, key=lambda d: (held[d], d)) if free else None


def greedy(loads: Sequence[float], devices: int) -> Placement:
    """Place the heaviest expert first, on the least loaded device with a free slot. All devices have equally many slots."""
    return replicate(loads, devices, spare_slots=0)


def replicate(loads: Sequence[float], devices: int, spare_slots: int) -> Placement:
    """Give `spare_slots` copies, one by one, to the expert with the most tokens per copy, and then place greedily.

    No expert has two copies on one device. A copy that finds no device is left out.
    """
    require.not_empty(loads=loads)
    require.not_negative(**{f"load of expert {i}": load for i, load in enumerate(loads)})
    require.count(devices=devices)
    require.whole(spare_slots=spare_slots)
    copies = [1] * len(loads)
    for _ in range(spare_slots):
        open_experts = [e for e in range(len(loads)) if copies[e] < devices]
        if not open_experts:
            break
        copies[max(open_experts, key=lambda e: (loads[e] / copies[e], -e))] += 1
    return place_copies(loads, copies, devices)


def place_copies(loads: Sequence[float], copies: Sequence[int], devices: int) -> Placement:
    """Place this number of copies of each expert, the heaviest share first, on the least loaded device with a free
    slot."""
    room = -(-sum(copies) // devices)
    held, count = [0.0] * devices, [0] * devices
    placed: list[tuple[int, ...]] = [()] * len(loads)
    wanted = [(loads[e] / copies[e], e) for e in range(len(loads)) for _ in range(copies[e])]
    for load, expert in sorted(wanted, key=lambda pair: (-pair[0], pair[1])):
        device = _least_loaded(held, count, room, placed[expert])
        if device is not None:
            held[device] += load
            count[device] += 1
            placed[expert] += (device,)
    return tuple(placed)
