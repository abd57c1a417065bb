"""Happens-before among the programs of a launch: vector clocks that atomics release and acquire."""

import numpy as np

MOST_PROGRAMS = 2048  # whose clocks are kept
MOST_BYTES = 64 << 20  # of clocks that atomics left behind
ACQUIRES, RELEASES = {2, 4}, {3, 4}  # of an atomic's `sem`: 1 relaxed, 2 acquire, 3 release, 4 both


class Clocks:
    """`now[p, q]`: up to which of q's epochs everything that q did lies before what p does next; programs from 1 on."""

    def __init__(self, programs: int):
        self.now = np.eye(programs + 1, dtype=np.int32)
        self.left = [np.zeros(programs + 1, np.int32)]  # what releases left, by number; 0 is nothing
        self.spare: list[int] = []

    def epoch(self, me: np.ndarray) -> np.ndarray:
        return self.now[me, me]

    def after(self, me: np.ndarray, other: np.ndarray, epoch: np.ndarray) -> np.ndarray:
        """Whether what `other` did in `epoch` lies before what `me` does next."""
        return self.now[me, other] >= epoch

    def meet(self, me: int, marks: np.ndarray, sem: int) -> np.ndarray:
        """An atomic of `me` where the releases `marks` lie: acquires them, and returns what lies there now."""
        numbers, place = np.unique(marks, return_inverse=True)
        if sem in ACQUIRES:
            for number in numbers:
                np.maximum(self.now[me], self.left[number], out=self.now[me])
        if sem not in RELEASES:
            return marks  # a read-modify-write carries on what was released before it
        if sem in ACQUIRES:
            after = np.full(len(numbers), self.keep(self.now[me].copy()))
        else:
            after = np.array([self.keep(np.maximum(self.left[n], self.now[me])) for n in numbers])
        return after[place.reshape(-1)]

    def tick(self, me: int, sem: int) -> None:
        """What comes after a release lies in another epoch than what it covers."""
        self.now[me, me] += sem in RELEASES

    def keep(self, vector: np.ndarray) -> int:
        if self.spare:
            number = self.spare.pop()
            self.left[number] = vector
            return number
        self.left.append(vector)
        return len(self.left) - 1

    @property
    def crowded(self) -> bool:
        return (len(self.left) - len(self.spare)) * self.left[0].nbytes > MOST_BYTES

    def forget(self, used: set[int]) -> None:
        """Numbers that lie nowhere any more may be used again."""
        self.spare = [number for number in range(1, len(self.left)) if number not in used]
        for number in self.spare:
            self.left[number] = self.left[0]
