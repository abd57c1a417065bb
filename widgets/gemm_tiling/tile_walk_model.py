"""Compute the waves of programs over the tiles of C, and the bands of A and B that each wave reads."""

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate

from kernels.gemm_tiling import cost
from kernels.machines import machine

ELEM_BYTES = {"fp16": 2, "fp8": 1}
SHOWN = 32  # waves at most, because a larger C goes on like this
GROUPS = (1, 2, 4, 8, 16, 32)  # rows of tiles in a group

Piece = tuple[int, int, int, int]  # rows from, to (not included), columns from, to


@dataclass(frozen=True)
class Wave:
    """Hold the bytes that programs read while they run at the same time, if every band comes from HBM once a wave."""

    pieces: tuple[Piece, ...]
    walked: tuple[Piece, ...]  # by the waves before
    a_bands: tuple[int, ...]
    b_bands: tuple[int, ...]
    a_band_count: int
    b_band_count: int
    bytes_read: int
    flop_per_byte: float


@dataclass(frozen=True)
class Walk:
    waves: tuple[Wave, ...]
    read_so_far: tuple[int, ...]
    flop_per_byte_so_far: tuple[float, ...]


@dataclass(frozen=True)
class Result:
    m: int
    n: int
    k: int
    bm: int  # after the cut at the matrix's edge, so never more than m
    bn: int
    bk: int
    bm_asked: int
    bn_asked: int
    group_m: int
    dtype: str
    elem_bytes: int
    machine: str
    tiles_m: int
    tiles_n: int
    programs: int
    wave_count: int
    reuse_flop_per_element: float
    tile_flop_per_byte: float
    ridge_flop_per_byte: float
    stage_bytes: int
    row_walk: Walk
    grouped_walk: Walk
    row: Wave  # the first wave of each
    grouped: Wave
    saving_ratio: float
    total_ratio: float  # of the bytes of all waves shown
    shares: tuple[float, ...]  # of C, done after each wave
    ratios: tuple[float, ...]  # the bytes row by row over those in groups, after each wave
    walks: tuple[Walk, ...]  # for each of GROUPS
    read_by_group: tuple[int, ...]  # by all waves shown, for each of GROUPS
    best_group: int  # the smallest group among those that read least


def pieces(first: int, last: int, tiles_m: int, tiles_n: int, group_m: int) -> tuple[Piece, ...]:
    """Return the tiles of programs first .. last - 1 as few rectangles, down the rows of a group, then its columns."""
    found, at = [], first
    while at < last:
        group = at // (group_m * tiles_n)
        top, before = group * group_m, group * group_m * tiles_n
        high = min(group_m, tiles_m - top)
        end = min(last - before, high * tiles_n)
        (c0, r0), (c1, r1) = divmod(at - before, high), divmod(end, high)
        if c0 == c1:
            found.append((top + r0, top + r1, c0, c0 + 1))
        else:
            found += [(top + r0, top + high, c0, c0 + 1)] if r0 else []
            found += [(top, top + high, c0 + bool(r0), c1)] if c1 > c0 + bool(r0) else []
            found += [(top, top + r1, c1, c1 + 1)] if r1 else []
        at = before + end
    return tuple(found)


def _walked(first: int, tiles_m: int, tiles_n: int, group_m: int) -> tuple[Piece, ...]:
    whole = first // (group_m * tiles_n) * group_m
    rest = pieces(whole * tiles_n, first, tiles_m, tiles_n, group_m)
    return (((0, min(whole, tiles_m), 0, tiles_n), *rest)) if whole else rest


@lru_cache(maxsize=64)  # row by row stays as it is while the group's edge is pulled
def _walk(group: int, m: int, n: int, k: int, bm: int, bn: int, elem: int, sms: int) -> Walk:
    tiles_m, tiles_n = -(-m // bm), -(-n // bn)
    tiles = tiles_m * tiles_n

    @cache  # waves of the same rows or columns read the same
    def read(bands: tuple[int, ...], block: int, size: int) -> int:
        return cost.bands_bytes(bands, block, size, k, elem)

    def wave(first: int) -> Wave:
        some = pieces(first, min(first + sms, tiles), tiles_m, tiles_n, group)
        rows = tuple(sorted({i for top, low, _, _ in some for i in range(top, low)}))
        columns = tuple(sorted({j for _, _, left, right in some for j in range(left, right)}))
        bytes_read = read(rows, bm, m) + read(columns, bn, n)
        area = sum(
            (min(low * bm, m) - top * bm) * (min(right * bn, n) - left * bn) for top, low, left, right in some
        )
        before = _walked(first, tiles_m, tiles_n, group)
        return Wave(
            some, before, rows, columns, len(rows), len(columns), bytes_read, 2 * k * area / bytes_read
        )

    waves = tuple(wave(first) for first in range(0, tiles, sms)[:SHOWN])
    read_so_far = tuple(accumulate(wave.bytes_read for wave in waves))
    flop = accumulate(wave.flop_per_byte * wave.bytes_read for wave in waves)
    return Walk(waves, read_so_far, tuple(f / b for f, b in zip(flop, read_so_far, strict=True)))


def run(m, n, k, bm, bn, bk, group_m, dtype, machine_name) -> Result:
    asked, elem, target = (bm, bn), ELEM_BYTES[dtype], machine(machine_name)
    ridge = target.ridge(dtype)
    bm, bn, bk = min(bm, m), min(bn, n), min(bk, k)
    tiles_m, tiles_n = -(-m // bm), -(-n // bn)
    tiles = tiles_m * tiles_n
    row, grouped = (_walk(group, m, n, k, bm, bn, elem, target.sms) for group in (1, group_m))
    walks = tuple(_walk(group, m, n, k, bm, bn, elem, target.sms) for group in GROUPS)
    reads = tuple(walk.read_so_far[-1] for walk in walks)
    programs = min(target.sms, tiles)
    reuse = cost.reuse(bm, bn)
    return Result(
        m,
        n,
        k,
        bm,
        bn,
        bk,
        *asked,
        group_m,
        dtype,
        elem,
        machine_name,
        tiles_m,
        tiles_n,
        programs,
        -(-tiles // target.sms),
        reuse,
        reuse / elem,
        ridge,
        cost.tile_bytes(bm, bn, bk, elem),
        row,
        grouped,
        row.waves[0],
        grouped.waves[0],
        row.waves[0].bytes_read / grouped.waves[0].bytes_read,
        row.read_so_far[-1] / grouped.read_so_far[-1],
        tuple(min(1.0, (wave + 1) * programs / tiles) for wave in range(len(row.waves))),
        tuple(a / b for a, b in zip(row.read_so_far, grouped.read_so_far, strict=True)),
        walks,
        reads,
        GROUPS[reads.index(min(reads))],
    )


def best_groups(r: Result) -> tuple[int, ...]:
    """Return the groups whose waves shown read least together, up to 2% more, or none where all read the same."""
    fewest = min(r.read_by_group)
    return tuple(
        group
        for group, read in zip(GROUPS, r.read_by_group, strict=True)
        if read < 1.02 * fewest < max(r.read_by_group)
    )
