"""A lab that was changed after hand-ins: what differs is named, and each way out works."""

import shutil

import pytest

from grader.classroom import changed_lab
from grader.classroom.tests.conftest import LAB, RIGHT, TEXT, nbgrader


def change(course, text: str) -> None:
    from grader.notebooks import disk, make

    (course.root / f"solutions/{LAB}/concepts.md").write_text(text)
    made = make.make(course.root, [])
    assert not made.refused
    disk.put(course.root, made)


def test_a_lab_with_other_cells_is_named_and_both_ways_out_work(course, tmp_path):
    course.hand_in("ada", RIGHT)
    assert course.grade()["ada"].points == 5
    change(course, TEXT.replace("manual=why", "manual=reason"))
    with pytest.raises(ValueError, match="was changed after work on it was graded") as refused:
        course.grade()
    said = str(refused.value)
    assert "new: concepts: reason; gone: concepts: why." in said and "Cannot add or remove" not in said
    assert f"nbgrader db assignment remove {LAB} --force" in said

    change(course, TEXT)  # the first way: the lab as it was
    row = course.grade()["ada"]
    assert row.unchanged and row.points == 5

    change(
        course, TEXT.replace("manual=why", "manual=reason")
    )  # the second: the gradebook forgets the old one
    shutil.copy(course.root / "gradebook.db", tmp_path / "kept.db")
    nbgrader(course, f"db assignment remove {LAB} --force")
    row = course.grade()["ada"]
    assert row.points == 5 and not row.trouble and "concepts: reason" in row.by_hand


def test_other_points_and_words_go_in_by_themselves(course):
    course.hand_in("ada", RIGHT)
    assert course.grade()["ada"].of == 10
    change(course, TEXT.replace("manual=why points=3", "manual=why points=4").replace("Say why", "Tell why"))
    row = course.grade()["ada"]
    assert row.of == 11 and row.points == 5 and not row.trouble


def test_each_kind_of_change_is_told():
    held = {"kernel": {"a": 2.0, "b": 3.0}, "concepts": {"c": 1.0}}
    wanted = {"kernel": {"a": 5.0, "b": 3.0, "d": 1.0}}
    assert changed_lab.differences(held, wanted) == [
        "new: kernel: d",
        "gone: concepts: c",
        "kernel: a has 5 points, and had 2",
    ]
    assert "Cells were locked" in changed_lab.sentence("01_x", held, held, "Cells were locked")
