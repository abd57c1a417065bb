"""Run one launch's programs in turns, where one program waits for another or an order is tried. Each program is a
thread, and only one runs at a time. Every atomic may switch to another by chance, and another seed gives
another order."""

import copy
import random
import threading
from collections import Counter

import numpy as np

from .bounds import decoded, ids
from .errors import KernelError, OverLimit
from .marks import NOBODY

STACK_BYTES = 1 << 20
MOST_PROGRAMS = 512  # threads
MOST_NAMED = 4  # programs waiting in the same way, and the elements that some wait for


class Undecided(Exception):
    """The machine cannot say what this launch does."""


class Turns:
    def __init__(self, programs: np.ndarray, grid: tuple, memory, seed: int):
        self.grid, self.memory = grid, memory
        self.waiting = {int(p): threading.Semaphore(0) for p in programs}
        self.chance, self.error = random.Random(seed), None
        # program -> the version of memory that a fruitless turn of its loop saw
        self.idle: dict[int, int] = {}
        self.at: dict[
            int, tuple
        ] = {}  # program -> (how it last looked, the tensor and element if it was one)
        self.looks: dict[
            int, tuple[list, str]
        ] = {}  # program -> (its ids, the tensor that it last looked at)

    @property
    def version(self) -> int:
        return self.memory.changes

    def pass_on(self, me: int) -> None:
        self.hand_to(self.chance.choice(list(self.waiting)), me)

    def hand_to(self, other: int, me: int) -> None:
        if other != me:
            self.waiting[other].release()
            self.waiting[me].acquire()
        if self.error is not None:
            raise self.error

    def end(self, me: int) -> None:
        del self.waiting[me]
        self.idle.pop(me, None)
        self.at.pop(me, None)
        if self.waiting:
            self.waiting[self.chance.choice(list(self.waiting))].release()

    def waited(self, me: int, seen: int, before: list, after: list, line: int) -> None:
        """Note the end of one loop iteration. It was fruitless if neither memory nor the loop's own values
        changed. Once every program's last iteration was fruitless, nothing will ever change."""
        same = seen == self.version and all(map(np.array_equal, before, after))
        if not same:
            self.idle.pop(me, None)
            return
        self.idle[me] = seen
        if len(self.idle) == len(self.waiting) and set(self.idle.values()) == {seen}:
            raise KernelError("Deadlock", self.all_wait(), line, **self.who_waits())

    def look_at(self, frame, call: str, lanes) -> None:
        """The one program of a frame has looked at memory by a call that others may answer."""
        place = element_of(lanes.tensor, int(lanes.element[0])) if lanes.index.size else "nothing"
        more = f" and {lanes.index.size - 1} more" * (lanes.index.size > 1)
        where = (lanes.tensor, int(lanes.element[0])) if lanes.index.size == 1 else None
        self.at[int(frame.programs[0])] = f"{call} of {place}{more}", where
        self.looks[int(frame.programs[0])] = frame.place(0), lanes.tensor.name

    def who_waits(self) -> dict:
        """The programs that wait, and the tensor that they look at."""
        waiting = [self.looks[program] for program in sorted(self.waiting) if program in self.looks]
        tensors = sorted({tensor for _, tensor in waiting})
        return {"programs": [program for program, _ in waiting], "tensor": "/".join(tensors)}

    def all_wait(self) -> str:
        """Name the waiting programs and the events that they wait for.
        Programs that watch the same element are named together."""
        count, groups = len(self.waiting), {}
        for program in sorted(self.waiting):
            what, where = self.at.get(program, ("a loop", None))
            groups.setdefault(what + (self.held(*where) if where else ""), []).append(self.name(program))
        who = (
            "the one program that is left waits" if count == 1 else f"all {count} programs that are left wait"
        )
        each = [f"{named_together(names)} in {what}" for what, names in groups.items()]
        more = [f"{len(each) - MOST_NAMED} more places"] * (len(each) > MOST_NAMED)
        return f"{who}, and no other can end that: {'; '.join(each[:MOST_NAMED] + more)}"

    def name(self, program: int) -> str:
        x, y, _ = self.grid
        return ids([program % x, program // x % y, program // (x * y)], self.grid)

    def held(self, tensor, element: int) -> str:
        """Say what an element holds, and which program changed it last where one alone did."""
        order = self.memory.order
        marks = order.marks.get(tensor.name)
        ranks = {int(marks.writer[element]), int(marks.atomics.last[element])} - {NOBODY} if marks else ()
        since = ""
        if len(ranks) == 1:
            since = f" since program {self.name(int(order.program_of[ranks.pop() - 1]))} changed it"
        return f", which holds {tensor.elements[element]}{since}"


def element_of(tensor, element: int) -> str:
    place = decoded(tensor, element)
    return f"{tensor.name}[{', '.join(str(int(place.get(axis, 0))) for axis in range(len(tensor.shape)))}]"


def named_together(names: list[str]) -> str:
    some = ", ".join(names[:MOST_NAMED]) + f" and {len(names) - MOST_NAMED} more" * (len(names) > MOST_NAMED)
    return f"program{'s' * (len(names) > 1)} {some}"


def run(launch, arguments: list, programs: np.ndarray, seed: int) -> None:
    if len(programs) > MOST_PROGRAMS:
        raise OverLimit(
            "programs",
            f"programs wait for each other in a loop, and the grid has {len(programs)} of them; "
            f"{MOST_PROGRAMS} may take turns at most",
        )
    order = Turns(programs, launch.grid, launch.memory, seed)
    previous = threading.stack_size(STACK_BYTES)
    try:
        launches = [start(launch, order, arguments, int(program)) for program in programs]
    finally:
        threading.stack_size(previous)
    order.waiting[int(programs[0])].release()
    try:
        for _, thread in launches:
            thread.join()
    except KeyboardInterrupt as stop:
        order.error = stop
        looks = [f"program {order.name(at)} in {what}" for at, (what, _) in [*order.at.items()][:MOST_NAMED]]
        stop.add_note(f"{launch.program.kernel.name} was stopped with {'; '.join(looks) or 'no atomic yet'}")
        raise
    if isinstance(order.error, OverLimit):
        more = "; its programs wait for each other in a loop, perhaps without end" * launch.program.waits
        raise OverLimit(order.error.what, order.error.message + more, order.error.line)
    if order.error is not None:
        raise order.error
    for mine, _ in launches:
        launch.counts.update(mine.counts)


def start(launch, order: Turns, arguments: list, program: int):
    mine = copy.copy(launch)
    mine.turns, mine.counts = order, Counter()

    def one():
        order.waiting[program].acquire()
        try:
            if order.error is None:
                mine.some(np.array([program]), arguments)
        except BaseException as error:
            order.error = order.error or error
        order.end(program)

    thread = threading.Thread(target=one, daemon=True)
    thread.start()
    return mine, thread
