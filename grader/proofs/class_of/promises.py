"""Check the promises about a class with hostile students. Each function returns the violations."""

import json
import math
import re

from grader import questions
from grader.box.warm import GRACE_S
from grader.classroom import gradebooks
from grader.classroom.grading_round import PLACE
from grader.jail.host import NUMPY_LIMITS
from grader.judge import report
from grader.proofs.class_of import outcome
from grader.proofs.class_of.course import Course, Said
from grader.proofs.class_of.hostile import HandedIn
from grader.proofs.class_of.page import visible_pages

PROGRESS = re.compile(
    r"(read|judged|entered) \d+ of \d+|\d+ different answers to judge|reading \d+ submissions"
)
ACTS = ("<script>alert", "<img src=x", "javascript:alert", 'localhost/p.png"', "\x1b")
ENTRY_S, REFUSED_S = 30.0, 10.0  # for entering a student, and for a kernel that is refused before it runs


def same(honest: list[str], rows: tuple[dict, dict], alone: Course, mixed: Course) -> list[str]:
    """Compare rows, gradebook, comments and pages of each honest student, and the records of both classes."""
    broken = []
    kinds = [
        ("row", rows),
        ("gradebook", _both(outcome.GRADES, alone, mixed)),
        ("comments", _both(outcome.COMMENTS, alone, mixed)),
    ]
    for room in ("autograded", "feedback"):
        kinds.append((room, [{s: outcome.pages(c, room, s) for s in honest} for c in (alone, mixed)]))
    for what, (before, after) in kinds:
        for student in honest:
            if what != "comments" and not before.get(student):
                broken.append(
                    f"{student}: {what} must be there, got nothing even in the class without hostile students"
                )
            if before.get(student) != after.get(student):
                broken.append(
                    f"{student}: {what} must be the same with hostile students, got {_first(before.get(student), after.get(student))}"
                )
    before, after = outcome.records(alone), outcome.records(mixed)
    broken += [
        f"the record of {r['question']} must be the same, got {_first(r, after.get(key))}"
        for key, r in before.items()
        if after.get(key) != r
    ]
    return broken


def _both(query: str, *courses: Course) -> list[dict]:
    return [outcome.of_students(outcome.ask(course, query)) for course in courses]


def _first(before, after) -> str:
    """Name where two things first differ, in few words."""
    if isinstance(before, dict) and isinstance(after, dict):
        name = next(name for name in (*before, *after) if before.get(name) != after.get(name))
        return f"{name}: {_first(before.get(name), after.get(name))}"
    if isinstance(before, str) and isinstance(after, str):
        place = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
        before, after = before[max(place - 30, 0) : place + 60], after[max(place - 30, 0) : place + 60]
    return f"{str(before)[:200]!r} before and {str(after)[:200]!r} now"


def finite(course: Course) -> list[str]:
    """Every number in the gradebook is a finite float between nothing and the cell's points, bonus apart."""
    broken = []
    most = {
        (name, f"check_{q.name}"): q.points
        for q in questions.load().values()
        if q.bonus
        for name in [q.notebook]
    }
    for student, lab, notebook, cell, auto, manual, extra, _, of in outcome.ask(course, outcome.GRADES):
        bonus = most.get((notebook, cell), 0.0)
        for value, top in ((auto, of), (manual, of), (extra, bonus)):
            if value is not None and not (
                isinstance(value, float) and math.isfinite(value) and 0 <= value <= top
            ):
                broken.append(
                    f"{student} {lab} {cell}: a score must be finite and from 0 to {top}, got {value!r}"
                )
    return broken


def hostile_reads_what_was_wrong(one: HandedIn, row: dict, course: Course) -> list[str]:
    """Check that the hostile student's page names the problem, and that the untouched answers have their points."""
    who = f"{one.student!r} {one.lab} ({', '.join(attack.what for attack in one.attacks)})"
    if one.refused:
        return [] if row["trouble"] else [f"{who}: must be refused with a sentence, got none"]
    said = " ".join(
        [*row["said"], row["trouble"], *row["why"].values(), *visible_pages(course, one.student, one.lab)]
    )
    patterns = [attack.told for attack in one.attacks]
    broken = [
        f"{who}: the student's page must match /{p}/, got {said[:300]!r}"
        for p in patterns
        if not re.search(p, said, re.S)
    ]
    if row["trouble"]:
        broken.append(f"{who}: must be entered, got {row['trouble']}")
    if row["points"] != one.points:
        broken.append(f"{who}: must earn {one.points:g} points, got {row['points']:g}")
    return broken


def quiet(said: Said, what: str) -> list[str]:
    """Check that a class command reports its progress, and nothing else besides its result."""
    return [
        f"{what}: stderr must hold progress alone, got {line!r}"
        for _, line in said.lines
        if not PROGRESS.match(line)
    ][:3]


def untouched(before: dict, after: dict, hostile: set[str]) -> list[str]:
    """Nothing has changed but what grading writes, and what hostile students themselves handed in."""
    broken = []
    for path in sorted({*before, *after}):
        if before.get(path) != after.get(path) and not _may_change(path, hostile, path in before):
            what = "gone" if path not in after else "changed" if path in before else "new"
            broken.append(f"{path!r} must be as it was, is {what}")
    return broken


def _may_change(path: str, hostile: set[str], was_there: bool) -> bool:
    parts = path.split("/")
    if parts[0] == "tmp":
        return False
    if parts[1:2] == ["submitted"]:
        return was_there and parts[2] in hostile
    room = "/".join(parts[1:])
    kept = rf"{PLACE}(/records(/\w{{32}}\.json)?|/[\w.-]+\.(log|entered\.jsonl)|/lock|/{gradebooks.COPY}|/set_aside(/.*)?)?"
    return (
        bool(re.fullmatch(rf"gradebook\.db|(autograded|feedback)(/.*)?|{kept}", room, re.S)) and not was_there
    )


def rows_of(said: Said) -> dict[str, dict]:
    """Return student -> row, from the class command's JSON, or {} if it printed none."""
    try:
        return {row["student"]: row for row in json.loads(said.out)["students"]}
    except (ValueError, KeyError, TypeError):
        return {}


def longest(asked) -> float:
    """Return how long one hostile submission may delay a class, if every quick answer runs until its limit."""
    quick = NUMPY_LIMITS.wall_s + GRACE_S
    return ENTRY_S + sum(REFUSED_S if question.compiles else quick for question in asked)


def added(said: Said, student: str) -> float:
    """Return the seconds that judging and entering one student took, from the line before each of the student's
    lines."""
    mine, total, last = re.escape(report.visible(student)), 0.0, 0.0
    for at, line in said.lines:
        if re.search(rf"(^judged .*, |^entered .*: ){mine}( \(\d+ min left\))?$", line):
            total += at - last
        last = at
    return total


def sentence(one: HandedIn, row: dict, course: Course) -> str:
    """Return the first sentence, cut to a line of the table."""
    said = [row["trouble"], *row["said"], *row["why"].values()]
    if not any(said):
        pages = " ".join(visible_pages(course, one.student, one.lab))
        pieces = re.findall(r" came ((?:(?! came ).)*?) look |\(cpu mode\) (\w.{0,120})", pages)
        said = [piece for piece in map("".join, pieces) for a in one.attacks if re.search(a.told, piece)]
    return next(filter(None, said), "nothing")[:110]
