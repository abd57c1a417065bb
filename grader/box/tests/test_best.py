"""Which level is chosen, how long that is remembered, and who is refused."""

import json
import os
import subprocess
import sys

import pytest

from grader.box import BoxError, Level, Limits, best, keeper
from grader.box.measure import ATTACKS, QUICK, Measured

HELD = {name: [True, "refused"] for name in ATTACKS}


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine whose levels behave as told; `tried` lists what was measured."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(best.sys, "platform", "linux")

    class Machine:
        tried, answers = [], {}

        def attack(self, level, names=tuple(ATTACKS)):
            self.tried.append((int(level), len(names)))
            return self.answers.get(int(level), Measured(level, HELD))

        def forget(self):
            """As a new process would."""
            best.best_level.cache_clear()
            best.why_not.cache_clear()
            self.tried.clear()

    one = Machine()
    one.forget()
    monkeypatch.setattr(best, "try_attacks", one.attack)
    yield one
    one.forget()


FULL = len(ATTACKS)


def test_the_strongest_that_holds(machine):
    assert best.best_level() == 3
    machine.forget()
    assert best.best_level() == 3
    assert machine.tried == [(3, len(QUICK))], "what is remembered is tried again, quickly"


def test_a_level_that_will_not_start_or_breaks_a_promise_is_not_used(machine):
    machine.answers[3] = Measured(Level(3), trouble="no namespaces here")
    assert best.best_level() == 2
    machine.forget()
    machine.answers[2] = Measured(Level(2), HELD | {"network": [False, "connected to a port of the host"]})
    assert best.best_level() == 1
    assert machine.tried == [(2, len(QUICK)), (3, FULL), (2, FULL)], (
        "a remembered level that fails is measured anew"
    )


def test_what_a_level_does_not_promise_may_fail(machine):
    machine.answers[3] = Measured(Level(3), trouble="no namespaces here")
    machine.answers[2] = Measured(
        Level(2), HELD | {"see_processes": [False, "saw"], "scratch": [False, "wrote"]}
    )
    assert best.best_level() == 2


@pytest.mark.parametrize("text", ["", "{}", "[1]", "nonsense", '{"key": "old", "level": 3}'])
def test_a_memory_that_means_nothing_is_no_memory(machine, text):
    best.best_level()
    machine.forget()
    best._cache_file().write_text(text)
    assert best.best_level() == 3 and machine.tried == [(3, FULL)]
    assert json.loads(best._cache_file().read_text())["level"] == 3


def test_class_grading_is_refused_below_its_level(machine):
    machine.answers = {level: Measured(Level(level), trouble=f"no level {level} today") for level in (3, 2)}
    assert best.require(1, purpose="a self-check") == 1
    with pytest.raises(BoxError) as refused:
        best.require(2, purpose="class grading")
    said = str(refused.value)
    assert said.startswith("the box must be of level 2 or better for class grading, got level 1 (")
    assert "no level 3 today" in said and "no level 2 today" in said and "Install bubblewrap" in said


def test_class_grading_is_accepted_at_its_level(machine):
    assert best.require(2, purpose="class grading") == 3


def test_a_limit_must_be_positive():
    with pytest.raises(ValueError, match="wall_s must be positive, got 0"):
        Limits(wall_s=0)


PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
print(child.pid, flush=True)
input()
child.communicate(b"\\n")
"""


@pytest.mark.parametrize("has_proc", [True, False], ids=["proc", "ps"])
def test_processes_are_found_with_their_parents_and_sessions(monkeypatch, has_proc):
    """By /proc, and macOS's way; below a process of the test's own, since other tests' boxes are children too."""
    if has_proc and not os.path.isdir("/proc/self"):
        pytest.skip("this system has no /proc")
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        child = int(parent.stdout.readline())
        monkeypatch.setattr(keeper.os.path, "isdir", lambda path: has_proc)
        assert keeper._everyone()[child] == (parent.pid, child)
        assert keeper.members(parent.pid, child) == [child]
        parent.stdin.write("\n")


def test_the_table_tells_a_broken_promise_from_none():
    from grader.box.show import table

    rows = HELD | {"network": [False, "connected"], "see_processes": [False, "saw"]}
    lines = {line[:44].strip(): line[44:].split() for line in table([Measured(Level(2), rows)]).splitlines()}
    assert lines["connect to a port of this machine"] == ["THROUGH"]
    assert lines["see other processes"] == ["through"]
    assert lines["become root, mount, chroot, raise a limit"] == ["held"]
