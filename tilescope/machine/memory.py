"""Load and store for the programs of one run. Each access is counted and checked for bounds and order."""

from dataclasses import asdict
from math import prod

import numpy as np

from .meanings import bound
from .numbers_of import flag, integers
from .order import Order
from .reach import Access, Lanes, may_write, reach
from .storage import Storage
from .traffic import MOST_MARKS, Traffic
from .tree import NUMPY, Op
from .values import poison

MOST_PAIRS = 64


class Memory:
    """All tensors of a run. Each launch has counts and an order of its own."""

    def __init__(self, tensors: list[Storage], full: bool):
        self.tensors, self.full = tensors, full
        self.traffic: Traffic | None = None
        self.order: Order | None = None
        self.read_unwritten: list[dict] = []
        self.masked: set[int] = set()  # lines of loads with masked lanes and no `other`
        self.stored_twice: list[list[int]] = []  # pairs of programs, where only elements are noted
        self.executed: dict[int, np.ndarray] = {}  # store -> how often each program has come by
        self.places_alone = False  # whether stores note only their elements and change nothing
        self.watcher = None  # called for every counted access with (frame, lanes, kind, line)
        self.probe = None  # whose `asked` gets the addresses of every access as (access, addresses)
        self.changes = 0  # how often memory changed, for programs that wait for it
        self.left_out = 0  # how often lanes were left out of an access, where a run goes on after mistakes

    def most_waves(self) -> int:
        return max(1, MOST_MARKS // max(1, sum(t.extent for t in self.tensors)))

    def start_chunk(self, programs: np.ndarray) -> None:
        self.traffic.start_chunk(programs)

    def end_chunk(self) -> None:
        if self.traffic.waves > 1:
            self.traffic.flush()

    def count(self, frame, lanes: Lanes, kind: str, line: int) -> None:
        self.traffic.count(frame, lanes, kind)
        if self.watcher is not None and self.traffic.touching:
            self.watcher(frame, lanes, kind, line)

    def loaded(self, run, lanes: Lanes, line: int, alone: bool) -> None:
        self.count(run.frame, lanes, "load", line)
        self.note_unwritten(lanes, line)
        tensor = lanes.tensor
        if tensor.shared:
            self.order.read(run, lanes, line, alone)

    def placed(self, lanes: Lanes, programs: np.ndarray, place: int) -> None:
        """Notes who stores where, in which turn of this store, and whether another program does so too."""
        tensor, element = lanes.tensor, lanes.element
        mine = lanes.per_element(programs.astype(tensor.writer.dtype))
        before = tensor.writer[element]
        turn = self.executed.setdefault(place, np.zeros(len(self.traffic.active), np.int32))
        tensor.wrote(lanes, programs, turn, mine)
        turn[programs] += 1
        after = tensor.writer[element]
        if before.max() < 0 and np.array_equal(
            after, mine
        ):  # as in most stores, each element has one program
            return
        others = np.where((before >= 0) & (before != mine), before, after)
        met = np.flatnonzero(others != mine)
        if met.size:
            pairs = np.unique(np.stack([mine[met], others[met]], 1), axis=0)
            self.stored_twice = thinned([*self.stored_twice, *pairs.tolist()])

    def note_unwritten(self, lanes: Lanes, line: int) -> None:
        """Remembers a read of an output that nothing has written yet."""
        tensor = lanes.tensor
        if tensor.written is not None and len(self.read_unwritten) < 8:
            missing = ~tensor.written[lanes.element]
            if missing.any():
                element = int(lanes.element[np.flatnonzero(missing)[0]])
                self.read_unwritten.append({"tensor": tensor.name, "element": element, "line": line})

    def stored(self, run, lanes: Lanes, new: np.ndarray, line: int, place: int) -> None:
        """Note a store. `place` tells one store of the kernel from all others."""
        if lanes.tensor.written is not None:
            lanes.tensor.written[lanes.element] = True
        if self.places_alone:
            self.placed(lanes, run.frame.programs, place)
            return
        self.count(run.frame, lanes, "store", line)
        self.order.write(run, lanes, lanes.tensor.view(new.dtype), new, line)
        self.changes += 1


def thinned(pairs: list) -> list:
    """Some of many, from the first to the last."""
    step = -(-len(pairs) // MOST_PAIRS)
    return pairs[:: max(1, step)]


def access_of(op: Op, kind: str) -> Access:
    type = op.operand_types[0]
    return Access(kind, NUMPY[type.element].itemsize, prod(type.shape), op.line, op)


@bound("tt.load")
def load(op: Op):
    access, dtype = access_of(op, "load"), op.result_types[0].dtype
    alone, segments = flag(op, "isVolatile"), integers(op, "operandSegmentSizes")
    has_other = segments[2] > 0

    def run(run, pointer, mask=None, other=None):
        memory, left_out = run.memory, run.memory.left_out
        parts = reach(run, access, pointer, mask)
        for lanes in parts:
            memory.loaded(run, lanes, access.line, alone)
            if alone and run.turns is not None:
                run.turns.look_at(run.frame, "tl.load", lanes)
        if len(parts) == 1 and parts[0].active is None:
            lanes = parts[0]
            return lanes.tensor.view(dtype).take(lanes.index).reshape(lanes.shape)
        lost = None
        if memory.left_out != left_out:
            lost = left_out_of(parts, pointer, mask)
        if not has_other and (lost is None or (mask is not None and not mask.all())):
            memory.masked.add(access.line)
        shapes = [x.shape for x in (pointer, mask, other) if x is not None]
        shape = np.broadcast_shapes(*shapes)
        found = (
            np.array(np.broadcast_to(other, shape))
            if has_other
            else poison(shape, dtype, run.poison_of(access.line))
        )
        for lanes in parts:
            place(found, lanes, lanes.tensor.view(dtype).take(lanes.index))
        if lost is not None:
            found[np.broadcast_to(lost, shape)] = 0
        return found

    return run


def left_out_of(parts: list[Lanes], pointer: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """The lanes that asked for an address and got none."""
    shape = np.broadcast_shapes(pointer.shape, mask.shape) if mask is not None else pointer.shape
    lost = np.ones(shape, bool) if mask is None else np.array(np.broadcast_to(mask, shape))
    for lanes in parts:
        lost &= False if lanes.active is None else ~lanes.active
    return lost


def place(found: np.ndarray, lanes: Lanes, values: np.ndarray) -> None:
    """Write the active lanes' values to their addresses. `other` may have more lanes than the pointers."""
    if found.shape == lanes.shape:
        found[lanes.active] = values
        return
    spread = np.zeros(lanes.shape, found.dtype)
    spread[lanes.active] = values
    np.copyto(found, np.broadcast_to(spread, found.shape), where=np.broadcast_to(lanes.active, found.shape))


@bound("tt.store")
def store(op: Op):
    access = access_of(op, "store")

    def run(run, pointer, value, mask=None):
        shape = access_shape(run, pointer, value, mask)
        value = np.broadcast_to(value, shape)
        for lanes in reach(run, access, np.broadcast_to(pointer, shape), mask):
            if not may_write(run, access, lanes):
                continue
            new = value
            if not run.memory.places_alone:  # which asks for no value
                new = np.ascontiguousarray(value).reshape(-1) if lanes.active is None else value[lanes.active]
            run.memory.stored(run, lanes, new, access.line, id(access))
        return ()

    return run


def access_shape(run, *values) -> tuple:
    """The shape of an access in which every program takes part by itself."""
    lead = (run.frame.size,) + (1,) * (values[0].ndim - 1)
    return np.broadcast_shapes(lead, *(v.shape for v in values if v is not None))


def as_plain(counts) -> dict:
    return {name: {kind: asdict(row) for kind, row in rows.items()} for name, rows in counts.items()}
