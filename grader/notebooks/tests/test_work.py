"""A learner's file is never overwritten, and a newer lab is said."""

import pytest

from grader.notebooks import work


@pytest.fixture
def course(tmp_path):
    (tmp_path / "labs/01_toy").mkdir(parents=True)
    for name in ("concepts.ipynb", "kernel.ipynb", "tile.svg"):
        (tmp_path / "labs/01_toy" / name).write_text(f"first {name}")
    return tmp_path


def test_labs_are_copied_once(course):
    assert work.copy(course) == ["copied 3 files of labs/ to work/"]
    assert (course / "work/01_toy/kernel.ipynb").read_text() == "first kernel.ipynb"
    assert work.copy(course) == []


def test_a_learners_work_stays_and_a_newer_lab_is_said(course):
    work.copy(course)
    (course / "work/01_toy/kernel.ipynb").write_text("my answer")
    assert work.copy(course) == []
    (course / "labs/01_toy/kernel.ipynb").write_text("second")
    (course / "labs/01_toy/extra.ipynb").write_text("new")
    copied, newer = work.copy(course)
    assert copied == "copied 1 files of labs/ to work/"
    assert newer.startswith(
        "labs/01_toy/kernel.ipynb is newer than your work/01_toy/kernel.ipynb, which stays"
    )
    assert (course / "work/01_toy/kernel.ipynb").read_text() == "my answer"


def test_an_untouched_copy_is_not_overwritten_either(course):
    work.copy(course)
    (course / "labs/01_toy/kernel.ipynb").write_text("second")
    (said,) = work.copy(course)
    assert (
        "in which you have changed nothing. Delete yours to get the new version" in said
        and "newer than your work" not in said
    )
    assert (course / "work/01_toy/kernel.ipynb").read_text() == "first kernel.ipynb"


def test_a_file_moved_away_is_copied_anew(course):
    work.copy(course)
    (course / "labs/01_toy/kernel.ipynb").write_text("second")
    (course / "work/01_toy/kernel.ipynb").rename(course / "work/01_toy/mine.ipynb")
    assert work.copy(course) == ["copied 1 files of labs/ to work/"]
    assert work.copy(course) == []
