"""Go from measured kernels to a model: a block's seven shapes, a workload's mix of M, and the memory that k bits
take.

A table is M -> shape -> bits -> microseconds, 16 bits for fp16, either the source's of the RTX 4090, or one made of a
calibration.
"""

import json
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from kernels import require
from kernels.quantization_layouts import kbit_tables as tables

Table = Mapping[int, Mapping[str, Mapping[int, float]]]
CALIBRATIONS = Path(__file__).parent / "tables"
FAMILIES = ("scalar GEMV", "MMA", "dequantize + library", "16 bits")


def calibration(card: str) -> dict:
    """Return the calibration of the card of this name ('H200')."""
    path = CALIBRATIONS / f"{card.lower().replace(' ', '_')}.json"
    if not path.exists():
        known = ", ".join([tables.MACHINE, *sorted(p.stem for p in CALIBRATIONS.glob("*.json"))])
        raise ValueError(
            f"card must be one of {known}, got {card!r}; measure it: python -m kernels.quantization_layouts.calibrate"
        )
    return json.loads(path.read_text(encoding="utf-8"))


def measured(card: str = tables.MACHINE) -> Table:
    """Return the source's table, or the table of a calibration of this card."""
    return tables.BEST_US if card == tables.MACHINE else from_calibration(calibration(card))


def _rows(run: Mapping) -> Iterator[tuple[int, str, int, Mapping]]:
    """Yield the rows of k bits on the seven shapes, as M, shape, bits, and the row itself."""
    names = {(n, k, name in tables.MOE): name for name, (n, k) in tables.SHAPES.items()}
    for row in run["rows"]:
        name = names.get((row["n"], row["k"], row["experts"] > 1))
        if name is not None and row["form"].startswith("k"):
            yield row["m"], name, int(row["form"][1:]), row


def from_calibration(run: Mapping, packed_only: bool = True) -> Table:
    """Return a calibration's rows of the seven shapes for which all four k were measured, with the best kernel of each.

    `packed_only` leaves 16-bit kernels to the 16-bit column, as k bits take where no 16-bit copy is kept.
    """
    found: dict[int, dict[str, dict[int, float]]] = {}
    for m, name, bits, row in _rows(run):
        us = found.setdefault(m, {}).setdefault(name, {})
        us[bits] = row["us"][row["best_packed" if packed_only else "best"]]
        us[16] = min(us.get(16, float("inf")), row["us"]["16 bits"])
    whole = {16, *tables.BITS}
    return {
        m: shapes
        for m, shapes in sorted(found.items())
        if set(shapes) == set(tables.SHAPES) and all(set(us) == whole for us in shapes.values())
    }


def kernel_family(name: str) -> str:
    """Return the family with which a calibrated kernel's name begins, such as MMA for 'MMA ring 4 x 64 rows, 16 cols'."""
    for family in FAMILIES:
        if name.startswith(family):
            return family
    raise ValueError(
        f"name must be one that begins with {', '.join(FAMILIES)}, got {name!r}; take a name of a calibration"
    )


def fastest_families(run: Mapping, bits: int) -> dict[int, dict[str, str]]:
    """Return M -> shape -> family of the kernel that was fastest on k-bit weights alone, at each M of the calibration."""
    require.one_of(tables.BITS, bits=bits)
    found = {m: {} for m in from_calibration(run)}
    for m, name, form, row in _rows(run):
        if m in found and form == bits:
            found[m][name] = kernel_family(row["best_packed"])
    return found


def block_us(
    bits: int, m: int = 1, table: Table = tables.BEST_US, shapes: Collection[str] = tuple(tables.SHAPES)
) -> float:
    """Sum the best kernel of each of the seven shapes (or some): one transformer block, each shape once."""
    require.one_of((*tables.BITS, 16), bits=bits)
    require.one_of(tuple(table), m=m)
    for shape in shapes:
        require.one_of(tuple(tables.SHAPES), shape=shape)
    return sum(us[bits] for name, us in table[m].items() if name in shapes)


def block_speedup(bits: int, m: int = 1, table: Table = tables.BEST_US) -> float:
    """Return fp16 time over k-bit time of the block."""
    return block_us(16, m, table) / block_us(bits, m, table)


def measured_m(m: int, table: Table = tables.BEST_US) -> int:
    """Return the first measured M that is not below `m`. Narrow weights win less there, so it flatters no kernel."""
    require.count(m=m)
    known = sorted(table)
    if not known or m > known[-1]:
        most = known[-1] if known else 0
        raise ValueError(f"m must be at most {most}, got {m}; nothing was measured beyond")
    return known[bisect_left(known, m)]


def workload_ratio(bits: int, steps: Mapping[int, float], table: Table = tables.BEST_US) -> float:
    """Return the k-bit time over fp16 time of a whole workload, given rows of a step (M) -> how many such steps, or
    their share."""
    require.not_empty(steps=steps)
    require.not_negative(**{f"steps of M = {m}": count for m, count in steps.items()})
    require.positive(**{"number of steps": sum(steps.values())})
    at = {m: measured_m(m, table) for m in steps}
    kbit, sixteen = (sum(count * block_us(b, at[m], table) for m, count in steps.items()) for b in (bits, 16))
    return kbit / sixteen


def concurrency_ratios(
    bits: int, users: Collection[int], chunk: int, prefill_share: float, table: Table = tables.BEST_US
) -> dict[int, float]:
    """Return the same by concurrent users: each step decodes a token for each, and a share also prefills `chunk`
    tokens."""
    require.count(chunk=chunk)
    require.share(prefill_share=prefill_share)
    return {
        u: workload_ratio(
            bits, {u: 1 - prefill_share} | ({u + chunk: prefill_share} if prefill_share else {}), table
        )
        for u in users
    }


def filled_ratios(
    bits: int, users: Collection[int], prompt_share: float, table: Table = tables.BEST_US
) -> dict[int, float]:
    """Return the same where prompts come in pieces, so that a share of the steps is filled up to the most rows that
    the table has."""
    require.share(prompt_share=prompt_share)
    most = max(table, default=0)
    counted = {u: measured_m(u, table) for u in users}
    by_m = {
        m: workload_ratio(bits, {m: 1 - prompt_share, most: prompt_share} if m < most else {most: 1}, table)
        for m in set(counted.values())
    }
    return {u: by_m[m] for u, m in counted.items()}


def first_without_a_win(ratios: Mapping[int, float]) -> int | None:
    """Return the fewest users of `concurrency_ratios` or `filled_ratios` at which k bits save no time, or None."""
    require.not_empty(ratios=ratios)
    return min((users for users, ratio in ratios.items() if ratio >= 1), default=None)


def memory_by_bits(parameters: float, group: int | None = None, scale_bits: float = 16) -> dict[int, float]:
    """Return the bytes of a model's weights for each k and for 16 bits. With a group, its scales are counted, too."""
    require.positive(parameters=parameters)
    require.not_negative(scale_bits=scale_bits)
    if group is not None:
        require.count(group=group)
    extra = scale_bits / group if group else 0.0
    return {bits: parameters * (bits + (extra if bits < 16 else 0)) / 8 for bits in (*tables.BITS, 16)}
