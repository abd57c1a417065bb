"""Carry over what people entered for a lab, when the lab changed or the gradebook is a new one.

Due date, extensions, names, points by hand and comments exist only in a gradebook. They are written to a file first,
so a run that is killed goes on with them, and the file stays.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from grader.classroom import gradebooks, manual_grades
from grader.classroom.atomic_file import PLACE, write
from grader.judge.report import visible

NAMES = ("first_name", "last_name", "email", "lms_user_id")
LOOK_AGAIN = (
    "{cell} has {points:g} points by hand for another text or another lab, so a person has to look again."
)


def prepare(root: Path, lab: str, new_lab: bool = False, source: str = "", say: Callable = print) -> None:
    """Keep data that the gradebook is about to lose, or that only an earlier gradebook has."""
    with gradebooks.opened(root, lab) as gradebook:
        held = gradebooks.known(gradebook, lab)
        if held and new_lab and held != gradebooks.released(root, lab):
            _keep(root, lab, _take(gradebook, root, lab))
            gradebook.remove_assignment(lab)
            held = {}
    if held:
        return
    begun = _begun(root, lab)
    earlier = source or _earlier(root, lab)
    if earlier:
        kept = _read(earlier, root, lab)
        if not source and kept["students"] and kept["students"].keys() <= begun.get("students", {}).keys():
            return  # a run was killed before its first entry, and its kept data is newer than a copy
        kept["students"] = begun.get("students", {}) | kept["students"]
        _keep(root, lab, kept)
        say(f"carrying over due date, extensions, names, points by hand and comments from {_shown(earlier)}")
        if away := _away(root, lab, kept["students"]):
            say(
                f"kept until a folder in submitted/ exists: the entries by hand for {', '.join(map(visible, away))}"
            )
    elif _was_entered(root, lab) and not begun:
        say(
            f"this gradebook is new to {lab}, and no earlier one was found: due date, extensions, names, points by hand "
            "and comments are not carried over. --from ADDRESS names the gradebook that has them"
        )


def _begun(root: Path, lab: str) -> dict:
    """Return the data that an earlier run has not carried over yet, such as the entry of a student without a
    folder."""
    path = _open(root, lab)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _away(root: Path, lab: str, students) -> list[str]:
    return [name for name in sorted(students) if not (root / "submitted" / name / lab).exists()]


def _was_entered(root: Path, lab: str) -> bool:
    path = root / PLACE / f"{lab}.entered.jsonl"
    return path.exists() and path.stat().st_size > 0


def _earlier(root: Path, lab: str) -> str:
    """Return the address of a gradebook of this course that knows the lab: the file, or its copy."""
    for path in (root / "gradebook.db", root / PLACE / gradebooks.COPY):
        address = f"sqlite:///{path}"
        if path.exists() and address != gradebooks.address(root) and _knows(address, lab):
            return address
    return ""


def _knows(address: str, lab: str) -> bool:
    with gradebooks.at(address) as gradebook:
        return bool(gradebooks.known(gradebook, lab))


def _read(address: str, root: Path, lab: str) -> dict:
    with gradebooks.at(address) as gradebook:
        if not gradebooks.known(gradebook, lab):
            raise ValueError(f"--from must be a gradebook that knows {lab}, got {_shown(address)}")
        return _take(gradebook, root, lab)


def _shown(address: str) -> str:
    return visible(address.removeprefix("sqlite:///").rpartition("@")[2])


def _open(root: Path, lab: str) -> Path:
    return root / PLACE / f"{lab}.carried.json"


def _keep(root: Path, lab: str, kept: dict) -> None:
    """One file to work off, and one that stays."""
    text = json.dumps(kept, indent=1) + "\n"
    (root / PLACE).mkdir(parents=True, exist_ok=True)
    write(root / PLACE / f"{lab}.before-{datetime.now(UTC):%Y%m%dT%H%M%S}.json", text)
    write(_open(root, lab), text, replace=True)


def _take(gradebook, root: Path, lab: str) -> dict:
    """All that people entered, as plain data."""
    assignment = gradebook.find_assignment(lab)
    return {
        "duedate": assignment.duedate.isoformat() if assignment.duedate else None,
        "names": {
            one.id: known
            for one in gradebook.students
            if any((known := {name: getattr(one, name) for name in NAMES}).values())
        },
        "students": {one.student.id: _of(one, root, lab) for one in assignment.submissions},
    }


def _of(submission, root: Path, lab: str) -> dict:
    texts = manual_grades.texts_in(root / "autograded" / submission.student.id / lab)
    return {
        "extension_s": submission.extension.total_seconds() if submission.extension else 0,
        "points": {
            f"{notebook.name}: {grade.name}": {
                "points": grade.manual_score,
                "waits": grade.needs_manual_grade,
                "extra": grade.extra_credit,
                "text": _digest(texts.get(notebook.name, {}).get(grade.name)),
            }
            for notebook in submission.notebooks
            for grade in notebook.grades
            if grade.manual_score is not None
        },
        "comments": {
            f"{notebook.name}: {comment.name}": comment.manual_comment
            for notebook in submission.notebooks
            for comment in notebook.comments
            if comment.manual_comment
        },
    }


def _digest(text: list[str] | None) -> str:
    return hashlib.sha256(json.dumps(text).encode()).hexdigest()


def lost(root: Path, lab: str, wanted: dict[str, dict[str, float]]) -> list[str]:
    """Return sentences for data that has no counterpart in the present lab."""
    with gradebooks.opened(root, lab) as gradebook:
        students = _take(gradebook, root, lab)["students"]
    cells = {f"{notebook}: {cell}" for notebook, inside in wanted.items() for cell in inside}
    counts: dict[str, int] = {}
    for held in students.values():
        for cell in {*held["points"], *held["comments"]} - cells:
            counts[cell] = counts.get(cell, 0) + 1
    said = [
        f"points or comments by hand for {cell}, which the lab no longer has ({n} {'student' if n == 1 else 'students'})"
        for cell, n in sorted(counts.items())
    ]
    return said + [
        f"the entry of {visible(name)}, who has no folder in submitted/"
        for name in _away(root, lab, students)
    ]


def due_and_names(root: Path, lab: str) -> None:
    """Put the due date and names into a gradebook that has just been given the lab."""
    path = _open(root, lab)
    if not path.exists():
        return
    kept = json.loads(path.read_text(encoding="utf-8"))
    with gradebooks.opened(root, lab) as gradebook:
        if kept["duedate"] and gradebook.find_assignment(lab).duedate is None:
            gradebook.update_or_create_assignment(lab, duedate=kept["duedate"])
        for student, names in kept["names"].items():
            gradebook.update_or_create_student(student, **names)


def put(root: Path, lab: str, student: str) -> list[str]:
    """Give a newly entered student the kept data. Return sentences about the steps that a person must take."""
    path = _open(root, lab)
    if not path.exists():
        return []
    kept = json.loads(path.read_text(encoding="utf-8"))
    if (held := kept["students"].pop(student, None)) is None:
        return []
    texts = manual_grades.texts_in(root / "autograded" / student / lab)
    with gradebooks.opened(root, lab) as gradebook:
        said = _put(gradebook.find_submission(lab, student), held, texts)
        gradebook.db.commit()
    if kept["students"]:
        write(path, json.dumps(kept, indent=1) + "\n", replace=True)
    else:
        path.unlink()
    return said


def extend(root: Path, lab: str, student: str, seconds: float) -> None:
    """Keep an extension for a student whose work is not in the gradebook yet."""
    kept = _begun(root, lab) or {"duedate": None, "names": {}, "students": {}}
    one = kept["students"].setdefault(student, {"points": {}, "comments": {}})
    one["extension_s"] = seconds
    _open(root, lab).parent.mkdir(parents=True, exist_ok=True)
    write(_open(root, lab), json.dumps(kept, indent=1) + "\n", replace=True)


def _put(submission, held: dict, texts: dict) -> list[str]:
    said = []
    if held["extension_s"]:
        submission.extension = timedelta(seconds=held["extension_s"])
    for notebook in submission.notebooks:
        for grade in notebook.grades:
            cell = f"{notebook.name}: {grade.name}"
            if one := held["points"].get(cell):
                same = one["text"] == _digest(texts.get(notebook.name, {}).get(grade.name))
                grade.manual_score, grade.needs_manual_grade = one["points"], one["waits"] or not same
                grade.extra_credit = grade.extra_credit or one["extra"]
                if not same:
                    said.append(LOOK_AGAIN.format(cell=cell, points=one["points"]))
        for comment in notebook.comments:
            comment.manual_comment = held["comments"].get(
                f"{notebook.name}: {comment.name}", comment.manual_comment
            )
    return said
