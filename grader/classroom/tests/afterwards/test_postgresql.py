"""The same class in a gradebook that is a real PostgreSQL server, by the one setting."""

import pytest

from grader.classroom import command, gradebooks, marks
from grader.classroom.exports import command as exports
from grader.classroom.tests.afterwards import server
from grader.classroom.tests.afterwards.conftest import ANSWERS
from grader.classroom.tests.conftest import LAB, RIGHT
from grader.judge.record import WRONG_USAGE
from grader.paths import ROOT


def table(root):
    """What the gradebook says, without what a database may order as it likes."""
    return {
        one.student: (one.points, one.of, sorted(map(repr, one.marks)), one.waiting)
        for one in marks.standings(root, LAB)
    }


def test_the_setting_decides_where_the_gradebook_is(graded, monkeypatch):
    assert gradebooks.address(graded.root) == f"sqlite:///{graded.root}/gradebook.db"
    monkeypatch.setenv("NBGRADER_GRADEBOOK", "postgresql://grader@db.example.org/grades")
    assert gradebooks.address(graded.root) == "postgresql://grader@db.example.org/grades"


@pytest.mark.postgresql
def test_a_class_in_postgresql_has_the_grades_that_it_has_in_sqlite(graded, monkeypatch, capsys):
    in_sqlite = table(graded.root)
    assert len(in_sqlite) == len(ANSWERS)
    (graded.root / "gradebook.db").rename(graded.root / "elsewhere.db")
    with server.running() as address:
        monkeypatch.setenv("NBGRADER_GRADEBOOK", address)
        rows = graded.grade()
        assert not any(row.trouble or row.unsettled for row in rows.values()), rows
        assert table(graded.root) == in_sqlite
        assert not (graded.root / "gradebook.db").exists()

        with marks.opened(graded.root) as gradebook:
            grade = gradebook.find_grade("why", "concepts", LAB, "ada")
            grade.manual_score, grade.needs_manual_grade = 2.5, False
            gradebook.db.commit()
            listed = {one["student"]: one["score"] for one in gradebook.submission_dicts(LAB)}
        assert listed["ada"] == 7.5, "what the formgrader lists"
        graded.hand_in("bob", RIGHT)
        rows = graded.grade()
        assert rows["bob"].points == 5 and rows["ada"].points == 7.5 and rows["cy"].unchanged

        monkeypatch.setattr(exports, "ROOT", graded.root)
        assert exports.main([LAB, "--unfinished"]) == 0
        text = (graded.root / exports.PLACE / f"{LAB}.provisional.csv").read_text()
        assert f"{LAB},ada,,,,2026-11-20 12:00:00,7.5" in text
    assert exports.main([LAB]) == WRONG_USAGE
    assert "gradebook must be one that can be read" in capsys.readouterr().err, "the server is gone"


def test_a_gradebook_begun_anew_is_filled_again(graded):
    (graded.root / "gradebook.db").unlink()
    row = graded.grade(only=["ada"])["ada"]
    assert (row.points, row.trouble, row.unchanged) == (5, "", False)
    assert [one.student for one in marks.standings(graded.root, LAB)] == ["ada"]


def test_a_driver_that_is_missing_is_named(graded, monkeypatch, capsys):
    monkeypatch.setenv("NBGRADER_GRADEBOOK", "postgresql+pg8000://grader@localhost/grades")
    with pytest.raises(ValueError, match="must have its driver installed, got no pg8000"):
        marks.standings(graded.root, LAB)
    monkeypatch.setattr(command, "ROOT", graded.root)
    assert command.main([LAB]) == command.record.WRONG_USAGE
    assert "pip install -e '.[postgresql]'" in capsys.readouterr().err
    page = (ROOT / "instructors/gradebook.md").read_text(encoding="utf-8")
    assert gradebooks.INSTALL_DRIVER in page, "nbgrader's own commands cannot say it"
    assert " -e " in gradebooks.INSTALL_DRIVER, (
        "or a copy of the grader would be installed with it, and get old"
    )
