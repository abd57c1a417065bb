"""Lateness as it is now: timestamp, due date, extension and policy are read at every run and written where they changed."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from grader.classroom import books, faults
from grader.classroom.intake import TIME, Unfit, read_regular, time_in

SKEW = timedelta(minutes=10)  # by which two honest clocks may differ


@dataclass
class Late:
    """How late one submission is, what that costs, and what of it is new since the last run."""

    seconds: float = 0.0
    penalty: float = 0.0
    changed: bool = False
    said: list[str] = field(default_factory=list)
    trouble: str = ""


def settle(root: Path, lab: str, students: list[str]) -> dict[str, Late]:
    """Brings times and penalties of these students' entries up to date, judging nothing."""
    from nbgrader.api import MissingEntry

    found = {}
    with books.opened(root, lab) as gradebook:
        policy = _policy(root, lab)
        for student in students:
            try:
                submission = gradebook.find_submission(lab, student)
            except MissingEntry:
                continue
            found[student] = _settle(submission, _handed_in(root, lab, student), policy)
            gradebook.db.commit()
    return found


def _policy(root: Path, lab: str):
    """nbgrader's plugin for penalties, as the course's configuration names it."""
    from nbgrader.preprocessors import AssignLatePenalties

    step = AssignLatePenalties(config=books.settings(root, lab))
    step.init_plugin()
    return step.plugin_inst


def _handed_in(root: Path, lab: str, student: str) -> datetime | None:
    """The time in timestamp.txt, in UTC; None where there is none that can be read."""
    try:
        return time_in(read_regular(root / "submitted" / student / lab / TIME))
    except (Unfit, OSError):
        return None


def _settle(submission, handed_in: datetime | None, policy) -> Late:
    before = submission.timestamp, _taken_off(submission)
    if handed_in is not None:
        submission.timestamp = handed_in
    late = Late(submission.total_seconds_late)
    for notebook in submission.notebooks:
        taken = None
        if late.seconds > 0:
            try:
                taken = policy.late_submission_penalty(submission.student_id, notebook.score, late.seconds)
            except Exception as error:  # a policy is the instructor's own code
                late.trouble = f"the penalty for late work could not be worked out: {faults.said(error)}"
                continue
        notebook.late_submission_penalty = None if taken is None else min(max(taken, 0.0), notebook.score)
    late.penalty = _taken_off(submission)
    late.changed = late.penalty != before[1]
    late.said = _said(late, before[1], submission.timestamp)
    return late


def _taken_off(submission) -> float:
    return sum(notebook.late_submission_penalty or 0.0 for notebook in submission.notebooks)


def _said(late: Late, before: float, handed_in: datetime | None) -> list[str]:
    said = []
    if late.changed:
        how = f"{duration(late.seconds)} late" if late.seconds else "in time"
        said.append(
            f"{how} by what stands now: {late.penalty:g} points are taken off, {before:g} were before."
        )
    now = datetime.now(UTC).replace(tzinfo=None)
    if handed_in is not None and handed_in > now + SKEW:
        said.append(
            f"timestamp.txt says {handed_in:%Y-%m-%d %H:%M} UTC, {duration((handed_in - now).total_seconds())} after "
            "this machine's clock: one of the two is wrong, and lateness goes by the file."
        )
    return said


def duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = [f"{n} {unit}" for n, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if n]
    return " ".join(parts[:2]) or "less than a minute"
