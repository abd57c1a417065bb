"""Track happens-before among a launch's programs with vector clocks that atomics release and acquire."""

import numpy as np

MOST_PROGRAMS = 2048  # whose clocks are kept
MOST_BYTES = 64 << 20  # number of clocks that atomics released
ACQUIRES, RELEASES = {2, 4}, {3, 4}  # an atomic's `sem`: 1 relaxed, 2 acquire, 3 release, 4 both
NOT_ATOMIC = 0  # in place of these: between programs it is a load and a store
# One thread does the atomic of a single number. It releases what other threads stored before only if a barrier came in
# between. Until then their stores have an epoch that is so much later, and a program releases less often in between.
LATER = 1 << 12


class Clocks:
    """`now[p, q]` is the last epoch of q that happened before p's next action. Programs count from 1 on."""

    def __init__(self, programs: int):
        self.now = np.eye(programs + 1, dtype=np.int32)
        self.left = [np.zeros(programs + 1, np.int32)]  # released clocks by number, 0 for the empty one
        self.spare: list[int] = []
        self.unsettled = np.zeros(programs + 1, bool)  # programs that stored blocks since their last barrier

    def barrier(self, me: np.ndarray) -> None:
        """Let the next release of these programs cover what all their threads have stored."""
        me = me[self.unsettled[me]]
        self.now[me, me] += LATER
        self.unsettled[me] = False

    def epoch_of_block(self, me: np.ndarray) -> np.ndarray:
        """Return the epoch of stores that all threads of a program share."""
        self.unsettled[me] = True
        return self.now[me, me] + LATER

    def epoch(self, me: np.ndarray) -> np.ndarray:
        return self.now[me, me]

    def after(self, me: np.ndarray, other: np.ndarray, epoch: np.ndarray) -> np.ndarray:
        """Return whether the action of `other` in `epoch` happened before the next action of `me`."""
        return self.now[me, other] >= epoch

    def meet(self, me: int, marks: np.ndarray, sem: int) -> np.ndarray:
        """Perform an atomic of `me` on elements with the releases `marks`.
        Acquire them, and return the new ones."""
        numbers, place = np.unique(marks, return_inverse=True)
        if sem in ACQUIRES:
            for number in numbers:
                np.maximum(self.now[me], self.left[number], out=self.now[me])
        if sem not in RELEASES:
            return marks  # a read-modify-write carries on the earlier releases
        if sem in ACQUIRES:
            after = np.full(len(numbers), self.keep(self.now[me].copy()))
        else:
            after = np.array([self.keep(np.maximum(self.left[n], self.now[me])) for n in numbers])
        return after[place.reshape(-1)]

    def tick(self, me: int, sem: int) -> None:
        """Begin a new epoch, because a release doesn't cover later actions."""
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
        """Let numbers that no element holds any more be used again."""
        self.spare = [number for number in range(1, len(self.left)) if number not in used]
        for number in self.spare:
            self.left[number] = self.left[0]
