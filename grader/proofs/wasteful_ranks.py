"""Make answers about ranks that are wasteful, or wrong beyond a size, by giving a right answer another
communicator."""

import numpy as np

TWICE, SERIES, VAIN, IDLE = (
    "sends twice",
    "sends in series",
    "sends nothing before each exchange",
    "an idle rank",
)
SENDING = {
    TWICE: """
        wide = np.concatenate([rows, rows], axis=1)
        return self.comm.send_rows(wide, send, receive)[:, : rows.shape[1]]
""",
    SERIES: """
        found, first = [], np.concatenate([[0], np.cumsum(send)])
        each = np.zeros((self.ranks, self.ranks), int)
        for rank in range(self.ranks):
            out, back = np.zeros_like(send), np.zeros_like(receive)
            out[rank] = send[rank]
            if rank == self.rank:
                back[:] = receive
            found.append(self.comm.send_rows(rows[first[rank] : first[rank + 1]], out, back))
        return found[self.rank]
""",
    VAIN: """
        self.comm.send_rows(rows[:0], np.zeros_like(send), np.zeros_like(receive))
        return self.comm.send_rows(rows, send, receive)
""",
    IDLE: """
        return self.comm.send_rows(rows, send, receive) * (self.rank + 1 < self.ranks)
""",
}
OTHER = """
right_rank = {entry}


class Other:
    def __init__(self, comm):
        self.comm, self.rank, self.ranks = comm, comm.rank, comm.ranks

    def exchange_counts(self, send):
        return self.comm.exchange_counts(send)

    def send_rows(self, rows, send, receive):
{sends}

def {entry}(comm, *arguments):
    return right_rank(Other(comm), *arguments)
"""
BEYOND = """
right_rank = {entry}


def {entry}(comm, *arguments):
    found = right_rank(comm, *arguments)
    wrong = {condition}
    return tuple(one + wrong for one in found) if isinstance(found, tuple) else found + wrong
"""


def cell(source: str, entry: str, way: str) -> str:
    """Return the answer that sends as SENDING says."""
    return source + OTHER.format(entry=entry, sends=SENDING[way].strip("\n"))


def beyond(source: str, entry: str, condition: str) -> str:
    """Return the answer that is wrong where a condition on its arguments holds."""
    return source + BEYOND.format(entry=entry, condition=condition)


def conditions(question) -> dict[str, str]:
    """Return each axis of a rank's arrays that hidden cases lengthen, with a condition for sizes longer than any known
    one."""
    known = longest(question.public)
    drawn = longest(question.hidden(np.random.default_rng(0)))
    found = {}
    for axis, size in known.items():  # of axes that are always as long as each other the first
        if drawn[axis] > size:
            found.setdefault((size, drawn[axis]), axis)
    return {
        f"beyond axis {axis} of argument {place}": f"arguments[{place}].shape[{axis}] > {size}"
        for (size, _), (place, axis) in found.items()
    }


def longest(cases) -> dict[tuple[int, int], int]:
    found: dict = {}
    for case in cases:
        for arguments in case.each:
            for place, one in enumerate(arguments):
                for axis, size in enumerate(getattr(one, "shape", ())):
                    found[place, axis] = max(found.get((place, axis), 0), size)
    return found
