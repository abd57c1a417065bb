"""Lessons in a student's home: renewed where the student left them alone, never over the student's own work."""

import re

import pytest

from grader.classroom.hub.lessons import renew
from grader.paths import ROOT


@pytest.fixture
def edition(tmp_path):
    folder = tmp_path / "edition"
    (folder / "pictures").mkdir(parents=True)
    for name in ("a.ipynb", "b.ipynb", "pictures/p.svg"):
        (folder / name).write_text(f"first {name}")
    return folder


def test_what_the_student_changed_stays_and_the_rest_is_renewed(edition, tmp_path):
    mine = tmp_path / "home" / "course"
    mine.parent.mkdir()
    assert renew(edition, mine) == []
    assert (mine / "pictures/p.svg").read_text() == "first pictures/p.svg"
    (mine / "a.ipynb").write_text("my predictions")
    for name in ("a.ipynb", "b.ipynb", "c.ipynb"):
        (edition / name).write_text(f"second {name}")
    assert renew(edition, mine) == ["a.ipynb"]
    assert (mine / "a.ipynb").read_text() == "my predictions"
    assert (mine / "b.ipynb").read_text() == "second b.ipynb" and (mine / "c.ipynb").exists()
    assert renew(edition, mine) == ["a.ipynb"]
    (mine / "a.ipynb").unlink()
    renew(edition, mine)
    assert (mine / "a.ipynb").read_text() == "second a.ipynb", "deleted, it comes anew"


def test_a_file_that_was_there_before_is_the_students(edition, tmp_path):
    mine = tmp_path / "course"
    mine.mkdir()
    (mine / "a.ipynb").write_text("my own")
    renew(edition, mine)
    assert (mine / "a.ipynb").read_text() == "my own" and (mine / "b.ipynb").exists()


def test_the_hub_is_pinned_and_apart_from_the_lock():
    pins = (ROOT / "grader/classroom/hub/requirements.txt").read_text()
    assert re.search(r"^jupyterhub==[\d.]+$", pins, re.M)
    assert "jupyterhub" not in (ROOT / "requirements.lock").read_text()
