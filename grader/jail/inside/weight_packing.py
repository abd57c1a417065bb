"""Run the answer's own function on a case's weights, and return only the arrays that its launch(p) named.

It runs in a process that lowers nothing, after every kernel's text is fixed and before any activation exists.
"""

import sys

import numpy as np
from frames import DTYPES, NAMES

from .answer_module import AnswerError, blame
from .plan import named


def prepared(module, task: dict, arrays: dict) -> tuple[dict, dict]:
    """Return {"cases": [{"printed"} or {"error"}]}, and array "i:name" for each that case i made."""
    entry = getattr(module, task["entry"], None)
    if not callable(entry):
        raise AnswerError("load", f"the cell defines no function {task['entry']}", kind="MissingFunction")
    rows, made = [], {}
    for number, case in enumerate(task["cases"]):
        printed = sys.stdout
        fresh = sys.stdout = sys.stderr = type(printed)()
        try:
            given = [arrays[a["array"]].copy() if "array" in a else a["value"] for a in case["arguments"]]
            with blame("pack"):
                value = entry(*given)
            made |= {f"{number}:{name}": a for name, a in held(value, task["entry"], case["packed"]).items()}
            row = {}
        except AnswerError as error:
            row = {"error": error.report}
        sys.stdout = sys.stderr = printed
        rows.append({**row, "printed": fresh.text()})
    return {"cases": rows}, made


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
