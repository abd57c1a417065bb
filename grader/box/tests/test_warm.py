"""Each worker starts at each level: a box shows its room alone."""

import pytest

from grader.box import warm
from grader.compiler import host as compiler
from grader.jail import host as jail
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
