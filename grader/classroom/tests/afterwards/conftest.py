"""A small class that is judged once; each test gets a copy of its own."""

import shutil
from pathlib import Path

import pytest

from grader.classroom import books
from grader.classroom.tests.conftest import LAB, RIGHT, WRONG, Course

RENAMED = {  # bob's answer with other names, a comment, other spaces
    **WRONG,
    "tile_loads": "def tile_loads( rows, cols, depth, high, wide ):\n"
    "    # my own work\n"
    "    return rows*depth*(cols//wide)  +  depth*cols*(rows//high)\n",
}
ANSWERS = {
    "ada": RIGHT,
    "bob": WRONG,
    "cy": RENAMED,
    "dee": {"why": "Not begun, but I have thought."},
    "eve": {**RIGHT, "reuse": "def reuse(bm, bn):\n    return max(bm, bn)\n"},
}


@pytest.fixture(scope="session")
def judged(built, tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("judged")
    shutil.copytree(built, root, dirs_exist_ok=True)
    course = Course(root)
    for student, answers in ANSWERS.items():
        course.hand_in(student, answers)
    rows = course.grade()
    assert not any(row.trouble or row.unsettled for row in rows.values()), rows
    return root


@pytest.fixture
def graded(judged, tmp_path) -> Course:
    shutil.copytree(judged, tmp_path, dirs_exist_ok=True)
    return Course(tmp_path)


def by_hand(root: Path, points: dict[tuple[str, str], float]) -> None:
    """What a person would do in the formgrader: points for each waiting cell."""
    from nbgrader.api import Gradebook

    with books.quiet(), Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        for (student, cell), worth in points.items():
            grade = gradebook.find_grade(cell, "concepts", LAB, student)
            grade.manual_score, grade.needs_manual_grade = worth, False
        gradebook.db.commit()


def finish(root: Path) -> None:
    """Everything that waits gets one point."""
    from grader.classroom import ledger

    found = ledger.standings(root, LAB)
    by_hand(root, {(one.student, mark.cell): 1.0 for one in found for mark in one.marks if mark.waits})
