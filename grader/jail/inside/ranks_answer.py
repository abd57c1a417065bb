"""Run one rank of an answer up to its next exchange, in every given case (worker "ranks").

Each case runs in its own thread, which gets the results of earlier exchanges again and stops at the first exchange whose
result is unknown. The process ends with its reply, and the threads end with the process.
"""

import hashlib
import queue
import threading
from collections.abc import Iterable

import numpy as np

from ..exchange import COUNTS, MOST_AXES, MOST_CALL_BYTES, MOST_COUNTS, MOST_EXCHANGES
from .answer_module import AnswerError, blame, load
from .communicator import Communicator
from .numpy_answer import encode

STACK_BYTES = 16 << 20
OVERWRITTEN = "a second call changes what the first one returned: each call must return an array of its own"


def prepare() -> None:
    np.seterr(all="ignore")
    threading.stack_size(STACK_BYTES)


def run(task: dict, arrays: dict) -> tuple[dict, dict]:
    out, turns = {}, []
    for case in task["cases"]:
        ended = queue.SimpleQueue()
        one = Rank(task, case, arrays, ended)
        threading.Thread(target=one.run, daemon=True).start()
        turn, array = ended.get()
        if isinstance(turn, BaseException):
            raise turn
        if "result" in turn:
            turn["result"] = encode(array, out)
        elif array is not None:
            turn["array"] = f"r{len(out)}"
            out[turn["array"]] = array
        turns.append({**turn, "before": one.asked})
    return {"turns": turns}, out


def arrays_of(value) -> list[np.ndarray]:
    """Return the arrays in tuples and lists."""
    if isinstance(value, tuple | list):
        return [array for one in value for array in arrays_of(one)]
    return [value] if isinstance(value, np.ndarray) else []


def digest(value) -> str:
    """Return the digest of what a call returned."""
    arrays: dict = {}
    said = repr(encode(value, arrays)).encode()
    return hashlib.sha256(said + b"".join(one.tobytes() for one in arrays.values())).hexdigest()


class Rank:
    """One rank in one case."""

    def __init__(self, task: dict, case: dict, arrays: dict, ended: queue.SimpleQueue):
        self.task, self.case, self.arrays, self.ended = task, case, arrays, ended
        self.asked, self.replies = [], []

    def given(self, row: dict):
        return self.arrays[row["array"]].copy() if "array" in row else row["value"]

    def run(self) -> None:
        try:
            self.ended.put(({"result": None}, self.called()))
        except AnswerError as error:
            self.ended.put(({"error": error.report}, None))
        except BaseException as error:
            self.ended.put((error, None))

    def called(self):
        module = load(self.task["source"], {"np": np})
        entry = getattr(module, self.task["entry"], None)
        if not callable(entry):
            raise AnswerError(
                "load", f"the cell defines no function {self.task['entry']}", kind="MissingFunction"
            )
        if not (first := self.case["first"]):
            return self.call(entry, self.case)
        given = [*map(self.given, first["arguments"])]
        kept = [self.call(entry, first, given)]
        own = not any(
            np.may_share_memory(one, other) for one in arrays_of(given) for other in arrays_of(kept)
        )
        kept += [self.call(entry, first) for _ in range(first["repeats"])]  # a ring of buffers comes round
        before = [*map(digest, kept)]
        again = map(self.given_again, given, self.case["arguments"]) if first["refilled"] else None
        value = self.call(entry, self.case, again)
        if own and [*map(digest, kept)] != before:
            raise AnswerError("call", OVERWRITTEN, kind="Overwritten")
        return value

    def given_again(self, before, row: dict):
        """Return what a second call takes, in the array of the first call if it fits, as a program that runs for long fills
        its buffers anew."""
        now = self.given(row)
        if all(isinstance(one, np.ndarray) for one in (before, now)):
            if (before.shape, before.dtype) == (now.shape, now.dtype) and before.flags.writeable:
                before[...] = now
                return before
        return now

    def call(self, entry, case: dict, given: Iterable | None = None):
        self.asked, self.replies = [], case["replies"]
        comm = Communicator(self.task["rank"], self.case["ranks"], self.exchange)
        with blame("call"):
            value = entry(comm, *(map(self.given, case["arguments"]) if given is None else given))
            encode(value, {})  # what cannot be sent is the answer's error, with its line
        return value

    def exchange(self, call: str, array: np.ndarray, send: list, receive: list) -> np.ndarray:
        number, replies = len(self.asked), self.replies
        if number == MOST_EXCHANGES:
            raise RuntimeError(
                f"a rank may enter at most {MOST_EXCHANGES} exchanges, and this {call} is one more"
            )
        few = call != COUNTS or array.size <= self.case["ranks"] * MOST_COUNTS
        if not few or array.nbytes > MOST_CALL_BYTES or array.ndim > MOST_AXES:
            raise ValueError(
                f"{call} carries at most {MOST_CALL_BYTES >> 20} MiB in {MOST_AXES} axes, or {MOST_COUNTS} counts "
                f"for each rank, got {array.dtype} of shape {array.shape}"
            )
        what = f"{call} {array.dtype} {array.shape} {send} {receive} ".encode()
        self.asked.append(hashlib.sha256(what + array.tobytes()).hexdigest())
        if number < len(replies):
            return self.given(replies[number])
        self.ended.put(({"call": call, "send": send, "receive": receive}, np.ascontiguousarray(array)))
        threading.Event().wait()  # for ever, until the process ends
