"""Both ways to Triton IR: with Triton's compiled library, and with the builder in Python that stands in where it is missing.

Every answer gets the same verdict, points and sentences both ways, and the machine counts the same for every case.
"""

import hashlib
from contextlib import contextmanager
from dataclasses import asdict, replace

from grader import questions
from grader.box import warm
from grader.jail import host as jail
from grader.judge import kernel_evidence, referee
from grader.proofs import honest, side_by_side, wrong
from grader.proofs.right import kernel_questions
from grader.proofs.wrong import leads, sample

SEED = 2026
COMPILED = replace(jail.LOWER, environment={})
IN_PYTHON = replace(jail.LOWER, environment={jail.FRONT_END: "python"})
OF_THE_DAY = ("versions", "date", "seconds", "level")  # what two verdicts on one answer may differ in
OF_A_RUN = ("nonce", "seconds")


@contextmanager
def through(worker: warm.Worker, heard: list):
    """Lower with this worker, and hear what the machine says of every case."""
    lower, run_case = jail.LOWER, kernel_evidence.machine.run_case

    def run(*arguments, **more):
        outcome = run_case(*arguments, **more)
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


def difference(question_id: str, source: str) -> str:
    """Where the two ways part for one answer, in a sentence."""
    question = questions.find(question_id)
    (one, heard), (other, heard_too) = (judged(question, source, way) for way in (COMPILED, IN_PYTHON))
    return apart(one, other, "verdict") or apart(heard, heard_too, "runs")


def apart(one, other, where: str) -> str:
    """Name the first place in which two values as plain data differ."""
    if type(one) is type(other) and isinstance(one, list | tuple) and len(one) == len(other):
        rows = zip(range(len(one)), one, other, strict=True)
    elif isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        rows = ((name, one[name], other[name]) for name in one)
    else:
        return "" if one == other else f"{where} must be the same both ways, got {one!r} and {other!r}"
    return next(filter(None, (apart(a, b, f"{where}/{name}") for name, a, b in rows)), "")


def answers(question) -> dict[str, str]:
    """Every answer of the proofs: the right one, its honest forms and its wrong ones."""
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


def judge(question_id: str, name: str) -> dict:
    """A row: the answer, and where the two ways part."""
    try:
        broken = difference(question_id, answers(questions.find(question_id))[name])
    except ValueError as error:
        broken = str(error)
    return {"question": question_id, "answer": name, "broken": broken}


def run(everything: bool, say, question: str | None = None, jobs: int = 1) -> tuple[list[dict], list[str]]:
    """(a row for each answer, every broken promise)."""
    chosen = [one for one in kernel_questions() if question in (None, one.id)]
    tasks = [(one.id, name) for one in chosen for name in (answers(one) if everything else sampled(one))]
    rows = []
    for _, row in side_by_side.with_signs_of_life(side_by_side.judged(judge, tasks, jobs), tasks):
        rows.append(row)
        say(row)
    return rows, [f"{row['question']}, {row['answer']}: {row['broken']}" for row in rows if row["broken"]]


def words(row: dict) -> list[str]:
    return [row["question"], row["answer"], "differs" if row["broken"] else "the same"]
