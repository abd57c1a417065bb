"""What Canvas and Moodle hand over in one zip, laid where a class is judged from."""

import json
import zipfile

import pytest

from grader.classroom import came_in, grading_round
from grader.classroom.downloads import command, names
from grader.classroom.tests.conftest import LAB, RIGHT, WRONG
from grader.verdicts import WRONG_USAGE


@pytest.fixture
def collect(course, monkeypatch, capsys):
    monkeypatch.setattr(command, "ROOT", course.root)

    def run(files, names_csv=None):
        download = course.root / "submissions.zip"
        with zipfile.ZipFile(download, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        more = []
        if names_csv:
            (course.root / "names.csv").write_text(names_csv)
            more = ["--names", str(course.root / "names.csv")]
        code = command.main([LAB, str(download), *more])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def sheet(course, answers) -> str:
    return json.dumps(course.notebook(answers))


@pytest.mark.parametrize(
    ("member", "expected"),
    (
        ("lovelaceada_4711_90210_concepts.ipynb", ("lovelaceada", "4711", "concepts.ipynb", False)),
        ("lovelaceada_LATE_4711_90210_concepts-1.ipynb", ("lovelaceada", "4711", "concepts-1.ipynb", True)),
        ("doe2jane_4712_90211_my_notes_1_2.txt", ("doe2jane", "4712", "my_notes_1_2.txt", False)),
        ("müllerïo_4713_9_concepts.ipynb", ("müllerïo", "4713", "concepts.ipynb", False)),
        ("concepts.ipynb", None),
    ),
)
def test_names_of_canvas(member, expected):
    found = names.canvas(member)
    assert (found and (found.name, found.user, found.called, found.late)) == expected


@pytest.mark.parametrize(
    ("member", "expected"),
    (
        (
            "Ada Lovelace_4711_assignsubmission_file_/concepts.ipynb",
            ("Ada Lovelace", "4711", "concepts.ipynb"),
        ),
        (
            "Ada Lovelace_4711_assignsubmission_file/concepts.ipynb",
            ("Ada Lovelace", "4711", "concepts.ipynb"),
        ),
        (
            "Ada Lovelace_4711_assignsubmission_file_concepts.ipynb",
            ("Ada Lovelace", "4711", "concepts.ipynb"),
        ),
        ("Jan_Ove O'N_12_assignsubmission_file_/a/b.ipynb", ("Jan_Ove O'N", "12", "b.ipynb")),
        ("Ada Lovelace_4711_assignsubmission_onlinetext_/onlinetext.html", None),
    ),
)
def test_names_of_moodle(member, expected):
    found = names.moodle(member)
    assert (found and (found.name, found.user, found.called)) == expected


def test_a_download_of_canvas_can_be_judged(course, collect):
    code, said = collect(
        {
            "lovelaceada_901_5001_concepts.ipynb": sheet(course, WRONG),
            "lovelaceada_901_5009_concepts-1.ipynb": sheet(course, RIGHT),
            "noetherbob_LATE_902_5002_concepts.ipynb": sheet(course, WRONG),
        },
        "student,id\nada,901\nbob,902\n",
    )
    assert code == 0, said
    assert "3 files of 2 students, from Canvas" in said
    assert "concepts.ipynb is there more than once: concepts-1.ipynb counts" in said
    assert "concepts.ipynb was late, says Canvas" in said
    assert sorted(p.relative_to(course.root).as_posix() for p in course.root.glob("submitted/*/*/*")) == [
        f"submitted/ada/{LAB}/concepts.ipynb",
        f"submitted/bob/{LAB}/concepts.ipynb",
    ]
    round_ = grading_round.open_round(course.root, LAB, "cpu")
    answers = dict(came_in.handed_in(round_, "ada").answers())
    assert answers == {f"gemm_tiling.{name}": RIGHT[name] for name in ("reuse", "tile_loads")}


def test_without_names_canvas_numbers_are_the_names(course, collect):
    code, said = collect({"lovelaceada_901_5001_concepts.ipynb": sheet(course, RIGHT)})
    assert code == 0 and (course.root / f"submitted/901/{LAB}/concepts.ipynb").exists(), said


def test_a_second_download_replaces_and_loses_nothing(course, collect):
    first, second = sheet(course, WRONG), sheet(course, RIGHT)
    who = "student,id\nada,901\n"
    collect({"lovelaceada_901_1_concepts.ipynb": first}, who)
    code, said = collect({"lovelaceada_901_1_concepts.ipynb": first}, who)
    assert "as before" in said
    code, said = collect({"lovelaceada_901_2_concepts.ipynb": second}, who)
    assert "replaced" in said
    assert course.place("ada").read_text() == second
    kept = list((course.root / grading_round.PLACE / "set_aside/ada").rglob("concepts.ipynb"))
    assert [path.read_text() for path in kept] == [first]


def test_moodle_needs_names_and_finds_people_by_number_or_name(course, collect):
    files = {
        "Ada Lovelace_41_assignsubmission_file_/concepts.ipynb": sheet(course, RIGHT),
        "Bob Noether_42_assignsubmission_file_/concepts.ipynb": sheet(course, WRONG),
        "Eve Mallory_43_assignsubmission_file_/concepts.ipynb": sheet(course, WRONG),
    }
    code, said = collect(files)
    assert code == WRONG_USAGE and "--names must say who is who" in said
    code, said = collect(files, "student,name,identifier\nada,Ada Lovelace,\nbob,Robert,42\n")
    assert code == 1 and "not taken: Eve Mallory (43), whom the names file does not have" in said
    assert sorted(p.name for p in (course.root / "submitted").iterdir()) == ["ada", "bob"]


def test_two_of_one_name_are_nobody(course, collect):
    files = {"Jan Li_41_assignsubmission_file_/concepts.ipynb": sheet(course, RIGHT)}
    code, said = collect(files, "student,name\njl1,Jan Li\njl2,Jan Li\n")
    assert code == WRONG_USAGE and "every name once, got 'Jan Li' for jl1 and jl2" in said
    assert not (course.root / "submitted").exists()


def test_hostile_names_stay_inside_and_large_files_outside(course, collect, monkeypatch):
    monkeypatch.setattr(command, "MOST_BYTES", 1000)
    code, said = collect(
        {
            "../../evil_901_1_concepts.ipynb": "{}",
            "a_901_2_..": "up",
            "a_901_3_timestamp.txt": "1970-01-01",
            "a_901_4_big.bin": b"\0" * 1001,
            "a_902_5_x.txt": "fine",
        },
        "student,id\nada,901\n../out,902\n",
    )
    assert "big.bin is larger than" in said and "../out: a student's name begins with" in said
    assert sorted(p.name for p in course.root.glob("submitted/*/*/*")) == ["concepts.ipynb"]
    assert not list(course.root.parent.glob("evil*")) and not (course.root.parent / "out").exists()


def test_what_is_no_such_zip_is_said(course, collect, capsys):
    code, said = collect({"concepts.ipynb": "{}"})
    assert code == WRONG_USAGE and "named as Canvas or Moodle names them, got concepts.ipynb" in said
    (course.root / "text.zip").write_text("no zip")
    assert command.main([LAB, str(course.root / "text.zip")]) == WRONG_USAGE
    assert "not a zip file" in capsys.readouterr().err
    assert command.main(["../x", str(course.root / "text.zip")]) == WRONG_USAGE
