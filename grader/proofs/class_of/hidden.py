"""Check that hidden cases stay hidden, so that no student's page has any of their numbers."""

import re

from grader.judge import answer
from grader.judge.evidence import Evidence
from grader.judge.hidden_failure import SHOWN_DRAWS, drawn
from grader.judge.kernel_evidence import METERED
from grader.proofs.class_of import outcome
from grader.proofs.class_of.course import Course
from grader.proofs.class_of.page import visible
from grader.proofs.class_of.sheet import Sheet, sheets, source

NUMBER = re.compile(r"\d+(?:\.\d+)?")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")


def numbers(course: Course, lab: str) -> dict[tuple[str, str], set[str]]:
    """(question, hash of an answer) -> numbers of its hidden cases that a student can't know from the notebook or a
    public case."""
    found, seeds = {}, {}
    for record in outcome.records(course).values():
        seeds.setdefault(record["question"], {})[record["answer"]] = int(record["seed"] or "0", 16)
    for sheet in sheets(course.root, lab):
        shown = {n for cell in sheet.cells for n in NUMBER.findall(source(cell))}
        for question in sheet.questions().values():
            anew = [one for draw in range(SHOWN_DRAWS) for one in drawn(question, draw)]
            known = shown | _numbers([*question.public, *anew]) | {f"{question.points:g}"}
            for text, seed in seeds.get(question.id, {}).items():
                hidden = _numbers(_drawn(question, seed)) - known
                found[question.id, text] = {n for n in hidden if _tells(n)}
    return found


def of_student(course: Course, lab: str, student: str, known: dict) -> dict[str, set[str]]:
    """Question -> such numbers of what this student handed in."""
    own = set()
    for path in (course.root / "submitted" / student / lab).glob("*.ipynb"):
        try:
            own |= {_hash(source(cell)) for cell in Sheet(lab, path).cells}
        except (ValueError, LookupError, TypeError, AttributeError):  # a notebook that is none has no answers
            continue
    return {question: found for (question, text), found in known.items() if text in own}


def _hash(text: str) -> str:
    try:
        return answer.digest(answer.normalise(text))
    except answer.Refused:
        return ""


def _drawn(question, seed: int) -> list:
    """Return a seed's hidden cases, and its metered case if there is one."""
    evidence = Evidence(question, "", seed)
    metered = getattr(question, "metered", None)
    return evidence.hidden_cases() + ([metered(evidence.rng(METERED))] if metered else [])


def _tells(number: str) -> bool:
    """Return whether a number is unlikely to have another source, as a size of three digits or a fraction of four."""
    return len(number.replace(".", "").strip("0")) >= (4 if "." in number else 3)


def _numbers(cases) -> set[str]:
    """Sizes, scalars and plain arguments, not the thousands of values in an array."""
    plain = [
        [a for a in c.args if isinstance(a, int | float | str)]
        if hasattr(c, "args")
        else [c.sizes, c.scalars]
        for c in cases
    ]
    return set(NUMBER.findall(repr(plain)))


def leaks(course: Course, lab: str, student: str, known: dict[tuple[str, str], set[str]]) -> list[str]:
    """Check that no report of this student's holds a number of a hidden case or of its results."""
    broken, questions = [], {question for question, _ in known}
    own = of_student(course, lab, student, known)
    parts = [p for r in outcome.records(course).values() if r["question"] in questions for p in r["parts"]]
    came = {part["came"] for part in parts if part["told"] and part["told"] != part["came"]}
    for name, page in outcome.pages(course, "feedback", student).items():
        if not name.startswith(lab) or not name.endswith(".html"):
            continue
        words = THOUSANDS.sub("", visible(page))
        broken += [
            f"{student} {name}: feedback must not reveal the results of a hidden case, got {c[:100]!r}"
            for c in came
            if c and c in words
        ]
        for judged in re.split(r"(?=(?:PASS|FAIL|REFUSED|INCONCLUSIVE) [a-z_]+\.[a-z_]+ )", words)[1:]:
            question = judged.split()[1]
            seen = set(NUMBER.findall(judged.partition("In [")[0])) & own.get(question, set())
            if seen:
                broken.append(
                    f"{student} {name}: feedback must hold no number of a hidden case, got {sorted(seen)[:5]} in {judged[:200]!r}"
                )
    return broken
