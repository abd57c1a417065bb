"""Keep a stamp of what each student's entry in the gradebook rests on, so that an unchanged entry is not repeated."""

import json
from pathlib import Path

from grader.classroom.atomic_file import PLACE, write


class Entered:
    """Student -> stamp of one lab. A line is added per entry, and the file is rewritten once a run."""

    def __init__(self, root: Path, lab: str):
        self.path = root / PLACE / f"{lab}.entered.jsonl"
        self.stamps = _read(root / PLACE / f"{lab}.entered.json") | self._lines()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(_line(student, stamp) for student, stamp in self.stamps.items())
        write(self.path, text, replace=True)

    def _lines(self) -> dict[str, str]:
        found = {}
        for line in self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []:
            try:
                student, stamp = json.loads(line)
            except ValueError:  # what a kill in the middle of a write left
                continue
            found[student] = stamp
        return found

    def get(self, student: str) -> str | None:
        return self.stamps.get(student)

    def put(self, student: str, stamp: str) -> None:
        """Store a stamp. An empty stamp fits nothing, so this student is entered again."""
        self.stamps[student] = stamp
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(_line(student, stamp))


def _line(student: str, stamp: str) -> str:
    return json.dumps([student, stamp]) + "\n"


def _read(path: Path) -> dict[str, str]:
    """Read the file. Earlier versions wrote one object."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
