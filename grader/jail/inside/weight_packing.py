"""Run the answer's own function on a case's weights, and return only the arrays that its launch(p) named.

It runs in a process that lowers nothing, after every kernel's text is fixed and before any activation exists.
"""

import sys

import numpy as np
from frames import DTYPES, NAMES

from .answer_module import AnswerError, blame, line_of
from .plan import named


def prepared(module, task: dict, arrays: dict) -> tuple[dict, dict]:
    """Return {"cases": [{"printed"} or {"error"}]}, and array "i:name" for each that case i made. A row also tells which
    arguments were changed in place, by number, and in which line."""
    entry = getattr(module, task["entry"], None)
    if not callable(entry):
        raise AnswerError("load", f"the cell defines no function {task['entry']}", kind="MissingFunction")
    rows, made = [], {}
    for number, case in enumerate(task["cases"]):
        printed = sys.stdout
        fresh = sys.stdout = sys.stderr = type(printed)()
        try:
            given = arguments(case, arrays)
            with blame("pack"):
                value = entry(*given)
            made |= {f"{number}:{name}": a for name, a in held(value, task["entry"], case["packed"]).items()}
            row = changes(entry, given, case, arrays)
        except AnswerError as error:
            row = {"error": error.report}
        sys.stdout = sys.stderr = printed
        rows.append({**row, "printed": fresh.text()})
    return {"cases": rows}, made


def arguments(case: dict, arrays: dict) -> list:
    """Return the function's arguments, each array in memory of its own."""
    return [
        laid_out(arrays[one["array"]], one.get("strides")) if "array" in one else one["value"]
        for one in case["arguments"]
    ]


def laid_out(array: np.ndarray, strides: list[int] | None) -> np.ndarray:
    """Return a copy with these strides in elements, or row by row if there are none. Gaps hold other numbers of the
    array."""
    if strides is None or array.size == 0:
        return array.copy()
    extent = 1 + sum((n - 1) * step for n, step in zip(array.shape, strides, strict=True))
    storage = np.resize(np.roll(array, 1), extent)
    steps = [step * array.itemsize for step in strides]
    view = np.lib.stride_tricks.as_strided(storage, array.shape, steps)
    view[...] = array
    return view


def changes(entry, given: list, case: dict, arrays: dict) -> dict:
    """Return {"changed": numbers of arguments, "line"}, or {} if all arguments are as they were."""
    names = [one.get("array") for one in case["arguments"]]
    found = [n for n, name in enumerate(names) if name and not same(given[n], arrays[name])]
    return {"changed": found, "line": line_of_change(entry, arguments(case, arrays))} if found else {}


def same(array: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two arrays have one dtype, one shape and the same bits, which a NaN has too."""
    alike = array.dtype == other.dtype and array.shape == other.shape
    return alike and array.tobytes() == other.tobytes()


def line_of_change(entry, given: list) -> int | None:
    """Return the line that changes an argument. The function runs again on arrays that refuse to be changed."""
    for one in given:
        if isinstance(one, np.ndarray):
            one.setflags(write=False)
    printed = sys.stdout
    sys.stdout = sys.stderr = type(printed)()
    try:
        entry(*given)
    except ValueError as error:
        return line_of(error) if "read-only" in str(error) else None
    except (Exception, SystemExit):  # it came further the first time, so its line tells nothing
        pass
    finally:
        sys.stdout = sys.stderr = printed
    return None


def held(value, entry: str, wanted: dict) -> dict:
    """Return the arrays, each of the shape and dtype that launch(p) named."""
    names = ", ".join(wanted)
    if not isinstance(value, dict) or set(value) != set(wanted):
        got = f"the names {', '.join(map(str, value))}" if isinstance(value, dict) else named(value)
        raise wrong(f"{entry} must return a dict of what launch(p) names as packed: {names}; got {got}")
    found = {}
    for name, row in wanted.items():
        try:
            array = np.ascontiguousarray(value[name])
        except (ValueError, TypeError) as error:
            raise wrong(f"{entry} must return arrays of numbers, got {name!r}: {error}") from None
        dtype, shape = NAMES.get(array.dtype, str(array.dtype)), tuple(row["shape"])
        if array.dtype != DTYPES[row["dtype"]] or array.shape != shape:
            raise wrong(
                f"{entry} must return {name} as launch(p) names it, {row['dtype']} of shape {shape}, got {dtype} of shape {array.shape}"
            )
        found[name] = array
    return found


def wrong(sentence: str) -> AnswerError:
    return AnswerError("pack", sentence, kind="BadResult")
