"""A lab that was changed after hand-ins: what differs is named, and each way out works."""

import pytest

from grader.classroom import changed_lab, command, gradebooks, storage_errors
from grader.classroom.atomic_file import PLACE
from grader.classroom.tests.conftest import LAB, RIGHT, TEXT, book, grade_by_hand
from grader.classroom.tests.test_time import policy


def change(course, text: str) -> None:
    from grader.notebooks import disk, make

    (course.root / f"solutions/{LAB}/concepts.md").write_text(text)
    made = make.make(course.root, [])
    assert not made.refused
    disk.put(course.root, made)


def test_a_lab_with_other_cells_is_named_and_both_ways_out_work(course):
    course.hand_in("ada", RIGHT)
    assert course.grade()["ada"].points == 5
    change(course, TEXT.replace("manual=why", "manual=reason"))
    with pytest.raises(ValueError, match="was changed after work on it was graded") as refused:
        course.grade()
    said = str(refused.value)
    assert "new: concepts: reason; gone: concepts: why." in said and "Cannot add or remove" not in said
    assert f"python -m grader class {LAB} --new-lab" in said and "but not" not in said

    change(course, TEXT)  # the first way: the lab as it was
    row = course.grade()["ada"]
    assert row.unchanged and row.points == 5

    change(course, TEXT.replace("manual=why", "manual=reason"))  # the second: the lab as it is now
    row = course.grade(new_lab=True)["ada"]
    assert row.points == 5 and not row.trouble and "concepts: reason" in row.by_hand
    assert len(row.said) == 1 and "`reason` has lost its name and was found by its place" in row.said[0]


def entered_by_people(course) -> None:
    """Everything that exists in a gradebook alone."""
    course.hand_in("ada", RIGHT)
    course.hand_in("bob", {**RIGHT, "why": "Another reason."})
    course.grade()
    with gradebooks.opened(course.root, LAB) as gradebook:
        gradebook.update_or_create_assignment(LAB, duedate="2026-11-20 11:00:00 UTC")
        gradebook.grant_extension(LAB, "ada", hours=12)
        gradebook.update_or_create_student("ada", first_name="Ada", email="ada@example.org")
        gradebook.find_comment("why", "concepts", LAB, "ada").manual_comment = "Say which bytes."
        gradebook.db.commit()
    for student, cell, points in (("ada", "why", 2.5), ("bob", "why", 1), ("ada", "draw", 1.5)):
        grade_by_hand(course, student, cell, points)


def people_find(course) -> dict:
    with gradebooks.opened(course.root, LAB) as gradebook:
        ada = gradebook.find_submission(LAB, "ada")
        return {
            "due": str(gradebook.find_assignment(LAB).duedate),
            "extension": ada.extension,
            "name": (ada.student.first_name, ada.student.email),
            "comment": gradebook.find_comment("why", "concepts", LAB, "ada").comment,
            "points": {name: book(course, name)["why"].score for name in ("ada", "bob")},
            "waits": {name: book(course, name)["why"].needs_manual_grade for name in ("ada", "bob")},
        }


def test_what_people_entered_is_carried_over_to_a_changed_lab(course, monkeypatch):
    entered_by_people(course)
    before = people_find(course)
    change(course, TEXT.replace("task=draw", "task=sketch"))
    with pytest.raises(
        ValueError, match=r"but not:\n.* by hand for concepts: draw, which the lab no longer has \(1 student"
    ):
        course.grade()
    killed = gradebooks.autograde

    def dies(root, lab, student, *more):
        if student == "bob":
            raise storage_errors.CannotKeep("the disk is full")
        return killed(root, lab, student, *more)

    monkeypatch.setattr(gradebooks, "autograde", dies)
    course.grade(new_lab=True)
    monkeypatch.setattr(gradebooks, "autograde", killed)
    rows = course.grade()
    assert people_find(course) == before and rows["ada"].points == 7.5 and rows["bob"].late_s == 3600
    assert "concepts: sketch" in rows["ada"].by_hand
    (kept,) = (course.root / PLACE).glob(f"{LAB}.before-*.json")
    assert (
        '"concepts: draw"' in kept.read_text() and not (course.root / PLACE / f"{LAB}.carried.json").exists()
    )


def test_a_new_gradebook_gets_what_people_entered(course, tmp_path, monkeypatch, capsys):
    entered_by_people(course)
    before = people_find(course)
    monkeypatch.setenv("NBGRADER_GRADEBOOK", f"sqlite:///{tmp_path}/new.db")
    course.hand_in("bob", {**RIGHT, "why": "A third reason."})
    rows = course.grade()
    found = people_find(course)
    assert found.pop("waits") == {"ada": False, "bob": True}, "the text that had the point is no longer there"
    before.pop("waits")
    assert found == before and any("a person has to look again" in said for said in rows["bob"].said)
    assert (
        "carrying over due date, extensions, names, points by hand and comments from"
        in capsys.readouterr().out
    )


def test_an_entry_without_a_folder_waits_and_hides_no_later_gradebook(course, tmp_path, monkeypatch, capsys):
    entered_by_people(course)
    before = people_find(course)
    (course.root / "submitted/bob").rename(tmp_path / "bob")
    monkeypatch.setenv("NBGRADER_GRADEBOOK", f"sqlite:///{tmp_path}/new.db")
    course.grade()
    assert "until a folder in submitted/ exists: the entries by hand for bob" in capsys.readouterr().out
    grade_by_hand(course, "ada", "why", 1)
    monkeypatch.setenv("NBGRADER_GRADEBOOK", f"sqlite:///{tmp_path}/newest.db")
    (tmp_path / "bob").rename(course.root / "submitted/bob")
    command.prepare(course.root, LAB, "cpu", source=f"sqlite:///{tmp_path}/new.db")
    policy(course, "zero")
    rows = course.grade()
    assert people_find(course) == before | {"points": {"ada": 1, "bob": 1}}
    assert rows["ada"].penalty == 0 and not rows["ada"].said, "the extension was there before any penalty"


def test_where_no_earlier_gradebook_is_found_the_command_says_so(course, tmp_path, monkeypatch, capsys):
    entered_by_people(course)
    monkeypatch.setenv("NBGRADER_GRADEBOOK", f"sqlite:///{tmp_path}/new.db")
    (course.root / "gradebook.db").rename(tmp_path / "elsewhere.db")
    (course.root / PLACE / gradebooks.COPY).unlink()
    command.prepare(course.root, LAB, "cpu")
    assert "no earlier one was found" in capsys.readouterr().out
    with pytest.raises(ValueError, match=f"must be a gradebook that knows {LAB}"):
        with gradebooks.opened(course.root) as gradebook:
            gradebook.remove_assignment(LAB)
        command.prepare(course.root, LAB, "cpu", source=f"sqlite:///{tmp_path}/none.db")
    command.prepare(course.root, LAB, "cpu", source=f"sqlite:///{tmp_path}/elsewhere.db")
    assert (course.root / PLACE / f"{LAB}.carried.json").exists()


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
