"""Collect the rows, records, gradebook and pages that a class command left. Only durations are left out."""

import hashlib
import json
import os
import re
import sqlite3
import stat
from pathlib import Path

from grader.classroom import grading_round
from grader.proofs.class_of.course import Course

TOOK = re.compile(r"(\((?:cpu|gpu) mode), \d+\.\d s\)")
BORN_OF = re.compile(r"<!-- grades [0-9a-f]{64} -->")  # a fingerprint, in which those seconds are
GRADES = """
select sa.student_id, a.name, n.name, c.name, g.auto_score, g.manual_score, g.extra_credit, g.needs_manual_grade,
       coalesce(gc.max_score, tc.max_score)
from grade g join base_cell c on c.id = g.cell_id join submitted_notebook sn on sn.id = g.notebook_id
join notebook n on n.id = sn.notebook_id join submitted_assignment sa on sa.id = sn.assignment_id
join assignment a on a.id = sa.assignment_id
left join grade_cells gc on gc.id = c.id left join task_cells tc on tc.id = c.id
"""
COMMENTS = """
select sa.student_id, a.name, n.name, c.name, k.auto_comment, k.manual_comment
from comment k join base_cell c on c.id = k.cell_id join submitted_notebook sn on sn.id = k.notebook_id
join notebook n on n.id = sn.notebook_id join submitted_assignment sa on sa.id = sn.assignment_id
join assignment a on a.id = sa.assignment_id
"""


def ask(course: Course, query: str) -> list[tuple]:
    database = sqlite3.connect(f"file:{course.root}/gradebook.db?mode=ro", uri=True)
    try:
        return sorted(database.execute(query), key=repr)
    finally:
        database.close()


def of_students(rows: list[tuple]) -> dict[str, list[tuple]]:
    found = {}
    for student, *rest in rows:
        found.setdefault(student, []).append(tuple(rest))
    return found


def records(course: Course) -> dict[str, dict]:
    """Key -> record, without the day and the seconds."""
    found = {}
    for path in sorted((course.root / grading_round.PLACE / "records").glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        found[path.stem] = {k: v for k, v in record.items() if k not in ("date", "seconds")}
    return found


def seconds(course: Course) -> dict[tuple[str, str], float]:
    """(question, hash of the answer) -> how long it took to judge."""
    folder = course.root / grading_round.PLACE / "records"
    kept = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return {(record["question"], record["answer"]): record["seconds"] for record in kept}


def pages(course: Course, room: str, student: str) -> dict[str, str]:
    """Return file -> text of autograded/ or feedback/ for one student."""
    place = course.root / room / student
    files = sorted(path for path in place.rglob("*") if path.is_file())
    return {
        str(path.relative_to(place)): BORN_OF.sub(
            "", TOOK.sub(r"\1)", path.read_text(encoding="utf-8", errors="replace"))
        )
        for path in files
    }


def tree(place: Path) -> dict[str, str]:
    """Return path -> kind, rights and contents of everything below a folder. Links aren't followed."""
    found = {}
    for folder, folders, files in os.walk(place):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            facts = os.lstat(path)
            found[os.path.relpath(path, place)] = f"{stat.filemode(facts.st_mode)} {_inside(path, facts)}"
    return found


def _inside(path: str, facts: os.stat_result) -> str:
    if stat.S_ISLNK(facts.st_mode):
        return os.readlink(path)
    if not stat.S_ISREG(facts.st_mode):
        return ""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def left_running(place: Path) -> list[str]:
    """Return processes that work in this folder or that name the folder."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if int(number) != os.getpid() and (
                str(place) in words or os.readlink(f"/proc/{number}/cwd").startswith(str(place))
            ):
                found.append(words[:120])
        except OSError:
            continue
    return found
