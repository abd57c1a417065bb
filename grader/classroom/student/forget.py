"""Deletes what `traces` found, in an order that can be gone through again after any interruption."""

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from grader.classroom import gradebooks, grading_round, marks, regrades
from grader.classroom.atomic_file import PLACE
from grader.classroom.student.traces import Traces, entries_of, without


def forget(root: Path, found: Traces) -> list[str]:
    """Delete a student's data. Return the remaining data, each with the reason. The gradebook goes first, because a
    second try finds the rest by the folders."""
    if found.known:
        _from_gradebook(root, found.student)
    for path in found.kept:
        kept = without(json.loads(path.read_text(encoding="utf-8")), found.student)
        grading_round.write(path, json.dumps(kept, indent=1) + "\n", replace=True)
    for path in found.logs:
        if path.name == regrades.FILE:  # whose lines follow from one another
            regrades.forget(root, found.student)
            continue
        grading_round.write(path, "".join(entries_of(path, found.student)[1]), replace=True)
    paths = [*found.records, *found.released, *found.made, *found.folders]
    return [why for path in paths if (why := _remove(path))]


def _from_gradebook(root: Path, student: str) -> None:
    with marks.opened(root) as gradebook:
        gradebook.remove_student(student)
        if gradebook.engine.dialect.name == "sqlite":  # or the rows' bytes stay in the file
            with gradebook.engine.connect() as connection:
                connection.exec_driver_sql("VACUUM")
    (root / PLACE / gradebooks.COPY).unlink(missing_ok=True)  # the next sound run keeps another


def _remove(path: Path) -> str:
    """Remove a path. Return the reason if it still exists, or nothing."""
    try:
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
            return ""
        for folder, _, _ in os.walk(path):  # nbgrader takes the right to write from what it collected
            with suppress(PermissionError):
                os.chmod(folder, 0o700)
        shutil.rmtree(path)
    except OSError as error:
        return f"{path} ({error.strerror})"
    return ""
