"""All submissions of a lab: every answer judged once, then every student entered into the gradebook."""

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import nbformat

from grader import questions
from grader.classroom import books, term, verdicts
from grader.classroom.came_in import HandedIn, cannot_be_entered, clear, few, handed_in, students
from grader.classroom.term import Term
from grader.judge.record import INCONCLUSIVE, REFUSED, Record
from grader.judge.report import visible


@dataclass
class Row:
    """What became of one student's submission, as the gradebook has it."""

    student: str
    points: float = 0.0
    of: float = 0.0
    bonus: float = 0.0  # part of points, on top of `of`
    verdicts: dict[str, str] = field(default_factory=dict)  # question -> verdict
    by_hand: list[str] = field(default_factory=list)  # cells that wait for a person, as they should
    unsettled: list[str] = field(default_factory=list)  # questions that wait for a person: our trouble
    why: dict[str, str] = field(default_factory=dict)  # what that trouble was, by question
    said: list[str] = field(default_factory=list)  # what was odd about what came in
    trouble: str = ""  # why nothing could be entered
    unchanged: bool = False  # entered before, just so
    waits: int = 0  # graded cells that a person has still to look at

    @property
    def final(self) -> bool:
        """Whether these points may be told as a result."""
        return not (self.waits or self.trouble or self.unsettled)


def grade(
    round_: Term, only: list[str] = (), say: Callable = lambda line: None, each: Callable = map
) -> list[Row]:
    """Judges every answer (through `each`, a map), then enters the points student by student."""
    names = students(round_)
    if unknown := sorted(set(only) - set(names)):
        raise ValueError(f"student must be one with a submission, got {', '.join(unknown)}; see submitted/")
    names = [name for name in names if name in only or not only]
    if not names:
        raise ValueError(
            f"submitted/*/{round_.lab} must hold submissions, got none; run nbgrader collect {round_.lab}"
        )
    say(f"reading {len(names)} submissions")
    came_in = [handed_in(round_, name) for name in names]
    try:
        judge_all(round_, came_in, say, each)
        return _enter_all(round_, came_in, say)
    finally:
        term.open_verdicts.clear()


def _enter_all(round_: Term, came_in: list[HandedIn], say: Callable) -> list[Row]:
    log, heard = books.logger(round_.root / term.PLACE / f"{round_.lab}.log")
    rows, started = [], time.monotonic()
    for count, one in enumerate(came_in, 1):
        rows.append(enter(round_, one, log, heard))
        say(f"entered {count} of {len(came_in)}: {visible(one.student)}{_left(started, count, len(came_in))}")
    return rows


def judge_all(round_: Term, came_in: list[HandedIn], say: Callable, each: Callable) -> None:
    """Every answer that has no record yet, once however many handed it in; records are kept as they come."""
    found = list(_jobs(round_, came_in))
    if not found:
        return
    whose, jobs = zip(*found, strict=True)
    say(f"{len(jobs)} different answers to judge from {len(came_in)} submissions, in {round_.mode} mode")
    started = time.monotonic()
    try:
        for count, judged in enumerate(each(verdicts.judge, *zip(*jobs, strict=True)), 1):
            verdict = Record.from_json(judged)
            term.keep(round_, verdict)
            if verdict.unsettled:
                term.open_verdicts[verdict.key] = verdict
            say(
                f"judged {count} of {len(jobs)}: {verdict.question} {verdict.verdict}, {visible(whose[count - 1])}"
                f"{_left(started, count, len(jobs))}"
            )
    except Exception as error:  # the map's own trouble: what it did not bring is judged as it is entered
        say(f"judging broke off ({type(error).__name__}: {error}) and goes on one by one")


def _left(started: float, done: int, all_: int) -> str:
    seconds = (time.monotonic() - started) / done * (all_ - done)
    return f" ({seconds / 60:.0f} min left)" if seconds > 90 else ""


def _jobs(round_: Term, came_in: list[HandedIn]) -> Iterator[tuple]:
    """(the first who has it, (source, question, mode, seed, epoch)) for each answer that is new."""
    seen = set()
    for one in came_in:
        for question_id, source in one.answers():
            key = term.key(round_, questions.find(question_id), source)
            if key and key not in seen and term.find(round_, key) is None:
                seen.add(key)
                yield one.student, (source, question_id, round_.mode, round_.seed(question_id), round_.epoch)


def enter(round_: Term, one: HandedIn, log: logging.Logger, heard: books.Heard) -> Row:
    """One student's submission through nbgrader into the gradebook. Whatever happens stays in that student's row."""
    said = one.said + few(one.unused)
    row = Row(one.student, said=said)
    for sentence in one.said + one.unused:
        log.info("%s: %s", visible(one.student), sentence)
    row.trouble = cannot_be_entered(round_, one)
    if row.trouble:
        return row
    try:
        stamp = _stamp(round_, one)
        row.unchanged = _stamps(round_).get(one.student) == stamp and _is_entered(round_, one)
        if not row.unchanged:
            row.said = said + clear(round_, one.student)
            row.trouble = books.autograde(round_.root, round_.lab, one.student, round_.mode, log, heard)
        _read_back(round_, one, row)
        settled = not row.trouble and not row.unsettled
        _stamps(round_, {one.student: stamp if settled else ""})
    except Exception as error:
        row.trouble = row.trouble or f"{type(error).__name__}: {error}"
    return row


def _is_entered(round_: Term, one: HandedIn) -> bool:
    return (round_.root / "autograded" / one.student / round_.lab).is_dir()


def _stamp(round_: Term, one: HandedIn) -> str:
    """What a student's entry stands on: the same again needs no new entry, and a person's grades stay untouched."""
    keys = [term.key(round_, questions.find(name), source) for name, source in one.answers()]
    text = json.dumps(
        [round_.epoch, keys, one.said + one.unused, [nbformat.writes(nb) for nb in one.notebooks]]
    )
    return hashlib.sha256(text.encode()).hexdigest()


def _stamps(round_: Term, more: dict | None = None) -> dict[str, str]:
    path = round_.root / term.PLACE / f"{round_.lab}.entered.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if more:
        kept |= more
        term.write(path, json.dumps(kept, indent=1) + "\n", replace=True)
    return kept


def _why(verdict: Record | None) -> str:
    """What stood in the way of a verdict, in one line."""
    if verdict is None:
        return "no record of it is left; work/class/*.log may say more"
    open_ = [part.came for part in verdict.parts if part.state == INCONCLUSIVE]
    return verdict.message or "; ".join(open_)


def _read_back(round_: Term, one: HandedIn, row: Row) -> None:
    """What the gradebook holds now, so that a row is never rosier than the book."""
    for name, source in one.answers():
        key = term.key(round_, questions.find(name), source)
        verdict = term.find(round_, key) if key else None
        row.verdicts[name] = verdict.verdict if verdict else INCONCLUSIVE if key else REFUSED
        if row.verdicts[name] == INCONCLUSIVE or verdict and verdict.unsettled:
            row.unsettled.append(name)
            row.why[name] = _why(verdict)
    tried_again = {f"check_{name.split('.')[1]}" for name in row.unsettled}
    for notebook, found in books.grades(round_.root, round_.lab, one.student):
        row.points, row.of = row.points + found.score, row.of + found.max_score
        row.bonus += found.extra_credit or 0.0
        row.waits += bool(found.needs_manual_grade)
        if found.needs_manual_grade and found.name not in tried_again:
            row.by_hand.append(f"{notebook}: {found.name}")
