"""The zoo: wrong answers lose what they should, and of the mutants of a right one only the equivalent live."""

import hashlib
import importlib

from grader import questions, referee
from grader.record import FAIL, PASS, REFUSED, Record
from grader.suites.mutants import Mutant, mutants
from grader.suites.right import edited, kernel_questions, right

SEED = 2026
LEAST = 8  # wrong answers a kernel question
SAMPLED = 6  # mutants a question in the sample, and wrong answers


def table(question) -> dict:
    """The rows of one question: name -> (part lost, edits, mistake told)."""
    return getattr(_module(question.slug), "WRONG", {}).get(question.id, {})


def equivalent(question) -> dict:
    return getattr(_module(question.slug), "EQUIVALENT", {}).get(question.id, {})


def _module(slug: str):
    try:
        return importlib.import_module(f"grader.suites.zoo.{slug}")
    except ModuleNotFoundError:
        return None


def judged(question, source: str) -> Record:
    return referee.grade_one(source, question, seed=SEED, eager=False)


def wrong(question, name: str) -> tuple[Record, str]:
    """(the verdict, what of the promise it breaks)."""
    part, edits, mistake = table(question)[name]
    verdict = judged(question, edited(right(question.id), edits))
    return verdict, complaint(question, verdict, part, mistake)


def complaint(question, verdict: Record, part: str, mistake: str) -> str:
    states = {p.name: p.state for p in verdict.parts}
    if states.get(part) != FAIL:
        return f"the part {part} must be lost"
    if part != "values" and states.get("values") not in (PASS, None):
        return "the values must be right"
    if mistake:
        sentence = next(m.sentence for m in question.mistakes if m.name == mistake)
        lost = next(p for p in verdict.parts if p.name == part)
        if lost.look != sentence:
            return f"must be told: {sentence}"
    return ""


def lives(question, mutant: Mutant) -> tuple[Record, bool]:
    verdict = judged(question, mutant.source)
    return verdict, verdict.verdict not in (FAIL, REFUSED) or verdict.points >= verdict.of


def sample(names: list[str], count: int) -> list[str]:
    """Always the same ones, spread over all."""
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[:count]


def run(everything: bool, say, question: str | None = None) -> tuple[list[dict], list[str]]:
    rows, broken = [], []
    for one in kernel_questions():
        if question not in (None, one.id):
            continue
        names = list(table(one))
        if len(names) < LEAST:
            broken.append(f"{one.id} must have {LEAST} wrong answers or more in its zoo, got {len(names)}")
        row = {
            "question": one.id,
            **_wrong_ones(one, names if everything else sample(names, SAMPLED), broken),
        }
        row |= _mutants(one, everything, broken)
        rows.append(row)
        say(row)
    return rows, broken


def _wrong_ones(one, names: list[str], broken: list[str]) -> dict:
    caught = 0
    for name in names:
        verdict, why = wrong(one, name)
        caught += not why
        if why:
            broken.append(f"{one.id}, {name}: {why}, got\n{verdict}")
    return {"wrong": f"{caught} of {len(names)} wrong answers"}


def _mutants(one, everything: bool, broken: list[str]) -> dict:
    found, same = {m.name: m for m in mutants(right(one.id))}, equivalent(one)
    names = list(found) if everything else sample([n for n in found if n not in same], SAMPLED)
    alive = [name for name in names if lives(one, found[name])[1]]
    broken += [f"{one.id}: this mutant lives: line {found[n].line}, {n}" for n in alive if n not in same]
    broken += [f"{one.id}: listed as equivalent and dies: {n}" for n in names if n in same and n not in alive]
    broken += [f"{one.id}: listed as equivalent and does not exist: {n}" for n in same if n not in found]
    killed = len(names) - len(alive)
    listed = sum(name in same for name in alive)
    return {
        "mutants": f"{killed} of {len(names) - listed} mutants killed",
        "equivalent": f"{listed} equivalent",
    }


def told(question_id: str, name: str) -> str:
    """What a numpy question's wrong answer is told."""
    from grader.suites.zoo import numpy_mistakes

    verdict = judged(questions.find(question_id), numpy_mistakes.source(question_id, name))
    return verdict.parts[0].look if verdict.parts else ""
