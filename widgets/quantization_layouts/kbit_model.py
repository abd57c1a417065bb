"""Compute how fast a session at k bits is, as reported or from one card's measured kernels."""

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise

from kernels.quantization_layouts import cost
from kernels.quantization_layouts.cost import kbit_tables as tables
from widgets.controls import InputError

SOURCE, OURS = tables.MACHINE, "H200"
MOST_USERS = 64
CHUNK = 512  # tokens of a prompt that a step reads with the users' own


def _tables() -> dict:
    """Return the cards with a table of whole rows. A card that was never measured here is not offered."""
    found = {SOURCE: cost.measured()}
    try:
        return found | ({OURS: table} if (table := cost.measured(OURS)) else {})
    except ValueError:
        return found


TABLES = _tables()


@dataclass(frozen=True)
class Session:
    users: float
    ratio: float  # of the fp16 time, the source's at k = 4, estimated at another k, or computed from a table
    speedup: float


@dataclass(frozen=True)
class Zone:
    """Hold the numbers of users whose decoding steps take the same kernel family."""

    family: str
    first: int
    last: int


@dataclass(frozen=True)
class Cell:
    """Hold a measured M, with the kernel family that is fastest at most of the seven shapes."""

    m: int
    family: str
    shapes: int


@dataclass(frozen=True)
class Result:
    card: str
    k: int
    users: int
    time_ratio: float  # of the session's fp16 time
    session_speedup: float  # the same as a speed-up over fp16, as everywhere here
    unpacking_share: float | None  # of a reported session's time, in steps that unpack whole matrices
    dominant: str
    last_win_users: int  # the most users for whom k bits win, 0 if there are none
    break_even_users: int | None  # None if k bits win with any measured number of users
    most_users: int
    known: tuple[Session, ...]  # at k, for the reported numbers of users or the measured M's
    curve: tuple[Session, ...]  # at k, for the numbers of users between them, too
    zones: tuple[Zone, ...]
    prompt_share: float  # of the steps, filled up to `prefill_m` (the source's sessions have their own)
    decode_m: int
    counted_m: int  # the measured one that a decoding step is counted as
    decode_family: str
    prefill_m: int
    prefill_family: str
    cells: tuple[Cell, ...]


_calibration = lru_cache(cost.calibration)


@lru_cache
def _families(k: int) -> dict[int, dict[str, str]]:
    return cost.fastest_families(_calibration(OURS), k)


def _cells(k: int) -> tuple[Cell, ...]:
    counted = ((m, Counter(by_shape.values()).most_common(1)[0]) for m, by_shape in _families(k).items())
    return tuple(Cell(m, family, shapes) for m, (family, shapes) in counted)


def _small_share(users: float) -> float:
    """Return the share of a session's time in kernels that read k-bit weights. The rest unpacks them to 16 bits first."""

    def share(said: str) -> float:
        percent = float(re.search(r"(\d+)%", said)[1]) / 100
        return 1 - percent if said.startswith("dequant") else percent

    known = [(u, share(said)) for u, (_, said) in tables.USERS.items()]
    for (u0, s0), (u1, s1) in pairwise(known):
        if users <= u1:
            return s0 + (s1 - s0) * math.log(users / u0) / math.log(u1 / u0)
    return known[-1][1]


def _session(users: float, k: int = 4) -> Session:
    """At another k than the reported one, the share that reads k-bit weights scales as the block's kernels do."""
    ratio = cost.user_ratio(users) * _time_at(users, k)
    return Session(users, ratio, 1 / ratio)


def _time_at(users: float, k: int) -> float:
    """Return the time at k bits, of the time at 4."""
    share = _small_share(users)
    return 1.0 if k == 4 else share * cost.block_us(k, 1) / cost.block_us(4, 1) + 1 - share


def _unpacking_share(users: float, k: int) -> float:
    return (1 - _small_share(users)) / _time_at(users, k)


def _break_even(k: int) -> int:
    """Return the first number of users at which k bits no longer win."""
    return (
        cost.break_even_users()
        if k == 4
        else next((u for u in range(1, 65) if _session(u, k).ratio >= 1), 64)
    )


@lru_cache
def _filled(k: int, prompt_share: float) -> dict[int, float]:
    table = TABLES[OURS]
    return cost.filled_ratios(k, range(1, min(MOST_USERS, max(table)) + 1), prompt_share, table)


def _zones(family_of, most: int) -> tuple[Zone, ...]:
    runs = [(family, list(some)) for family, some in groupby(range(1, most + 1), family_of)]
    return tuple(Zone(family, some[0], some[-1]) for family, some in runs)


@lru_cache
def _reported_curve(k: int) -> tuple[Session, ...]:
    return tuple(_session(MOST_USERS ** (i / 30), k) for i in range(31))


def _reported(k: int, users: int) -> dict:
    """Return the source's sessions, with the prompts that they had."""
    here, (decode_m, prefill_m) = _session(users, k), cost.session_m(users, CHUNK)
    return {
        "time_ratio": here.ratio,
        "session_speedup": here.speedup,
        "unpacking_share": _unpacking_share(users, k),
        "dominant": tables.USERS[max(u for u in tables.USERS if u <= users)][1],
        "break_even_users": _break_even(k),
        "most_users": MOST_USERS,
        "known": tuple(_session(u, k) for u in tables.USERS),
        "curve": _reported_curve(k),
        "zones": _zones(cost.dense_family, MOST_USERS),
        "prompt_share": 0.0,
        "decode_m": decode_m,
        "counted_m": decode_m,
        "decode_family": cost.dense_family(decode_m),
        "prefill_m": prefill_m,
        "prefill_family": cost.dense_family(prefill_m),
        "cells": (),
    }


def _computed(k: int, users: int, prompt_share: float) -> dict:
    """Compute a stated mix of steps over a table. A share is filled up to the largest M, and the rest only decode."""
    table, ratios = TABLES[OURS], _filled(k, prompt_share)
    if users not in ratios:
        raise InputError(
            f"Users at once must be at most {max(ratios)} on {OURS}, got {users}; nothing was measured beyond",
            "users",
        )
    cells, counted, most = _cells(k), cost.measured_m(users, table), max(table)
    family = {cell.m: cell.family for cell in cells}
    sessions = {u: Session(u, ratio, 1 / ratio) for u, ratio in ratios.items()}
    return {
        "time_ratio": sessions[users].ratio,
        "session_speedup": sessions[users].speedup,
        "unpacking_share": None,
        "dominant": family[counted],
        "break_even_users": cost.first_without_a_win(ratios),
        "most_users": max(ratios),
        "known": tuple(sessions[m] for m in table if m in sessions),
        "curve": tuple(sessions.values()),
        "zones": _zones(lambda rows: family[cost.measured_m(rows, table)], max(ratios)),
        "prompt_share": prompt_share,
        "decode_m": users,
        "counted_m": counted,
        "decode_family": family[counted],
        "prefill_m": most,
        "prefill_family": family[most],
        "cells": cells,
    }


def run(card, k, users, prompts):
    here = _reported(k, users) if card == SOURCE else _computed(k, users, prompts / 100)
    even = here["break_even_users"]
    return Result(
        card=card, k=k, users=users, last_win_users=here["most_users"] if even is None else even - 1, **here
    )
