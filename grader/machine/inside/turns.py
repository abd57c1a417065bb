"""Programs of one launch in turns, for kernels in which one waits for another. Each is a thread, one of them at a time
goes on, and at every atomic chance says who is next; another seed is another order."""

import copy
import random
import threading
from collections import Counter

import numpy as np

from .errors import KernelError, OverLimit

STACK_BYTES = 1 << 20
MOST_PROGRAMS = 512  # threads


class Undecided(Exception):
    """The machine cannot say what this launch does."""


class Turns:
    def __init__(self, programs: np.ndarray, memory, seed: int):
        self.memory = memory
        self.waiting = {int(p): threading.Semaphore(0) for p in programs}
        self.chance, self.error = random.Random(seed), None
        self.idle: dict[
            int, int
        ] = {}  # program -> the version of memory that a fruitless turn of its loop saw

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
        if self.waiting:
            self.waiting[self.chance.choice(list(self.waiting))].release()

    def waited(self, me: int, seen: int, before: list, after: list, line: int) -> None:
        """One turn of a loop is over. It was fruitless where neither memory nor the loop's own values changed; once
        every program's last turn was, nothing will ever change."""
        same = seen == self.version and all(map(np.array_equal, before, after))
        if not same:
            self.idle.pop(me, None)
            return
        self.idle[me] = seen
        if len(self.idle) == len(self.waiting) and set(self.idle.values()) == {seen}:
            count = len(self.waiting)
            who = "the program waits" if count == 1 else f"all {count} programs that are left wait"
            raise KernelError("Deadlock", f"{who} for what no program will do any more", line)


def run(launch, arguments: list, programs: np.ndarray, seed: int) -> None:
    if len(programs) > MOST_PROGRAMS:
        raise Undecided(
            f"programs wait for each other in a loop, and the grid has {len(programs)}; "
            f"the machine lets {MOST_PROGRAMS} take turns at most"
        )
    order = Turns(programs, launch.memory, seed)
    previous = threading.stack_size(STACK_BYTES)
    try:
        launches = [start(launch, order, arguments, int(program)) for program in programs]
    finally:
        threading.stack_size(previous)
    order.waiting[int(programs[0])].release()
    for _, thread in launches:
        thread.join()
    if isinstance(order.error, OverLimit):
        more = f"{order.error.message}; its programs wait for each other in a loop, perhaps without end"
        raise OverLimit(order.error.what, more, order.error.line)
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
