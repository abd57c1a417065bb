"""Keep a stamp of the data behind each student's entry in the gradebook, so that an unchanged entry is not repeated
and a changed hand-in is noticed."""

import hashlib
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from grader.classroom.atomic_file import PLACE, write
from grader.classroom.leftovers import NOISE
from grader.classroom.open_safely import MOST_BYTES

MOST_FILES = 1000  # of one hand-in that are looked at


@dataclass(frozen=True)
class Entry:
    """One student's entry in the gradebook."""

    stamp: str = ""  # of the answers and their remarks. An empty stamp fits nothing
    files: str = ""  # of the files that were read
    shown: str = ""  # of the row that was last shown


class Entered:
    """Student -> entry of one lab. A line is added per entry, and the file is rewritten once a run."""

    def __init__(self, root: Path, lab: str):
        self.path = _path(root, lab)
        self.entries = read(root, lab)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write(self.path, "".join(_line(*one) for one in self.entries.items()), replace=True)

    def get(self, student: str) -> Entry:
        return self.entries.get(student, Entry())

    def put(self, student: str, **more: str) -> None:
        """Store fields of an entry. With an empty stamp, this student is entered again."""
        new = replace(self.get(student), **more)
        if new == self.get(student):
            return
        self.entries[student] = new
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(_line(student, new))


def read(root: Path, lab: str) -> dict[str, Entry]:
    """Return student -> entry, as the last run of the class command left them."""
    found = {student: Entry(stamp) for student, stamp in _first_form(root, lab).items()}
    path = _path(root, lab)
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            student, *fields = json.loads(line)
        except ValueError:  # what a kill in the middle of a write left
            continue
        found[student] = Entry(*fields)
    return found


def files_in(folder: Path) -> str:
    """Return a digest of a hand-in's files. A newer hand-in has another one, even at the same time."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - NOISE)
        for path in (Path(place) / name for name in sorted(set(files) - NOISE)):
            if len(found) < MOST_FILES:
                found.append([str(path.relative_to(folder)), _content(path)])
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()


def _content(path: Path) -> str:
    """Return a digest of a plain file that may be read, and the size of any other."""
    if path.is_symlink() or not path.is_file() or (size := path.stat().st_size) > MOST_BYTES:
        return f"{path.lstat().st_size} bytes"
    return hashlib.sha256(path.read_bytes()).hexdigest() if size else ""


def _path(root: Path, lab: str) -> Path:
    return root / PLACE / f"{lab}.entered.jsonl"


def _line(student: str, entry: Entry) -> str:
    return json.dumps([student, entry.stamp, entry.files, entry.shown]) + "\n"


def _first_form(root: Path, lab: str) -> dict[str, str]:
    """Read the file. Earlier versions wrote one object."""
    path = root / PLACE / f"{lab}.entered.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
