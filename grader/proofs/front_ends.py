"""Compare both ways to Triton IR. One is Triton's compiled library, and the other is the builder in Python that
replaces a missing library.

Every answer is lowered both ways, for the same cases. If its plans and texts are the same, so is everything after
them, because the machine runs the same operations on the same inputs. If a text differs, because one way folds more
than the other, and for a sample, the answer is judged both ways. Verdict, points, sentences and each case's counts
must be the same."""

import hashlib
import json
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path

from grader import questions
from grader.box import warm
from grader.jail import host as jail
from grader.jail.protocol import Lowered, Plan
from grader.judge import answer, kernel_evidence, parts, record, referee
from grader.judge.failed import Refusal
from grader.proofs import honest, pool, wrong
from grader.proofs.right import kernel_questions
from grader.proofs.wrong import leads, sample
from tilescope.proofs import rows as texts

SEED = 2026
COMPILED = replace(jail.LOWER, environment={})
IN_PYTHON = replace(jail.LOWER, environment={jail.FRONT_END: "python"})
OF_THE_DAY = ("versions", "date", "seconds", "level")  # what two verdicts on one answer may differ in
OF_A_RUN = ("nonce", "seconds")
SAME_TEXTS, JUDGED = "the same texts", "judged both ways"


@contextmanager
def through(worker: warm.Worker, heard: list):
    """Lower with this worker, and hear what the machine says of every case."""
    lower, run_case = jail.LOWER, kernel_evidence.machine.run_case

    def run(*arguments, **more):
        outcome = run_case(*arguments, **more)
        if more.get("seconds"):  # a busy machine decides how far it comes
            heard.append(None)
            return outcome
        header = {name: value for name, value in outcome.header.items() if name not in OF_A_RUN}
        arrays = {
            name: hashlib.sha256(array.tobytes()).hexdigest()[:12] for name, array in outcome.arrays.items()
        }
        heard.append((header, arrays))
        return outcome

    jail.LOWER, kernel_evidence.machine.run_case = worker, run
    try:
        yield
    finally:
        jail.LOWER, kernel_evidence.machine.run_case = lower, run_case


def judged(question, source: str, worker: warm.Worker) -> tuple[dict, list]:
    """The verdict as plain data, and what the machine said of each case."""
    heard = []
    with through(worker, heard):
        verdict = referee.grade_one(source, question, seed=SEED, eager=False)
    return {name: value for name, value in asdict(verdict).items() if name not in OF_THE_DAY}, heard


def lowered(question, source: str, worker: warm.Worker) -> list:
    """Return each case's plan, with its texts instead of their numbers, or its error, and its prints."""
    with through(worker, []):
        try:
            found = parts.gather(question, answer.normalise(source), SEED).lowered()
        except (answer.Refused, Refusal) as refused:
            return [str(refused)]
    if not isinstance(found, Lowered):
        return [found.error]
    return [
        (with_texts(plan, found.texts) if isinstance(plan, Plan) else plan, said)
        for plan, said in zip(found.plans, found.printed, strict=True)
    ]


def with_texts(plan: Plan, texts: tuple[str, ...]) -> tuple:
    return replace(plan, steps=tuple(replace(s, text=0) for s in plan.steps)), [
        texts[s.text] for s in plan.steps
    ]


def texts_apart(question, source: str) -> str:
    """Return where the two ways' plans, texts or sentences differ for one answer, or "" if the machine gets the
    same."""
    one, other = (lowered(question, source, way) for way in (COMPILED, IN_PYTHON))
    if len(one) != len(other):
        return apart(one, other, "lowered")
    return next(filter(None, (_cases_apart(a, b) for a, b in zip(one, other, strict=True))), "")


def _cases_apart(one, other) -> str:
    try:
        ((plan, mine), said), ((other_plan, theirs), said_too) = one, other
    except (TypeError, ValueError):  # an error, which has no plan
        return apart(one, other, "error")
    found = apart([plan, said], [other_plan, said_too], "plan")
    return found or next(filter(None, map(texts.difference, mine, theirs)), "")


def differences(question_id: str, source: str) -> tuple[str, str]:
    """Return where the two ways' verdicts on one answer differ, and where its counts do, in a sentence each."""
    question = questions.find(question_id)
    (one, heard), (other, heard_too) = (judged(question, source, way) for way in (COMPILED, IN_PYTHON))
    return apart(one, other, "verdict"), apart(heard, heard_too, "runs")


def apart(one, other, where: str) -> str:
    """Name the first position in which two values as plain data differ."""
    if type(one) is type(other) and isinstance(one, list | tuple) and len(one) == len(other):
        rows = zip(range(len(one)), one, other, strict=True)
    elif isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        rows = ((name, one[name], other[name]) for name in one)
    else:
        return "" if one == other else f"{where} must be the same both ways, got {one!r} and {other!r}"
    return next(filter(None, (apart(a, b, f"{where}/{name}") for name, a, b in rows)), "")


def answers(question) -> dict[str, str]:
    """Return every answer of the proofs, from the right answer and its other forms to the wrong answers."""
    found = {f"honest: {name}": honest.source(question, name) for name in honest.forms(question)}
    rows = wrong.table(question).items()
    return found | {f"wrong: {name}": wrong.source(question, row) for name, row in rows}


def sampled(question) -> list[str]:
    """Of each topic one honest form and one wrong answer."""
    names = answers(question) if leads(question) else {}
    return [
        name
        for kind in ("honest", "wrong")
        for name in sample([one for one in names if one.startswith(kind)], 1)
    ]


def judge(question_id: str, name: str, in_full: bool = True) -> dict:
    """Return a row with the answer, the comparison, the lines where texts or counts differ, and any forbidden
    difference (of the verdict, or of the counts of equal texts)."""
    row = {
        "question": question_id,
        "answer": name,
        "how": SAME_TEXTS,
        "texts": "",
        "counts": "",
        "broken": "",
    }
    try:
        source = answers(questions.find(question_id))[name]
        row["texts"] = texts_apart(questions.find(question_id), source)
        if row["texts"] or in_full:
            verdict, counts = differences(question_id, source)
            row |= {"how": JUDGED, "counts": counts, "broken": verdict or counts * (not row["texts"])}
    except ValueError as error:
        row["broken"] = str(error)
    return row


def run(
    everything: bool,
    say,
    question: str | None = None,
    jobs: int = 1,
    record: Path | None = None,
    answers_each: int | None = None,
) -> tuple[list[dict], list[str]]:
    """Return (a row for each answer, every broken promise). `record` is a file, which keeps the finished questions.
    `answers_each` answers are drawn of each question, always the same ones, if all would take too long."""
    found, rows = kept(record), []
    for one in (one for one in kernel_questions() if question in (None, one.id)):
        names, drawn, mine = list(answers(one)), sampled(one), []
        chosen = drawn if not everything else sample(names, answers_each or len(names))
        tasks = [(one.id, name, name in drawn) for name in names if name in {*chosen, *drawn}]
        if found["questions"].get(one.id, {}).get("answers", 0) >= len(tasks):
            continue
        for _, row in pool.with_signs_of_life(pool.judged(judge, tasks, jobs), tasks):
            mine.append(row)
            say(row)
        rows += mine
        if record and mine:
            found["questions"][one.id] = {**summed(mine), "of": len(names)}
            record.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return rows, [f"{row['question']}, {row['answer']}: {row['broken']}" for row in rows if row["broken"]]


def kept(path: Path | None) -> dict:
    """Return a record with the earlier results of the same versions, or an empty one."""
    fresh = {"date": str(date.today()), "versions": record.versions(), "questions": {}}
    if not path or not path.exists():
        return fresh
    found = json.loads(path.read_text(encoding="utf-8"))
    return found if found["versions"] == fresh["versions"] else fresh


def summed(rows: list[dict]) -> dict:
    """Sum up one question's rows by the number of answers with the same texts, and by the other answers' names and
    differences."""
    others = {
        row["answer"]: (row["broken"] or row["counts"] or row["texts"])[:300]
        for row in rows
        if row["how"] == JUDGED
    }
    return {
        "answers": len(rows),
        SAME_TEXTS: sum(not row["texts"] for row in rows),
        JUDGED: others,
        "broken": [row["answer"] for row in rows if row["broken"]],
    }


def words(row: dict) -> list[str]:
    return [row["question"], row["answer"], row["how"], "differs" if row["broken"] else "the same"]
