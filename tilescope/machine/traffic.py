"""Count what one launch moves, for every tensor and kind of access: the bytes asked for, without duplicates
inside an access, in 32-byte sectors, unique within a wave of programs (alone and in pairs of sectors, which memory
moves together), and unique over the launch."""

from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from .reach import Lanes, covered
from .storage import SPAN

KINDS = ("load", "store", "atomic")
SECTOR_SHIFT = 5  # 32 bytes
PAIR = 64  # bytes of two sectors
WARP = 32  # lanes that load at the same time
MOST_AXES = 3  # of a block whose orders are tried
MOST_MARKS = 1 << 26  # elements times waves that are marked at a time
MANY_MARKS = 1 << 20  # from here on, touched sectors are listed instead of marked
MOST_LISTED = 1 << 22  # before what is listed twice goes


@dataclass
class Counts:
    requested: int = 0
    dedup: int = 0
    sectors: int = 0
    wave: int = 0
    pairs: int = 0  # the same in whole pairs of sectors
    unique: int = 0
    accesses: int = 0
    programs: int = 0  # that touched the tensor so
    busiest: int = 0  # of `dedup`, what the program that moves most has


@dataclass
class Touches:
    """One tensor, one kind of access, during one launch."""

    counts: Counts = field(default_factory=Counts)
    programs: np.ndarray | None = None  # which programs touched it
    moved: np.ndarray | None = None  # bytes of each program, without duplicates inside an access
    seen: dict[int, np.ndarray] = field(default_factory=dict)  # by turn, (wave, element) of the present chunk
    listed: dict[int, "Listed"] = field(default_factory=dict)  # the same, where there are many


class Listed:
    """Collect distinct numbers, where many are possible and few occur."""

    def __init__(self):
        self.parts, self.count, self.most = [], 0, MOST_LISTED

    def add(self, numbers: np.ndarray) -> None:
        self.parts.append(numbers)
        self.count += numbers.size
        if self.count > self.most:
            self.parts = [self.distinct()]
            self.count = self.parts[0].size
            self.most = max(MOST_LISTED, 2 * self.count)

    def distinct(self) -> np.ndarray:
        """Return the numbers in order, each once. The list is empty afterwards, which saves a browser tab a copy."""
        parts, self.parts = self.parts, []
        numbers = np.concatenate(parts)
        parts.clear()
        if not (numbers[1:] > numbers[:-1]).all():
            numbers.sort()
            numbers = numbers[np.concatenate([[True], numbers[1:] != numbers[:-1]])]
        return numbers


class Traffic:
    """The counts of one launch. `rank` gives a program's index in the order that fills the waves, and `program` is its
    kernel."""

    def __init__(
        self, tensors, wave: int, programs: int, rank: np.ndarray, full: bool, touching: bool, program
    ):
        self.tensors, self.wave, self.rank, self.program = tensors, wave, rank, program
        self.full, self.touching = (
            full,
            touching,
        )  # whether bytes are counted, whether touches of elements are
        self.active = np.zeros(programs, bool)
        # A program that stores and loads again takes another turn. A wave has one turn from each of its
        # programs.
        self.turn, self.stored = np.zeros(programs, np.int32), np.zeros(programs, bool)
        self.rows = {(t.name, kind): Touches() for t in tensors for kind in KINDS}
        self.ever: dict[
            str, np.ndarray
        ] = {}  # tensor -> the kinds of access that each element met, one bit each
        self.first, self.waves = None, 1

    def start_chunk(self, programs: np.ndarray) -> None:
        of = self.rank[programs] // self.wave
        now = int(of.min()), int(of.max())
        if now != self.first or now[1] > now[0]:
            self.flush()
        self.first, self.waves = now, now[1] - now[0] + 1

    def flush(self) -> None:
        for tensor in self.tensors:
            for bit, kind in enumerate(KINDS):
                row = self.rows[tensor.name, kind]
                if not (row.seen or row.listed):
                    continue
                ever = self.ever.setdefault(tensor.name, np.zeros(tensor.extent, np.uint8))
                in_a_pair = max(1, PAIR // tensor.itemsize)
                for seen in row.seen.values():
                    row.counts.wave += int(np.count_nonzero(seen)) * tensor.itemsize
                    row.counts.pairs += in_pairs(seen.reshape(-1, tensor.extent), in_a_pair) * PAIR
                    ever |= seen.reshape(-1, tensor.extent).any(0).view(np.uint8) << bit
                for listed in row.listed.values():
                    numbers = listed.distinct()
                    row.counts.wave += numbers.size * tensor.itemsize
                    row.counts.pairs += in_pairs_of_lists(numbers, tensor.extent, in_a_pair) * PAIR
                    ever[numbers % tensor.extent if self.waves > 1 else numbers] |= 1 << bit
                row.seen, row.listed = {}, {}

    def finish(self) -> dict[str, dict[str, Counts]]:
        self.flush()
        found = {}
        for tensor in self.tensors:
            of_tensor = {}
            for bit, kind in enumerate(KINDS):
                row = self.rows[tensor.name, kind]
                if not row.counts.accesses:
                    continue
                row.counts.programs = int(np.count_nonzero(row.programs))
                row.counts.busiest = int(row.moved.max())
                if tensor.name in self.ever:
                    row.counts.unique = having(self.ever[tensor.name], 1 << bit) * tensor.itemsize
                of_tensor[kind] = row.counts
            found[tensor.name] = of_tensor
        return found

    def count(self, frame, lanes: Lanes, kind: str) -> None:
        tensor, row, size = lanes.tensor, self.rows[lanes.tensor.name, kind], lanes.size
        counts, here = row.counts, lanes.counts > 0
        counts.accesses += int(np.count_nonzero(here)) * lanes.times
        counts.requested += lanes.offset.size * size * lanes.again * lanes.times
        if row.programs is None:
            row.programs = np.zeros(len(self.active), bool)
            row.moved = np.zeros(len(self.active), np.int64)
        touching = frame.programs if lanes.rows == 1 else frame.programs[here]
        self.take_turns(touching, kind)
        row.programs[touching] = True
        self.active[touching] = True
        if kind != "load" and tensor.remembers:
            tensor.wrote(lanes, frame.programs, self.turn)
        if not self.full:
            return
        key = distinct(lanes)
        counts.dedup += key.size * size * lanes.times
        row.moved[frame.programs] += of_each_row(key, lanes) * size
        counts.sectors += sectors(lanes, key, self.program) * lanes.times << SECTOR_SHIFT
        first = (key & ((1 << SPAN) - 1)) >> (tensor.itemsize.bit_length() - 1)
        element = covered(first, lanes.wide)
        if self.touching and tensor.remembers:
            touch(tensor.loads if kind == "load" else tensor.stores, element, lanes.times)
        self.mark(frame, row, lanes, key, element)

    def mark(self, frame, row: Touches, lanes: Lanes, key: np.ndarray, element: np.ndarray) -> None:
        """Notes which wave touched which element."""
        extent, turn = lanes.tensor.extent, self.turn[frame.programs]
        most = max(1, MOST_MARKS // max(1, self.waves * extent)) - 1  # later programs count with the last one
        turn = np.minimum(turn, most)
        wave_of = self.rank[frame.programs] // self.wave - self.first[0]
        many = self.waves * extent > MANY_MARKS
        for one in np.unique(turn):
            if many:
                listed, mine = row.listed.setdefault(int(one), Listed()), turn == one
                if lanes.rows > 1:
                    rows = key >> SPAN
                    at = np.repeat(wave_of[rows], lanes.wide) * extent + element
                    listed.add(at if mine.all() else at[np.repeat(mine[rows], lanes.wide)])
                else:
                    for wave in np.unique(wave_of[mine]):
                        listed.add(wave * extent + element)
                continue
            if int(one) not in row.seen:
                row.seen[int(one)] = np.zeros(self.waves * extent, bool)
            seen = row.seen[int(one)]
            mine = turn == one
            if lanes.rows > 1:
                rows = key >> SPAN
                at = np.repeat(wave_of[rows], lanes.wide) * extent + element
                seen[at if mine.all() else at[np.repeat(mine[rows], lanes.wide)]] = True
            else:
                for wave in np.unique(wave_of[mine]):
                    seen[wave * extent + element] = True

    def take_turns(self, programs: np.ndarray, kind: str) -> None:
        """Note which programs have stored, and which then go on to load."""
        if kind != "load":
            self.stored[programs] = True
        elif self.stored[programs].any():
            self.turn[programs] += self.stored[programs]
            self.stored[programs] = False


def in_pairs(seen: np.ndarray, size: int) -> int:
    """Count the groups of so many neighbours that have a flag, row by row."""
    short = -seen.shape[1] % size
    return int(sum(np.count_nonzero(np.pad(row, (0, short)).reshape(-1, size).any(1)) for row in seen))


def in_pairs_of_lists(numbers: np.ndarray, extent: int, size: int) -> int:
    """Count the same of the sorted numbers of elements, row by row."""
    wave, element = np.divmod(numbers, extent)
    groups = wave * (extent // size + 1) + element // size
    return int(np.count_nonzero(np.diff(groups, prepend=-1)))


def having(flags: np.ndarray, bit: int) -> int:
    """Count the elements that have a flag, part by part, because there may be many flags."""
    parts = range(0, flags.size, MANY_MARKS)
    return sum(int(np.count_nonzero(flags[first : first + MANY_MARKS] & bit)) for first in parts)


def distinct(lanes: Lanes) -> np.ndarray:
    """(row, byte offset) of every lane as one number, sorted, each once."""
    key = lanes.offset
    if lanes.rows > 1:
        key = key + np.repeat(np.arange(lanes.rows, dtype=np.int64) << SPAN, lanes.counts)
    if (key[1:] > key[:-1]).all():
        return key
    key = np.sort(key)
    first = np.empty(key.size, bool)
    first[0], first[1:] = True, key[1:] != key[:-1]
    return key[first]


def sectors(lanes: Lanes, key: np.ndarray, program) -> int:
    """Count the sectors of an access. Each counts once for a program, unless its warps go back and forth."""
    sector = key >> SECTOR_SHIFT
    once = 1 + int(np.count_nonzero(sector[1:] != sector[:-1]))
    filled = 2 * key.size * lanes.size > once << SECTOR_SHIFT
    if not filled or key.size != lanes.offset.size or lanes.counts.max() < 2 * WARP:
        return once
    falls = np.flatnonzero(lanes.offset[1:] < lanes.offset[:-1])
    if (
        falls.size < lanes.rows and np.isin(falls, np.cumsum(lanes.counts) - 1).all()
    ):  # from program to program
        return once
    along = None if lanes.access.op is None else program.dealt_out.get(id(lanes.access.op))
    return max(once, by_warps(lanes, once, along and along[0] + 1))


def by_warps(lanes: Lanes, once: int, along: int | None) -> int:
    """Count the sectors of each 32 lanes in a row. A compiler deals out a block along the axis on which it sees
    neighbours, or along the last one, and it keeps the order of an axis."""
    place = np.full(lanes.shape, -1, np.int64)
    place[slice(None) if lanes.active is None else lanes.active] = (
        lanes.offset.reshape(lanes.shape) if lanes.active is None else lanes.offset
    ) >> SECTOR_SHIFT
    axes = [axis for axis in range(1, place.ndim) if place.shape[axis] > 1]
    if len(axes) > MOST_AXES:
        return once
    rest = [axis for axis in range(1, place.ndim) if axis not in axes]
    best = None
    for order in permutations(axes):
        if along in axes and order[-1] != along:
            continue
        found = of_warps(place.transpose(0, *rest, *order).reshape(lanes.rows, -1))
        best = found if best is None else min(best, found)
        if best <= once:
            break
    return best or once


def of_warps(place: np.ndarray) -> int:
    """Count the sectors that warps touch, less those that one warp ends with and the next begins with."""
    short = -place.shape[1] % WARP
    if short:
        place = np.pad(place, ((0, 0), (0, short)), constant_values=-1)
    warps = place.reshape(place.shape[0], -1, WARP)
    ordered = np.sort(warps, axis=2)
    fresh = ordered[:, :, 1:] != ordered[:, :, :-1]
    touched = int(np.count_nonzero(fresh & (ordered[:, :, 1:] >= 0))) + int(
        np.count_nonzero(ordered[:, :, 0] >= 0)
    )
    shared = (warps[:, 1:, 0] == warps[:, :-1, -1]) & (warps[:, 1:, 0] >= 0)
    return touched - int(np.count_nonzero(shared))


def of_each_row(key: np.ndarray, lanes: Lanes) -> np.ndarray | int:
    """Count these sorted keys by row."""
    if lanes.rows == 1:
        return key.size
    return np.diff(np.searchsorted(key, np.arange(lanes.rows + 1, dtype=np.int64) << SPAN))


def touch(touched: np.ndarray, element: np.ndarray, times: int) -> None:
    if element.size * 8 > touched.size:
        touched += (np.bincount(element, minlength=touched.size) * times).astype(np.uint32)
    else:
        np.add.at(touched, element, np.uint32(times))
