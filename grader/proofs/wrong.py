"""Check the zoo. Wrong answers must lose the right parts, and only the equivalent mutants of a right one may
survive."""

import ast
import hashlib
import json
import time
from functools import cache
from itertools import groupby
from pathlib import Path

from grader import questions
from grader.judge import referee
from grader.judge.record import FAIL, PASS, REFUSED, Record
from grader.proofs import pool
from grader.proofs.mutants import Mutant, mutants
from grader.proofs.right import NoSuchWords, edited, kernel_questions, right
from grader.questions import Mistake

SEED = 2026
TOO_LONG = "more than a run may use"  # in a report
SURVIVORS = Path(__file__).with_name("survivors.json")
LEAST = 8  # wrong answers a kernel question
SAMPLED = 1  # mutant a question in the sample, and answer of wrong values a topic


def table(question) -> dict[str, Mistake]:
    """Return the mistakes of a question that the suites can make, by name."""
    return {row.name: row for row in question.mistakes if row.made}


def source(question, row: Mistake) -> str:
    """Return the answer that makes a mistake."""
    return row.cell or edited(right(question.id), row.edits)


def sentence(question, row: Mistake) -> str:
    """Return the report's required words for a mistake, or "" if it has no words of its own."""
    told = {m.name: m.sentence for m in question.mistakes if m.sentence}
    told |= {name: said for name, (said, _) in getattr(question, "habits", {}).items()}
    return told[row.told_as] if row.told_as else row.sentence


@cache
def survivors() -> dict[str, dict[str, str]]:
    """Return the mutants equivalent to the right answer, as question -> mutant -> reason."""
    return reasons_of(SURVIVORS)


def reasons_of(path: Path) -> dict[str, dict[str, str]]:
    """Return a table of question -> reason -> names as question -> name -> reason."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return {
        question: {name: why for why, names in reasons.items() for name in names}
        for question, reasons in found.items()
    }


def equivalent(question) -> dict[str, str]:
    """Return a question's mutants that are right, each with the reason."""
    return survivors().get(question.id, {})


@cache
def changed(question_id: str) -> dict[str, Mutant]:
    return {mutant.name: mutant for mutant in mutants(right(question_id))}


def judged(question, source: str) -> Record:
    return referee.grade_one(source, question, seed=SEED, eager=False)


def wrong(question, name: str) -> str:
    """Return the promises that a wrong answer breaks, with its report."""
    row = table(question)[name]
    try:
        verdict = judged(question, source(question, row))
    except NoSuchWords as error:
        return str(error)
    why = complaint(question, verdict, row)
    return f"{why}, got\n{verdict}" if why else ""


def complaint(question, verdict: Record, row: Mistake) -> str:
    states = {p.name: p.state for p in verdict.parts}
    # on a busy machine a slow answer may run out of time, which costs it all parts
    if row.part != "values" and verdict.parts and TOO_LONG in verdict.parts[0].came:
        return ""
    if states.get(row.part) != FAIL:
        return f"the part {row.part} must be lost"
    if row.part != "values" and states.get("values") not in (PASS, None):
        return "the values must be right"
    if wanted := sentence(question, row):
        lost = next(p for p in verdict.parts if p.name == row.part)
        if wanted not in lost.look.split("; or: "):
            return f"must be recognised as the mistake {row.told_as or row.name!r}: {wanted}"
    return ""


def lives(question, mutant: Mutant) -> bool:
    verdict = judged(question, mutant.source)
    return verdict.verdict not in (FAIL, REFUSED) or verdict.points >= verdict.of


def judge(question_id: str, kind: str, name: str) -> tuple[str | bool, float]:
    """Return the promises that a wrong answer breaks, or whether a mutant lives, and the seconds."""
    started, question = time.monotonic(), questions.find(question_id)
    found = wrong(question, name) if kind == "wrong" else lives(question, changed(question_id)[name])
    return found, time.monotonic() - started


def sample(names: list[str], count: int) -> list[str]:
    """Always the same ones, spread over all."""
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[:count]


def leads(question) -> bool:
    """Return whether a kernel question represents its topic where judging is slow. The question with the most parts
    does, or the first among equals."""
    of_topic = [one for one in kernel_questions() if one.slug == question.slug]
    return question.id == max(of_topic, key=lambda one: len(one.parts)).id


def smallest(questions: list) -> str:
    """Return the first case among those with the fewest parts, which are judged soonest."""
    return min(questions, key=lambda one: len(one.parts)).id


def costs(question) -> dict[str, list[str]]:
    """Return judge -> wrong answers that lose a part of this judge, for all judges except values. A timed part counts
    as "speed"."""
    found, judges = {}, {part.name: part.judge for part in question.parts}
    for name, row in table(question).items():
        if row.part != "values":
            found.setdefault("speed" if row.part == "speed" else judges[row.part], []).append(name)
    return found


def sampled(question) -> dict[str, list[str]]:
    """Return the sample of a question that continuous integration judges."""
    return {"wrong": sampled_wrong(question), "mutant": sampled_mutants(question)}


def sampled_mutants(question) -> list[str]:
    return sample([name for name in changed(question.id) if name not in equivalent(question)], SAMPLED)


def soonest_of_topic(question) -> str:
    """The kernel question of its topic that is judged soonest."""
    return smallest([one for one in kernel_questions() if one.slug == question.slug])


SLOW = (
    "GELU ",
    "one program ",
    "few programs",
)  # turns that don't share a pass, which take up to a minute on the machine


def sampled_wrong(question) -> list[str]:
    """Wrong values of one question a topic, and one wrong answer for each way to lose another part."""
    values = [name for name, row in table(question).items() if row.part == "values"]
    chosen = sample(values, SAMPLED) if question.id == soonest_of_topic(question) else []
    for way, names in costs(question).items():
        if question.id == smallest([one for one in kernel_questions() if way in costs(one)]):
            chosen += sample([name for name in names if not name.startswith(SLOW)] or names, 1)
    return chosen


def run(everything: bool, say, question: str | None = None, jobs: int = 1) -> tuple[list[dict], list[str]]:
    """(a row for each question, every broken promise)."""
    chosen = [one for one in kernel_questions() if question in (None, one.id)]
    broken = [trouble for one in chosen for trouble in misfits(one)]
    tasks = [task for one in chosen for task in _tasks(one, everything)]
    results = pool.with_signs_of_life(pool.judged(judge, tasks, jobs), tasks)
    rows = []
    for question_id, found in groupby(results, key=lambda pair: pair[0][0]):
        rows.append(_row(questions.find(question_id), list(found), broken))
        say(rows[-1])
    return rows, broken


def _tasks(one, everything: bool) -> list[tuple[str, str, str]]:
    names = {"wrong": table(one), "mutant": changed(one.id)} if everything else sampled(one)
    return [(one.id, kind, name) for kind, found in names.items() for name in found]


def _row(one, found: list[tuple], broken: list[str]) -> dict:
    """Return the result of one question's wrong answers and mutants, and add to the broken promises."""
    seconds, same = sum(took for _, (_, took) in found), equivalent(one)
    said = {name: why for (_, kind, name), (why, _) in found if kind == "wrong"}
    alive = {name: it for (_, kind, name), (it, _) in found if kind == "mutant"}
    broken += [f"{one.id}, {name}: {why}" for name, why in said.items() if why]
    for name, it in alive.items():
        if it and name not in same:
            broken.append(f"{one.id}: this mutant lives: line {changed(one.id)[name].line}, {name}")
        if not it and name in same:
            broken.append(f"{one.id}: listed as equivalent and dies: {name}")
    listed, killed = sum(it for name, it in alive.items() if name in same), len(alive) - sum(alive.values())
    must_die = len(alive) - listed
    return {
        "question": one.id,
        "wrong": len(said),
        "caught": sum(not why for why in said.values()),
        "mutants": len(alive),
        "equivalent": listed,
        "killed": killed,
        "kill_rate": round(100 * killed / must_die, 2) if must_die else 100.0,
        "seconds": round(seconds, 1),
    }


def words(row: dict) -> list[str]:
    return [
        row["question"],
        f"{row['caught']} of {row['wrong']} wrong answers caught",
        f"{row['killed']} of {row['mutants'] - row['equivalent']} mutants killed",
        f"{row['kill_rate']:g}%",
        f"{row['equivalent']} equivalent",
        f"{row['seconds']:.0f} s",
    ]


def misfits(question) -> list[str]:
    """Return what is wrong with a question's tables, found without judging anything."""
    rows, same = table(question), equivalent(question)
    found = [trouble for name in rows for trouble in _misfits_of_row(question, name)]
    if len(rows) < LEAST:
        found.append(f"must have {LEAST} wrong answers or more in its zoo, got {len(rows)}")
    found += named_twice(question)
    proved = {row.told_as or row.name for row in rows.values()}
    found += [
        f"no wrong answer is recognised as the mistake {m.name!r}"
        for m in question.mistakes
        if m.sentence and m.name not in proved
    ]
    found += [
        f"listed as equivalent and does not exist: {name}"
        for name in same
        if name not in changed(question.id)
    ]
    found += [f"equivalent without a reason: {name}" for name, why in same.items() if len(why.split()) < 3]
    return [f"{question.id}: {trouble}" for trouble in found]


def named_twice(question) -> list[str]:
    """Find names that denote two sentences, or two wrong answers."""
    found = []
    for rows in ([m for m in question.mistakes if m.sentence], [m for m in question.mistakes if m.made]):
        names = [row.name for row in rows]
        found += [name for name in names if names.count(name) > 1]
    return [f"two mistakes have one name: {name}" for name in dict.fromkeys(found)]


def of_no_question() -> list[str]:
    """Return questions that the survivors' file names and the course doesn't ask."""
    return sorted(survivors().keys() - questions.load().keys())


def _misfits_of_row(question, name: str) -> list[str]:
    row, found = table(question)[name], []
    try:
        made, correct = source(question, row), right(question.id)
        if ast.dump(ast.parse(made)) == ast.dump(ast.parse(correct)):
            found.append("is the right answer")
    except (NoSuchWords, SyntaxError) as error:
        found.append(str(error))
    if row.part not in {p.name for p in question.parts}:
        found.append(f"loses a part that the question lacks: {row.part}")
    if row.told_as and row.told_as not in {m.name for m in question.mistakes if m.sentence}:
        found.append(f"names a mistake that the question lacks: {row.told_as}")
    return [f"{name}: {trouble}" for trouble in found]


def told(question_id: str, name: str) -> str:
    """Return the hint for a numpy question's wrong answer."""
    question = questions.find(question_id)
    verdict = judged(question, source(question, table(question)[name]))
    return verdict.parts[0].look if verdict.parts else ""
