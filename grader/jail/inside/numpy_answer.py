"""Call one function of the answer with arrays and plain values, and send its results back (worker "numpy")."""

import signal
import sys

import numpy as np
from frames import NAMES

from ..protocol import LONGEST_NUMBER, MOST_NAMES
from .answer_module import FILE, AnswerError, blame, load

DEEPEST = 60
VARIANT_S = 0.2  # of processor time for one source among several


def prepare() -> None:
    np.seterr(all="ignore")


def run(task: dict, arrays: dict) -> tuple[dict, dict]:
    return variants(task, arrays) if "sources" in task else called(task, arrays)


def variants(task: dict, arrays: dict) -> tuple[dict, dict]:
    """Return the calls of each source. If one source raises, the others go on."""
    rows, out = [], {}
    if not hasattr(signal, "setitimer"):  # in a browser's tab nothing ends a loop that a change makes endless
        return {"variants": [None] * len(task["sources"])}, out
    signal.signal(signal.SIGVTALRM, too_long)
    for source in task["sources"]:
        copies = {name: a.copy() for name, a in arrays.items()}
        signal.setitimer(signal.ITIMER_VIRTUAL, VARIANT_S)
        try:
            entry = getattr(load(source, {"np": np}), task["entry"])
            rows.append([encode(entry(*arguments_of(call, copies)), out) for call in task["calls"]])
        except (Exception, SystemExit):  # of a text that was changed, anything may come
            rows.append(None)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return {"variants": rows}, out


def too_long(number, frame):
    raise TimeoutError("a changed answer takes too long")


def arguments_of(call: list[dict], arrays: dict) -> list:
    return [arrays[a["array"]] if "array" in a else a["value"] for a in call]


def called(task: dict, arrays: dict) -> tuple[dict, dict]:
    module = load(task["source"], {"np": np})
    entry = getattr(module, task["entry"], None)
    if not callable(entry):
        raise AnswerError("load", f"the cell defines no function {task['entry']}", kind="MissingFunction")
    results, out, seen = [], {}, []
    function = watched(entry, seen) if task.get("watched") else entry
    copies = {name: a.copy() for name, a in arrays.items()}
    for call in task["calls"]:
        arguments = arguments_of(call, copies)
        with blame("call"):
            value = function(*arguments)
            results.append(encode(value, out))
    changed = [name for name, a in arrays.items() if a.tobytes() != copies[name].tobytes()]
    return {
        "results": results,
        "inputs_changed": changed,
        **({"returned": seen} if task.get("watched") else {}),
    }, out


def watched(entry, seen: list):
    """Return the function, changed to note in `seen` the line that it returned from, and the numbers that its names then
    held."""
    code = getattr(entry, "__code__", None)

    def of_entry(frame, event, value):
        if event == "return":
            arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            names = [
                [name, repr(one.item() if isinstance(one, np.generic) else one)]
                for name, one in frame.f_locals.items()
                if name not in arguments and name != "_" and isinstance(one, NUMBERS)
            ]
            short = [pair for pair in names if len(pair[1]) <= LONGEST_NUMBER]
            seen.append({"line": frame.f_lineno, "names": short[-MOST_NAMES:]})
        return of_entry

    def of_any(frame, event, value):
        if frame.f_code is not code or frame.f_code.co_filename != FILE:
            return None
        frame.f_trace_lines = False
        return of_entry

    def call(*arguments):
        sys.settrace(of_any)
        try:
            return entry(*arguments)
        finally:
            sys.settrace(None)

    return call


NUMBERS = (int, float, np.number, np.bool_)


def encode(value, out: dict, depth: int = DEEPEST):
    """Encode nested tuples, lists and dicts as JSON, and every number and array as raw bytes in `out`."""
    if not depth:
        message = f"the result must be numbers, got lists within lists more than {DEEPEST} deep"
        raise AnswerError("call", message, kind="BadResult")
    if isinstance(value, tuple | list) and not _numbers(value):
        return {"list": [encode(v, out, depth - 1) for v in value]}
    if isinstance(value, dict):
        return {"dict": {str(k): encode(v, out, depth - 1) for k, v in value.items()}}
    if value is None or isinstance(value, str):  # numpy's own strings among them
        return {"plain": None if value is None else str(value)[:10000]}
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise AnswerError(
            "call", f"the result must be numbers, got {type(value).__name__} ({error})", kind="BadResult"
        ) from None
    if array.dtype not in NAMES:
        raise AnswerError(
            "call",
            f"the result must be an array of numbers, got {type(value).__name__} of dtype {array.dtype}",
            kind="BadResult",
        )
    name = f"r{len(out)}"
    out[name] = array
    return {"array": name}


def _numbers(value) -> bool:
    """A list of plain numbers, which is sent as one array."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(v, int | float | np.generic) for v in value)
    )
