"""Save a run as one file with its findings, its lines, and the recording of one program.
The file holds only data, no code."""

import json
import zipfile
from dataclasses import fields
from pathlib import Path

import numpy as np

from . import __version__
from .recorder import Access, Done, Place, Recording, Value

FORMAT = 1


class BadFile(ValueError):
    """The file is none that a run was saved in."""


class Arrays:
    """Hold arrays one after another. An array's name is its offset, its type and its shape."""

    def __init__(self, held: bytes = b""):
        self.held, self.parts, self.size = held, [], 0

    def put(self, array: np.ndarray | None):
        if array is None:
            return None
        array = np.asarray(array)
        self.parts.append(array.tobytes())
        self.size += array.nbytes
        return [self.size - array.nbytes, array.dtype.name, list(array.shape)]

    def get(self, named) -> np.ndarray | None:
        if named is None:
            return None
        offset, name, shape = named
        dtype = np.dtype(name)
        if dtype.hasobject:
            raise BadFile(f"an array must hold numbers, got {name}")
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(self.held, dtype, count, offset).reshape(shape)


def save(path: str | Path, run: dict, recording: Recording | None) -> None:
    """Writes a run, as command.as_dict tells it, and a recording where there is one."""
    arrays = Arrays()
    told = {"format": FORMAT, "tilescope": __version__, "run": run, "recording": None}
    if recording is not None:
        told["recording"] = plain(recording) | {
            "places": [plain(one) for one in recording.places],
            "values": [plain(v) | {"kept": arrays.put(v.kept)} for v in recording.values],
            "done": [plain(d) | {"access": access_told(d.access, arrays)} for d in recording.done],
        }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("run.json", json.dumps(told))
        file.writestr("arrays", b"".join(arrays.parts))


def plain(one) -> dict:
    return {field.name: getattr(one, field.name) for field in fields(one)}


def access_told(access: Access | None, arrays: Arrays) -> dict | None:
    if access is None:
        return None
    return plain(access) | {"address": arrays.put(access.address), "active": arrays.put(access.active)}


def load(path: str | Path) -> tuple[dict, Recording | None]:
    """Return the saved run and its recording. Raise BadFile if the file has none."""
    try:
        with zipfile.ZipFile(path) as file:
            told, arrays = json.loads(file.read("run.json")), Arrays(file.read("arrays"))
        if told["format"] != FORMAT:
            raise BadFile(
                f"{path} must be of format {FORMAT}, got {told['format']!r}. Open it with its own tilescope"
            )
        return told["run"], recording_of(told["recording"], arrays)
    except BadFile:
        raise
    except FileNotFoundError:
        raise BadFile(f"there is no file {str(path)!r}") from None
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise BadFile(f"{path} must be a file that tilescope saved, got another one ({error})") from None


def recording_of(told: dict | None, arrays: Arrays) -> Recording | None:
    if told is None:
        return None
    places = [
        Place(**one | {"shape": tuple(one["shape"]), "strides": tuple(one["strides"])})
        for one in told["places"]
    ]
    values = [
        Value(**v | {"kept": arrays.get(v["kept"]), "shape": tuple(v["shape"])}) for v in told["values"]
    ]
    done = [done_of(one, arrays) for one in told["done"]]
    more = {"grid": tuple(told["grid"]), "places": places, "values": values, "done": done}
    return Recording(**told | more)


def done_of(told: dict, arrays: Arrays) -> Done:
    access = told["access"]
    if access is not None:
        kept = {"shape": tuple(access["shape"]), "address": arrays.get(access["address"])}
        access = Access(**access | kept | {"active": arrays.get(access["active"])})
    turns = tuple((line, turn) for line, turn in told["turns"])
    numbers = {name: tuple(told[name]) for name in ("operands", "results")}
    return Done(**told | numbers | {"turns": turns, "access": access})
