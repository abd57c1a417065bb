"""Faults of the place that grades are kept in: each is said in one sentence, nothing is lost, nothing is judged twice."""

import errno
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from grader.classroom import (
    atomic_file,
    command,
    grade_class,
    gradebooks,
    grading_round,
    storage_errors,
    submission,
)
from grader.classroom.jobs import job
from grader.classroom.tests.conftest import LAB, RIGHT, WRONG
from grader.judge import record, referee


@pytest.fixture
def asked(monkeypatch):
    """Every question that is judged from here on."""
    found, judged = [], referee.grade_one
    monkeypatch.setattr(referee, "grade_one", lambda s, q, **m: found.append(q.id) or judged(s, q, **m))
    return found


def run(course, monkeypatch, capsys) -> tuple[int, str]:
    monkeypatch.setattr(command, "ROOT", course.root)
    code = command.main([LAB])
    said = capsys.readouterr()
    assert "SQL" not in said.out + said.err and "Traceback" not in said.err
    return code, said.out + said.err


def records(course) -> list:
    return sorted((course.root / atomic_file.PLACE / "records").iterdir())


def test_a_full_disk_ends_the_run_and_keeps_what_was_judged(course, monkeypatch, capsys, asked):
    course.hand_in("ada", RIGHT)
    course.hand_in("bob", WRONG)
    flushed, left = os.fsync, [2]

    def filling(descriptor):
        """Room for two records more."""
        if "records" in os.readlink(f"/proc/self/fd/{descriptor}"):
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return flushed(descriptor)

    monkeypatch.setattr(os, "fsync", filling)
    code, said = run(course, monkeypatch, capsys)
    assert code == 3 and "the disk is full. Everything judged so far is kept" in said
    assert "2 of 3 answers were judged" in said and len(asked) == 3, "what can't be kept is not judged on"
    assert len(records(course)) == 2 and all(path.suffix == ".json" for path in records(course))
    monkeypatch.setattr(os, "fsync", flushed)
    code, said = run(course, monkeypatch, capsys)
    assert code == 0 and len(asked) == 4 and "5 of 10" in said and "2 of 10" in said


def test_a_locked_gradebook_is_said_without_sql(course, monkeypatch, capsys, asked):
    course.hand_in("ada", RIGHT)
    config = (gradebooks.ROOT / gradebooks.CONFIG).read_text()
    url = f"sqlite:///{course.root}/gradebook.db?timeout=0.1"
    (course.root / gradebooks.CONFIG).write_text(f"{config}\nc.CourseDirectory.db_url = {url!r}\n")
    with closing(sqlite3.connect(course.root / "gradebook.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        code, said = run(course, monkeypatch, capsys)
        other.rollback()
    assert code == 3 and "the gradebook is locked by another program" in said and len(records(course)) == 2
    code, said = run(course, monkeypatch, capsys)
    assert code == 0 and "5 of 10" in said and len(asked) == 2


def test_a_damaged_gradebook_is_said_and_its_copy_serves(course, monkeypatch, capsys, asked):
    course.hand_in("ada", RIGHT)
    book, copied = course.root / "gradebook.db", course.root / atomic_file.PLACE / gradebooks.COPY
    assert run(course, monkeypatch, capsys)[0] == 0
    whole = copied.read_bytes()
    for damaged in (b"not a gradebook" * 999, whole[:5000] + os.urandom(len(whole) - 5000)):
        book.write_bytes(damaged)
        code, said = run(course, monkeypatch, capsys)
        assert code == 3 and "the gradebook is damaged" in said and gradebooks.COPY in said
        assert copied.read_bytes() == whole, "a damaged gradebook never becomes the copy"
    book.write_bytes(whole)
    code, said = run(course, monkeypatch, capsys)
    assert code == 0 and "as before: 1 student. --all lists all rows" in said and len(asked) == 2


def test_a_gradebook_that_is_not_whole_never_becomes_the_copy(course):
    book, copied = course.root / "gradebook.db", course.root / atomic_file.PLACE / gradebooks.COPY
    copied.parent.mkdir(parents=True)
    gradebooks.copy_aside(course.root)
    whole = copied.read_bytes()
    with closing(sqlite3.connect(book)) as opened:
        (size,), (page,) = (
            opened.execute(query).fetchone()
            for query in ("PRAGMA page_size", "SELECT rootpage FROM sqlite_master WHERE name = 'assignment'")
        )
    with open(book, "r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    with pytest.raises(storage_errors.CannotKeep, match="the gradebook is damaged"):
        gradebooks.copy_aside(course.root)
    assert copied.read_bytes() == whole


KILLED = """
import os, signal, sys
from pathlib import Path
from grader.classroom import grading_round
from grader.judge.record import Record
os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)
grading_round.keep(grading_round.open_round(Path(sys.argv[1]), sys.argv[2]), Record("a.b", "PASS", 1.0, 1.0, "cpu", key="0" * 32))
"""


def test_a_kill_in_the_middle_of_a_write_leaves_no_half_record(course, asked):
    course.hand_in("ada", RIGHT)
    round_ = grading_round.open_round(course.root, LAB, "cpu")
    done = subprocess.run([sys.executable, "-c", KILLED, str(course.root), LAB])
    assert done.returncode == -signal.SIGKILL
    (half,) = records(course)
    assert half.name.startswith(".") and grading_round.find(round_, "0" * 32) is None
    (first, *_) = job.jobs_of(round_, [submission.handed_in(round_, "ada")])
    (course.root / atomic_file.PLACE / "records" / f"{first.key}.json").write_text('{"question": "gemm_ti')
    assert course.grade()["ada"].points == 5
    assert not half.exists() and len(records(course)) == 2
    assert grading_round.find(round_, first.key).passed, (
        "half a record that a power cut left is judged and written anew"
    )
    assert course.grade()["ada"].unchanged and len(asked) == 2


def test_a_submission_that_changes_meanwhile_is_graded_as_it_is_at_the_end(course, monkeypatch, asked):
    course.hand_in("ada", WRONG)
    course.hand_in("bob", WRONG)
    entered, changes = gradebooks.autograde, iter([RIGHT])

    def changing(root, lab, student, *more):
        trouble = entered(root, lab, student, *more)
        if student == "ada" and (answers := next(changes, None)):
            course.hand_in("ada", answers)
        return trouble

    monkeypatch.setattr(gradebooks, "autograde", changing)
    row = course.grade()["ada"]
    assert row.points == 5 and row.said == [grade_class.CHANGED_ONCE] and len(asked) == 3
    assert row.verdicts["gemm_tiling.tile_loads"] == "PASS"
    again = course.grade()["ada"]
    assert again.unchanged and not again.said and again.points == 5 and len(asked) == 3

    changes = iter([RIGHT, WRONG, RIGHT])
    course.hand_in("ada", {**WRONG, "why": "Once more."})
    row = course.grade()["ada"]
    assert grade_class.CHANGED in row.said
    assert not course.grade()["ada"].unchanged and len(asked) == 3


def test_a_notebook_of_100_mb_costs_its_writer_alone(course):
    for name in ("ada", "bob"):
        course.hand_in(name, RIGHT)
    with open(course.place("ada"), "ab") as file:
        file.truncate(100_000_000)
    (course.place("ada").parent / "more.bin").write_bytes(b"")
    os.truncate(course.place("ada").parent / "more.bin", 100_000_000)
    rows = course.grade()
    assert rows["bob"].points == 5 and rows["ada"].points == 0
    assert any("is 100.0 MB, and at most 2 MB are read" in line for line in rows["ada"].said)
    assert any("more.bin was set aside" in line for line in rows["ada"].said)


@pytest.mark.parametrize(
    "trouble, words",
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full"),
        (OSError(errno.EROFS, "Read-only file system"), "can't be written to"),
        ("(psycopg.OperationalError) connection to server at 'db' failed", "server does not answer"),
        ("sqlite3.OperationalError: attempt to write a readonly database", "can't be written to"),
        (ValueError("one\n[SQL: SELECT secret]"), "ValueError: one"),
    ],
)
def test_each_trouble_has_its_sentence(trouble, words):
    said = storage_errors.said(trouble) if isinstance(trouble, Exception) else storage_errors.plain(trouble)
    assert words in said and "SQL" not in said and "\n" not in said


def test_settled_verdicts_are_never_replaced(tmp_path):
    round_ = grading_round.open_round(tmp_path, LAB, "cpu")
    one = record.Record("a.b", "PASS", 1.0, 1.0, "cpu", key="1" * 32, date="first")
    grading_round.keep(round_, one)
    one.date = "second"
    grading_round.keep(round_, one)
    assert grading_round.find(round_, one.key).date == "first"
