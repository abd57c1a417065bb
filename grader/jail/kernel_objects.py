"""Kernels as an answer's own Python sees them: alike in both modes, and started by nobody but the course."""

import triton
from triton.runtime import interpreter as stock

LAUNCHED_BY_THE_COURSE = (
    "launch(p) says what to run and runs nothing itself: name the kernel in a step, with its grid"
)


class LaunchedByTheAnswer(RuntimeError):
    pass


def _run(self, *arguments, **more):
    raise LaunchedByTheAnswer(LAUNCHED_BY_THE_COURSE)


class running:
    """Only within this may one kernel call another."""

    now = False

    def __enter__(self):
        running.now = True

    def __exit__(self, *_):
        running.now = False


def prepare() -> None:
    called = stock.InterpretedFunction.__call__

    def call(self, *arguments, **more):
        if not running.now:
            raise LaunchedByTheAnswer(LAUNCHED_BY_THE_COURSE)
        return called(self, *arguments, **more)

    stock.InterpretedFunction.__call__ = call
    for kind in (stock.InterpretedFunction, triton.runtime.JITFunction):
        kind.run = _run
        kind.__repr__ = kind.__str__ = lambda self: f"<kernel {self.fn.__name__}>"
