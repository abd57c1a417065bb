"""Grade all submissions of a lab: judge every answer once, then enter every student into the gradebook."""

import hashlib
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import nbformat

from grader import questions
from grader.classroom import (
    atomic_file,
    carried,
    decided,
    gradebooks,
    grading_round,
    late,
    lock,
    manual_grades,
    regrades,
    storage_errors,
)
from grader.classroom.entry_stamps import Entered
from grader.classroom.grading_round import GradingRound
from grader.classroom.jobs import job
from grader.classroom.points import Points
from grader.classroom.progress import Step
from grader.classroom.submission import HandedIn, cannot_be_entered, clear, few, handed_in, students
from grader.judge.record import INCONCLUSIVE, REFUSED, Record
from grader.judge.report import visible


@dataclass
class Row:
    """Holds the gradebook's result for one student's submission."""

    student: str
    points: float = 0.0
    of: float = 0.0
    bonus: float = 0.0  # part of points, on top of `of`
    verdicts: dict[str, str] = field(default_factory=dict)  # question -> verdict
    not_started: list[str] = field(default_factory=list)  # questions whose cell is as it was handed out
    by_hand: list[str] = field(default_factory=list)  # cells that wait for a person, as they should
    unsettled: list[str] = field(default_factory=list)  # questions that wait for a person, by our fault
    why: dict[str, str] = field(default_factory=dict)  # what that trouble was, by question
    said: list[str] = field(default_factory=list)  # problems with the hand-in
    news: list[str] = field(default_factory=list)  # those of `said` that are about this run alone
    unread: bool = False  # a notebook that was handed in can't be read
    trouble: str = ""  # why nothing could be entered
    decide: bool = False  # whether that is for a person to decide, and no trouble of ours
    unchanged: bool = False  # as the last run showed it
    late_s: float = 0.0  # seconds after the due date, any extension included
    penalty: float = 0.0  # points that lateness takes off, by the present policy
    regraded: list[str] = field(
        default_factory=list
    )  # the regrades: their author, time and reason, and the points before and after
    waits: int = 0  # graded cells that a person has still to look at

    @property
    def total(self) -> Points:
        return Points(self.points, self.of, self.bonus, self.penalty, self.late_s)

    @property
    def final(self) -> bool:
        """Return whether these points may be shown as a result."""
        return not (self.waits or self.trouble or self.unsettled)

    def tell(self, news: list[str]) -> None:
        """Add sentences that are about this run alone."""
        self.said, self.news = self.said + news, self.news + news

    @property
    def shown(self) -> str:
        """Return a digest of all that the row says, except for this run's news."""
        said = [one for one in self.said if one not in self.news]
        text = repr([str(self.total), self.waits, self.verdicts, self.not_started, said, self.regraded])
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Anew:
    """A request to judge again. `alone` limits it to single students, who then meet hidden cases of their own."""

    who: str
    why: str
    alone: bool = True


def grade(
    round_: GradingRound,
    only: list[str] = (),
    say: Callable = lambda line: None,
    each: Callable = job.one_by_one,
    anew: Anew | None = None,
) -> list[Row]:
    """Judges every answer (through `each`, jobs -> records in any order), then enters the points student by
    student."""
    with lock.held(round_.root, f"grading {round_.lab}", say):
        atomic_file.sweep(round_.root)
        names = _names(round_, only)
        if anew:
            round_ = _begin_anew(round_, names, anew)
        say(f"reading {len(names)} submission{'s' * (len(names) != 1)}")
        came_in = [handed_in(round_, name) for name in names]
        try:
            judge_all(round_, came_in, say, each)
            entered = Entered(round_.root, round_.lab)
            rows = _enter_all(round_, came_in, entered, say)
        finally:
            grading_round.open_verdicts.clear()
        _add_times(round_, rows)
        _add_regrades(round_, rows)
        _compare(rows, entered)
        _renew_feedback(round_, rows, say)
        gradebooks.copy_aside(round_.root)
        return rows


def _names(round_: GradingRound, only: list[str]) -> list[str]:
    names = students(round_)
    if unknown := sorted(set(only) - set(names)):
        raise ValueError(f"student must be one with a submission, got {', '.join(unknown)}. See submitted/")
    names = [name for name in names if name in only or not only]
    if not names:
        raise ValueError(
            f"submitted/*/{round_.lab} must hold submissions, got none. Run nbgrader collect {round_.lab}"
        )
    return names


def _begin_anew(round_: GradingRound, names: list[str], anew: Anew) -> GradingRound:
    """Into the log first, so that a run that is killed is gone on with."""
    held = {name: gradebooks.entry(round_.root, round_.lab, name) for name in names}
    before = {
        name: one for name, one in held.items() if one or anew.alone
    }  # others are judged for the first time
    regrades.begin(round_, before, anew.who, anew.why, anew.alone)
    return replace(round_, salts=regrades.salts(round_.root, round_.lab, round_.epoch))


def _enter_all(round_: GradingRound, came_in: list[HandedIn], entered: Entered, say: Callable) -> list[Row]:
    log, heard = gradebooks.logger(round_.root / atomic_file.PLACE / f"{round_.lab}.log")
    rows, started = [], time.monotonic()
    for count, one in enumerate(came_in, 1):
        rows.append(enter(round_, one, entered, log, heard))
        if storage_errors.ends_the_run(rows[-1].trouble):
            done = f"{count - 1} of {len(came_in)} students are entered"
            raise storage_errors.CannotKeep(f"{rows[-1].trouble} ({done})")
        left = _left(started, count, len(came_in))
        name = visible(one.student) + ", nothing of whom can be entered" * bool(rows[-1].trouble)
        say(Step(f"entered {count} of {len(came_in)}: {name}{left}", count, len(came_in)))
    return rows


def judge_all(round_: GradingRound, came_in: list[HandedIn], say: Callable, each: Callable) -> None:
    """Judge every answer without a record, once for all students who share the answer. Keep records as they arrive."""
    jobs = list(job.jobs_of(round_, came_in))
    if not jobs:
        return
    say(
        f"{len(jobs)} different answer{'s' * (len(jobs) != 1)} to judge from {len(came_in)} "
        f"submission{'s' * (len(came_in) != 1)}, in {round_.mode} mode"
    )
    whose, started = {one.key: one.whose for one in jobs}, time.monotonic()
    try:
        for count, verdict in enumerate(each(jobs), 1):
            _keep(round_, verdict, count - 1, len(jobs))
            state = "not started" if verdict.not_started else verdict.verdict
            words = f"{verdict.question} {state}, {visible(whose.get(verdict.key, '?'))}"
            left = _left(started, count, len(jobs))
            say(Step(f"judged {count} of {len(jobs)}: {words}{left}", count, len(jobs)))
    except storage_errors.CannotKeep:
        raise
    except (
        Exception
    ) as error:  # the map's own trouble. A missing verdict is judged when its student is entered
        say(f"judging broke off ({storage_errors.said(error)}) and goes on one by one")


def _keep(round_: GradingRound, verdict: Record, done: int, of: int) -> None:
    try:
        grading_round.keep(round_, verdict)
    except OSError as error:  # judging on would only make what can't be kept
        raise storage_errors.CannotKeep(
            f"{storage_errors.said(error)} ({done} of {of} answers were judged)"
        ) from None
    if verdict.unsettled:
        grading_round.open_verdicts[verdict.key] = verdict


def _left(started: float, done: int, all_: int) -> str:
    seconds = (time.monotonic() - started) / done * (all_ - done)
    return f" ({seconds / 60:.0f} min left)" if seconds > 90 else ""


def enter(
    round_: GradingRound, one: HandedIn, entered: Entered, log: logging.Logger, heard: gradebooks.Heard
) -> Row:
    """One student's submission through nbgrader into the gradebook. Whatever happens stays in that student's row."""
    said = one.said + few(one.unused) + decided.said(round_, one.student)
    row = Row(one.student, said=said, unread=bool(one.unread))
    for sentence in one.said + one.unused:
        log.info("%s: %s", visible(one.student), sentence)
    row.trouble = cannot_be_entered(round_, one)
    if row.trouble:
        row.decide = True
        return row
    round_ = round_.of(one.student)
    try:
        row.unchanged = entered.get(one.student).stamp == _stamp(round_, one) and _is_entered(round_, one)
        if not row.unchanged:
            entered.put(one.student, stamp="")
            one = _enter(round_, one, row, log, heard)
        if not row.trouble:
            row.tell(carried.put(round_.root, round_.lab, one.student))
        _read_back(round_, one, row)
        if not row.trouble and not row.unsettled and CHANGED not in row.news:
            entered.put(one.student, stamp=_stamp(round_, one), files=one.files)
        elif row.unchanged:
            entered.put(one.student, stamp="")
    except Exception as error:
        row.trouble = row.trouble or storage_errors.said(error)
    return row


CHANGED = (
    "The submission kept changing while it was graded, so the entry may be of either form. Run this again."
)
CHANGED_ONCE = "The submission was changed while it was graded. The grade is for its present form."


def _enter(
    round_: GradingRound, one: HandedIn, row: Row, log: logging.Logger, heard: gradebooks.Heard
) -> HandedIn:
    """Enter the present files, once more if they were changed meanwhile. Return the stamp of the entry."""
    before = manual_grades.graded(round_.root, round_.lab, one.student)
    for sentence in (CHANGED_ONCE, CHANGED):
        row.tell(clear(round_, one.student))
        row.trouble = gradebooks.autograde(round_.root, round_.lab, one.student, round_.mode, log, heard)
        if row.trouble:
            break
        manual_grades.keep(round_.root, round_.lab, one.student, before)
        again = handed_in(round_, one.student)
        if again.notebooks == one.notebooks:
            return replace(one, files=again.files)
        one, row.said = again, list(again.said)
        row.tell([sentence])
    return one


def _add_times(round_: GradingRound, rows: list[Row]) -> None:
    """Add the present lateness, also for students whose entry is unchanged."""
    found = late.settle(round_.root, round_.lab, [row.student for row in rows if not row.trouble])
    for row in rows:
        if one := found.get(row.student):
            row.late_s, row.penalty, row.trouble = one.seconds, one.penalty, row.trouble or one.trouble
            news = one.news if row.unchanged else []  # an entry of this run had nbgrader's own guess before
            row.said += [words for words in one.said if words in news or words not in one.news]
            row.news += news


def _add_regrades(round_: GradingRound, rows: list[Row]) -> None:
    """Close this run's regrades, and list in each row everything that was ever judged again."""
    settled = {row.student: row for row in rows if not row.trouble and not row.unsettled}
    after = {}
    for one in regrades.all_of(round_.root, round_.lab):
        if one["after"] is None and (row := settled.get(one["student"])):
            held = gradebooks.entry(round_.root, round_.lab, row.student)
            after[one["number"]] = held | {"verdicts": row.verdicts}
    if after:
        regrades.finish(round_.root, after)
    said = {}
    for one in regrades.all_of(round_.root, round_.lab):
        if one["salt"] or regrades.changed(one):  # when a whole class is judged again, only the changes
            said.setdefault(one["student"], []).append(regrades.words(one))
    for row in rows:
        row.regraded = said.get(row.student, [])


def _compare(rows: list[Row], entered: Entered) -> None:
    """Mark the rows that are the same as in the last run."""
    for row in (row for row in rows if not row.trouble):
        row.unchanged = row.unchanged and not row.news and entered.get(row.student).shown in ("", row.shown)
        entered.put(row.student, shown=row.shown)


def _renew_feedback(round_: GradingRound, rows: list[Row], say: Callable) -> None:
    """Feedback that students have, or may get any minute, never shows a grade that the gradebook no longer has."""
    from grader.classroom import feedback

    if names := feedback.renew(round_.root, round_.lab, [row.student for row in rows if not row.trouble]):
        say(f"feedback written again, since grades changed: {', '.join(map(visible, names))}")


def _is_entered(round_: GradingRound, one: HandedIn) -> bool:
    """Check both of nbgrader's stores, because the gradebook may have been moved or begun again."""
    folder = round_.root / "autograded" / one.student / round_.lab
    return folder.is_dir() and gradebooks.holds(round_.root, round_.lab, one.student)


def _stamp(round_: GradingRound, one: HandedIn) -> str:
    """Return a stamp of the data behind a student's entry. An unchanged stamp needs no new entry, and a person's
    grades stay untouched.

    Times are not part of the stamp. They are read and written at every run, without entering any student again.
    """
    keys = [grading_round.key(round_, questions.find(name), source) for name, source in one.answers()]
    text = json.dumps([round_.epoch, keys, one.said + one.unused, _work(one)])
    return hashlib.sha256(text.encode()).hexdigest()


def _work(one: HandedIn) -> list[str]:
    return [nbformat.writes(notebook) for notebook in one.notebooks]


def _why(verdict: Record | None) -> str:
    """Say in one line what prevented a verdict."""
    if verdict is None:
        return "its record is missing. See work/class/*.log"
    open_ = [part.came for part in verdict.parts if part.state == INCONCLUSIVE]
    return verdict.message or "; ".join(open_)


def _read_back(round_: GradingRound, one: HandedIn, row: Row) -> None:
    """Return the gradebook's present content, so that a row is never rosier than the book."""
    for name, source in one.answers():
        key = grading_round.key(round_, questions.find(name), source)
        verdict = grading_round.find(round_, key) if key else None
        row.verdicts[name] = verdict.verdict if verdict else INCONCLUSIVE if key else REFUSED
        if verdict and verdict.not_started:
            row.not_started.append(name)
        if row.verdicts[name] == INCONCLUSIVE or verdict and verdict.unsettled:
            row.unsettled.append(name)
            row.why[name] = _why(verdict)
    tried_again = {f"check_{name.split('.')[1]}" for name in row.unsettled}
    for notebook, found in gradebooks.grades(round_.root, round_.lab, one.student):
        row.points, row.of = row.points + found.score, row.of + found.max_score
        row.bonus += found.extra_credit or 0.0
        row.waits += bool(found.needs_manual_grade)
        if found.needs_manual_grade and found.name not in tried_again:
            row.by_hand.append(f"{notebook}: {found.name}")
