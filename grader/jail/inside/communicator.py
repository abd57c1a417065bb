"""Give an answer its communicator, one rank's end of two exchanges that all ranks enter together."""

import numpy as np
from frames import NAMES


class Communicator:
    """`rank` is this one's number, `ranks` how many there are. `exchange` takes (call, array, send, receive)."""

    def __init__(self, rank: int, ranks: int, exchange):
        self._rank, self._ranks, self._exchange = rank, ranks, exchange

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def ranks(self) -> int:
        return self._ranks

    def exchange_counts(self, counts):
        """counts[r] goes to rank r. Row r of the result is from rank r. Takes (ranks,) or (ranks, n) whole numbers."""
        counts = np.asarray(counts)
        if counts.dtype.kind not in "iu" or not counts.ndim or len(counts) != self.ranks:
            raise ValueError(
                f"counts must be whole numbers, a row for each of {self.ranks} ranks, "
                f"got {counts.dtype} of shape {counts.shape}"
            )
        return self._exchange("exchange_counts", counts.astype(np.int64), [], [])

    def send_rows(self, rows, send, receive):
        """The first send[0] rows go to rank 0, the next send[1] to rank 1, and so on. The result has receive[0] rows
        of rank 0, then receive[1] of rank 1, and so on. Rows that a rank sends to itself cost nothing."""
        rows = np.asarray(rows)
        if rows.dtype not in NAMES or not rows.ndim:
            dtype = str(rows.dtype) if len(str(rows.dtype)) <= 40 else f"{str(rows.dtype)[:40]} …"
            raise ValueError(
                f"rows must be an array of numbers, a row each, got {dtype} of shape {rows.shape}"
            )
        send, receive = self._split("send", send), self._split("receive", receive)
        if sum(send) != len(rows):
            raise ValueError(f"send must count all {len(rows)} rows, got {send}, which are {sum(send)}")
        return self._exchange("send_rows", rows, send, receive)

    def _split(self, name: str, value) -> list[int]:
        found = np.asarray(value)
        if found.dtype.kind not in "iu" or found.shape != (self.ranks,) or (found < 0).any():
            raise ValueError(
                f"{name} must be a number of rows for each of {self.ranks} ranks, got {value!r}"[:400]
            )
        return [int(one) for one in found]
