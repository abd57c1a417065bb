"""The grader judges with its own checkout's tilescope, and an answer's Python sees nothing of it."""

import subprocess
import sys

import pytest

from grader import box, questions
from grader.box import warm
from grader.jail import host as jail
from grader.judge import referee
from grader.judge.record import FAIL
from grader.machine import host as machine
from grader.paths import ROOT
from grader.release.manifest import allowed

KERNEL = "roofline.doubled"
LOOKS = {
    "imports it": "import tilescope",
    "imports the machine": "import tilescope.machine.run",
    "imports the builder": "import tilescope.front_end.ir",
    "imports its launcher": "from tilescope import launcher",
    "has it among the modules": "import sys\nsys.modules['tilescope']",
    "reads its files": f"open({str(ROOT / 'tilescope/machine/run.py')!r})",
    "lists its folder": f"import os\nassert 'machine' in os.listdir({str(ROOT / 'tilescope')!r})",
}
OTHER = """
import sys
sys.path.insert(0, sys.argv[1])
{first}
import grader, tilescope.machine.report
print(tilescope.__file__)
"""


@pytest.mark.parametrize("look", LOOKS)
def test_an_answer_finds_no_tilescope(look):
    assert box.best_level() >= 2
    verdict = referee.grade_one(LOOKS[look], questions.find(KERNEL), seed=3)
    assert verdict.verdict == FAIL and "launch" not in str(verdict).split("\n")[0], verdict
    said = str(verdict)
    assert any(
        word in said
        for word in ("No module", "KeyError", "No such file", "Permission", "AssertionError", "assert")
    ), said


def test_the_jail_is_shown_the_front_end_alone():
    shown = [path for path in jail.LOWER.shown if "tilescope" in path]
    assert shown == ["tilescope/front_end", "tilescope/lowering.py"]
    assert "tilescope" not in str(jail.NUMPY.shown + jail.RANKS.shown)


def planted(folder):
    """A package of the same name that is installed beside the environment's others."""
    (folder / "tilescope/machine").mkdir(parents=True)
    for name in ("", "machine/"):
        (folder / f"tilescope/{name}__init__.py").write_text("OTHER = True\n")
    return folder


def run(folder, first=""):
    return subprocess.run(
        [sys.executable, "-c", OTHER.format(first=first), str(folder)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


def test_another_package_of_that_name_is_passed_over(tmp_path):
    done = run(planted(tmp_path))
    assert done.stdout.strip() == str(ROOT / "tilescope/__init__.py"), done.stderr


def test_another_that_is_loaded_already_is_named(tmp_path):
    done = run(planted(tmp_path), first="import tilescope")
    assert done.returncode and f"must be this checkout's ({ROOT / 'tilescope'})" in done.stderr


def test_a_box_runs_this_checkouts_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(planted(tmp_path)))
    program = warm.Program(machine.MACHINE)
    try:
        outcome = program.ask({"operation": "print", "texts": ["nothing"]})
    finally:
        program.stop()
    assert "error" in outcome.header["texts"][0], outcome


def test_the_student_edition_carries_it_without_its_tests():
    assert allowed("tilescope/machine/run.py") and allowed("tilescope/launcher.py")
    assert not allowed("tilescope/tests/test_races.py")
