"""What Canvas and Moodle hand over in one zip, laid where a class is judged from."""

import json
import zipfile

import pytest

from grader.classroom import gradebooks, grading_round, people, submission
from grader.classroom.downloads import command, names, times
from grader.classroom.tests.conftest import LAB, RIGHT, WRONG
from grader.verdicts import WRONG_USAGE


@pytest.fixture
def collect(course, monkeypatch, capsys):
    monkeypatch.setattr(command, "ROOT", course.root)

    def run(files, names_csv=None, *options):
        download = course.root / "submissions.zip"
        with zipfile.ZipFile(download, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        more = []
        if names_csv:
            (course.root / "names.csv").write_text(names_csv)
            more = ["--names", str(course.root / "names.csv")]
        code = command.main([LAB, str(download), *more, *options])
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
    answers = dict(submission.handed_in(round_, "ada").answers())
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


TIMES = {
    "moodle.csv": "Identifier,Full name,Status,Last modified (submission),Grade\n"
    'Participant 41,Ada Lovelace,Submitted,"Friday, 20 November 2026, 11:59 PM",-\n'
    'Participant 42,Bob Noether,Submitted,"Saturday, 21 November 2026, 6:30 AM",-\nParticipant 43,Eve,No submission,-,-\n',
    "canvas.json": '[{"user_id": 901, "submitted_at": "2026-11-20T22:59:00Z"}, {"user_id": 902, '
    '"submitted_at": "2026-11-21T05:30:00Z"}, {"user_id": 903, "submitted_at": null}]',
    "own.csv": "student,time\nada,2026-11-20 23:59\nbob,2026-11-21 07:30 +02:00\n",
}


@pytest.mark.parametrize("name", TIMES)
def test_times_of_hand_ins_are_read_as_the_platforms_list_them(course, name):
    known = {
        one.student: one
        for one in (
            people.Person("ada", id="901", identifier="41"),
            people.Person("bob", "Bob Noether", "902"),
        )
    }
    path = course.root / name
    path.write_text(TIMES[name])
    assert times.read(path, "Europe/Berlin", known) == {
        "ada": "2026-11-20 22:59:00 UTC",
        "bob": "2026-11-21 05:30:00 UTC",
    }


def test_a_collected_hand_in_has_its_time_and_the_class_knows_it_is_late(course, collect):
    files = {f"x_{number}_1_concepts.ipynb": sheet(course, RIGHT) for number in (901, 902)}
    who = "student,id\nada,901\nbob,902\n"
    code, said = collect({**files, "x_LATE_902_2_concepts.ipynb": sheet(course, RIGHT)}, who)
    assert code == 0 and "Run this again with --times FILE" in said
    (course.root / "times.json").write_text(TIMES["canvas.json"])
    code, said = collect(files, who, "--times", str(course.root / "times.json"))
    assert code == 0 and "bob  1 file  as before, handed in 2026-11-21 05:30:00 UTC" in said, said
    course.grade()
    with gradebooks.opened(course.root, LAB) as gradebook:
        gradebook.update_or_create_assignment(LAB, duedate="2026-11-20 23:00:00 UTC")
    rows = course.grade()
    assert (rows["ada"].late_s, rows["bob"].late_s) == (0, 6.5 * 3600)
    code, said = collect(files, who, "--times", "zip")
    assert code == WRONG_USAGE and "the minute in which it was packed" in said


def test_handing_in_one_file_again_keeps_the_others(course, collect):
    who, when = "student,id\nada,901\n", course.root / "times.csv"
    when.write_text("student,time\nada,2026-11-20 12:00 UTC\n")
    collect({"x_901_1_concepts.ipynb": sheet(course, RIGHT)}, who, "--times", str(when))
    when.write_text("student,time\nada,2026-11-23 12:00 UTC\n")
    for state in ("replaced, except that concepts.ipynb of the earlier hand-in stays", "as before"):
        code, said = collect({"x_901_2_My Lab.ipynb": "{}"}, who, "--times", str(when))
        assert (
            state in said
            and "none of the lab's notebooks, so the earlier hand-in counts, with its own time" in said
        )
    assert course.place("ada").read_text() == sheet(course, RIGHT)
    assert (course.place("ada").parent / "timestamp.txt").read_text() == "2026-11-20 12:00:00 UTC"
    collect({"x_901_3_concepts.ipynb": sheet(course, RIGHT)}, who, "--times", str(when))
    assert (course.place("ada").parent / "timestamp.txt").read_text() == "2026-11-23 12:00:00 UTC"


@pytest.mark.parametrize(
    ("text", "why"),
    (
        ("[{]", "must be JSON"),
        ('[{"id": 1}]', "a list of submissions with user_id"),
        ("shoe,size\n1,2\n", "got the columns shoe, size"),
        ("student,time\nada,yesterday-ish\n", "must hold times that can be read, got 'yesterday-ish'"),
        ("student,time\nada,05/12/2026 18:00\n", "got '05/12/2026 18:00'. Write 2026-11-20"),
        ("student,time\nada,2026-11-20 18:00 CET\n", "got '2026-11-20 18:00 CET'"),
        ("student,time\nada,18:00\n", "got '18:00'"),
        ('student,time\nada,"Freitag, 20. November 2026, 18:00"\n', "got 'Freitag"),
        ("student,time\nada,-\n", "must hold a time of a student"),
    ),
)
def test_a_file_of_times_is_told_what_is_wrong_with_it(tmp_path, text, why):
    path = tmp_path / "times"
    path.write_text(text)
    with pytest.raises(ValueError, match=why):
        times.read(path, "UTC", {})
    with pytest.raises(ValueError, match="--zone must be a time zone such as"):
        times.read(path, "Mars/North", {})


def test_two_of_one_name_are_nobody(course, collect):
    files = {"Jan Li_41_assignsubmission_file_/concepts.ipynb": sheet(course, RIGHT)}
    code, said = collect(files, "student,name\njl1,Jan Li\njl2,Jan Li\n")
    assert code == WRONG_USAGE and "every name once, got 'Jan Li' for jl1 and jl2" in said
    assert "Give each of these students the identifier" in said
    assert not (course.root / "submitted").exists()


def test_two_of_one_name_are_told_apart_by_their_identifiers(course, collect, tmp_path):
    names = "student,name,identifier\njl1,Jan Li,41\njl2,Jan Li,42\nada,Ada Lovelace,\n"
    files = {
        f"{who}_assignsubmission_file_/concepts.ipynb": sheet(course, RIGHT)
        for who in ("Jan Li_41", "Jan Li_42", "Jan Li_43", "Ada Lovelace_44")
    }
    worksheet = tmp_path / "times.csv"
    worksheet.write_text(
        "Identifier,Full name,Last modified (submission)\n"
        'Participant 42,Jan Li,"Friday, 20 November 2026, 6:02 PM"\n'
        'Participant 43,Jan Li,"Friday, 20 November 2026, 7:02 PM"\n'
    )
    code, said = collect(files, names, "--times", str(worksheet))
    assert code == 1 and "not taken: Jan Li (43), whom the names file does not have" in said
    assert sorted(path.name for path in (course.root / "submitted").iterdir()) == ["ada", "jl1", "jl2"]
    assert "no time found for: jl1, ada" in said and "jl2  1 file  new, handed in 2026-11-20 18:02" in said


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
