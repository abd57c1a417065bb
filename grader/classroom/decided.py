"""Keep a person's decision that an unreadable hand-in counts as an empty lab, with the reason.

The lab's own notebooks replace missing or unreadable ones, so the student has a row and can be given points by hand
like any other student. The files that the student handed in are kept.
"""

import hashlib
import json
import os
import secrets
import shutil
from datetime import UTC, datetime
from pathlib import Path

from grader.classroom import submission
from grader.classroom.atomic_file import PLACE, write
from grader.classroom.exporter import NOT_READ
from grader.classroom.grading_round import GradingRound
from grader.judge.report import visible


def as_empty(round_: GradingRound, students: list[str], who: str, why: str) -> None:
    """Put empty notebooks where these students' own can't be read. Raise ValueError if there is nothing to decide."""
    unknown = sorted(set(students) - set(submission.students(round_)))
    if unknown:
        names = ", ".join(map(visible, unknown))
        raise ValueError(f"--as-empty must name students with a folder for {round_.lab}, got {names}")
    path, now = _path(round_), datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    kept = _read(path)
    for student in students:
        kept[student] = {"who": who, "why": why, "when": now, "empty": _as_empty(round_, student)}
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, json.dumps(kept, indent=1) + "\n", replace=True)


def _as_empty(round_: GradingRound, student: str) -> dict[str, str]:
    """Return notebook -> digest for each empty notebook that an instructor's decision added."""
    folder = round_.root / "submitted" / student / round_.lab
    if folder.is_symlink() or folder.parent.is_symlink():
        raise ValueError(f"{visible(student)}'s folder must be a folder, got a link. Remove the link")
    labs = sorted((round_.root / "labs" / round_.lab).glob("*.ipynb"))
    read = {
        path.name: NOT_READ not in notebook.metadata
        for path, notebook in _pairs(labs, submission.handed_in(round_, student).notebooks, folder)
    }
    if already := said(round_, student):
        raise ValueError(f"{visible(student)}: {already[0]}. Leave the name out")
    if all(read.get(path.name) for path in labs):
        raise ValueError(
            f"--as-empty must name students whose work can't be read, and {visible(student)}'s notebooks can. Leave the name out"
        )
    aside = round_.root / PLACE / "set_aside" / student / f"{round_.lab}-{secrets.token_hex(4)}"
    put = {}
    for path in labs:
        if read.get(path.name):
            continue
        place = folder / path.name
        if os.path.lexists(place):
            aside.mkdir(parents=True, exist_ok=True)
            os.rename(place, aside / path.name)
        shutil.copyfile(path, place)
        put[path.name] = _digest(place)
    return put


def _pairs(labs: list[Path], notebooks: list, folder: Path):
    """Return the lab's notebooks that were handed in, each with its parsed content."""
    there = [path for path in labs if os.path.lexists(folder / path.name)]
    return zip(there, notebooks, strict=True)


def said(round_: GradingRound, student: str) -> list[str]:
    """Return the decision in one sentence for the student's row, or nothing once other notebooks were handed in."""
    one = _read(_path(round_)).get(student)
    folder = round_.root / "submitted" / student / round_.lab
    if one is None or not any(_digest(folder / name) == digest for name, digest in one["empty"].items()):
        return []
    labs = {path.name for path in (round_.root / "labs" / round_.lab).glob("*.ipynb")}
    what = "counts" if set(one["empty"]) >= labs else f"{', '.join(sorted(one['empty']))} counts"
    what += " as an empty lab" if what == "counts" else " as empty"
    return [f"{what}, decided {one['when']} by {visible(one['who'])}: {visible(one['why'])}"]


def _digest(path: Path) -> str:
    plain = path.is_file() and not path.is_symlink()
    return hashlib.sha256(path.read_bytes()).hexdigest() if plain else ""


def _path(round_: GradingRound) -> Path:
    return round_.root / PLACE / f"{round_.lab}.decided.json"


def _read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
