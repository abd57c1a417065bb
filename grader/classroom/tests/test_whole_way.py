"""The instructor's whole way with a class of twenty: release, hand-ins, judging, a person's points, grades that go out."""

import csv
import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from grader import __main__ as door
from grader.classroom import command, gradebooks
from grader.classroom.atomic_file import PLACE
from grader.classroom.downloads import command as downloads
from grader.classroom.exports import command as exports
from grader.classroom.tests.afterwards.conftest import CanvasImporter
from grader.classroom.tests.conftest import nbgrader
from grader.classroom.tests.twenty import CANVAS, CLASS, DUE, LAB
from grader.paths import ROOT
from grader.proofs.class_of.course import Course
from grader.release import edition
from grader.verdicts import EXIT, FAIL
from widgets.browser import chromium as chromium_at
from widgets.tests.browser import lab as jupyterlab

INSTRUCTOR = {
    "INSTRUCTOR": "1",
    "JUPYTER_CONFIG_PATH": f"{ROOT}/.jupyter/instructor{os.pathsep}{ROOT}/.jupyter",
}
COMMENT = "Say which bytes."
IDS = {student.name: str(901 + number) for number, student in enumerate(CLASS)}  # Canvas's own
TOTALS = {student.name: student.points + student.by_hand - student.taken_off for student in CLASS}


@pytest.fixture
def course(tmp_path, monkeypatch) -> Course:
    """The instructor's copy of the course, which commands in this process take for their own."""
    made = Course(tmp_path / "class", [LAB]).make()
    with open(made.root / gradebooks.CONFIG, "a", encoding="utf-8") as config:
        config.write('\nc.LateSubmissionPlugin.penalty_method = "zero"\n')
    names = [f"{student.name},{IDS[student.name]},{student.name}.m" for student in CLASS]
    (made.root / "names.csv").write_text("\n".join(["student,id,username", *names, ""]))
    for module in (command, downloads, exports):
        monkeypatch.setattr(module, "ROOT", made.root)
    monkeypatch.setattr(sys, "path", list(sys.path))  # the configuration puts its folder there
    return made


@pytest.fixture
def give(capsys):
    """A command of the grader's: its exit code, and what it printed."""

    def run(words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = door.main(words.split())
        said = capsys.readouterr()
        return code, said.out + said.err * (code != 0)

    return run


@pytest.mark.browser
def test_twenty_students_from_the_release_to_their_exported_grades(course, give, chromium, tmp_path):
    released = hand_out(tmp_path / "edition")
    made = {student.name: student.files(released, course) for student in CLASS}
    came = hand_in(course, give, made)
    nbgrader(course, f'db assignment add {LAB} --duedate "{DUE}"')
    as_they_came(*judged(give, EXIT[FAIL]))
    code, said = give(f"export {LAB}")
    assert code == EXIT[FAIL] and "is not finished, so nothing was exported" in said

    came |= put_right(course, give, made)
    rows, unused = judged(give, 0)
    for student in CLASS:
        row = rows[student.name]
        assert (row["points"], row["penalty"], row["final"]) == (
            student.points,
            student.taken_off,
            not student.by_hand,
        ), row
        assert row["unchanged"] == (not student.mends and not student.extension_h), row
    grade_in_the_browser(course, chromium)
    rows, unused = judged(give, 0)
    assert {name: row["points"] - row["penalty"] for name, row in rows.items()} == TOTALS and not unused
    for student in CLASS:
        assert rows[student.name]["final"] and rows[student.name]["unchanged"] == (not student.by_hand)
    go_out(course, give, rows["ada"]["of"])
    assert came <= lying_there(course), "something that was handed in is lost"


def hand_out(place: Path) -> Path:
    """Return a student's own copy of the lab, as the student edition lays it down."""
    edition.put(edition.make(ROOT), place)
    apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(
        [sys.executable, "-m", "grader", "work"], cwd=place, env=apart, check=True, capture_output=True
    )
    return place / "work" / LAB


def hand_in(course: Course, give, made: dict[str, dict[str, bytes]]) -> set[str]:
    """Everything comes in; digests of the files, as they were handed over."""
    sent = {}
    for student in CLASS:
        files = {name: student.spoilt(data) for name, data in made[student.name].items()}
        if student.comes == CANVAS:
            sent[student.name] = files
        else:
            student.comes(course.submitted(student.name, LAB), files)
    from_canvas(course, give, sent)
    return lying_there(course) | {digest(data) for files in sent.values() for data in files.values()}


def put_right(course: Course, give, made: dict[str, dict[str, bytes]]) -> set[str]:
    """What the rows and the sentences below them ask for; digests of all that lies there then."""
    for student in CLASS:
        if student.mends == CANVAS:
            from_canvas(course, give, {student.name: made[student.name]})
        elif student.mends:
            student.mends(course.submitted(student.name, LAB), made[student.name])
        if student.extension_h:
            with gradebooks.opened(course.root, LAB) as gradebook:
                gradebook.grant_extension(LAB, student.name, hours=student.extension_h)
    return lying_there(course)


def from_canvas(course: Course, give, sent: dict[str, dict[str, bytes]]) -> None:
    """Its zip of all hand-ins, in which every file has its student's number; one name was taken, so it got another."""
    download = course.root / "submissions.zip"
    with zipfile.ZipFile(download, "w") as archive:
        for student, files in sent.items():
            for number, (name, data) in enumerate(files.items()):
                archive.writestr(f"{student}_{IDS[student]}_{500 + number}_{name.replace('.', '-1.')}", data)
    code, said = give(f"collect {LAB} {download} --names {course.root}/names.csv")
    assert code == 0 and f"files of {len(sent)} student" in said and ", from Canvas" in said, said


def judged(give, ends: int) -> tuple[dict[str, dict], list[str]]:
    """Rows of the class command by student, and what it found no use for."""
    code, said = give(f"class {LAB} --mode cpu --json")
    assert code == ends, said
    found = json.loads(said[: said.rindex("}") + 1])
    return {row["student"]: row for row in found["students"]}, found["unused"]


def as_they_came(rows: dict[str, dict], unused: list[str]) -> None:
    """Everybody's points before anything is mended; what is odd stands with its student, and there alone."""
    for student in CLASS:
        row = rows.get(student.name) or {"points": 0, "said": unused, "trouble": "no row"}
        said = "\n".join([*row["said"], row["trouble"]])
        assert row["points"] == (student.points if student.first is None else student.first), (
            student.name,
            row,
        )
        assert re.search(student.says, said, re.S), (student.name, said)
        assert bool(row["trouble"]) == (student.mends not in ("", CANVAS)), row
    assert len(unused) == 1 and len(rows) == len(CLASS) - 1


def grade_in_the_browser(course: Course, chromium: str) -> None:
    """Formgrader as `make lab INSTRUCTOR=1` opens it: the class, then each text that waits, read and given its points."""
    with jupyterlab.server(course.root, INSTRUCTOR) as base, chromium_at(chromium) as browser:
        page, acted = browser.new_page(), []
        page.on("dialog", lambda dialog: (acted.append(dialog.message), dialog.dismiss()))
        page.goto(f"{base}/formgrader/manage_submissions/{LAB}")
        for student in CLASS:
            page.get_by_text(student.name, exact=True).first.wait_for()
        for student in (one for one in CLASS if one.by_hand):
            page.goto(f"{base}/formgrader/manage_students/{student.name}/{LAB}")
            page.get_by_role("link", name="concepts", exact=True).click()
            page.get_by_role("region", name="Check of roofline.plan_bytes").wait_for()
            assert (student.text or "alert(1)") in page.inner_text("body")
            typed(page, "/api/grade/", "input#reflect.needs_manual_grade", f"{student.by_hand:g}")
            typed(page, "/api/comment/", "textarea#reflect-comment[placeholder]", COMMENT)
        assert not acted, "a student's words have acted in the instructor's browser"


def typed(page, kept_by: str, place_: str, text: str) -> None:
    """Written, left, and kept by the server."""
    with page.expect_response(lambda reply: kept_by in reply.url and reply.request.method == "PUT") as kept:
        page.locator(place_).fill(text)
        page.keyboard.press("Tab")
    assert kept.value.ok


def go_out(course: Course, give, most: float) -> None:
    """The three files, read as those read them for whom they are meant."""
    out, names = course.root / exports.PLACE, f"--names {course.root}/names.csv"
    for kind in ("csv", "canvas", "moodle"):
        code, said = give(f"export {LAB} --format {kind} {names}")
        assert code == 0 and f"{len(CLASS)} students" in said, said
    with open(out / f"{LAB}.csv", newline="") as file:
        plain = list(csv.DictReader(file))
    assert {row["student_id"]: float(row["score"]) for row in plain} == TOTALS
    assert {row["status"] for row in plain} == {"final"} and {float(row["max_score"]) for row in plain} == {
        most
    }
    canvas = CanvasImporter(table(out / f"{LAB}.canvas.csv"), ids=set(IDS.values()))
    assert canvas.grades == {IDS[name]: points for name, points in TOTALS.items()} and canvas.most == most
    head, *moodle = table(out / f"{LAB}.moodle.csv")
    assert {user: float(points) for user, points in moodle} == {
        f"{name}.m": points for name, points in TOTALS.items()
    }


def table(path: Path) -> list[list[str]]:
    return list(csv.reader(path.read_text().splitlines()))


def lying_there(course: Course) -> set[str]:
    """Digests of every plain file in submitted/ and of what was set aside."""
    places = (course.root / "submitted", course.root / PLACE / "set_aside")
    return {digest(path.read_bytes()) for folder in places for path in folder.rglob("*") if path.is_file()}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
