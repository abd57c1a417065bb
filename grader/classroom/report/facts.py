"""Gather a class's results in a lab as plain data: points from the gradebook, reasons from the records, answers from
the hand-ins."""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import nbformat

from grader import questions
from grader.classroom import grading_round, marks, preprocessors
from grader.classroom.marks import Standing
from grader.classroom.report import alike
from grader.classroom.report import earlier as terms
from grader.classroom.report.alike import Alike, Written
from grader.classroom.submission import handed_in
from grader.classroom.transplant import is_check, mark
from grader.judge import answer
from grader.judge.record import FAIL, REFUSED, Record

STATES = ("full", "part", "none", "not begun", "open")


@dataclass
class Asked:
    """Hold one graded cell of the lab with the class's results."""

    name: str  # the question, or the cell of one that is graded by hand
    notebook: str
    of: float
    by_hand: bool
    bonus: bool = False
    states: dict[str, str] = field(default_factory=dict)  # student -> one of STATES
    points: dict[str, float] = field(default_factory=dict)  # of the settled ones
    mistakes: Counter = field(default_factory=Counter)  # (what it is, whether it was recognised) -> students
    alike: Alike = field(default_factory=lambda: Alike([], []))
    written: list[Written] = field(default_factory=list)  # what the class's students wrote

    def count(self, state: str) -> int:
        return list(self.states.values()).count(state)

    @property
    def settled(self) -> int:
        return len(self.states) - self.count("open")


@dataclass
class Facts:
    lab: str
    mode: str
    standings: list[Standing]
    asked: list[Asked]
    inconclusive: list[tuple[str, str]]  # (student, question)
    not_judged: dict[str, str]
    unread: dict[str, dict[str, str]] = field(default_factory=dict)  # student -> notebook -> why

    @property
    def entered(self) -> list[Standing]:
        return [one for one in self.standings if one.entered]

    def name(self, asked: Asked) -> str:
        """Return the question's name, with its notebook if several notebooks use the same name."""
        same = [one for one in self.asked if one.name == asked.name]
        return asked.name if len(same) == 1 else f"{asked.notebook}: {asked.name}"


def gather(
    root: Path, lab: str, say: Callable = lambda line: None, earlier: list[Path] = (), compare: bool = True
) -> Facts:
    """Read a lab's facts. `earlier` are folders of other terms to compare with. `compare` says whether to look for
    alike answers."""
    path = root / grading_round.PLACE / f"{lab}.json"
    if not grading_round.NAME.fullmatch(lab) or not path.exists():
        raise ValueError(
            f"lab must be one that was judged, got {lab!r}. Run python -m grader class LAB first"
        )
    for folder in earlier:
        terms.students(folder, lab)  # before anything is read
    round_ = grading_round.open_round(root, lab)
    standings = marks.standings(root, lab)
    if not any(one.entered for one in standings):
        raise ValueError(f"lab must be one that a student handed in, got {lab!r}. See submitted/")
    cells, stubs = _released(root, lab)
    records = _records(round_.records())
    answers, written, unread = {}, defaultdict(list), {}
    for one in standings:
        if one.entered:
            say(f"reading what {one.student} handed in")
            came_in = handed_in(round_, one.student)
            answers[one.student], unread[one.student] = dict(came_in.answers()), came_in.unread
            for (notebook, cell), source, kind in _sources(came_in.notebooks, stubs):
                written[notebook, cell].append(Written(one.student, source, kind))
    facts = Facts(
        lab,
        round_.mode,
        standings,
        list(cells.values()),
        [],
        marks.not_judged(root, lab, standings),
        unread,
    )
    for one in facts.entered:
        _enter(facts, one, cells, answers[one.student], records)
    before = defaultdict(list)
    for folder in earlier:
        say(f"reading {folder}")
        for place, one in terms.written(folder, lab, root / "labs" / lab, partial(_sources, stubs=stubs)):
            before[place].append(one)
    for place, sources in written.items():
        found = cells.get((place[0], f"check_{place[1]}")) or cells.get(place)
        if found:
            found.written = sources
        if found and compare:
            say(f"comparing {len(sources) + len(before[place])} answers of {place[1]}")
            found.alike = alike.find(sources + before[place], stubs[place])
    return facts


def _released(root: Path, lab: str) -> tuple[dict, dict]:
    """Return ({(notebook, graded cell): Asked}, {(notebook, answer cell): its text as handed out})."""
    cells, stubs, table = {}, {}, questions.load()
    for path in sorted((root / "labs" / lab).glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        asks = preprocessors.answers_to_checks(notebook)
        for cell in notebook.cells:
            own = mark(cell)
            name = own.get("grade_id")
            if own.get("grade") or own.get("task"):
                question = asks.get(name, ("", None))[0]
                bonus = question in table and table[question].bonus
                of = table[question].points if question in table else float(own.get("points", 0))
                cells[path.stem, name] = Asked(question or name, path.stem, of, not is_check(cell), bonus)
            if own.get("solution"):
                stubs[path.stem, name] = cell.source
    return cells, stubs


def _records(folder: Path) -> dict[tuple[str, str], Record]:
    """(question, hash of the answer) -> the newest record, whatever machine and round it is from."""
    found = {}
    for record in filter(None, map(grading_round.read, sorted(folder.glob("*.json")))):
        place = record.question, record.answer
        if place not in found or found[place].date <= record.date:
            found[place] = record
    return found


def _sources(notebooks: list, stubs: dict):
    """Return the answers that differ from the text handed out."""
    asked = defaultdict(set)
    for stem, name in stubs:
        asked[stem].add(name)
    for notebook in notebooks:
        there = {mark(cell)["grade_id"] for cell in notebook.cells if mark(cell).get("solution")}
        stem = min(asked, key=lambda one: len(asked[one] ^ there))  # several may have a cell of one name
        for cell in notebook.cells:
            name = mark(cell).get("grade_id")
            place = stem, name
            if place in stubs and cell.source.strip() != stubs[place].strip():
                yield place, cell.source, "code" if cell.cell_type == "code" else "markdown"


def _enter(facts: Facts, one: Standing, cells: dict, answers: dict, records: dict) -> None:
    for found in one.marks:
        asked = cells.get((found.notebook, found.cell))
        if asked is None:
            continue
        record = None if asked.by_hand else _record(records, asked.name, answers.get(asked.name))
        state = _state(found, asked, record)
        asked.states[one.student] = state
        if state == "open":
            if found.checked and found.notebook not in facts.unread.get(one.student, ()):
                facts.inconclusive.append((one.student, asked.name))
            continue
        asked.points[one.student] = found.points
        for reason in _reasons(record):
            asked.mistakes[reason] += 1


def _record(records: dict, question: str, source: str | None) -> Record | None:
    try:
        return (
            records.get((question, answer.digest(answer.normalise(source)))) if source is not None else None
        )
    except answer.Refused as why:
        return Record(question, REFUSED, 0.0, 0.0, "", message=str(why))


def _state(found: marks.Mark, asked: Asked, record: Record | None) -> str:
    if found.waits:
        return "open"
    if record is not None and record.not_started:
        return "not begun"
    if found.points >= asked.of:
        return "full"
    return "part" if found.points > 0 else "none"


def _reasons(record: Record | None) -> set[tuple[str, bool]]:
    """Return each record's failure once, as the sentence of a recognised mistake, or else the part and where to
    look."""
    if record is None or record.not_started:
        return set()
    if record.verdict == REFUSED:
        return {(f"refused: {record.message}", False)}
    known = {one.sentence for one in _mistakes(record.question)}
    failed = [part for part in record.parts if part.state == FAIL]
    return {
        (part.look, True) if part.look in known else (f"{part.name}: {part.look}", False) for part in failed
    }


def _mistakes(question: str) -> tuple:
    table = questions.load()
    return table[question].mistakes if question in table else ()
