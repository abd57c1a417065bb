"""Where no box can be: answers are judged in plain processes or in this one, parts that need a compiler stay open, and no class
is graded."""

import json
import os
import subprocess
import sys
import time

import pytest

from grader import box
from grader.box import best, systems, warm
from grader.box.in_process import Here
from grader.jail import host as jail
from grader.paths import ROOT
from grader.proofs import right

PYTHON = """
import json, sys
from grader import questions
from grader.judge import referee
from grader.proofs.right import inward
for name, (question, source) in json.load(sys.stdin).items():
    asked = questions.find(question)
    asked = inward(asked) if name == "compiled" else asked  # the other answers meet corners
    print(json.dumps([name, str(referee.grade_one(source, asked, seed=3))]))
"""
DOUBLED, COMPILED = "roofline.doubled", "roofline.tile_settings"


@pytest.fixture(scope="module", params=[pytest.param("none", marks=pytest.mark.slow), "here"])
def said(request) -> dict[str, str]:
    """What a process without boxes and without Triton's library says of some answers, as a person reads it."""
    if not (ROOT / "solutions").exists():
        pytest.skip("solutions/, which is not handed out")
    correct = right.right(DOUBLED)
    answers = {
        "right": (DOUBLED, correct),
        "wrong": (DOUBLED, correct.replace("2 * x", "3 * x")),
        "ends": (DOUBLED, "raise SystemExit"),
        "compiled": (COMPILED, right.right(COMPILED)),
    }
    alone = {**os.environ, systems.WISH: request.param, "TILESCOPE_FRONT_END": "python"}
    command = [sys.executable, "-c", PYTHON]
    done = subprocess.run(
        command, input=json.dumps(answers), env=alone, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(map(json.loads, done.stdout.splitlines()))


def test_a_right_answer_passes_and_a_wrong_one_is_told(said):
    assert said["right"].startswith("PASS  roofline.doubled  3 of 3 points")
    assert said["wrong"].startswith("FAIL  roofline.doubled  0 of 3 points")


def test_what_needs_a_compiler_stays_open(said):
    first, *rest = said["compiled"].splitlines()
    assert first.startswith(f"OPEN  {COMPILED}  ") and first.endswith(" open  (cpu mode)"), said["compiled"]
    assert any("judged at hand-in" in line for line in rest)


def test_an_answer_that_ends_its_process_ends_no_judge(said):
    assert "the answer ended its own process" in said["ends"]


def test_no_class_is_graded_here(monkeypatch):
    monkeypatch.setenv(systems.WISH, "here")
    best.best_level.cache_clear()
    try:
        assert box.best_level() == 0 and isinstance(warm.programs(jail.LOWER, level=77), Here)
        with pytest.raises(box.BoxError, match="only at the learner's own pace"):
            box.require(2, "a class")
    finally:
        warm._programs.pop((jail.LOWER, 77), None)
        best.best_level.cache_clear()
    monkeypatch.setenv(systems.WISH, "perhaps")
    with pytest.raises(ValueError, match="must be none, here or nothing"):
        systems.wish()


@pytest.fixture
def plain(monkeypatch):
    """A jail in a plain process."""
    monkeypatch.setenv(systems.WISH, "none")
    program = warm.Program(jail.NUMPY)
    yield program
    program.stop()


CALL = {"entry": "f", "calls": [[]], "source": "def f():\n    return 'ok'"}


def ask(program, body: str, **limits):
    return program.ask({**CALL, "source": f"import os\ndef f():\n    {body}"}, {}, warm.Limits(**limits))


@pytest.mark.parametrize(
    "body, limits, end",
    [
        ("while True: pass", {"cpu_s": 1}, warm.ENDLESS),
        ("import time; time.sleep(60)", {"wall_s": 1.0}, warm.LATE),
        ("os._exit(3)", {}, warm.EXITED),
    ],
)
def test_what_ends_a_plain_process_is_told_and_ends_no_judge(plain, body, limits, end):
    started = time.monotonic()
    assert ask(plain, body, **limits).end == end and time.monotonic() - started < 30
    assert ask(plain, "return 'ok'").header["results"] == [{"plain": "ok"}]


def test_an_answer_meets_nothing_of_the_one_before(plain):
    ask(plain, "open('left', 'w').write('x'); os.environ['LEFT'] = '1'; return 'ok'")
    first = plain.process.scratch
    found = ask(plain, "return str(os.listdir('.')) + str(os.environ.get('LEFT')) + os.getcwd()").header
    assert found["results"][0]["plain"].startswith("[]None/")
    plain.stop()
    assert not os.path.exists(first)


def test_what_an_answer_writes_by_number_reaches_no_referee(plain):
    found = ask(plain, "os.write(1, b'forged' * 9); print('seen'); return 'ok'")
    assert found.header["results"] == [{"plain": "ok"}] and found.header["printed"] == "seen\n"
