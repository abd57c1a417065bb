"""What a learner calls in a notebook: check, run and hint."""

import importlib
import os

from grader import questions
from grader.bench import gpu
from grader.judge import answer as answers
from grader.judge import record, referee


def check(question_id: str, answer, mode: str | None = None) -> record.Record:
    """Judge the cell that defines `answer`. Runs it in a process of its own; the notebook goes on whatever happens."""
    question = questions.find(question_id)
    try:
        source = answers.of_object(answer)
    except answers.NotFound as trouble:
        verdict = record.Record(
            question.id, record.REFUSED, 0.0, question.points, mode or "cpu", message=str(trouble)
        )
    else:
        verdict = referee.grade_one(source, question, mode=mode or default_mode())
        record.save(verdict)
    if question.hints and verdict.verdict == record.FAIL:
        verdict.hint = f'hint("{question.id}") gives a nudge; asking is free.'
    if os.environ.get("NBGRADER_VALIDATING") and not verdict.passed:
        raise AssertionError(str(verdict))
    return verdict


def default_mode() -> str:
    """gpu where an NVIDIA GPU that Triton supports is there, unless GRADER_MODE says otherwise."""
    asked = os.environ.get("GRADER_MODE")
    if asked:
        return asked
    return "gpu" if gpu.name() else "cpu"


class Stop(Exception):
    """Ends a run of cells with one sentence where a traceback would help nobody."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def needs(package: str) -> None:
    """The first line of a lab that `package` must be there for."""
    try:
        importlib.import_module(package)
    except ImportError:
        raise Stop(
            f"This lab needs {package}, which is not installed here (Triton runs on Linux only). The lesson, its "
            "simulators and the concepts lab work on this machine; `python -m grader doctor` says what is missing."
        ) from None


_asked: dict[str, int] = {}


class Hint(str):
    def __repr__(self) -> str:
        return str(self)


def hint(question_id: str, step: int | None = None) -> Hint:
    """The next hint: a nudge, then the approach, then almost the line. Asking costs nothing."""
    question = questions.find(question_id)
    if not question.hints:
        return Hint("There is no hint for this one.")
    step = step or min(_asked.get(question_id, 0) + 1, len(question.hints))
    if not 1 <= step <= len(question.hints):
        raise ValueError(f"step must be from 1 to {len(question.hints)}, got {step}")
    _asked[question_id] = step
    more = "" if step == len(question.hints) else " (ask again for more)"
    return Hint(f"Hint {step} of {len(question.hints)}: {question.hints[step - 1]}{more}")
