"""What must hold of a class with hostile students in it; each function says what did not."""

import html
import json
import math
import re

from grader import questions, report
from grader.classroom.term import PLACE, Term
from grader.evidence import Evidence
from grader.suites.class_of import outcome
from grader.suites.class_of.course import SECRET, Course, Said
from grader.suites.class_of.hostile import HandedIn
from grader.suites.class_of.sheet import sheets, source

PROGRESS = re.compile(
    r"(read|judged|entered) \d+ of \d+|\d+ different answers to judge|reading \d+ submissions"
)
NUMBER = re.compile(r"\d+(?:\.\d+)?")
ACTS = ("<script>alert", "<img src=x", "javascript:alert", 'localhost/p.png"', "\x1b")
LONGEST_S = 150.0  # that one hostile submission may add to a lab: its answers' limits, three tries, its entry


def same(honest: list[str], rows: tuple[dict, dict], alone: Course, mixed: Course) -> list[str]:
    """Rows, gradebook, comments and pages of each honest student; and the records of both classes."""
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
    """Where two things first differ, in few words."""
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


def told(one: HandedIn, row: dict, course: Course) -> list[str]:
    """The hostile student reads what was wrong, and has the points of the answers that were left in peace."""
    who = f"{one.student!r} {one.lab} ({', '.join(attack.what for attack in one.attacks)})"
    if one.refused:
        return [] if row["trouble"] else [f"{who}: must be refused with a sentence, got none"]
    said = " ".join(
        [*row["said"], row["trouble"], *row["why"].values(), *visible_pages(course, one.student, one.lab)]
    )
    patterns = [attack.told for attack in one.attacks]
    broken = [
        f"{who}: must be told /{p}/, got {said[:300]!r}" for p in patterns if not re.search(p, said, re.S)
    ]
    if row["trouble"]:
        broken.append(f"{who}: must be entered, got {row['trouble']}")
    if row["points"] != one.points:
        broken.append(f"{who}: must earn {one.points:g} points, got {row['points']:g}")
    return broken


def visible_pages(course: Course, student: str, lab: str) -> list[str]:
    """What a reader of the feedback sees."""
    found = outcome.pages(course, f"feedback/{student}", lab)
    return [visible(page) for name, page in found.items() if name.endswith(".html")]


def visible(page: str) -> str:
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", page.partition("<body")[2], flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def nothing_acts(course: Course, student: str) -> list[str]:
    """No word of a student's is a tag, a link or an escape in a page."""
    found = outcome.pages(course, "feedback", student) | outcome.pages(course, "autograded", student)
    return [
        f"{student} {name}: must hold no {word!r}, got it"
        for name, page in found.items()
        for word in ACTS
        if name.endswith(".html") and word in page
    ]


def quiet(said: Said, what: str) -> list[str]:
    """A class command says how far it is, and nothing else beside its result."""
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
    kept = rf"{PLACE}(/records(/\w{{32}}\.json)?|/[\w.-]+\.(log|entered\.json)|/set_aside(/.*)?)?"
    return (
        bool(re.fullmatch(rf"gradebook\.db|(autograded|feedback)(/.*)?|{kept}", room, re.S)) and not was_there
    )


def hidden_numbers(course: Course, lab: str) -> dict[str, set[str]]:
    """Question -> numbers of its hidden cases that a student can't know from the notebook or a public case."""
    found = {}
    for sheet in sheets(course.root, lab):
        shown = {n for cell in sheet.cells for n in NUMBER.findall(source(cell))}
        for question in sheet.questions().values():
            seed = Term(course.root, lab, "cpu", f"{lab} suite", SECRET).seed(question.id)
            hidden = list(Evidence(question, "", seed).hidden_cases())
            known = shown | _numbers(question.public) | {f"{question.points:g}"}
            found[question.id] = {
                n for n in _numbers(hidden) - known if len(n.replace(".", "").strip("0")) >= 3
            }
    return found


def _numbers(cases) -> set[str]:
    """Sizes, scalars and plain arguments, not the thousands of values in an array."""
    plain = [
        [a for a in c.args if isinstance(a, int | float | str)]
        if hasattr(c, "args")
        else [c.sizes, c.scalars]
        for c in cases
    ]
    return set(NUMBER.findall(repr(plain)))


def secret(course: Course, lab: str, student: str, numbers: dict[str, set[str]]) -> list[str]:
    """No report of this student's holds a number of a hidden case; nor what came of one."""
    broken = []
    kept = [r for r in outcome.records(course).values() if r["question"] in numbers]
    came = {
        part["came"]
        for record in kept
        for part in record["parts"]
        if part["told"] and part["told"] != part["came"]
    }
    for name, page in outcome.pages(course, "feedback", student).items():
        if not name.startswith(lab) or not name.endswith(".html"):
            continue
        words = visible(page)
        for judged in re.split(r"(?=(?:PASS|FAIL|REFUSED|INCONCLUSIVE) [a-z_]+\.[a-z_]+ )", words)[1:]:
            question = judged.split()[1]
            seen = set(NUMBER.findall(judged.partition("In [")[0])) & numbers.get(question, set())
            if seen:
                broken.append(
                    f"{student} {name}: feedback must hold no number of a hidden case, got {sorted(seen)[:5]} in {judged[:200]!r}"
                )
        broken += [
            f"{student} {name}: feedback must not say what came of a hidden case, got {c[:100]!r}"
            for c in came
            if c and c in words
        ]
    return broken


def rows_of(said: Said) -> dict[str, dict]:
    """Student -> row, from the class command's JSON; {} where it printed none."""
    try:
        return {row["student"]: row for row in json.loads(said.out)["students"]}
    except (ValueError, KeyError, TypeError):
        return {}


def added(said: Said, student: str) -> float:
    """Seconds that judging and entering one student took: from the line before each of theirs to theirs."""
    mine, total, last = re.escape(report.visible(student)), 0.0, 0.0
    for at, line in said.lines:
        if re.search(rf"(^judged .*, |^entered .*: ){mine}( \(\d+ min left\))?$", line):
            total += at - last
        last = at
    return total


def sentence(one: HandedIn, row: dict, course: Course) -> str:
    """The first thing that is said, cut to a line of the table."""
    said = [row["trouble"], *row["said"], *row["why"].values()]
    if not any(said):
        pages = " ".join(visible_pages(course, one.student, one.lab))
        found = [re.search(f"(.{{0,60}})({attack.told})(.{{0,40}})", pages, re.S) for attack in one.attacks]
        said = [match[0].strip() for match in found if match]
    return next(filter(None, said), "nothing")[:110]
