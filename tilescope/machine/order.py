"""Find races within one launch:
one program writes an element that another reads or writes, and no atomic orders them."""

from dataclasses import dataclass
from math import prod

import numpy as np

from .bounds import ids
from .clocks import LATER, MOST_PROGRAMS, NOT_ATOMIC, Clocks
from .errors import GOING_ON, KernelError, hold
from .marks import NOBODY, Marks, rank_type
from .reach import Lanes
from .storage import Storage
from .threads import Met, Threads
from .turns import element_of
from .values import bits

MOST_RACES = 8
FLOAT_ADDS = "atomic additions of floats, whose order changes the last bits"
TOO_MANY = (
    "programs of one launch meet in memory and order themselves by atomics, and the grid has {programs} of them; "
    f"the machine follows {MOST_PROGRAMS} at most"
)
NO_BARRIER = " without a barrier"  # ends how programs race that order themselves by one thread's atomic
LOST = "too many reads and atomics of one launch meet without an order for the machine to follow"


@dataclass
class Race:
    launch: int
    tensor: str
    how: str
    element: int
    program: list[int]
    other: list[int] | None
    line: int
    earlier: int | None = None  # the line of the access before, if both are of one program


class Order:
    """Of one launch. `rank` maps a program to its rank among those that run."""

    def __init__(
        self,
        launch: int,
        tensors: list[Storage],
        rank: np.ndarray,
        count: int,
        atomics: bool,
        repeatable: bool,
        threads: Threads | None = None,
        telling: frozenset[int] = frozenset(),
    ):
        self.launch, self.rank, self.repeatable = launch, rank, repeatable
        self.rank_type = rank_type(count)
        self.program_of = np.zeros(count, np.int64)
        ran = np.flatnonzero(rank >= 0)
        self.program_of[rank[ran]] = ran
        self.clocks = Clocks(count) if atomics and count <= MOST_PROGRAMS else None
        self.unknown = TOO_MANY.format(programs=count) if atomics and self.clocks is None else ""
        self.marks = {t.name: Marks(t.extent, count) for t in tensors if t.shared}
        self.races: list[Race] = []
        self.threads = threads  # of one program, where it may meet itself in memory
        self.telling = telling  # by id, atomics that tell others, because nothing needs what they find
        self.undecided = ""

    def named(self, programs: np.ndarray) -> np.ndarray:
        return (self.rank[programs] + 1).astype(self.rank_type)

    def barrier(self, programs: np.ndarray) -> None:
        """Note that all threads of these programs wait for one another."""
        if self.threads is not None:
            self.threads.barrier(self.named(programs))
        if self.clocks is not None:
            self.clocks.barrier(self.named(programs))

    def me(self, frame, lanes: Lanes) -> np.ndarray:
        return lanes.per_element(self.named(frame.programs))

    # ---- reads and writes

    def read(self, run, lanes: Lanes, line: int, alone: bool) -> None:
        """`alone` reads (volatile ones) race with plain writes, not with atomics."""
        marks = self.marks.get(lanes.tensor.name)
        if marks is None:
            return
        element, ranks = lanes.element, self.named(run.frame.programs)
        me = lanes.per_element(ranks) if lanes.rows > 1 or len(ranks) == 1 else None
        if self.threads is not None and (not alone or run.turns is None):  # what is waited for comes late
            self.note_threads(run, lanes, "read", self.threads.read(marks, lanes, ranks, me), line)
        if me is not None:
            self._read(run, lanes, marks, element, me, line, alone)
            return
        few = (
            ranks if self.clocks is not None else ranks[:: len(ranks) - 1]
        )  # two are as good as all without clocks
        for rank in few:
            self._read(run, lanes, marks, element, np.full(element.size, rank), line, alone)

    def _read(self, run, lanes: Lanes, marks: Marks, element, me, line: int, alone: bool) -> None:
        self.note(
            run,
            lanes.tensor,
            "read after write",
            element,
            me,
            self.unwritten_before(marks, element, me),
            marks,
            line,
        )
        if not alone:
            apart = marks.atomics.apart(element, me, self.clocks)
            self.note(run, lanes.tensor, "read after atomic", element, me, apart, marks, line)
            marks.reads.note(element, me, self.clocks)

    def unwritten_before(self, marks: Marks, element, me) -> np.ndarray:
        """Return where another program wrote, not ordered before."""
        writer = marks.writer[element]
        foreign = (writer != NOBODY) & (writer != me)
        if self.clocks is not None and foreign.any():
            foreign &= ~self.clocks.after(me, writer, marks.wrote_at[element])
        return foreign

    def write(self, run, lanes: Lanes, there: np.ndarray, new: np.ndarray, line: int) -> None:
        """Put the values into memory. Writing the value that is already there is never a race."""
        tensor, marks = lanes.tensor, self.marks[lanes.tensor.name]
        element, me = lanes.element, self.me(run.frame, lanes)
        changed = np.repeat(bits(there[lanes.index]) != bits(new), lanes.wide)
        if changed.any():
            for how, apart in (
                ("write after write", self.unwritten_before(marks, element, me)),
                ("write after read", marks.reads.apart(element, me, self.clocks)),
                ("write after atomic", marks.atomics.apart(element, me, self.clocks)),
            ):
                self.note(run, tensor, how, element, me, changed & apart, marks, line)
        if self.threads is not None:
            found = self.threads.write(marks, lanes, self.named(run.frame.programs), me, changed)
            self.note_threads(run, lanes, "write", found, line)
        there[lanes.index] = new
        marks.writer[element] = me
        lost, mine = np.repeat(bits(there[lanes.index]) != bits(new), lanes.wide), marks.writer[element] == me
        self.note(run, tensor, "write after write", element, me, lost & ~mine, marks, line)
        if GOING_ON and (lost & mine).any():
            lane = int(np.flatnonzero(lost & mine)[0])
            self.twice(run, tensor, int(element[lane]), int(me[lane]), line)
        if self.clocks is not None:
            epoch = self.clocks.epoch_of_block if by_block(lanes) else self.clocks.epoch
            marks.wrote_at[element] = epoch(marks.writer[element])
            marks.reads.clear(element[changed])  # accesses after this write also come after these reads

    def twice(self, run, tensor, element: int, me: int, line: int) -> None:
        """Forbid that lanes of one program store different values to one element together."""
        program = self.ids(run, me)
        message = f"one store of program {ids(program, run.grid)} writes different values to {element_of(tensor, element)}"
        facts = {"tensor": tensor.name, "program": program, "element": element}
        hold(KernelError("StoredTwice", f"{message}, and nothing says which of them stays", line, **facts))

    # ---- atomics

    def atomic(self, run, lanes: Lanes, changed: np.ndarray, sem: int, adds_floats: bool, line: int) -> None:
        """Perform one access, program after program in the order of its rows.
        `changed` marks lanes that altered memory."""
        tensor, marks = lanes.tensor, self.marks[lanes.tensor.name]
        element, me = lanes.element, self.me(run.frame, lanes)
        changed = np.repeat(changed, lanes.wide)
        if adds_floats and self.repeatable:
            self.add_floats(run, tensor, marks, element, me, line)
        if self.threads is not None:
            found = self.threads.write(marks, lanes, self.named(run.frame.programs), me, changed)
            self.note_threads(run, lanes, "atomic", found, line)
        if self.clocks is not None:
            for rank in dict.fromkeys(me.tolist()):
                if self.clocks is None:  # lost on the way
                    return
                mine = np.flatnonzero(me == rank) if lanes.rows > 1 else slice(None)
                self.meet(run, lanes, marks, element[mine], me[mine], changed[mine], sem, line)
        else:
            self.conflicts(run, tensor, marks, element, me, changed, line, sem)
            marks.atomics.note(element[changed], me[changed], None)

    def meet(self, run, lanes: Lanes, marks: Marks, element, me, changed, sem: int, line: int) -> None:
        tensor = lanes.tensor
        if by_block(lanes):  # each thread releases what it stored itself
            self.clocks.barrier(me[:1])
        marks.release[element] = self.clocks.meet(int(me[0]), marks.release[element], sem)
        self.conflicts(run, tensor, marks, element, me, changed, line, sem)
        if lanes.access.op is not None and id(lanes.access.op) in self.telling:
            marks.told.note(element[changed], me[changed], self.clocks, by_block(lanes))
        else:  # what it finds depends on whether the others have come so far
            apart = marks.told.apart(element, me, self.clocks)
            self.note(run, tensor, "atomic after atomic", element, me, apart, marks, line)
        marks.atomics.note(element[changed], me[changed], self.clocks, by_block(lanes))
        self.clocks.tick(int(me[0]), sem)
        if self.clocks.crowded:
            self.clocks.forget(set().union(*(m.release.distinct() for m in self.marks.values())))
            if self.clocks.crowded:
                self.undecided = self.undecided or LOST
                self.clocks, self.unknown = None, LOST

    def conflicts(self, run, tensor, marks: Marks, element, me, changed, line: int, sem: int) -> None:
        if sem == NOT_ATOMIC:
            apart = marks.atomics.apart(element, me, self.clocks)
            self.note(run, tensor, "atomic after atomic", element, me, apart, marks, line)
        apart = self.unwritten_before(marks, element, me)
        self.note(run, tensor, "atomic after write", element, me, apart, marks, line)
        if changed.any():
            apart = changed & marks.reads.apart(element, me, self.clocks)
            self.note(run, tensor, "atomic after read", element, me, apart, marks, line)

    def add_floats(self, run, tensor, marks: Marks, element, me, line: int) -> None:
        before = marks.adder[element]
        marks.adder[element] = me
        others = (before != NOBODY) & (before != me) | (marks.adder[element] != me)
        self.note(run, tensor, FLOAT_ADDS, element, me, others, marks, line, sure=True)

    # ---- what is found

    def note(self, run, tensor, how, element, me, bad, marks: Marks, line: int, sure=False) -> None:
        if not bad.any():
            return
        if self.unknown and not sure:
            self.undecided = self.undecided or self.unknown
            return
        if (
            how.startswith("write after read") or "atomic" in how.split()
        ) and marks.reads.lost | marks.atomics.lost:
            self.undecided = self.undecided or LOST
        if len(self.races) >= MOST_RACES:
            return
        lane = int(np.flatnonzero(bad)[0])
        at = int(element[lane])
        early = how.split()[2]
        if early == "write" and self.clocks is not None and self.settled_by_barrier(marks, at, int(me[lane])):
            how += NO_BARRIER
        seen = {"write": marks.writer, "read": marks.reads.last, "atomic": marks.atomics.last}.get(early)
        other = int(seen[at]) if seen is not None else NOBODY
        ids = self.ids(run, int(me[lane]))
        others = self.ids(run, other) if other not in (NOBODY, int(me[lane])) else None
        self.races.append(Race(self.launch, tensor.name, how, at, ids, others, line))

    def settled_by_barrier(self, marks: Marks, element: int, me: int) -> bool:
        """Return whether a write would come before the next action of a program if a barrier had followed it."""
        writer, wrote_at = marks.writer[[element]], marks.wrote_at[[element]]
        return wrote_at[0] > LATER and bool(self.clocks.after(me, writer, wrote_at - LATER)[0])

    def note_threads(self, run, lanes: Lanes, late: str, found: list[Met], line: int) -> None:
        """Note what other threads of the same program did before, once for each pair of lines."""
        for met in found:
            how, name = f"{late} after {met.kind} by another lane", lanes.tensor.name
            alike = any(
                (r.tensor, r.how, r.line, r.earlier) == (name, how, line, met.line) for r in self.races
            )
            if not alike and len(self.races) < MOST_RACES:
                ids = self.ids(run, met.rank)
                self.races.append(Race(self.launch, name, how, met.element, ids, ids, line, met.line))

    def ids(self, run, rank: int) -> list[int]:
        program, (x, y, _) = int(self.program_of[rank - 1]), run.grid
        return [program % x, program // x % y, program // (x * y)]


def by_block(lanes: Lanes) -> bool:
    """Return whether an access is of a block, so that all threads of a program share it."""
    op = lanes.access.op
    return op is not None and prod(op.operand_types[0].shape) > 1
