"""Offer what a learner calls in a notebook: check, run and hint."""

import functools
import html
import importlib
import os
import time

from grader import questions
from grader.judge import answer as answers
from grader.judge import record, referee


def check(question_id: str, answer, mode: str | None = None) -> record.Record:
    """Judge the cell that defines `answer`. It runs in a process of its own, so the notebook goes on whatever
    happens."""
    question = questions.find(question_id)
    try:
        source = answers.of_object(answer)
    except answers.NotFound as trouble:
        told = {"message": str(trouble)}
        verdict = record.Record(question.id, record.REFUSED, 0.0, question.points, mode or "cpu", **told)
    else:
        with Standing() as say:
            verdict = referee.grade_one(source, question, mode=mode or referee.default_mode(), say=say)
        record.save(verdict)
    verdict.hints = list(question.hints)
    if verdict.verdict == record.FAIL and question.kind == "kernel" and not verdict.not_started:
        verdict.walk = functools.partial(step, answer, question=question_id)
    if os.environ.get("NBGRADER_VALIDATING") and not verdict.passed:
        raise AssertionError(str(verdict))
    return verdict


def run(answer, case=0, question: str | None = None):
    """Try an answer before checking it. `case` is the number of a public case, or a dict of sizes for a kernel."""
    from grader import trial

    tried = trial.run(answer, case, question)
    tried.record = recorded
    return tried


def recorded(*asked):
    """Record a tried kernel for tilescope, which a lab without kernels can do without."""
    from grader import stepping

    return stepping.recorded(*asked)


def step(answer, case=None, question: str | None = None, program=None):
    """Walk through a kernel answer line by line, on its first failing case or on `case`, which run() describes."""
    from grader import stepping, trial

    row = questions.find(question) if question else trial.only_one(answer)
    try:
        recording = stepping.recorded(answer, row, case, program)
    except stepping.NothingToStep as trouble:
        raise Stop(str(trouble)) from None
    show = importlib.import_module("tilescope.notebook").show
    return show(recording)


class Standing:
    """Shows a check's progress under the cell, in one line that gives way to the next and at last to the report."""

    def __init__(self):
        self.handle, self.last = None, 0.0

    def __enter__(self):
        try:
            from IPython import get_ipython
        except ImportError:
            return self
        shell = get_ipython()
        if getattr(shell, "kernel", None) is not None:
            from IPython.display import HTML, display

            self.html = HTML
            self.handle = display(HTML(""), display_id=True)
        return self

    def __call__(self, sentence: str) -> None:
        if self.handle is not None and time.monotonic() - self.last > 0.15:
            self.last = time.monotonic()
            self.handle.update(
                self.html(f'<div role="status" style="opacity:.75">{html.escape(sentence)} …</div>')
            )

    def __exit__(self, *_):
        if self.handle is not None:
            self.handle.update(self.html(""))


class Stop(Exception):
    """Ends a run of cells with one sentence, since a traceback would not help."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def needs(package: str) -> None:
    """The first line of a lab that `package` must be there for."""
    try:
        importlib.import_module(package)
    except ImportError:
        raise Stop(
            f"This lab needs {package}, which is not installed here (Triton runs on Linux only). The lesson, its "
            "simulators and the concepts lab work on this machine. `python -m grader doctor` says what is missing."
        ) from None


_asked: dict[str, int] = {}


class Hint(str):
    def __repr__(self) -> str:
        return str(self)


def hint(question_id: str, step: int | None = None) -> Hint:
    """Show the next hint. First comes a nudge, then the approach, then almost the line. Hints cost nothing."""
    question = questions.find(question_id)
    if not question.hints:
        return Hint("This question has no hints.")
    step = step or min(_asked.get(question_id, 0) + 1, len(question.hints))
    if not 1 <= step <= len(question.hints):
        raise ValueError(f"step must be from 1 to {len(question.hints)}, got {step}")
    _asked[question_id] = step
    more = "" if step == len(question.hints) else " (ask again for more)"
    return Hint(f"Hint {step} of {len(question.hints)}: {question.hints[step - 1]}{more}")
