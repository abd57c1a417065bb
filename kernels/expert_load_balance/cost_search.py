"""Find better placements than greedy, by a search from where greedy ends, and the best one for small cases.

Both keep to greedy's rules: equal room on all devices, no expert twice on one, copies share an expert's tokens evenly.
"""

from collections.abc import Iterator, Sequence

from kernels import require
from kernels.expert_load_balance.cost_placement import Placement, place_copies, replicate, slots_used

MOST_SLOTS = 12  # the exact search tries what grows as devices to the power of slots
GOOD = 1.001  # a busiest device within a thousandth of even is let be
LESS = 1 - 1e-9  # by how much a step must be better, so that rounding never goes round in circles

Held = list[set[int]]  # for each device, the experts it holds


def searched(loads: Sequence[float], devices: int, spare_slots: int = 0) -> Placement:
    """Improve greedy by single changes, and a copy given to another expert, as long as the busiest device gains."""
    best = _settled(replicate(loads, devices, spare_slots), loads, devices)
    while max(_loads(best, loads)) > GOOD * sum(loads) / devices:
        copies = [sum(e in here for here in best) for e in range(len(loads))]
        tries = (place_copies(loads, n, devices) for n in _given_on(copies, loads, devices))
        better = min(
            (_settled(p, loads, devices) for p in tries), key=lambda h: _order(h, loads), default=best
        )
        if not _less(_order(better, loads), _order(best, loads)):
            break
        best = better
    return _placement(best, len(loads))


def _settled(start: Placement, loads: Sequence[float], devices: int) -> Held:
    """Make the best single change repeatedly. One of the busiest device's experts moves to a free slot elsewhere, or
    is swapped for another device's."""
    held = [{e for e, copies in enumerate(start) if d in copies} for d in range(devices)]
    room = -(-slots_used(start) // devices)
    while max(now := _loads(held, loads)) > GOOD * sum(now) / devices:
        changes = _changes(held, now.index(max(now)), room)
        better = min(changes, key=lambda h: _order(h, loads), default=held)
        if not _less(_order(better, loads), _order(held, loads)):
            break
        held = better
    return held


def _given_on(copies: list[int], loads: Sequence[float], devices: int) -> Iterator[list[int]]:
    """Take one copy from an expert that has several, for one of the heavy experts."""
    heavy = sorted(range(len(loads)), key=lambda e: -loads[e])[: 2 * devices]
    for giver in (e for e, n in enumerate(copies) if n > 1):
        for taker in (e for e in heavy if copies[e] < devices and e != giver):
            yield [n - (e == giver) + (e == taker) for e, n in enumerate(copies)]


def optimum(loads: Sequence[float], devices: int, spare_slots: int = 0) -> Placement:
    """Return the placement whose busiest device has the least, found by branch and bound, for 12 slots and fewer."""
    start = searched(loads, devices, spare_slots)  # refuses what greedy refuses
    require.at_most(
        MOST_SLOTS,
        "take the searched placement for more",
        **{"experts + spare_slots": len(loads) + spare_slots},
    )
    room = -(-(len(loads) + spare_slots) // devices)
    best = [{e for e, copies in enumerate(start) if d in copies} for d in range(devices)]
    for copies in _shared_out(len(loads), devices, spare_slots):
        share = [load / n for load, n in zip(loads, copies, strict=True)]
        if max(*share, sum(loads) / devices) < LESS * max(_loads(best, loads)):
            pieces = sorted((e for e, n in enumerate(copies) for _ in range(n)), key=lambda e: (-share[e], e))
            best = _fill(pieces, share, room, best, max(_loads(best, loads)), loads)
    return _placement(best, len(loads))


def _loads(held: Held, loads: Sequence[float]) -> list[float]:
    copies = [sum(e in here for here in held) for e in range(len(loads))]
    return [sum(loads[e] / copies[e] for e in sorted(here)) for here in held]


def _order(held: Held, loads: Sequence[float]) -> list[float]:
    """Return what a search makes small: the busiest device's load, then the next one's."""
    return sorted(_loads(held, loads), reverse=True)


def _less(a: list[float], b: list[float]) -> bool:
    for x, y in zip(a, b, strict=True):
        if x < y * LESS or y < x * LESS:
            return x < y
    return False


def _placement(held: Held, experts: int) -> Placement:
    return tuple(tuple(d for d, here in enumerate(held) if e in here) for e in range(experts))


def _changed(held: Held, *changes: tuple[int, int | None, int | None]) -> Held:
    """Return a copy in which device d loses expert `out` and gets expert `into`, for each (d, out, into)."""
    new = [set(here) for here in held]
    for device, out, into in changes:
        new[device] = (new[device] - {out}) | ({into} if into is not None else set())
    return new


def _changes(held: Held, busiest: int, room: int) -> Iterator[Held]:
    for mine in sorted(held[busiest]):
        for other, here in enumerate(held):
            if other == busiest or mine in here:
                continue
            if len(here) < room:
                yield _changed(held, (busiest, mine, None), (other, None, mine))
            for theirs in sorted(here):
                if theirs not in held[busiest]:
                    yield _changed(held, (busiest, mine, theirs), (other, theirs, mine))


def _shared_out(experts: int, devices: int, spare: int) -> Iterator[list[int]]:
    """Yield every way to give up to `spare` copies more, at most one a device."""
    if not experts:
        yield []
        return
    for more in range(min(spare, devices - 1) + 1):
        for rest in _shared_out(experts - 1, devices, spare - more):
            yield [1 + more, *rest]


def _fill(pieces, share, room: int, best: Held, limit: float, loads) -> Held:
    """Put piece after piece on every device that can take it, and give up where the busiest doesn't beat `limit`."""
    held, now = [set() for _ in range(max(1, len(best)))], [0.0] * len(best)

    def place(at: int) -> None:
        nonlocal best, limit
        if at == len(pieces):
            best, limit = [set(here) for here in held], max(now)
            return
        expert, tried = pieces[at], set()
        for d, here in enumerate(held):
            alike = (now[d], frozenset(here))  # two empty devices are one choice
            if expert in here or len(here) == room or alike in tried:
                continue
            tried.add(alike)
            if now[d] + share[expert] < LESS * limit:
                here.add(expert)
                before, now[d] = now[d], now[d] + share[expert]
                place(at + 1)
                here.discard(expert)
                now[d] = before

    place(0)
    return best
