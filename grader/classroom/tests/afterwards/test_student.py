"""A student's data: all of it is shown, and after a deletion no byte of it is left, and everybody else's is."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from grader.classroom import grading_round, marks, regrades
from grader.classroom.student import command, traces
from grader.classroom.tests.afterwards.conftest import by_hand
from grader.classroom.tests.conftest import LAB, WRONG
from grader.judge import answer
from grader.verdicts import EXIT, FAIL, WRONG_USAGE

SECRET = "s3cret of bob"


@pytest.fixture
def left_behind(graded, monkeypatch):
    """The class after a while: comments, feedback, exchange, exports, earlier hand-ins."""
    root = graded.root
    monkeypatch.setattr(command, "ROOT", root)
    monkeypatch.setenv("NBGRADER_EXCHANGE", str(root / "work/exchange"))
    with marks.opened(root) as gradebook:
        gradebook.update_or_create_student("bob", first_name="Robert", last_name="Uniquename")
        gradebook.find_comment("why", "concepts", LAB, "bob").manual_comment = "a comment for bob alone"
        gradebook.db.commit()
    by_hand(root, {("bob", "why"): 2})
    from nbgrader.utils import notebook_hash

    inbound = root / "work/exchange/tile-by-tile/inbound"
    for student in ("bob", "bobby"):
        folder = inbound / f"{student}+{LAB}+2026-11-20 12:00:00.000000 UTC+xYz-_12"
        folder.mkdir(parents=True)
        shutil.copy(graded.place("bob"), folder)
        (folder / "submission_secret.txt").write_text(SECRET if student == "bob" else "another")
    released = inbound.parent / "feedback"
    released.mkdir()
    (released / f"{notebook_hash(secret=SECRET, notebook_id='concepts')}.html").write_text("<p>to bob</p>")
    (released / f"{notebook_hash(secret='another', notebook_id='concepts')}.html").write_text(
        "<p>to who?</p>"
    )
    for place in ("feedback/bob/x.html", "work/class/set_aside/bob/old.ipynb", "work/grades/x.canvas.csv"):
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text("bob, 3")
    (root / "work/class/extensions.json").write_text(
        json.dumps(
            {
                "due": {"bob": "2026-12-01", "ada": "2026-12-02"},
                "asked": [{"student": "bob", "why": "ill"}, {"student": "cy"}],
            }
        )
    )
    (root / "work/class/more").mkdir()
    (root / "work/class/more/asked.jsonl").write_text('{"student": "bob"}\n{"student": "cy"}\n')
    held = {"points": 4, "of": 10, "scores": {}}
    round_ = SimpleNamespace(root=root, lab=LAB, epoch="e")
    regrades.begin(round_, {"bob": held, "cy": held}, "teacher", "they asked", alone=True)
    regrades.finish(root, {1: held, 2: held})
    return graded


def everything(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_all_of_it_is_shown_and_nothing_touched(left_behind, capsys):
    known = json.loads(records(left_behind.root)[0].read_text())
    (records(left_behind.root)[0].parent / "0.json").write_text(json.dumps(known | {"answer": "f" * 64}))
    before = everything(left_behind.root)
    assert command.main(["bob"]) == 0
    said = capsys.readouterr().out
    for words in (
        "submitted/bob  2 files",
        f"{LAB}: 4 of 10, 4 cells, 1 cell waits",
        "inbound/bob+",
        "feedback in the exchange",
        "extensions.json  an entry",
        f"{LAB}.entered.jsonl  ",
        "entries of the log",
        "set_aside/bob",
        "1 record of answers that no other student",
        "1 record of answers that were replaced, perhaps this student's",
        "1 record of answers that others have",
    ):
        assert words in said, words
    assert everything(left_behind.root) == before


def test_nothing_of_the_student_remains_and_all_of_the_others(left_behind, capsys):
    root = left_behind.root
    others = {one.student: one for one in marks.standings(root, LAB) if one.student != "bob"}
    own = answer.digest(answer.normalise(WRONG["tile_loads"]))
    (wrong,) = [path for path in records(root) if json.loads(path.read_text())["answer"] == own]
    assert command.main(["bob", "--delete", "--yes"]) == 0
    assert "nothing below" in capsys.readouterr().out
    for name, data in everything(root).items():
        assert "bob" not in Path(name).parts and "/bob+" not in name
        for word in (b"bob", b"Uniquename", b"Robert", SECRET.encode()):
            told = data.replace(b"bobby", b"")
            assert word not in told, f"{name} still holds {word!r}"
    assert {one.student: one for one in marks.standings(root, LAB)} == others
    assert (root / "submitted/ada").is_dir() and list(
        root.glob("work/exchange/*/inbound/bobby+*/concepts.ipynb")
    )
    assert len(list(root.glob("work/exchange/*/feedback/*.html"))) == 1
    notes = json.loads((root / "work/class/extensions.json").read_text())
    assert notes == {"due": {"ada": "2026-12-02"}, "asked": [{"student": "cy"}]}
    assert not wrong.exists(), "the answer was bob's alone"
    assert (root / grading_round.PLACE / f"{LAB}.json").exists(), "the round's secret stays"
    row = left_behind.grade(only=["ada"])["ada"]
    assert row.unchanged and row.points == 5
    assert command.main(["bob"]) == WRONG_USAGE, "there is nothing to show any more"


def records(root):
    return sorted((root / grading_round.PLACE / "records").glob("*.json"))


def test_a_record_that_somebody_else_stands_on_stays(left_behind):
    root = left_behind.root
    before = set(records(root))
    assert command.main(["ada", "--delete", "--yes"]) == 0
    assert set(records(root)) == before, "bob's and eve's answers are the same texts"
    left_behind.grade(only=["eve"])
    assert set(records(root)) == before


def test_what_is_left_is_said(left_behind, capsys):
    (left_behind.root / "gradebook.db.2026-01-01").write_bytes(b"\0\1bob\0")
    assert command.main(["bob", "--delete", "--yes"]) == EXIT[FAIL]
    assert "bob is still named in:" in (said := capsys.readouterr().out) and "gradebook.db.2026-01-01" in said


def test_what_belongs_to_somebody_else_is_named_and_the_rest_deleted(left_behind, capsys, monkeypatch):
    theirs = next(left_behind.root.glob("work/exchange/*/inbound/bob+*"))
    remove = shutil.rmtree

    def refusing(path, *more, **options):
        if path == theirs:
            raise PermissionError(13, "Permission denied", str(path))
        remove(path, *more, **options)

    monkeypatch.setattr(shutil, "rmtree", refusing)
    assert command.main(["bob", "--delete", "--yes"]) == EXIT[FAIL]
    said = capsys.readouterr().out
    assert f"not deleted: {theirs} (Permission denied)" in said and "run this as its owner or root" in said
    assert not (left_behind.root / "feedback/bob").exists() and theirs.exists()


def test_a_deletion_is_confirmed_by_the_name(left_behind, capsys, monkeypatch):
    before = everything(left_behind.root)
    assert command.main(["bob", "--delete"]) == WRONG_USAGE
    assert "must be confirmed at a terminal" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda asked: "yes")
    assert command.main(["bob", "--delete"]) == EXIT[FAIL]
    assert "nothing was deleted" in capsys.readouterr().out and everything(left_behind.root) == before
    monkeypatch.setattr("builtins.input", lambda asked: "bob")
    assert command.main(["bob", "--delete"]) == 0


@pytest.mark.parametrize("name", ("..", "../submitted", "*", "nobody", "a/b", ""))
def test_a_name_that_is_no_student_deletes_nothing(left_behind, name, capsys):
    before = everything(left_behind.root)
    assert command.main([name, "--delete", "--yes"]) == WRONG_USAGE
    assert "NAME must be" in capsys.readouterr().err and everything(left_behind.root) == before


def test_a_link_is_removed_and_not_followed(left_behind, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "thesis.txt").write_text("mine")
    os.symlink(elsewhere, left_behind.root / "submitted/lin")
    assert command.main(["lin", "--delete", "--yes"]) == 0
    assert (elsewhere / "thesis.txt").read_text() == "mine"
    assert not os.path.lexists(left_behind.root / "submitted/lin")


def test_names_inside_other_names_are_not_mentions(tmp_path):
    log = tmp_path / "x.log"
    log.write_text(
        "2026-11-20 1 INFO bobby\n2026-11-20 2 ERROR bob: no\nTraceback\n  line\n2026-11-20 3 INFO [submitted/bob/01]\n"
    )
    mine, others = traces.entries_of(log, "bob")
    assert [len(one.splitlines()) for one in mine] == [3, 1] and others == ["2026-11-20 1 INFO bobby\n"]


def test_the_log_of_regrades_still_follows_line_from_line(left_behind):
    root = left_behind.root
    assert command.main(["bob", "--delete", "--yes"]) == 0
    assert [(row["number"], row["student"], row["why"]) for row in regrades.all_of(root)] == [
        (2, "cy", "they asked")
    ]
    regrades.begin(SimpleNamespace(root=root, lab=LAB, epoch="e"), {"ada": None}, "teacher", "", alone=True)
    assert regrades.all_of(root, student="ada")[0]["number"] == 3
