"""Which levels this machine has; one that is missing is skipped with its reason, or an error where CI should have it."""

import os
import shutil
import sys
from functools import cache

import pytest

from grader.box.launch import spawn
from grader.box.limits import Level, Limits
from grader.box.measure import try_attacks

measured = cache(try_attacks)


def need(level: int):
    """Skips the test where no box of this level starts at all; a box that starts has to keep its promises."""
    if level is None or level == Level.LIMITS:
        return
    trouble = measured(Level(level)).trouble
    if trouble and os.environ.get("CI") and level == Level.BUBBLEWRAP and shutil.which("bwrap"):
        pytest.fail(f"bubblewrap is installed and no box starts: {trouble}")
    if trouble:
        pytest.skip(f"no box of level {int(level)} here: {trouble}")


@pytest.fixture(params=[3, 2, 1], ids=lambda level: f"level{level}")
def level(request):
    need(request.param)
    return request.param


@pytest.fixture
def boxed():
    """Starts Python source in a box, and ends what is left of it after the test."""
    started = []

    def start(source: str, level: int, *arguments: str, pass_fds=(), readonly=(), job_dir=None, **limits):
        limits = Limits(**{"wall_s": 20, "cpu_s": 10, "memory_bytes": 512 << 20, "processes": 24} | limits)
        program = [sys.executable, "-I", "-S", "-B", "-c", source, *arguments]
        box = spawn(
            program, level=level, limits=limits, pass_fds=pass_fds, readonly=readonly, job_dir=job_dir
        )
        started.append(box)
        return box

    yield start
    for box in started:
        box.kill()


@pytest.fixture
def alive():
    """A pipe end to hand to a box: `alive.fd` inside, and `alive.ends(seconds)` once no process holds it any more."""
    import select

    class Alive:
        def __init__(self):
            self.reader, self.fd = os.pipe()

        def ends(self, seconds: float) -> bool:
            if self.fd is not None:
                os.close(self.fd)
                self.fd = None
            return bool(select.select([self.reader], [], [], seconds)[0]) and os.read(self.reader, 1) == b""

    pipe = Alive()
    yield pipe
    os.close(pipe.reader)
    if pipe.fd is not None:
        os.close(pipe.fd)
