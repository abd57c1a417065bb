"""The class suite's sample; and each of its promises, broken on purpose, is seen to be broken."""

import sqlite3
import subprocess
import sys
from types import SimpleNamespace

import pytest

from grader.proofs import classes
from grader.proofs.class_of import hidden, hostile, outcome, promises
from grader.proofs.class_of import page as pages
from grader.proofs.class_of.course import Course, Said

pytestmark = pytest.mark.bubblewrap
TRUSTS = "def fill(lab, path):\n    return nbformat.read(path, as_version=4), []"
TELLS = "Record.for_feedback = lambda self: self"
NAMES = """
def hidden_failures(evidence, hidden):
    for call, wrong in judged(evidence, hidden, True):
        if wrong:
            told = f"a hidden case ({call.kind})"
            raise Failed(f"{written(evidence.question, call)}: {wrong.came}", told=told)
    yield from ()
"""


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The sample, graded once; its folders stay for the tests that spoil something in them."""
    folder, said = tmp_path_factory.mktemp("class"), []
    wanted = classes.cohort(False)
    rows, broken = classes.prove(folder, wanted, said.append)
    (lab,) = wanted.labs
    alone, mixed = (Course(folder / name, [lab]) for name in ("without", "with"))
    return SimpleNamespace(
        rows=rows, broken=broken, said=said, wanted=wanted, lab=lab, alone=alone, mixed=mixed, folder=folder
    )


def test_hostile_students_hurt_nobody_else(graded):
    assert graded.broken == []
    assert graded.said == graded.rows and len(graded.rows) == 1 + len(hostile.SAMPLE)
    assert graded.rows[0]["told"] == "the same with hostile students"
    assert all(row["told"] != "nothing" and row["attacks"] for row in graded.rows[1:])
    low, high = (float(x) for x in graded.rows[0]["points"].split(" to "))
    assert low < high, "the honest students' work is varied"


def test_a_whole_class_meets_every_attack(tmp_path):
    wanted = classes.cohort(True)
    assert (wanted.honest, len(wanted.themes)) == (90, 10)
    enemies = classes.hand_in(wanted, *(Course(tmp_path / name, wanted.labs).make() for name in "ab"))
    met = {(one.theme, attack.what) for one in enemies for attack in one.attacks}
    assert {(theme, a.what) for theme, attacks in hostile.THEMES.items() for a in attacks} <= met
    for lab in wanted.labs:
        names = sorted(path.parent.name for path in (tmp_path / "b/course/submitted").glob(f"*/{lab}"))
        assert set(wanted.honest_of(lab)) < set(names)
        places = [i for i, name in enumerate(names) if name not in wanted.honest_of(lab)]
        assert places[-1] - places[0] > len(places), "hostile students stand among the honest"


def broken_promises(graded) -> list[str]:
    """What is said of the sample's outcome as it lies there now."""
    rows = [{name: {"points": 1.0} for name in graded.wanted.names()}] * 2
    names, numbers = graded.wanted.names(), hidden.numbers(graded.mixed, graded.lab)
    found = promises.same(names, rows, graded.alone, graded.mixed) + promises.finite(graded.mixed)
    for name in names:
        found += hidden.leaks(graded.mixed, graded.lab, name, numbers) + pages.nothing_acts(
            graded.mixed, graded.lab, name
        )
    return found


@pytest.fixture
def page(graded):
    """A feedback page of one honest student, put back as it was."""
    name = graded.wanted.names()[0]
    path = next((graded.mixed.root / "feedback" / name / graded.lab).glob("concepts.html"))
    kept = path.read_text()
    yield path
    path.write_text(kept)


def test_a_page_that_differs_is_seen(graded, page):
    assert broken_promises(graded) == []
    page.write_text(page.read_text().replace("<h4>concepts: ", "<h4>concepts: 1"))
    assert any("feedback must be the same with hostile students" in line for line in broken_promises(graded))


def test_a_hidden_number_in_a_page_is_seen(graded, page):
    student, known = graded.wanted.names()[0], hidden.numbers(graded.mixed, graded.lab)
    own = hidden.of_student(graded.mixed, graded.lab, student, known)
    question, numbers = next((q, n) for q, n in own.items() if n)
    page.write_text(page.read_text() + f"<p>FAIL {question} 0 of 2 points: sizes {min(numbers)}</p>")
    assert any(
        "no number of a hidden case" in line and min(numbers) in line for line in broken_promises(graded)
    )


ACTS = (
    "<script>alert(1)</script>",
    "<img src='javascript:x'>",
    "<a href=' javascript:alert(1)'>",
    "\x1b[2J",
    "$\\href{x}$",
)


@pytest.mark.parametrize("word", ACTS)
def test_a_word_that_acts_is_seen(graded, page, word):
    page.write_text(page.read_text() + word)
    assert any("must hold nothing that acts" in line for line in broken_promises(graded))


@pytest.mark.parametrize("score", ["9e999", "-1.0", "1e9", "'full'"])
def test_a_score_that_is_none_is_seen(graded, score):
    book = graded.mixed.root / "gradebook.db"
    kept = book.read_bytes()
    try:
        database = sqlite3.connect(book)
        database.execute(f"update grade set auto_score = {score} where auto_score > 0")
        database.commit()
        database.close()
        assert any("a score must be finite and from 0 to" in line for line in promises.finite(graded.mixed))
    finally:
        book.write_bytes(kept)


def test_what_is_changed_elsewhere_is_seen(tmp_path):
    for name in (
        "course/labs/a.ipynb",
        "course/submitted/ada/lab/a.ipynb",
        "course/submitted/eve/lab/x",
        "neighbour/t",
        "tmp/.x",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    (tmp_path / "course/work/class").mkdir(parents=True)
    before = outcome.tree(tmp_path)
    (tmp_path / "course/work/class/records").mkdir()
    (tmp_path / "course/work/class/records" / ("a" * 32 + ".json")).write_text("{}")
    (tmp_path / "course/submitted/eve/lab/x").unlink()
    assert promises.untouched(before, outcome.tree(tmp_path), {"eve"}) == []
    (tmp_path / "course/labs/a.ipynb").write_text("2")
    (tmp_path / "course/submitted/ada/lab/a.ipynb").unlink()
    (tmp_path / "course/submitted/eve/lab/new").write_text("")
    (tmp_path / "neighbour/t").chmod(0o777)
    (tmp_path / "tmp/box-1").mkdir()
    (tmp_path / "course/work/class/other").write_text("")
    found = promises.untouched(before, outcome.tree(tmp_path), {"eve"})
    assert [line.split()[0].strip("'").rpartition("/")[2] for line in found] == [
        "a.ipynb",
        "a.ipynb",
        "new",
        "other",
        "t",
        "box-1",
    ]


def test_a_process_left_behind_is_seen(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], cwd=tmp_path)
    try:
        assert len(outcome.left_running(tmp_path)) == 1
    finally:
        process.kill()
        process.wait()
    assert outcome.left_running(tmp_path) == []


def test_words_beside_progress_and_long_waits_are_seen():
    said = Said(
        0,
        "",
        [
            (1.0, "reading 2 submissions"),
            (2.0, "judged 1 of 1: a.b PASS, u1"),
            (9.0, "entered 1 of 2: u1"),
            (9.5, "Traceback"),
        ],
    )
    assert promises.quiet(said, "lab") == ["lab: stderr must hold progress alone, got 'Traceback'"]
    assert promises.added(said, "u1") == 8.0 and promises.added(said, "u2") == 0.0


@pytest.mark.slow  # two more classes; what sees each of these faults is shown above, on the sample
def test_a_class_that_trusts_what_came_in_breaks_its_promises(tmp_path):
    """Walls taken away in a copy of the course: notebooks come in as they are, and reports tell all."""
    themes = ("points of their own", "cells under other names", "reads and writes elsewhere")
    wanted = classes.Cohort(classes.cohort(False).labs, 1, 1, themes, few=True)
    walls = {
        "grader/classroom/exporter.py": TRUSTS,
        "grader/judge/record.py": TELLS,
        "grader/judge/numpy_values.py": NAMES,
    }
    _, broken = classes.prove(tmp_path, wanted, lambda row: None, walls=walls)
    for words in (
        "the student's page must match /declares other",
        "must be entered, got",
        "must be the same with hostile students",
        "must not reveal the results of a hidden case",
        "must hold no number of a hidden case",
    ):
        assert any(words in line for line in broken), words
