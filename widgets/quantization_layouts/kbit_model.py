"""Compute the k-bit dispatch explorer: a block, a session and a model, from one card's measured kernels."""

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise

from kernels.machines import machine
from kernels.quantization_layouts import cost
from kernels.quantization_layouts.cost import kbit_tables as tables
from kernels.quantization_layouts.cost_accounting import Table
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
ROWS = tuple(sorted({m for table in TABLES.values() for m in table}))


@dataclass(frozen=True)
class Block:
    """The seven matmuls of one block, each with its best kernel."""

    bits: int
    dense_us: float
    moe_us: float
    total_us: float
    speedup: float


@dataclass(frozen=True)
class Shape:
    name: str
    m: int
    family: str
    kbit_us: float
    fp16_us: float
    speedup: float


@dataclass(frozen=True)
class Session:
    users: float
    ratio: float  # of the fp16 time: the source's at k = 4, estimated at another, or computed from a table
    speedup: float


@dataclass(frozen=True)
class Curve:
    """A session's speed over its users, at k bits."""

    k: int
    points: tuple[Session, ...]


@dataclass(frozen=True)
class Zone:
    """Numbers of users whose decoding steps take the same kernel family."""

    family: str
    first: int
    last: int


@dataclass(frozen=True)
class Cell:
    """A measured M: the kernel family that is fastest at most of the seven shapes."""

    m: int
    family: str
    shapes: int


@dataclass(frozen=True)
class Result:
    card: str
    k: int
    m: int
    blocks: tuple[Block, ...]  # of 2, 3, 4, 5 and 16 bits
    chosen: Block
    fp16: Block
    users: int
    time_ratio: float  # of the session's fp16 time
    session_speedup: float  # the same as a speed-up over fp16, as everywhere here
    dominant: str
    break_even_users: int | None  # None if k bits win with any measured number of users
    most_users: int
    known: tuple[Session, ...]  # reported at k = 4, or at the measured M's
    between: tuple[Session, ...]  # at k
    curves: tuple[Curve, ...]  # the same at each k
    zones: tuple[Zone, ...]
    prompt_share: float  # of the steps, filled up to `prefill_m`; the source's sessions have their own
    decode_m: int
    counted_m: int  # the measured one that a decoding step is counted as
    decode_family: str
    prefill_m: int
    prefill_family: str
    parameters: float
    model_bytes: float
    fp16_bytes: float
    cards: int
    fp16_cards: int
    shapes: tuple[Shape, ...]
    cells: tuple[Cell, ...]


def _block(bits: int, m: int, table: Table) -> Block:
    moe_us, total_us = cost.block_us(bits, m, table, tables.MOE), cost.block_us(bits, m, table)
    return Block(bits, total_us - moe_us, moe_us, total_us, cost.block_speedup(bits, m, table))


def _shapes(k: int, m: int) -> tuple[Shape, ...]:
    rows = [
        Shape(name, m, cost.best_kernel(name, m)[0], us[k], us[16], us[16] / us[k])
        for name, us in tables.BEST_US[m].items()
    ]
    for (name, wide), us in tables.LARGE_M_US.items():
        family, best_us, speedup = cost.best_kernel(name, wide)
        rows.append(Shape(name, wide, family, best_us, us["fp16"], speedup))
    return tuple(rows)


_calibration = lru_cache(cost.calibration)


@lru_cache
def _families(k: int) -> dict[int, dict[str, str]]:
    return cost.fastest_families(_calibration(OURS), k)


def _calibrated_shapes(k: int, m: int) -> tuple[Shape, ...]:
    return tuple(
        Shape(name, m, _families(k)[m][name], us[k], us[16], us[16] / us[k])
        for name, us in TABLES[OURS][m].items()
    )


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
    share, ratio = _small_share(users), cost.user_ratio(users)
    if k != 4:
        ratio *= share * cost.block_us(k, 1) / cost.block_us(4, 1) + 1 - share
    return Session(users, ratio, 1 / ratio)


def _break_even(k: int) -> int:
    """The first number of users at which k bits no longer win."""
    return (
        cost.break_even_users()
        if k == 4
        else next((u for u in range(1, 65) if _session(u, k).ratio >= 1), 64)
    )


@lru_cache
def _filled(k: int, prompt_share: float) -> dict[int, float]:
    table = TABLES[OURS]
    return cost.filled_ratios(k, range(1, min(MOST_USERS, max(table)) + 1), prompt_share, table)


def _measured_m(card: str, m: int) -> None:
    if m not in TABLES[card]:
        known = ", ".join(map(str, TABLES[card]))
        raise InputError(
            f"Rows of the measured kernels must be one of {known} on {card}, got {m}; give one of these", "m"
        )


def _zones(family_of, most: int) -> tuple[Zone, ...]:
    runs = [(family, list(some)) for family, some in groupby(range(1, most + 1), family_of)]
    return tuple(Zone(family, some[0], some[-1]) for family, some in runs)


@lru_cache
def _reported_curves() -> tuple[Curve, ...]:
    places = [MOST_USERS ** (i / 30) for i in range(31)]
    return tuple(Curve(k, tuple(_session(users, k) for users in places)) for k in tables.BITS)


@lru_cache
def _computed_curves(prompt_share: float) -> tuple[Curve, ...]:
    return tuple(
        Curve(k, tuple(Session(u, ratio, 1 / ratio) for u, ratio in _filled(k, prompt_share).items()))
        for k in tables.BITS
    )


def _reported(k: int, users: int) -> dict:
    """The source's sessions, with the prompts that they had."""
    here, (decode_m, prefill_m) = _session(users, k), cost.session_m(users, CHUNK)
    curves = _reported_curves()
    return {
        "time_ratio": here.ratio,
        "session_speedup": here.speedup,
        "dominant": tables.USERS[max(u for u in tables.USERS if u <= users)][1],
        "break_even_users": _break_even(k),
        "most_users": MOST_USERS,
        "known": tuple(_session(u) for u in tables.USERS),
        "between": next(one.points for one in curves if one.k == k),
        "curves": curves,
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
    """Compute a stated mix of steps over a table: decode alone, and a share filled up to its largest M."""
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
        "dominant": family[counted],
        "break_even_users": cost.first_without_a_win(ratios),
        "most_users": max(ratios),
        "known": tuple(sessions[m] for m in table if m in sessions),
        "between": tuple(sessions.values()),
        "curves": _computed_curves(prompt_share),
        "zones": _zones(lambda rows: family[cost.measured_m(rows, table)], max(ratios)),
        "prompt_share": prompt_share,
        "decode_m": users,
        "counted_m": counted,
        "decode_family": family[counted],
        "prefill_m": most,
        "prefill_family": family[most],
        "cells": cells,
    }


def run(card, k, users, m, prompts, parameters_b):
    _measured_m(card, m)
    blocks = tuple(_block(bits, m, TABLES[card]) for bits in (*tables.BITS, 16))
    memory, stored = machine(card).memory_bytes, cost.memory_by_bits(parameters_b * 1e9)
    source = card == SOURCE
    return Result(
        card=card,
        k=k,
        m=m,
        blocks=blocks,
        chosen=next(b for b in blocks if b.bits == k),
        fp16=blocks[-1],
        users=users,
        parameters=parameters_b * 1e9,
        model_bytes=stored[k],
        fp16_bytes=stored[16],
        cards=cost.devices_needed(stored[k], memory),
        fp16_cards=cost.devices_needed(stored[16], memory),
        shapes=_shapes(k, m) if source else _calibrated_shapes(k, m),
        **(_reported(k, users) if source else _computed(k, users, prompts / 100)),
    )
