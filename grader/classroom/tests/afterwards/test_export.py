"""Grades in the forms that platforms import: read back by the rules that their importers have."""

import csv
import errno
import os
import shutil
import stat

import pytest

from grader.classroom import atomic_file as class_place
from grader.classroom import command as class_command
from grader.classroom import gradebooks, grading_round, late, marks, people
from grader.classroom.exports import command
from grader.classroom.tests.afterwards.conftest import CanvasImporter, finish
from grader.classroom.tests.conftest import LAB, RIGHT
from grader.verdicts import EXIT, FAIL, INCONCLUSIVE, WRONG_USAGE

NAMES = """student,name,id,sis_user_id,login,section,username,idnumber,email
ada,"Lovelace, Ada",901,S-1,al1,Mon,ada.l,17,ada@example.org
bob,"Noether, Bob",,S-2,,Mon,bob.n,18,bob@example.org
cy,"Cy ""the"" Young",,,cy9,Tue,cy.y,19,cy@example.org
dee,Dee,904,,,Tue,dee,20,dee@example.org
eve,Eve,905,,,Tue,eve,21,eve@example.org
"""


@pytest.fixture
def export(graded, monkeypatch, capsys):
    monkeypatch.setattr(command, "ROOT", graded.root)
    (graded.root / "names.csv").write_text(NAMES)

    def run(*arguments):
        code = command.main([LAB, *arguments])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def rows(path):
    return list(csv.reader(path.read_text().splitlines()))


def test_nothing_is_exported_as_final_while_a_person_has_to_grade(graded, export, monkeypatch):
    code, said = export("--format", "canvas")
    assert code == EXIT[FAIL] and "nothing was exported" in said
    assert "ada: 2 cells wait for a person" in said and "concepts: why" in said
    assert not (graded.root / command.PLACE).exists()
    code, said = export("--format", "canvas", "--unfinished")
    assert code == 0 and "provisional, since these are not final: ada, bob, cy, dee, eve" in said
    assert [p.name for p in (graded.root / command.PLACE).iterdir()] == [f"{LAB}.canvas.provisional.csv"]

    finish(graded.root)
    monkeypatch.chdir(graded.root)
    code, said = export("--format", "canvas")
    assert code == 0 and "provisional" not in said, said
    assert said.startswith(f"work/grades/{LAB}.canvas.csv: 5 students"), "as the pages show it"
    file = graded.root / command.PLACE / f"{LAB}.canvas.csv"
    assert file.exists() and stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_hand_in_that_is_not_judged_is_not_final_either(graded, export):
    finish(graded.root)
    graded.hand_in("fay", RIGHT)
    stamp = graded.place("ada").parent / "timestamp.txt"
    stamp.write_text("2026-11-21 09:00:00.000000 UTC")
    graded.hand_in("eve", RIGHT)  # at the time of the earlier one
    code, said = export()
    assert code == EXIT[FAIL]
    assert "fay: handed in and not judged yet" in said
    assert "ada: handed in again since it was judged" in said and "bob" not in said
    assert "eve: handed in again since it was judged" in said


def test_what_cannot_be_entered_has_a_way_to_end(graded, export, capsys, monkeypatch):
    finish(graded.root)
    for student in ("fay", "gus"):
        path = graded.place(student)
        path.with_suffix(".pdf").write_text("a print")
    graded.place("gus").write_text("no notebook")
    monkeypatch.setattr(class_command, "ROOT", graded.root)
    assert class_command.main([LAB]) == EXIT[FAIL], "a person has to decide"
    said = capsys.readouterr().out
    assert "--as-empty fay gus --why" in said and "2 not started" in said
    assert "was not handed in." not in said, "the row says already that none was"
    code, said = export()
    assert code == EXIT[FAIL] and "fay: handed in, and none of the lab's notebooks is there" in said
    assert '--as-empty fay --why "..."' in said and "--except fay gus" in said
    monkeypatch.setattr(command, "MOST_NAMED", 1)
    assert "fay: handed in" in export()[1], "whom a person has to decide about is not among those cut off"
    assert "--except fay gus" in export("--except", "fay")[1], "whoever was left out before stays so"
    code, said = export("--except", "fay", "gus")
    assert code == 0 and "left out by --except: fay, gus" in said, "all of them, whatever the limit"
    assert "5 students" in said
    code, said = export("--except", "nobody")
    assert code == WRONG_USAGE and "--except must name students of this lab, got nobody" in said

    assert class_command.main([LAB, "--as-empty", "fay", "gus"]) == WRONG_USAGE, "without a reason"
    assert class_command.main([LAB, "--as-empty", "ada", "--why", "x"]) == WRONG_USAGE
    monkeypatch.setattr(command, "MOST_NAMED", 10)
    assert "ada's notebooks can" in capsys.readouterr().err
    assert (
        class_command.main([LAB, "--as-empty", "fay", "gus", "--why", "handed in a PDF", "--by", "Prof"]) == 0
    )
    said = capsys.readouterr().out
    assert said.count("counts as an empty lab, decided") == 2 and "by Prof: handed in a PDF" in said
    assert class_command.main([LAB, "--as-empty", "fay", "--why", "x"]) == WRONG_USAGE
    assert "fay: counts as an empty lab, decided" in capsys.readouterr().err
    kept = (graded.root / class_place.PLACE / "set_aside/gus").rglob("concepts.ipynb")
    assert [path.read_text() for path in kept] == ["no notebook"]
    finish(graded.root)
    code, said = export()
    assert code == 0 and "7 students" in said
    graded.hand_in("fay", RIGHT)
    assert graded.grade(only=["fay"])["fay"].said == [
        "concepts.pdf is not a notebook and was not read (is it meant to be concepts.ipynb?). Ask for the notebook."
    ]


def test_a_full_disk_is_no_wrong_usage(graded, export, monkeypatch):
    finish(graded.root)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(grading_round, "write", full)
    code, said = export()
    assert code == EXIT[INCONCLUSIVE] and "the disk is full" in said and "Errno" not in said
    code, said = export("--to", str(graded.root / "names.csv/below.csv"))
    assert code == WRONG_USAGE, "a path that can't be is the caller's"


def test_a_lab_that_nobody_handed_in_is_not_exported(graded, export):
    from nbgrader.api import Gradebook

    with gradebooks.quiet(), Gradebook(f"sqlite:///{graded.root}/gradebook.db") as gradebook:
        gradebook.add_assignment("02_quantization_layouts")
    assert command.main(["02_quantization_layouts"]) == WRONG_USAGE
    assert not (graded.root / command.PLACE).exists()


def test_an_entry_without_a_folder_is_named(graded, export, monkeypatch, capsys):
    shutil.rmtree(graded.root / "submitted/bob")
    monkeypatch.setattr(class_command, "ROOT", graded.root)
    assert class_command.main([LAB]) == 0
    assert "in the gradebook without a folder in submitted/: bob" in capsys.readouterr().out
    code, said = export()
    assert (
        "bob: 2 cells wait for a person (concepts: draw, concepts: why), and submitted/ has no folder" in said
    )
    assert "python -m grader student NAME --delete" in said


def test_canvas_finds_everybody_and_their_points(graded, export):
    finish(graded.root)
    code, said = export(
        "--format", "canvas", "--names", str(graded.root / "names.csv"), "--title", "Lab 1 (77)"
    )
    assert code == 0, said
    table = rows(graded.root / command.PLACE / f"{LAB}.canvas.csv")
    read = CanvasImporter(table, ids={"901", "904", "905"}, sis={"S-2"}, logins={"cy9"})
    points = {one.student: one.points for one in marks.standings(graded.root, LAB)}
    assert read.title == "Lab 1 (77)" and read.most == 10
    assert read.grades == {
        "901": points["ada"],
        "S-2": points["bob"],
        "cy9": points["cy"],
        "904": points["dee"],
        "905": points["eve"],
    }
    assert points["ada"] == 7 and points["bob"] == 4


def test_without_names_a_student_is_found_by_login(graded, export):
    finish(graded.root)
    code, said = export("--format", "canvas")
    assert code == 0 and "Canvas makes a new assignment" in said
    read = CanvasImporter(
        rows(graded.root / command.PLACE / f"{LAB}.canvas.csv"), logins={"ada", "bob", "cy", "dee", "eve"}
    )
    assert set(read.grades) == {"ada", "bob", "cy", "dee", "eve"}


def test_moodle_gets_a_user_column_without_a_gap(graded, export):
    finish(graded.root)
    code, said = export("--format", "moodle", "--names", str(graded.root / "names.csv"))
    assert code == 0, said
    header, *table = rows(graded.root / command.PLACE / f"{LAB}.moodle.csv")
    assert header == ["Username", "ID number", "Email address", LAB]
    assert table[0] == ["ada.l", "17", "ada@example.org", "7"] and all(all(row) for row in table)
    (graded.root / "names.csv").write_text(NAMES.replace(",20,dee@", ",,dee@"))
    export("--format", "moodle", "--names", str(graded.root / "names.csv"))
    header, *table = rows(graded.root / command.PLACE / f"{LAB}.moodle.csv")
    assert header == ["Username", "Email address", LAB], "one gap would end Moodle's import"


def test_who_handed_in_nothing_is_left_out_and_named(graded, export):
    from nbgrader.api import Gradebook

    finish(graded.root)
    with gradebooks.quiet(), Gradebook(f"sqlite:///{graded.root}/gradebook.db") as gradebook:
        gradebook.add_student("zoe", first_name="Zoe, the late", last_name="Zed")
    code, said = export()
    assert code == 0 and "left out (--missing-as-zero writes 0): zoe" in said
    file = graded.root / command.PLACE / f"{LAB}.csv"
    assert [row[1] for row in rows(file)[1:]] == ["ada", "bob", "cy", "dee", "eve"]
    export("--missing-as-zero")
    last = rows(file)[-1]
    assert last[1] == "zoe" and last[3] == "Zoe, the late" and last[-3:] == ["0", "10", "nothing handed in"]


def test_penalty_and_bonus_are_in_the_total(graded, export, monkeypatch):
    from nbgrader.api import Gradebook

    finish(graded.root)
    with gradebooks.quiet(), Gradebook(f"sqlite:///{graded.root}/gradebook.db") as gradebook:
        gradebook.find_grade("check_reuse", "concepts", LAB, "ada").extra_credit = 4.5
        gradebook.find_submission_notebook("concepts", LAB, "bob").late_submission_penalty = 1.25
        gradebook.find_submission_notebook("concepts", LAB, "dee").late_submission_penalty = 99
        gradebook.db.commit()
    monkeypatch.setattr(late, "outdated", lambda *_: [])  # nobody was late for these penalties
    code, said = export("--format", "moodle")
    assert "above the maximum by bonus points: ada" in said
    header, *table = rows(graded.root / command.PLACE / f"{LAB}.moodle.csv")
    assert dict(map(tuple, table)) == {"ada": "11.5", "bob": "2.75", "cy": "4", "dee": "0", "eve": "5"}


@pytest.mark.parametrize(
    ("text", "why"),
    (
        ("id,name\n1,A\n", "must have the column student"),
        ("student,shoe\nada,40\n", "got shoe"),
        ("student,id\nada,1\nada,2\n", "must name a student once, got 'ada' again"),
        ("student,id\nada\n", "must have 2 fields"),
    ),
)
def test_a_names_file_is_told_what_is_wrong_with_it(tmp_path, text, why):
    path = tmp_path / "names.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=why):
        people.read(path)


def test_no_gradebook_no_lab(graded, export, tmp_path, monkeypatch, capsys):
    assert command.main(["02_nothing"]) == WRONG_USAGE
    assert f"the gradebook knows ({LAB}), got '02_nothing'" in capsys.readouterr().err
    (graded.root / "gradebook.db").write_bytes(b"this is no database" * 100)
    code, said = export()
    assert code == WRONG_USAGE and "gradebook must be one that can be read" in said and "SELECT" not in said
    (graded.root / "gradebook.db").unlink()
    code, said = export()
    assert code == WRONG_USAGE and "Run python -m grader class LAB first" in said
