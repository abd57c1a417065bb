"""Judge numpy questions in a student edition by recorded calls with their expected results, without the functions that
compute them. `python -m grader release` writes these records. A class is judged by the functions themselves, on new calls.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from grader.questions.model import Call, Mistake

FOLDER = "recorded"  # next to the topic's questions
RAISED = "raised"  # marks a mistake that gave no result


class NotRecorded(ValueError):
    """Say that a call isn't in the record."""


class Bytes:
    """Hold the content of arrays, one after another, each distinct content once."""

    def __init__(self):
        self.all = bytearray()
        self.places: dict[bytes, int] = {}

    def place(self, content: bytes) -> int:
        key = hashlib.sha256(content).digest()
        if key not in self.places:
            self.places[key] = len(self.all)
            self.all += content
        return self.places[key]


def pack(value, data: Bytes):
    """Pack plain values, tuples, lists and arrays as JSON. The arrays' content goes to `data`."""
    if isinstance(value, np.generic):
        value = np.asarray(value) if value.dtype.kind not in "biuf" else value.item()
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.str, "shape": value.shape, "at": data.place(value.tobytes())}
    if isinstance(value, tuple):
        return {"tuple": [pack(item, data) for item in value]}
    if isinstance(value, list):
        return [pack(item, data) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a recorded value must be plain or an array, got {type(value).__name__}")


def unpack(row, data: bytes):
    if isinstance(row, list):
        return [unpack(item, data) for item in row]
    if not isinstance(row, dict):
        return row
    if "tuple" in row:
        return tuple(unpack(item, data) for item in row["tuple"])
    count = int(np.prod(row["shape"], dtype=int))
    return np.frombuffer(data, np.dtype(row["dtype"]), count, row["at"]).reshape(row["shape"]).copy()


def digest(args: tuple) -> str:
    """Return the same digest for equal arguments, whatever arrays hold them."""
    data = Bytes()
    text = json.dumps(pack(tuple(args), data))
    return hashlib.sha256(text.encode() + data.all).hexdigest()


def write(path: Path, rows: dict) -> None:
    """Write `rows`, anything that `pack` takes, by name. The same rows give the same bytes."""
    data = Bytes()
    packed = json.dumps({name: pack(row, data) for name, row in rows.items()})
    path.parent.mkdir(parents=True, exist_ok=True)
    header = np.frombuffer(packed.encode(), np.uint8)
    np.savez_compressed(path, header=header, data=np.frombuffer(bytes(data.all), np.uint8))


def read(path: Path) -> dict:
    with np.load(path, allow_pickle=False) as file:
        data = file["data"].tobytes()
        return {name: unpack(row, data) for name, row in json.loads(file["header"].tobytes()).items()}


def cases(module: str, name: str) -> dict:
    """Return the recorded fields of a question, for a module next to the folder of records."""
    rows = read(Path(module).with_name(FOLDER) / f"{name}.npz")
    calls = [Call(args, kind) for args, kind in rows["calls"]]
    keys = [digest(call.args) for call in calls]
    sets = [[calls[i] for i in numbers] for numbers in rows["hidden"]]
    wanted = dict(zip(keys, rows["wanted"], strict=True))
    return {
        "public": tuple(calls[i] for i in rows["public"]),
        "hidden": lambda rng: sets[int(rng.integers(len(sets)))],
        "reference": _looked_up(wanted),
        "mistakes": tuple(
            Mistake(said, sentence, wrong=_looked_up(dict(zip(keys, gave, strict=True))))
            for said, sentence, gave in rows["mistakes"]
        ),
    }


def _looked_up(results: dict) -> Callable:
    def result(*args):
        found = results.get(digest(args), RAISED)
        if isinstance(found, str) and found == RAISED:
            raise NotRecorded("this call was not recorded")
        return found

    return result
