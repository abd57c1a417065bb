"""Find races among the threads of one program. They run in step here. On a GPU they don't, and only a barrier lets one
thread see what another stored.

Which thread has which lane is the compiler's choice. The same lane of blocks of one shape counts as one thread, if the
compiler sees as many neighbours in both and so deals them out alike. That isn't so for a load after a store in a kernel with
operations of another layout, such as tl.dot or a reduction. Lane 0 of every block is one thread, too. One thread stores a
single number, and all threads load it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from .marks import NOBODY, Marks, Zeros
from .numbers_of import integer
from .reach import Lanes
from .tree import Op

LANE_BITS = 21  # a block has 2^20 lanes at most
MANY = (1 << LANE_BITS) - 1  # several lanes
MOST_ACCESSES = 1 << (32 - LANE_BITS)
MOST_CODES = (1 << 31) - 1
MOST_WAITING, MOST_EVENTS = 1 << 20, 64  # elements of accesses that wait, and accesses
BARRIERS = {"gpu.barrier", "ttg.barrier"}
# lanes exchange what they hold through shared memory, for which compiled code has a barrier as a rule
EXCHANGES = {"tt.dot", "tt.histogram"} | {
    f"tt.descriptor_{what}" for what in ("load", "store", "reduce", "gather", "scatter")
}
ALONG_AN_AXIS = {"tt.reduce", "tt.scan"}
COMPUTED = ALONG_AN_AXIS | {"tt.dot", "tt.histogram"}  # from blocks alone
OF_A_WARP = (
    256  # numbers of an axis that one warp may hold, eight for each lane, and needs no barrier to add up
)
FROM_MEMORY = {
    "tt.load",
    "tt.atomic_rmw",
    "tt.atomic_cas",
    "tt.descriptor_load",
    "tt.descriptor_gather",
    "tt.call",
}
# operations with a layout of their own, in which the compiler may also load what they take
RELAID = ALONG_AN_AXIS | {
    f"tt.{what}"
    for what in ("dot", "trans", "reshape", "expand_dims", "join", "split", "cat", "gather", "histogram")
}
ATOMICS = {"tt.atomic_rmw", "tt.atomic_cas"}  # their result reaches all threads through shared memory


def orders(op: Op, used: set[str], fresh: set[str]) -> bool:
    """Return whether all threads of a program wait for one another at this operation. `used` holds the values that
    something needs, and `fresh` those that each thread makes for itself, of which no others are exchanged."""
    if op.name in BARRIERS:
        return True
    if op.name in ATOMICS:
        return op.results[0] in used
    if op.name in COMPUTED and all(name in fresh for name in op.operands[:2]):
        return False
    return not within_a_warp(op) if op.name in ALONG_AN_AXIS else op.name in EXCHANGES


def made_anew(ops: Iterable[Op], parameters: Iterable[str]) -> set[str]:
    """Return the values that depend on no block from memory and on nothing that a loop or a branch hands on. All threads
    have the kernel's parameters, and load a single number. Operations come in the order of the text."""
    found = set(parameters)
    for op in ops:
        single = op.name == "tt.load" and not op.result_types[0].shape
        alone = op.name not in FROM_MEMORY and all(name in found for name in op.operands)
        if not op.regions and (single or alone):
            found.update(op.results)
    return found


def within_a_warp(op: Op) -> bool:
    """Return whether the lanes of one warp may exchange what they hold here: each has loaded its number by then, but none sees
    what another one stored."""
    return op.name in ALONG_AN_AXIS and op.operand_types[0].shape[integer(op, "axis")] <= OF_A_WARP


@dataclass(frozen=True)
class Numbered:
    """One access of a kernel, with its lanes laid out in one way."""

    number: int
    line: int
    sort: int  # of its block's shape, and of how it is dealt out to threads
    lanes: np.ndarray  # the block's lane for each lane of the machine
    single: bool  # whether each of these is one lane of the block, not all along an axis
    atomic: bool
    by_all: bool  # whether all threads load a single number and need it
    one: bool  # whether it is of a single number


@dataclass
class Event:
    """One access, whose elements are looked at only if another one meets them."""

    lanes: Lanes
    row: Numbered
    ranks: np.ndarray
    codes: np.ndarray  # of the programs
    changed: np.ndarray | None = None  # which elements a write changed, if not all

    def like(self, other: "Event") -> bool:
        """Return whether the same lanes reach the same elements."""
        mine, its = self.lanes, other.lanes
        return (
            self.row.sort == other.row.sort
            and not (self.row.by_all or other.row.by_all)
            and (mine.size, mine.shape) == (its.size, its.shape)
            and np.array_equal(self.ranks, other.ranks)
            and np.array_equal(mine.offset, its.offset)
            and alike(mine.active, its.active)
        )

    def keys(self) -> np.ndarray:
        """Return for each element the access and the lane."""
        own = np.broadcast_to(self.row.lanes, self.lanes.shape)
        own = own.reshape(-1) if self.lanes.active is None else own[self.lanes.active]
        own = own if self.lanes.wide == 1 else np.repeat(own, self.lanes.wide)
        return own | np.uint32(self.row.number << LANE_BITS)


def alike(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


@dataclass(frozen=True)
class Met:
    """Another thread of the same program came before."""

    kind: str  # "read" or "write"
    element: int
    rank: int  # of the program
    line: int


class Touched:
    """By element, the last program and epoch that touched it, as one code, and the last access and lane.
    Recent accesses wait until they matter."""

    def __init__(self, extent: int):
        self.code, self.key = Zeros(extent, np.int32), Zeros(extent, np.uint32)
        self.waiting: list[Event] = []
        self.size = 0  # elements that wait

    def drop_old(self, code: np.ndarray) -> None:
        """Drop what came before a barrier of all its programs."""
        self.waiting = [one for one in self.waiting if (code[one.ranks] == one.codes).any()]
        self.size = sum(one.lanes.offset.size for one in self.waiting)

    def note(self, element: np.ndarray, codes: np.ndarray, keys: np.ndarray) -> None:
        self.code[element], self.key[element] = codes, keys
        if (several := self.key[element] != keys).any():
            self.key[element[several]] |= MANY


class Threads:
    """Of one launch of a number of programs, by rank from 1 on."""

    def __init__(self, tensors: dict[str, int], programs: int, program):
        self.extents, self.programs, self.program = tensors, programs, program
        self.rows: list[Numbered] = []
        self.known: dict[tuple, Numbered | None] = {}
        self.sorts: dict[tuple, int] = {}
        self.begin()

    def begin(self) -> None:
        self.code, self.following = np.arange(self.programs + 1, dtype=np.int32), self.programs + 1
        self.read_code = self.code.copy()  # the same, of what it loaded
        self.touched = np.zeros(self.programs + 1, bool)  # since its last barrier
        self.writes = {name: Touched(extent) for name, extent in self.extents.items()}
        self.reads = {name: Touched(extent) for name, extent in self.extents.items()}

    def barrier(self, ranks: np.ndarray) -> None:
        ranks = ranks[self.touched[ranks]]
        if not ranks.size:
            return
        if self.following > MOST_CODES - ranks.size:
            self.begin()
            return
        self.code[ranks] = np.arange(self.following, self.following + ranks.size)
        self.touched[ranks] = False
        for touched in self.writes.values():
            touched.drop_old(self.code)
        self.loaded(ranks)

    def loaded(self, ranks: np.ndarray) -> None:
        """Note that all lanes of these programs have what they loaded."""
        if self.following > MOST_CODES - ranks.size:
            self.begin()
            return
        self.read_code[ranks] = np.arange(self.following, self.following + ranks.size)
        self.following += ranks.size
        for touched in self.reads.values():
            touched.drop_old(self.read_code)

    def read(self, marks: Marks, lanes: Lanes, ranks: np.ndarray, me: np.ndarray | None) -> list[Met]:
        """Return what other threads did before. `me` has the rank for each element, and is None if all these programs reach
        the same elements."""
        event = self.event(lanes, ranks)
        if event is None:
            return []
        anyhow = not self.program.of_one_layout
        found = self.met("write", event, me, (marks.writer, marks.atomics.last), anyhow=anyhow)
        if me is not None:
            self.keep(self.reads[lanes.tensor.name], replace(event, codes=self.read_code[ranks]))
        return found

    def write(self, marks: Marks, lanes: Lanes, ranks: np.ndarray, me: np.ndarray, changed) -> list[Met]:
        """Return what other threads did before, where this write changes something."""
        event, found = self.event(lanes, ranks), []
        if event is None:
            return []
        if event.row.atomic:
            found += self.met("write", event, me, (marks.writer,))
        else:
            found += self.met("write", event, me, (marks.writer, marks.atomics.last), changed)
            early = replace(event, codes=self.read_code[ranks])
            found += self.met("read", early, me, (marks.reads.last,), changed)
        event.changed = None if changed.all() else changed
        self.keep(self.writes[lanes.tensor.name], event)
        return found

    # ---- accesses

    def event(self, lanes: Lanes, ranks: np.ndarray) -> Event | None:
        if lanes.tensor.name not in self.extents or (row := self.numbered(lanes)) is None:
            return None
        return Event(lanes, row, ranks, self.code[ranks])

    def is_own(self, event: Event) -> bool:
        """Return whether each program has elements of its own. Otherwise all programs reach the same ones."""
        return event.lanes.rows > 1 or event.ranks.size == 1

    def numbered(self, lanes: Lanes) -> Numbered | None:
        op, laid = lanes.access.op, lanes.shape[1:]
        if op is None:
            return None
        where = id(op), laid
        if where not in self.known:
            self.known[where] = self.added(op, laid) if len(self.rows) < MOST_ACCESSES else None
        return self.known[where]

    def added(self, op: Op, laid: tuple) -> Numbered:
        shape = op.operand_types[0].shape
        sort = self.sorts.setdefault((shape, laid, self.program.dealt_out.get(id(op))), len(self.sorts))
        all_lanes = np.arange(prod(shape), dtype=np.uint32).reshape(shape)
        own = all_lanes[tuple(slice(side) for side in laid)]
        single = prod(laid) == prod(shape)
        by_all = op.name == "tt.load" and prod(shape) == 1 and id(op) in self.program.spreading
        row = Numbered(
            len(self.rows), op.line, sort, own, single, op.name in ATOMICS, by_all, prod(shape) == 1
        )
        self.rows.append(row)
        self.single = np.array([one.single for one in self.rows])
        self.sort = np.array([one.sort for one in self.rows])
        self.by_all = np.array([one.by_all for one in self.rows])
        self.atomic = np.array([one.atomic for one in self.rows])
        return row

    def keep(self, touched: Touched, event: Event) -> None:
        self.touched[event.ranks] = True
        touched.waiting.append(event)
        touched.size += event.lanes.offset.size
        if touched.size > MOST_WAITING or len(touched.waiting) > MOST_EVENTS:
            self.settle(touched)

    def settle(self, touched: Touched) -> None:
        """Note by element what waits."""
        for one in touched.waiting:
            element, codes, keys = one.lanes.element, one.lanes.per_element(one.codes), one.keys()
            if one.changed is not None:
                element, codes, keys = element[one.changed], codes[one.changed], keys[one.changed]
            again = np.flatnonzero(touched.code[element] == codes)
            other = self.apart(touched.key[element[again]], keys[again], one.row)
            keys[again[other]] |= np.uint32(MANY)
            touched.note(element, codes, keys)
        touched.waiting, touched.size = [], 0

    # ---- what is found

    def apart(self, early: np.ndarray, late: np.ndarray, row: Numbered, anyhow: bool = False) -> np.ndarray:
        """Return where another thread did what the keys `early` tell. `anyhow` says that the compiler may deal out this block
        otherwise than the one before."""
        access, lane, mine = early >> LANE_BITS, early & MANY, late & MANY
        same = (self.sort[access] == row.sort) & (lane == mine)
        same &= row.one or not anyhow
        if row.single:
            same |= (lane == 0) & (mine == 0) & self.single[access]
        return ~same | self.by_all[access] | row.by_all

    def met(
        self, kind: str, event: Event, me, last: tuple[Zeros, ...], which=None, anyhow: bool = False
    ) -> list[Met]:
        """Return the first place where another thread of the same program came before. `last` has the last program at each
        element, and `which` the elements that count, if not all. `anyhow` is as in `apart`."""
        lanes, row = event.lanes, event.row
        touched = (self.writes if kind == "write" else self.reads)[lanes.tensor.name]
        if not anyhow and touched.code.array is None and all(map(event.like, touched.waiting)):
            return []
        if not any(by(one, event, me) for one in last):
            return []
        self.settle(touched)
        element = lanes.element
        before = touched.code[element]
        same = (
            before == lanes.per_element(event.codes) if self.is_own(event) else np.isin(before, event.codes)
        )
        here = np.flatnonzero(same if which is None else same & which)
        if not here.size:
            return []
        early = touched.key[element[here]]
        bad = self.apart(early, event.keys()[here], row, anyhow)
        if row.atomic:
            bad &= ~self.atomic[early >> LANE_BITS]
        if not bad.any():
            return []
        first = int(np.flatnonzero(bad)[0])
        rank = event.ranks[event.codes == before[here[first]]][0]
        line = self.rows[int(early[first] >> LANE_BITS)].line
        return [Met(kind, int(element[here[first]]), int(rank), line)]


def by(last: Zeros, event: Event, me: np.ndarray | None) -> bool:
    """Return whether a program was the last at an element that it reaches now. `me` is None if all reach all."""
    if last.array is None:
        return False
    there = last[event.lanes.element]
    return bool((there != NOBODY if me is None else there == me).any())
