"""Find a student's data: nbgrader's folders, the exchange, records, the class's own files, its logs, the gradebook."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from grader.classroom import exchange, marks
from grader.classroom.grading_round import PLACE, GradingRound
from grader.classroom.submission import handed_in
from grader.judge import answer

STEPS = ("submitted", "autograded", "feedback")
MADE = ("work/grades", "work/report", "grades.csv")  # made from the gradebook, and made again by one command
LOGS = (f"{PLACE}/**/*.log", f"{PLACE}/**/*.jsonl", ".nbgrader.log")
DATED = re.compile(r"^\d{4}-\d\d-\d\d ")  # the start of a log entry, which also owns the following lines
LARGEST = 50_000_000


@dataclass
class Traces:
    """All data of one student, as paths and rows."""

    student: str
    folders: list[Path] = field(default_factory=list)  # hand-ins, graded copies, feedback
    released: list[Path] = field(
        default_factory=list
    )  # feedback in the exchange, under names that reveal no student
    records: list[Path] = field(default_factory=list)  # verdicts on answers that only this student handed in
    ownerless: int = 0  # those among the records that judge answers which no hand-in has any more
    shared: int = 0  # verdicts on answers that other students also handed in, which stay and name no student
    kept: list[Path] = field(default_factory=list)  # the class's own notes that name the student
    logs: dict[Path, int] = field(default_factory=dict)  # entries that name the student
    made: list[Path] = field(default_factory=list)
    grades: list[str] = field(default_factory=list)  # one line a lab in the gradebook
    known: bool = False  # to the gradebook

    def __bool__(self) -> bool:
        return bool(self.folders or self.kept or self.logs or self.known or self.released)


def find(root: Path, student: str, say: Callable = lambda line: None) -> Traces:
    found = Traces(student, folders=list(_folders(root, student)))
    found.released = _released(root, found.folders)
    found.kept = [path for path in _notes(root) if names(json.loads(path.read_text("utf-8")), student)]
    found.logs = {path: n for path in _logs(root) if (n := len(list(entries_of(path, student)[0])))}
    found.grades, found.known = _grades(root, student)
    found.made = [path for path in (root / name for name in MADE) if path.exists()]
    found.records, found.ownerless, found.shared = _records(root, student, say)
    return found


def _folders(root: Path, student: str) -> Iterator[Path]:
    for place in (*(root / step for step in STEPS), root / PLACE / "set_aside"):
        if (place / student).is_symlink() or (place / student).exists():
            yield place / student
    for inbound in exchange.place(root).glob("*/inbound"):
        yield from (path for path in sorted(inbound.iterdir()) if path.name.rsplit("+", 3)[0] == student)


def _released(root: Path, folders: list[Path]) -> list[Path]:
    """Find released feedback. Its name has a hash of the submission's secret, which is stored with the hand-ins."""
    from nbgrader.utils import notebook_hash

    secrets = {
        path.read_text(encoding="utf-8", errors="replace")
        for folder in folders
        if not folder.is_symlink()
        for path in folder.rglob("submission_secret.txt")
    }
    notebooks = {path.stem for path in root.glob("labs/*/*.ipynb")}
    wanted = {f"{notebook_hash(secret=one, notebook_id=name)}.html" for one in secrets for name in notebooks}
    return [path for path in exchange.place(root).glob("*/feedback/*.html") if path.name in wanted]


def _notes(root: Path) -> Iterator[Path]:
    found = sorted((root / PLACE).rglob("*.json"))
    yield from (
        path for path in found if path.relative_to(root / PLACE).parts[0] not in ("records", "set_aside")
    )


def names(data, student: str) -> bool:
    """Return whether plain data holds the student, as a key or as a value."""
    if isinstance(data, dict):
        return student in data or any(names(value, student) for value in data.values())
    if isinstance(data, list):
        return any(names(value, student) for value in data)
    return data == student


def without(data, student: str):
    """Return plain data without the student's keys and without list rows that name the student."""
    if isinstance(data, dict):
        return {key: without(value, student) for key, value in data.items() if key != student}
    if isinstance(data, list):
        return [
            without(one, student)
            for one in data
            if one != student and not (isinstance(one, dict) and student in one.values())
        ]
    return data


def _logs(root: Path) -> Iterator[Path]:
    for pattern in LOGS:
        yield from sorted(root.glob(pattern))


def entries_of(path: Path, student: str) -> tuple[list[str], list[str]]:
    """Return (entries of a log that name the student, the others). An entry is a line of JSON, or a dated line and
    its indented lines."""
    mention = re.compile(rf"(?<![\w.-]){re.escape(student)}(?![\w-])")
    entries = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
        if path.suffix == ".jsonl" or DATED.match(line) or not entries:
            entries.append(line)
        else:
            entries[-1] += line
    mine = [entry for entry in entries if mention.search(entry)]
    return mine, [entry for entry in entries if not mention.search(entry)]


def _grades(root: Path, student: str) -> tuple[list[str], bool]:
    try:
        with marks.opened(root) as gradebook:
            known = {one.id for one in gradebook.students}
            labs = sorted(one.name for one in gradebook.assignments)
    except ValueError as error:
        if "got none" in str(error):
            return [], False
        raise
    lines = []
    for lab in labs if student in known else ():
        one = next(one for one in marks.standings(root, lab) if one.student == student)
        if one.entered:
            cells = "1 cell waits" if len(one.waiting) == 1 else f"{len(one.waiting)} cells wait"
            waits = f", {cells} for a person" if one.waiting else ""
            lines.append(f"{lab}: {one.total}, {len(one.marks)} cells{waits}")
    return lines, student in known


def _records(root: Path, student: str, say: Callable) -> tuple[list[Path], int, int]:
    """Return the records of answers that no other student has, the number of such records whose answers no student has
    at all, and the number of records that this student shares with others.

    A record has no names, so a replaced answer is recognised only because no student has it any more.
    """
    theirs, own = set(), set()
    for lab, who in _hand_ins(root):
        if who != student:
            say(f"reading {lab} of {who}")
        (own if who == student else theirs).update(_digests(root, lab, who))
    files = {path: _answer(path) for path in sorted((root / PLACE / "records").glob("*.json"))}
    gone = {path: text for path, text in files.items() if text not in theirs}
    ownerless = sum(text not in own for text in gone.values())
    return list(gone), ownerless, len(own & theirs & set(files.values()))


def _hand_ins(root: Path) -> list[tuple[str, str]]:
    labs = {path.name for path in root.glob("labs/*") if path.is_dir()}
    found = root.glob("submitted/*/*")
    return sorted((path.name, path.parent.name) for path in found if path.name in labs)


def _digests(root: Path, lab: str, student: str) -> Iterator[str]:
    round_ = GradingRound(root, lab, "", "", "")
    for _, source in handed_in(round_, student).answers():
        try:
            yield answer.digest(answer.normalise(source))
        except answer.Refused:
            continue


def _answer(path: Path) -> str:
    try:
        return json.loads(path.read_text(encoding="utf-8"))["answer"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def left(root: Path, student: str) -> list[Path]:
    """Files of the course's own state that still mention the student, whatever they are."""
    mention = re.compile(rb"(?<![\w.-])" + re.escape(student.encode()) + rb"(?![\w-])")
    places = [root / name for name in (*STEPS, "work")] + [exchange.place(root)]
    files = {path for place in places for path in place.rglob("*") if path.is_file()}
    files |= {*root.glob("gradebook.db*"), *root.glob("*.log"), *root.glob("grades.csv")}
    logging.getLogger(__name__).debug("looking through %d files", len(files))
    found = []
    for path in sorted(files):
        data = path.read_bytes() if path.stat().st_size <= LARGEST else b""
        if mention.search(data) or mention.search(str(path.relative_to(path.anchor)).encode()):
            found.append(path)
    return found
