"""Worker "numpy": calls one function of the answer with arrays and plain values, and sends back what it returned."""

import numpy as np
from frames import NAMES

from .answer_module import AnswerError, blame, load

DEEPEST = 60


def prepare() -> None:
    np.seterr(all="ignore")


def run(task: dict, arrays: dict) -> tuple[dict, dict]:
    module = load(task["source"], {"np": np})
    entry = getattr(module, task["entry"], None)
    if not callable(entry):
        raise AnswerError("load", f"the cell defines no function {task['entry']}", kind="MissingFunction")
    results, out = [], {}
    copies = {name: a.copy() for name, a in arrays.items()}
    for call in task["calls"]:
        arguments = [copies[a["array"]] if "array" in a else a["value"] for a in call]
        with blame("call"):
            value = entry(*arguments)
            results.append(encode(value, out))
    changed = [name for name, a in arrays.items() if a.tobytes() != copies[name].tobytes()]
    return {"results": results, "inputs_changed": changed}, out


def encode(value, out: dict, depth: int = DEEPEST):
    """Nested tuples, lists and dicts as JSON; every number and array as raw bytes in `out`."""
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
