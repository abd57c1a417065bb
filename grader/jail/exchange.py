"""Check the replies of ranks to the referee, each rank's next exchange, or its result, as plain data.

A rank is run from its start for each of its exchanges, knowing what it received earlier, and then it stops. So it
never runs while another rank does, and never waits. The requests of all ranks together show a rank that would wait for
ever.
"""

from dataclasses import dataclass, field

import numpy as np

from grader.jail.protocol import need, require_encoded, whole_number

MOST_EXCHANGES = 16
MOST_CALL_BYTES = 4 << 20
MOST_COUNTS = 4096  # numbers for each rank
MOST_AXES = 4
DIGEST_CHARACTERS = 64
COUNTS, ROWS = "exchange_counts", "send_rows"


class Mismatch(Exception):
    """Exchanges of several ranks that don't fit together, as a sentence with a hint where to look."""

    def __init__(self, came: str, look: str):
        super().__init__(came)
        self.came, self.look = came, look


@dataclass(frozen=True)
class Ask:
    """One rank's part in an exchange."""

    call: str  # COUNTS or ROWS
    array: np.ndarray
    send: tuple[int, ...] = ()  # rows for each rank, and from each
    receive: tuple[int, ...] = ()


@dataclass(frozen=True)
class Turn:
    """The state of a rank in one case: at an exchange, at its end, or at an error."""

    ask: Ask | None = None
    result: dict | None = None  # encoded, as numpy answers return
    error: dict | None = None
    before: tuple[str, ...] = ()  # digests of all its asks, the last one for this ask
    arrays: dict = field(default_factory=dict)

    def of_result(self) -> dict:
        """Return the arrays of one result by name, taken from the arrays for all cases."""
        return {name: self.arrays[name] for name in _names(self.result)}


def _names(encoded) -> list[str]:
    if "array" in encoded:
        return [encoded["array"]]
    inner = encoded.get("list") or list((encoded.get("dict") or {}).values())
    return [name for one in inner for name in _names(one)]


@dataclass(frozen=True)
class RankCase:
    """One rank's view of a case. An argument is {"array": name} or {"value": plain}, and a reply is an array's name."""

    ranks: int
    arguments: list[dict]
    replies: list[dict]  # the result of each earlier exchange
    # the arguments and replies of a call that ended, which the same process makes before this one, whether its arrays are
    # filled anew for this one, and how often it is repeated
    first: dict | None


@dataclass(frozen=True)
class TurnRequest:
    """One rank of an answer, up to its next exchange in each case."""

    source: str
    entry: str
    rank: int
    cases: list[RankCase]

    def task(self) -> dict:
        return {**vars(self), "cases": [dict(vars(case)) for case in self.cases]}


def request(source: str, entry: str, rank: int, cases: list[tuple]) -> tuple[TurnRequest, dict]:
    """Return (request, its arrays). A case is (ranks, arguments, the result of each earlier exchange), and perhaps (arguments,
    results of all exchanges, whether its arrays are filled anew, how often it is repeated) of a call that comes before it."""
    rows, arrays = [], {}

    def named(array: np.ndarray) -> dict:
        arrays[f"a{len(arrays)}"] = array
        return {"array": f"a{len(arrays) - 1}"}

    def told(arguments: tuple, replies: list) -> dict:
        given = [named(one) if isinstance(one, np.ndarray) else {"value": one} for one in arguments]
        return {"arguments": given, "replies": [named(one) for one in replies]}

    for ranks, arguments, replies, *before in cases:
        row = told(arguments, replies)
        first = None
        if before:
            *call, refilled, repeats = before[0]
            first = {**told(*call), "refilled": refilled, "repeats": repeats}
        rows.append(RankCase(ranks, **row, first=first))
    return TurnRequest(source, entry, rank, rows), arrays


def turns(header: dict, arrays: dict, ranks: list[int], clean_error) -> list[Turn]:
    """Read the reply to a request of these cases, each of these ranks. Every field is checked."""
    rows = header.get("turns")
    need(isinstance(rows, list) and len(rows) == len(ranks), "a turn for each case")
    return [_turn(row, arrays, count, clean_error) for row, count in zip(rows, ranks, strict=True)]


def _turn(row, arrays: dict, ranks: int, clean_error) -> Turn:
    need(isinstance(row, dict), "turns that are objects")
    before = row.get("before")
    need(isinstance(before, list) and len(before) <= MOST_EXCHANGES + 1, "a digest for each exchange")
    need(all(isinstance(one, str) and len(one) == DIGEST_CHARACTERS for one in before), "digests")
    if "error" in row:
        return Turn(error=clean_error(row["error"]), before=tuple(before))
    if "result" in row:
        require_encoded(row["result"], arrays)
        return Turn(result=row["result"], before=tuple(before), arrays=arrays)
    need(bool(before), "a digest of the exchange that it waits in")
    return Turn(ask=_ask(row, arrays, ranks), before=tuple(before))


def _ask(row: dict, arrays: dict, ranks: int) -> Ask:
    call, name = row.get("call"), row.get("array")
    need(call in (COUNTS, ROWS), "an exchange of a known kind")
    need(isinstance(name, str) and name in arrays, "an array that came")
    array = arrays[name]
    need(1 <= array.ndim <= MOST_AXES and array.nbytes <= MOST_CALL_BYTES, "arrays of at most 4 MiB")
    if call == COUNTS:
        need(array.dtype == np.int64 and len(array) == ranks, "counts for each rank")
        need(array.size <= ranks * MOST_COUNTS, "few counts")
        return Ask(call, array)
    send, receive = (_split(row.get(name), ranks) for name in ("send", "receive"))
    need(sum(send) == len(array), "all rows sent")
    return Ask(call, array, send, receive)


def _split(value, ranks: int) -> tuple[int, ...]:
    need(isinstance(value, list) and len(value) == ranks, "a number of rows for each rank")
    return tuple(whole_number(one, 0, 1 << 31) for one in value)


def route(asks: list[Ask]) -> tuple[list[np.ndarray], np.ndarray]:
    """Return (the rows that each rank gets, bytes from rank to rank). Rows that a rank sends to itself count nothing."""
    _same_call(asks)
    ranks = range(len(asks))
    if asks[0].call == COUNTS:
        replies = [np.stack([asks[s].array[r] for s in ranks]) for r in ranks]
        return replies, _sent([[asks[s].array[r].nbytes for r in ranks] for s in ranks])
    _same_splits(asks)
    pieces = [np.split(one.array, np.cumsum(one.send)[:-1]) for one in asks]
    replies = [np.concatenate([pieces[s][r] for s in ranks]) for r in ranks]
    return replies, _sent([[pieces[s][r].nbytes for r in ranks] for s in ranks])


def _sent(table: list[list[int]]) -> np.ndarray:
    sent = np.array(table, np.int64)
    np.fill_diagonal(sent, 0)
    return sent


def _same_call(asks: list[Ask]) -> None:
    first = asks[0]
    for rank, one in enumerate(asks):
        if one.call != first.call:
            raise Mismatch(
                f"rank {rank} calls {one.call} where rank 0 calls {first.call}",
                "all ranks make the same exchanges in the same order",
            )
        if one.array.shape[1:] != first.array.shape[1:] or one.array.dtype != first.array.dtype:
            mine, theirs = (f"{a.dtype} of shape {a.shape}" for a in (one.array, first.array))
            raise Mismatch(
                f"rank {rank} gives {one.call} {mine}, rank 0 {theirs}",
                "in one exchange the rows of all ranks have one width and one dtype, also where a rank has none",
            )


def _same_splits(asks: list[Ask]) -> None:
    for rank, one in enumerate(asks):
        for sender, awaited in enumerate(one.receive):
            if awaited != asks[sender].send[rank]:
                raise Mismatch(
                    f"rank {rank} awaits {awaited:,} rows of rank {sender}, which sends it {asks[sender].send[rank]:,}",
                    "receive: how many rows each rank sends here, which its counts say",
                )
