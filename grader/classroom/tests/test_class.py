"""A class from its submissions to its gradebook and feedback."""

import html
import io
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import alembic.command
import alembic.config
import pytest
from nbgrader import dbutil

from grader import box, questions
from grader.classroom import command, decided, grade_class, gradebooks, grading_round
from grader.classroom.jobs import job
from grader.classroom.tests.conftest import LAB, RIGHT, WRONG, book, grade_by_hand
from grader.judge import record, referee
from grader.judge.record import INCONCLUSIVE

ROOT = Path(__file__).parents[3]


def test_a_new_gradebook_has_the_form_that_nbgraders_own_program_would_give_it(course):
    said = io.StringIO()
    with dbutil._temp_alembic_ini("sqlite://") as ini:
        alembic.command.heads(alembic.config.Config(ini, stdout=said))
    with closing(sqlite3.connect(course.root / "gradebook.db")) as book:
        (form,) = book.execute("SELECT version_num FROM alembic_version").fetchone()
    assert form and form == said.getvalue().split()[0]


def words(path: Path) -> str:
    """What a reader of a feedback page sees."""
    body = path.read_text().partition("<body")[2]
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def test_points_go_into_the_gradebook_and_hand_grading_stays(unentered):
    unentered.hand_in("ada", RIGHT)
    unentered.hand_in("bob", WRONG)
    unentered.hand_in("cy", {})
    rows = unentered.grade()
    assert {name: (row.points, row.of) for name, row in rows.items()} == {
        "ada": (5, 10),
        "bob": (2, 10),
        "cy": (0, 10),
    }
    assert rows["ada"].by_hand == ["concepts: draw", "concepts: why"] or set(rows["ada"].by_hand) == {
        "concepts: draw",
        "concepts: why",
    }
    assert not any(row.said or row.trouble or row.unsettled for row in rows.values())
    ada, cy = book(unentered, "ada"), book(unentered, "cy")
    assert (ada["why"].score, ada["why"].needs_manual_grade) == (0, True)
    assert (cy["why"].score, cy["why"].needs_manual_grade) == (0, False), "an untouched text is no answer"

    grade_by_hand(unentered, "ada", "why", 2.5)
    rows = unentered.grade()
    assert rows["ada"].points == 7.5 and "concepts: why" not in rows["ada"].by_hand
    assert not rows["ada"].unchanged and rows["bob"].unchanged, "a person changed one of them"
    unentered.hand_in("bob", RIGHT)
    rows = unentered.grade()
    assert rows["bob"].points == 5 and not rows["bob"].unchanged and rows["ada"].unchanged
    round_ = command.prepare(unentered.root, LAB)
    said = command.text(round_, list(rows.values()))
    assert "\n  bob  5 of 10" in said and "  ada" not in said and "\n  as before: 2 students. --all" in said
    assert "\n  ada  7.5 of 10" in command.text(round_, list(rows.values()), all_=True)


def test_nbgraders_own_commands_give_the_same_grades_and_feedback(unentered, monkeypatch):
    """The course's config, read by nbgrader itself in a process of its own, without any record to stand on.

    Its generate_feedback has a process of its own in every class of grader/proofs.
    """
    unentered.hand_in("ada", RIGHT)
    unentered.hand_in("bob", HIDDEN_WRONG)
    config = (ROOT / "nbgrader_config.py").read_text()
    root = f"ROOT = Path({str(unentered.root)!r})\nsys.path.insert(0, {str(ROOT)!r})"
    assert "ROOT = Path(__file__).resolve().parent" in config
    (unentered.root / gradebooks.CONFIG).write_text(
        config.replace("ROOT = Path(__file__).resolve().parent", root)
    )
    assert gradebooks.register(unentered.root, LAB) == ""
    command_line = [sys.executable, "-W", "ignore", "-m", "nbgrader", "autograde", LAB]
    run = subprocess.run(command_line, cwd=unentered.root, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    first = {name: {n: g.score for n, g in book(unentered, name).items()} for name in ("ada", "bob")}
    assert first["ada"]["check_tile_loads"] == 3 and first["bob"]["check_tile_loads"] == 0
    rows = unentered.grade()
    assert {name: {n: g.score for n, g in book(unentered, name).items()} for name in ("ada", "bob")} == first
    assert rows["bob"].verdicts == {"gemm_tiling.reuse": "PASS", "gemm_tiling.tile_loads": "FAIL"}

    feedback = words(unentered.pages("bob") / "concepts.html")
    assert "a hidden case (ragged tiles): values that differ" in feedback and "concepts: 2 of 10" in feedback
    before, _, shown = feedback.partition("drawn anew for you to see")
    assert "7654321" not in before and "SECRET" not in feedback and shown
    assert "PASS gemm_tiling.reuse 2 of 2 points" in feedback


HIDDEN_WRONG = {
    **RIGHT,
    "tile_loads": """def tile_loads(m, n, k, bm, bn):
    if (m, n, k) in ((256, 256, 256), (100, 70, 50), (1, 4096, 4096)):
        return m * k * -(-n // bn) + k * n * -(-m // bm)
    print("SEC" + "RET", m, n, k)
    return 7654320 + 1
""",
}


def test_trouble_of_our_own_is_tried_again_and_then_waits_for_a_person(course, monkeypatch):
    tries = []

    def stumbling(source, question, **more):
        tries.append(question.id)
        verdict = judged(source, question, **more)
        if question.id == "gemm_tiling.reuse":
            verdict.verdict, verdict.points, verdict.message = INCONCLUSIVE, 0.0, "the jail broke off"
        return verdict

    judged = referee.grade_one
    monkeypatch.setattr(referee, "grade_one", stumbling)
    course.hand_in("ada", RIGHT)
    row = course.grade()["ada"]
    assert tries.count("gemm_tiling.reuse") == 3 and tries.count("gemm_tiling.tile_loads") == 1
    assert row.unsettled == ["gemm_tiling.reuse"] and row.points == 3
    held = book(course, "ada")["check_reuse"]
    assert held.needs_manual_grade and held.score == 0
    page = (course.root / f"autograded/ada/{LAB}/concepts.ipynb").read_text()
    assert "A person will look at this" in page and "the jail broke off" in page

    monkeypatch.setattr(referee, "grade_one", judged)
    row = course.grade()["ada"]
    assert row.points == 5 and not row.unsettled and not book(course, "ada")["check_reuse"].needs_manual_grade


def test_a_settled_verdict_is_never_asked_for_again(course, monkeypatch):
    course.hand_in("ada", RIGHT)
    course.hand_in("bob", RIGHT)
    asked = []
    judged = referee.grade_one
    monkeypatch.setattr(referee, "grade_one", lambda s, q, **m: asked.append(q.id) or judged(s, q, **m))
    course.grade()
    assert sorted(asked) == ["gemm_tiling.reuse", "gemm_tiling.tile_loads"], "equal answers are judged once"
    course.hand_in("cy", RIGHT)
    course.grade()
    assert len(asked) == 2


def test_a_round_keeps_its_mode_and_its_hidden_cases(course):
    round_ = grading_round.open_round(course.root, LAB, "cpu")
    assert grading_round.open_round(course.root, LAB) == round_ and round_.seed("a.b") != round_.seed("a.c")
    with pytest.raises(ValueError, match="mode must be cpu as in this lab's first round, got gpu"):
        grading_round.open_round(course.root, LAB, "gpu")
    again = grading_round.open_round(course.root, LAB, "gpu", anew=True)
    assert again.mode == "gpu" and again.seed("a.b") != round_.seed("a.b")
    secret = course.root / grading_round.PLACE / f"{LAB}.json"
    assert secret.stat().st_mode & 0o77 == 0, "only the instructor may read the seeds"


def test_a_map_that_breaks_costs_no_one_a_grade(course):
    def broken(jobs):
        yield job.judge(*jobs[0].task())
        raise ConnectionError("a worker is gone")

    course.hand_in("ada", RIGHT)
    said = []
    assert course.grade(each=broken, say=said.append)["ada"].points == 5
    assert any("a worker is gone" in line for line in said)


def test_one_students_failure_never_stops_the_class(course, monkeypatch):
    for name in ("ada", "bob", "cy"):
        course.hand_in(name, RIGHT)
    entered = gradebooks.autograde

    def failing(root, lab, student, *more):
        if student == "bob":
            raise OSError("disk full")
        return entered(root, lab, student, *more)

    monkeypatch.setattr(gradebooks, "autograde", failing)
    rows = course.grade()
    assert [rows[n].points for n in ("ada", "cy")] == [5, 5] and "disk full" in rows["bob"].trouble


def test_weak_boxes_judge_no_class(course, monkeypatch, capsys):
    course.hand_in("ada", RIGHT)
    assert gradebooks.register(course.root, LAB) == ""
    monkeypatch.setattr(box.best, "best_level", lambda: box.Level.LIMITS)
    with pytest.raises(box.BoxError, match="level 2 or better for judging a class"):
        course.grade()
    log, heard = gradebooks.logger(None)
    assert "level 2 or better" in gradebooks.autograde(course.root, LAB, "ada", "cpu", log, heard)
    monkeypatch.setattr(command, "ROOT", course.root)
    assert command.main([LAB]) == record.EXIT[INCONCLUSIVE]
    assert "level 2 or better" in capsys.readouterr().err


def test_other_points_judge_nothing_again(course, monkeypatch):
    course.hand_in("ada", RIGHT)
    course.hand_in("bob", WRONG)
    course.grade()
    table, asked = dict(questions.load()), []
    loads = table["gemm_tiling.tile_loads"]
    table["gemm_tiling.tile_loads"] = replace(loads, parts=(replace(loads.parts[0], points=5),))
    for place in (questions, questions.catalog):
        monkeypatch.setattr(place, "load", lambda: table)
    monkeypatch.setattr(referee, "grade_one", lambda *a, **more: asked.append(a))
    from grader.notebooks import disk, make

    disk.put(course.root, make.make(course.root, []))
    course.lab = type(course)(course.root).lab
    rows = course.grade()
    assert {name: (row.points, row.of) for name, row in rows.items()} == {"ada": (7, 12), "bob": (2, 12)}
    assert not asked and not any(row.trouble or row.unsettled for row in rows.values())


def test_bonus_points_come_on_top(unentered, monkeypatch):
    table = dict(questions.load())
    table["gemm_tiling.reuse"] = replace(table["gemm_tiling.reuse"], bonus=True)
    monkeypatch.setattr(questions, "load", lambda: table)
    monkeypatch.setattr(questions.catalog, "load", lambda: table)
    from grader.notebooks import disk, make

    disk.put(unentered.root, make.make(unentered.root, []))
    unentered.lab = type(unentered)(unentered.root).lab
    unentered.hand_in("ada", RIGHT)
    unentered.hand_in("bob", {**RIGHT, "reuse": "def reuse(bm, bn):\n    return 1\n"})
    rows = unentered.grade()
    assert (rows["ada"].points, rows["ada"].bonus, rows["ada"].of) == (5, 2, 8)
    assert (rows["bob"].points, rows["bob"].bonus, rows["bob"].of) == (3, 0, 8)
    assert not book(unentered, "ada")["check_reuse"].needs_manual_grade


def test_a_sentence_that_many_rows_share_is_printed_once(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "MOST_SAME", 1)
    monkeypatch.setattr(command, "without_folder", lambda _: [])
    said = {"ada": ["no time."], "bob": ["no time.", "notes.pdf was not read."], "cy": ["no time."]}
    rows = [grade_class.Row(name, of=10, said=every) for name, every in said.items()]
    assert command.text(grading_round.open_round(tmp_path, LAB, "cpu"), rows).splitlines()[1:] == [
        "  ada  0 of 10, final  ",
        "  bob  0 of 10, final  ",
        "       notes.pdf was not read.",
        "  cy   0 of 10, final  ",
        "  ada and 2 more: no time.",
        "to be graded by hand: 0 cells",
    ]


def test_ctrl_c_says_what_is_kept(tmp_path, monkeypatch, capsys):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "_run", stopped)
    assert command.main([LAB]) == 130
    assert capsys.readouterr().err.endswith("kept, and the next run goes on from there\n")


def test_an_empty_notebook_beside_a_good_one_is_named(tmp_path):
    shutil.copytree(ROOT / "labs" / LAB, tmp_path / "labs" / LAB)
    for name in ("fay", "gus"):
        (tmp_path / "submitted" / name / LAB).mkdir(parents=True)
    shutil.copy(ROOT / "labs" / LAB / "concepts.ipynb", tmp_path / "submitted/fay" / LAB)
    round_ = grading_round.open_round(tmp_path, LAB, "cpu")
    decided.as_empty(round_, ["fay", "gus"], "prof", "nothing came")
    assert decided.said(round_, "fay")[0].startswith("kernel.ipynb counts as empty, decided")
    assert decided.said(round_, "gus")[0].startswith("counts as an empty lab, decided")


def test_the_command_says_who_has_what(course, monkeypatch, capsys):
    monkeypatch.setattr(command, "ROOT", course.root)
    course.hand_in("ada", RIGHT)
    assert command.main([LAB, "--mode", "cpu"]) == 0
    said = capsys.readouterr()
    assert (
        "ada" in said.out
        and "5 of 10, not final: 2 cells wait for a person  2 PASS" in said.out
        and "to be graded by hand: 2 cells" in said.out
    )
    assert "judged 2 of 2" in said.err
    course.hand_in("bob", {})
    course.place("cy").with_suffix(".pdf").write_text("a print")
    course.place("dee").write_text("no notebook")
    assert command.main([LAB]) == record.EXIT[record.FAIL], "a person has to decide about cy"
    said = capsys.readouterr()
    assert "gemm_tiling.reuse not started, bob" in said.err and "FAIL, bob" not in said.err
    assert "entered 3 of 4: cy, nothing of whom can be entered" in said.err
    assert "--as-empty cy dee --why" in said.out, "what can't be read is named with what has no notebook"
    for name in ("bob", "cy", "dee"):
        shutil.rmtree(course.root / "submitted" / name)
    assert command.main([LAB, "--json"]) == 0
    assert (
        '"points": 5.0' in (said := capsys.readouterr().out)
        and '"waits": 2' in said
        and '"final": false' in said
    )
    for cell, points in (("why", 3), ("draw", 2)):
        grade_by_hand(course, "ada", cell, points)
    assert command.main([LAB]) == 0
    assert "10 of 10, final  2 PASS" in capsys.readouterr().out
    assert command.main(["02_nothing"]) == record.WRONG_USAGE
    assert command.main([LAB, "--student", "nobody"]) == record.WRONG_USAGE
    with pytest.raises(SystemExit) as ended:
        command.main([])
    assert ended.value.code == record.WRONG_USAGE
