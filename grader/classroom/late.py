"""Compute lateness as of now. Timestamp, due date, extension and policy are read at every run, and changes are
written."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nbgrader.plugins import LateSubmissionPlugin
from traitlets import Float

from grader.classroom import exchange, gradebooks, storage_errors
from grader.classroom.open_safely import TIME, Unfit, read_regular, time_in
from grader.classroom.points import duration, number

SKEW = timedelta(minutes=10)  # by which two honest clocks may differ
NO_TIME = f"no {TIME} says when it was handed in, so it counts as in time."


class Penalty(LateSubmissionPlugin):
    """nbgrader's methods, and a share of the points reached for each day that has begun."""

    percent_a_day = Float(
        0.0, min=0.0, max=100.0, help="percent of a notebook's points that each late day costs"
    ).tag(config=True)

    def late_submission_penalty(self, student_id, score, total_seconds_late):
        if not self.percent_a_day:
            return super().late_submission_penalty(student_id, score, total_seconds_late)
        days = math.ceil(total_seconds_late / 86400)
        return round(min(1.0, self.percent_a_day / 100 * days) * score, 4)


@dataclass
class Late:
    """Holds how late one submission is, its penalty, and which of the two is new since the last run."""

    seconds: float = 0.0
    penalty: float = 0.0
    changed: bool = False
    said: list[str] = field(default_factory=list)
    news: list[str] = field(default_factory=list)  # those of `said` that are about this run alone
    trouble: str = ""


def settle(root: Path, lab: str, students: list[str]) -> dict[str, Late]:
    """Update times and penalties of these students' entries, without judging."""
    found, every = {}, exchange.times(root, lab)
    with gradebooks.opened(root, lab) as gradebook:
        policy = _policy(root, lab)
        for student, submission in _entered(gradebook, lab, students):
            found[student] = _settle(submission, _handed_in(root, lab, student), policy)
            gradebook.db.commit()
            found[student].said += exchange.said(lab, every.get(student, []), submission.timestamp)
            _copy_time(root, lab, student)
    return found


def outdated(root: Path, lab: str, students: list[str]) -> list[str]:
    """Return the students whose lateness or penalty in the gradebook is out of date."""
    found = []
    with gradebooks.opened(root, lab) as gradebook, gradebook.db.no_autoflush:
        policy = _policy(root, lab)
        for student, submission in _entered(gradebook, lab, students):
            if _settle(submission, _handed_in(root, lab, student), policy).changed:
                found.append(student)
        gradebook.db.rollback()
    return found


def _entered(gradebook, lab: str, students: list[str]) -> Iterator[tuple]:
    """Yield (student, submission) for each of the students with an entry in the gradebook."""
    from nbgrader.api import MissingEntry

    for student in students:
        try:
            submission = gradebook.find_submission(lab, student)
        except MissingEntry:
            continue
        yield student, submission


def _copy_time(root: Path, lab: str, student: str) -> None:
    """The graded copy says the same time, by which others tell whether there is a newer hand-in."""
    here, there = (root / step / student / lab for step in ("submitted", "autograded"))
    try:
        data = read_regular(here / TIME)
    except (Unfit, OSError):
        return
    path = there / TIME
    if there.is_dir() and (not path.exists() or path.read_bytes() != data):
        new = there / f".{TIME}"
        new.write_bytes(data)
        os.replace(new, path)


def _policy(root: Path, lab: str):
    """Return nbgrader's plugin for penalties, which the course's configuration names."""
    from nbgrader.preprocessors import AssignLatePenalties

    step = AssignLatePenalties(config=gradebooks.settings(root, lab))
    step.init_plugin()
    return step.plugin_inst


def _handed_in(root: Path, lab: str, student: str) -> datetime | None:
    """Return the time in timestamp.txt, in UTC, or None if there is none that can be read."""
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
                late.trouble = (
                    f"the penalty for late work could not be worked out: {storage_errors.said(error)}"
                )
                continue
        notebook.late_submission_penalty = None if taken is None else min(max(taken, 0.0), notebook.score)
    late.penalty = _taken_off(submission)
    late.changed = late.penalty != before[1]
    late.news = _news(late, before[1])
    late.said = late.news + _clock(submission.timestamp)
    if submission.timestamp is None and submission.duedate is not None:
        late.said.append(NO_TIME)
    return late


def _taken_off(submission) -> float:
    return sum(notebook.late_submission_penalty or 0.0 for notebook in submission.notebooks)


def _news(late: Late, before: float) -> list[str]:
    if not late.changed:
        return []
    return [f"lateness was worked out again: {number(late.penalty)} taken off, {number(before)} before."]


def _clock(handed_in: datetime | None) -> list[str]:
    now = datetime.now(UTC).replace(tzinfo=None)
    if handed_in is not None and handed_in > now + SKEW:
        return [
            f"timestamp.txt says {handed_in:%Y-%m-%d %H:%M} UTC, {duration((handed_in - now).total_seconds())} after "
            "this machine's clock. One of the two is wrong, and lateness goes by the file."
        ]
    return []
