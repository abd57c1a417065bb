"""Each worker starts at each level: a box shows its room alone, and no answer changes what the next one meets."""

import pytest

from grader.box import warm
from grader.compiler import host as compiler
from grader.jail import host as jail
from grader.jail import protocol
from grader.machine import host as machine

WORKERS = (jail.LOWER, jail.NUMPY, jail.RANKS, machine.MACHINE, compiler.REPORT)


@pytest.mark.parametrize("worker", WORKERS, ids=lambda worker: worker.module)
def test_a_worker_starts(worker, level):
    program = warm.Program(worker, level)
    try:
        program._start()
        assert program.process.poll() is None
    finally:
        program.stop()


@pytest.fixture
def asked(level):
    """asked(source): what f() of a numpy answer returns, each in the same warm box where that is still there."""
    program = warm.Program(jail.NUMPY, level)

    def ask(source: str, **limits) -> warm.Outcome:
        task = protocol.CallRequest(source, "f", [[]]).task()
        return program.ask(task, {}, warm.Limits(**{"wall_s": 20.0, "cpu_s": 5, **limits}))

    yield ask
    program.stop()


def number(outcome: warm.Outcome) -> float:
    return float(outcome.arrays["r0"])


PRIORITY = "import os\ndef f():\n    return float(os.getpriority(os.PRIO_PROCESS, 0))\n"
OF_ALL = """
import os
def f():
    try:
        os.setpriority(os.PRIO_{which}, 0, 19)
    except OSError:
        return 0.0
    return 1.0
"""
OF_THE_SERVER = """
import os
def f():
    os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)
    return 1.0
"""


@pytest.mark.parametrize("which", ["USER", "PGRP"])
def test_no_answer_slows_the_next_ones(asked, level, which):
    if level == 1:
        pytest.skip("without a filter this would slow all that this user runs")
    before = number(asked(PRIORITY))
    assert number(asked(OF_ALL.format(which=which))) == 0
    assert number(asked(PRIORITY)) == before


def test_a_server_that_was_slowed_is_exchanged(asked, level):
    """No filter keeps an answer from it at level 1, so the server looks at itself."""
    before = number(asked(PRIORITY))
    asked(OF_THE_SERVER)
    assert number(asked(PRIORITY)) == before < 19


SPINNING = """
import os, time
def f():
    for _ in range(8):
        if os.fork() == 0:
            while True:
                pass
    while True:
        pass
"""


def test_who_keeps_the_machine_busy_is_not_starved_by_it(asked):
    outcome = asked(SPINNING, wall_s=4.0, cpu_s=1)
    assert outcome.end in (warm.LATE, warm.ENDLESS) and not outcome.starved


def test_a_late_task_is_starved_where_it_wanted_more_than_it_got():
    limits = warm.Limits(wall_s=45.0, cpu_s=40)
    late = {"late": True, "seconds": 45.0}
    assert warm._starved({**late, "cpu_s": 10.0, "waited_s": 30.0}, limits)
    assert not warm._starved({**late, "cpu_s": 1.0, "waited_s": 0.5}, limits)  # it slept
    assert not warm._starved({**late, "cpu_s": 4.0, "waited_s": 40.0, "children_cpu_s": 50.0}, limits)


def test_who_had_enough_processor_time_is_late_by_its_own_doing():
    limits, late = warm.Limits(wall_s=120.0, cpu_s=100, enough_s=20.0), {"late": True, "seconds": 120.0}
    assert warm._starved({**late, "cpu_s": 19.0, "waited_s": 90.0}, limits)
    slow = {**late, "cpu_s": 21.0, "waited_s": 90.0}
    assert not warm._starved(slow, limits)
    end, sentence = warm._how_it_ended(slow, limits)
    assert end == warm.ENDLESS and "21 s of processor time" in sentence
