"""The instructors' pages: every command on them is run, and every field of a question is explained."""

import re
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from grader import __main__ as door
from grader import questions
from grader.classroom import command
from grader.classroom.tests.conftest import LAB, RIGHT, nbgrader
from grader.judge import fingerprint, referee
from grader.judge.record import FAIL, PASS
from grader.paths import ROOT
from grader.questions import model

PAGES = sorted(ROOT.glob("instructors/*.md"))
BLOCK = re.compile(r"^( *)```sh\n(.*?)^ *```$", re.M | re.S)
AFTERWARDS = "grader/classroom/tests/afterwards"
ELSEWHERE = {  # commands that another test runs
    "python -m grader release ../tile-by-tile-students": "grader/release/tests/test_release.py::folder",
    "python -m grader release ../tile-by-tile-students --try": "grader/release/tests/test_smoke_test.py::test_what_fails_is_said",
    "python -m grader lti keys": f"{AFTERWARDS}/test_lti.py::test_scores_reach",
    f"python -m grader lti scores {LAB} --names names.csv": f"{AFTERWARDS}/test_lti.py::test_scores_reach",
    f"python -m grader class {LAB} --new-lab": "grader/classroom/tests/test_changed_lab.py::test_what_people_entered",
    f"python -m grader class {LAB} --from sqlite:////srv/old/gradebook.db": "grader/classroom/tests/test_changed_lab.py::test_where_no_earlier",
    f"python -m grader collect {LAB} submissions.zip --names names.csv --times times.csv": f"{AFTERWARDS}/test_collect.py::test_a_collected_hand_in",
    f"python -m grader report {LAB} --question gemm_tiling.tile_loads": f"{AFTERWARDS}/test_report.py::test_one_question_is_shown",
    "python -m grader report 07_next_bottleneck --question next_bottleneck.worklog": f"{AFTERWARDS}/test_report.py::test_one_question_is_shown",
    "python -m grader.capstone work/07_next_bottleneck/capstone.ipynb --json work/capstone.json": "grader/capstone/tests/test_step.py::test_the_solutions_notebook",
    f"python -m grader report {LAB} --earlier ../spring/submitted ../autumn/submitted": f"{AFTERWARDS}/test_report.py::test_answers_of_an_earlier",
    f'python -m grader class {LAB} --as-empty dan --why "handed in a PDF"': f"{AFTERWARDS}/test_export.py::test_what_cannot_be_entered",
    f"python -m grader export {LAB}": f"{AFTERWARDS}/test_export.py::test_who_handed_in_nothing",
    f'nbgrader db assignment add {LAB} --duedate "2026-11-20 23:59 UTC"': "grader/classroom/tests/test_whole_way.py::test_twenty",
    f"python -m grader class {LAB}": "grader/classroom/tests/test_class.py::test_the_command_says",
    f'python -m grader export {LAB} --format canvas --names names.csv --title "Lab 1 (4711)"': f"{AFTERWARDS}/test_export.py::test_canvas_finds",
    f"python -m grader export {LAB} --format moodle --names names.csv": f"{AFTERWARDS}/test_export.py::test_moodle_gets",
    f"python -m grader report {LAB}": f"{AFTERWARDS}/test_report.py::test_what_the_class_did",
    "python -m grader student ada            # the class's data about ada": f"{AFTERWARDS}/test_student.py::test_all_of_it",
    "python -m grader student ada --delete   # delete it all, after you type the name again": f"{AFTERWARDS}/test_student.py::test_nothing_of_the_student",
    "export NBGRADER_GRADEBOOK='postgresql://grader@db.example.org/grades'": f"{AFTERWARDS}/test_postgresql.py::test_the_setting",
    ".venv/bin/python -m pip install -e '.[postgresql]'": f"{AFTERWARDS}/test_postgresql.py::test_a_driver_that_is_missing",
    f"python -m grader extension {LAB} carol --hours 12": "grader/classroom/tests/test_time.py::test_more_time_is_given",
    "python -m kernels.bench --part 1/4 --json h200.json": "kernels/bench/tests/test_bench.py::test_parts_meet_in_one_file",
    "python -m kernels.bench --part 2/4 --json h200.json": "kernels/bench/tests/test_bench.py::test_parts_meet_in_one_file",
    f"nbgrader generate_feedback {LAB}": "grader/classroom/tests/test_class.py::test_nbgraders_own_commands",
}


def commands() -> set[str]:
    blocks = (found[2] for page in PAGES for found in BLOCK.finditer(page.read_text(encoding="utf-8")))
    return {line.strip() for block in blocks for line in block.splitlines() if line.strip()}


def grader(words: str):
    return lambda course: door.main(words.split())


def classed(course) -> int:
    course.hand_in("ada", RIGHT)
    return command.main([LAB, "--mode", "cpu"])


def built(course) -> int:
    from grader.notebooks.command import main

    return main(["gemm_tiling"], root=course.root)


def imported(course) -> int:
    (course.root / "students.csv").write_text("id,first_name,last_name,email\nada,Ada,L,\n")
    nbgrader(course, f"db student import {course.root}/students.csv")
    return 0


RUN = {  # command -> (what runs it here, how it may end)
    "python -m grader questions": (grader("questions"), {0}),
    "python -m grader times gemm_tiling.reuse": (grader("times gemm_tiling.reuse"), {0}),
    "python -m grader calibrate": (grader("calibrate"), {0, 3}),  # 3: there is no GPU, and it says so
    f"python -m grader class {LAB} --mode cpu": (classed, {0}),
    "python -m grader build gemm_tiling": (built, {0}),
    "nbgrader db student import students.csv": (imported, {0}),
}
ON_A_GPU = "python -m grader times gemm_tiling.tiled_gemm --mode gpu --json times.json"


@pytest.mark.parametrize("line", RUN)
def test_a_command_of_the_pages_runs(course, monkeypatch, line):
    assert line in commands(), "the pages have it no more"
    monkeypatch.setattr(command, "ROOT", course.root)
    run, ends = RUN[line]
    assert run(course) in ends


@pytest.mark.gpu
def test_the_command_that_needs_a_gpu(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert door.main(ON_A_GPU.split()[3:]) == 0
    assert '"ratio"' in Path("times.json").read_text()


def test_every_command_of_the_pages_is_run_by_a_test():
    assert commands() == {*RUN, *ELSEWHERE, ON_A_GPU}
    for line, place in ELSEWHERE.items():
        path, _, name = place.partition("::")
        assert name in (ROOT / path).read_text(encoding="utf-8"), line


def test_the_list_of_questions_has_what_people_grade_and_no_notebook_that_is_not_there(capsys):
    assert door.main(["questions"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"gemm_tiling\.reflect +4 points +hand +01_gemm_tiling/kernel\.ipynb +a person", said)
    listed = set(re.findall(r"\S+\.ipynb", said))
    assert listed and all((ROOT / "labs" / name).exists() for name in listed)


PAGE = (ROOT / "instructors/writing_a_question.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "row",
    [
        "Question",
        "NumpyQuestion",
        "KernelQuestion",
        "RanksQuestion",
        "Part",
        "Call",
        "Together",
        "Case",
        "Tensor",
        "Mistake",
        "Budget",
        "Speed",
    ],
)
def test_every_field_of_a_question_is_explained(row):
    missing = [field.name for field in fields(getattr(model, row)) if f"`{field.name}`" not in PAGE]
    assert not missing


def test_the_example_is_a_question_that_judges(monkeypatch):
    files = {}
    for name, source in re.findall(
        r"^`grader/topics/gemm_tiling/waves/(\w+).py`:\n\n```python\n(.*?)^```$", PAGE, re.M | re.S
    ):
        files[name] = source  # the page's own words
    assert set(files) == {"question", "mistakes"}
    for name in ("mistakes", "question"):
        module = ModuleType(f"grader.topics.gemm_tiling.waves.{name}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(files[name], module.__dict__)
    waves = module.QUESTION
    monkeypatch.setattr(fingerprint, "code_of", lambda name: "an example's, which has no folder")
    monkeypatch.setattr(questions, "load", lambda: {"gemm_tiling.waves": waves})
    verdict = referee.grade_one("def waves(tiles, sms):\n    return -(-tiles // sms)\n", waves, seed=1)
    assert verdict.verdict == PASS, verdict
    verdict = referee.grade_one("def waves(tiles, sms):\n    return tiles // sms\n", waves, seed=1)
    assert verdict.verdict == FAIL and "the last wave is rarely full" in str(verdict), verdict
