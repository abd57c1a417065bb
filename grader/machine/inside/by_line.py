"""Count what each line of a cell loads and stores, in one more run of a case."""

from collections import Counter

import numpy as np

from grader.machine.protocol import OF_LINES
from tilescope.machine.storage import SPAN
from tilescope.machine.traffic import SECTOR_SHIFT, distinct

EVEN = 8  # bytes


class ByLine:
    """Watch every access of a run, and add up the bytes that all lanes ask for, those that they ask for once, those of
    accesses that begin at an even place, and those of the sectors that they touch."""

    def __init__(self):
        self.found: dict[str, Counter] = {name: Counter() for name in OF_LINES}

    def __call__(self, frame, lanes, kind: str, line: int) -> None:
        key = distinct(lanes)
        touched = np.count_nonzero(np.diff(key >> SECTOR_SHIFT, prepend=-1))
        begins = key[np.flatnonzero(np.diff(key >> SPAN, prepend=-1))]
        once = key.size * lanes.size
        even = once * np.mean(begins % EVEN == 0) if begins.size else 0
        counts = (lanes.offset.size * lanes.size, once, even, int(touched) << SECTOR_SHIFT)
        for name, count in zip(OF_LINES, counts, strict=True):
            self.found[name][lanes.tensor.name, kind, line] += count * lanes.times

    def rows(self) -> list[dict]:
        return [
            dict(zip(("tensor", "kind", "line"), place, strict=True))
            | {name: int(self.found[name][place]) for name in OF_LINES}
            for place in sorted(self.found["bytes"])
        ]
