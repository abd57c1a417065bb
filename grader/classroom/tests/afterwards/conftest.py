"""A small class that is judged once; each test gets a copy of its own."""

import shutil
from pathlib import Path

import pytest

from grader.classroom import gradebooks
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

    with gradebooks.quiet(), Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        for (student, cell), worth in points.items():
            grade = gradebook.find_grade(cell, "concepts", LAB, student)
            grade.manual_score, grade.needs_manual_grade = worth, False
        gradebook.db.commit()


def finish(root: Path) -> None:
    """Everything that waits gets one point."""
    from grader.classroom import marks

    found = marks.standings(root, LAB)
    by_hand(root, {(one.student, mark.cell): 1.0 for one in found for mark in one.marks if mark.waits})


class CanvasImporter:
    """What lib/gradebook_importer.rb of Canvas asks of a file and finds in it, told again from its rules."""

    def __init__(self, table, ids=(), sis=(), logins=()):
        header, *rest = table
        assert "Student" in header[0] and "ID" in header[1], "Couldn't find header row"
        assert "SIS User ID" in header[2] and "SIS Login ID" in header[3] and "Section" in header[4]
        self.title, self.most, self.grades = header[5], None, {}
        for row in rest:
            assert len(row) == len(header)
            if "Points Possible" in row[0]:
                self.most = float(row[5])
                continue
            known = row[1] in ids and row[1] or row[2] in sis and row[2] or row[3] in logins and row[3]
            self.grades[known or row[0]] = float(row[5])
