"""Remember what happened to each element that programs share. Programs are known by their rank in the launch,
from 1 on, so 0 means no program yet, and what is 0 everywhere takes no memory."""

import numpy as np

from .clocks import Clocks

NOBODY = 0
MOST_EVENTS = 1 << 22
FEW_PROGRAMS = (1 << 16) - 1  # whose ranks fit into two bytes


class Zeros:
    """Hold an array of zeros that takes memory only once anything else is stored."""

    def __init__(self, extent: int, dtype: type):
        self.extent, self.dtype, self.array = extent, np.dtype(dtype), None

    def __getitem__(self, element) -> np.ndarray:
        return np.zeros(np.shape(element), self.dtype) if self.array is None else self.array[element]

    def __setitem__(self, element: np.ndarray, value) -> None:
        if self.array is None:
            if not (np.size(element) and np.any(value)):
                return
            self.array = np.zeros(self.extent, self.dtype)
        self.array[element] = value

    def distinct(self) -> set[int]:
        return {0} if self.array is None else set(np.unique(self.array).tolist())


class Epochs:
    """Hold the epoch of each element's last touch, the first epoch for all until a program releases something."""

    def __init__(self, extent: int):
        self.past_first = Zeros(extent, np.int32)  # epochs after the first one

    def __getitem__(self, element: np.ndarray) -> np.ndarray:
        return self.past_first[element] + 1

    def __setitem__(self, element: np.ndarray, epoch: np.ndarray) -> None:
        self.past_first[element] = epoch - 1


class LastTouch:
    """The last program to do one kind of thing to each element, and when.
    If several unordered programs did it, remember them all."""

    def __init__(self, extent: int, rank: type):
        self.last, self.at = Zeros(extent, rank), Epochs(extent)
        self.many = Zeros(extent, bool)
        self.events: list[tuple] = []  # (elements, programs, epochs)
        self.kept, self.lost = 0, False

    def note(
        self, element: np.ndarray, me: np.ndarray, clocks: Clocks | None, by_block: bool = False
    ) -> None:
        before = self.last[element]
        foreign = (before != NOBODY) & (before != me)
        if clocks is None:
            self.many[element[foreign]] = True
            self.last[element] = me
            self.many[element[self.last[element] != me]] = True
            return
        now = clocks.epoch_of_block(me) if by_block else clocks.epoch(me)
        if foreign.any():
            apart = foreign & ~clocks.after(me, before, self.at[element])
            self.remember(element[apart], before[apart], self.at[element[apart]])
        self.last[element], self.at[element] = me, now
        beaten = self.last[element] != me  # several programs of this access at one element
        self.remember(element[beaten], me[beaten], now[beaten])

    def remember(self, element: np.ndarray, who: np.ndarray, when: np.ndarray) -> None:
        if not element.size:
            return
        self.many[element] = True
        self.kept += element.size
        if self.kept > MOST_EVENTS:
            self.events, self.lost = [], True
        elif not self.lost:
            self.events.append((element, who, when))

    def clear(self, element: np.ndarray) -> None:
        self.last[element], self.many[element] = NOBODY, False

    def apart(self, element: np.ndarray, me: np.ndarray, clocks: Clocks | None) -> np.ndarray:
        """Return where another program did it and nothing orders that before the next action of `me`."""
        last = self.last[element]
        found = (last != NOBODY) & (last != me)
        if clocks is None:
            return found | self.many[element]
        if found.any():
            found &= ~clocks.after(me, last, self.at[element])
        several = self.many[element] & ~found
        if several.any():
            found[several] = self.lost or self._apart(element[several], me[several], clocks)
        return found

    def _apart(self, element: np.ndarray, me: np.ndarray, clocks: Clocks) -> np.ndarray:
        asking = np.zeros(self.last.extent, self.last.dtype)
        asking[element] = me
        bad = np.zeros(self.last.extent, bool)
        for elements, who, when in self.events:
            asks = asking[elements]
            hit = np.flatnonzero((asks != NOBODY) & (asks != who))
            late = ~clocks.after(asks[hit], who[hit], when[hit])
            bad[elements[hit[late]]] = True
        return bad[element]


def rank_type(programs: int) -> type:
    """Return the type that holds the ranks of this number of programs."""
    return np.uint16 if programs <= FEW_PROGRAMS else np.int32


class Marks:
    """Everything remembered of one tensor during one launch of a number of programs."""

    def __init__(self, extent: int, programs: int):
        rank = rank_type(programs)
        self.writer, self.wrote_at = Zeros(extent, rank), Epochs(extent)
        self.reads, self.atomics = LastTouch(extent, rank), LastTouch(extent, rank)
        self.told = LastTouch(extent, rank)  # by atomics whose own program needs nothing of them
        self.adder = Zeros(extent, rank)  # of floats, atomically
        self.release = Zeros(extent, np.int32)  # number of the clock released there
