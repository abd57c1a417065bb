"""Check that unusual right answers get full points, or lose exactly their honest costs."""

import ast
from random import SystemRandom

from grader import questions
from grader.judge import referee
from grader.judge.record import PASS
from grader.proofs import pool
from grader.proofs.right import NoSuchWords, cell, edited, kernel_questions, right
from grader.proofs.wrong import leads, sample

SEED = 2026
LEAST = 6  # forms a kernel question
AS_IT_STANDS = "as it stands"


def forms(question) -> dict:
    """Return name -> (parts lost, edits or cell), the plain right answer first."""
    return {AS_IT_STANDS: ((), ()), **unusual(question)}


def unusual(question) -> dict:
    """Return the right answers in a question's folder. The form is as in `forms` for kernels, name -> cell in numpy,
    and name -> edits for ranks."""
    if not (questions.folder(question.id) / "answers/forms.py").exists():
        return {}
    return questions.part_of(question.id, "answers.forms").FORMS


def source(question, name: str) -> str:
    change = forms(question)[name][1]
    if isinstance(change, str):
        return cell(question.id, change).read_text(encoding="utf-8")
    return edited(right(question.id), change)


def judge(question_id: str, name: str, seed: int = SEED) -> dict:
    """Return a row with the verdict and the broken parts of the promise."""
    question = questions.find(question_id)
    try:
        verdict = referee.grade_one(source(question, name), question, seed=seed, eager=False)
    except (NoSuchWords, OSError) as error:
        return {
            "question": question_id,
            "form": name,
            "verdict": "",
            "points": 0,
            "of": 0,
            "broken": str(error),
        }
    lost, wanted = {p.name for p in verdict.parts if p.state != PASS}, set(forms(question)[name][0])
    why = (
        ""
        if verdict.parts and lost == wanted
        else f"must lose {', '.join(sorted(wanted)) or 'nothing'}, got\n{verdict}"
    )
    row = {
        "question": question_id,
        "form": name,
        "verdict": verdict.verdict,
        "points": verdict.points,
        "of": verdict.of,
    }
    return row | {"seconds": verdict.seconds, "broken": why}


def run(
    everything: bool, say, question: str | None = None, jobs: int = 1, seeds: int | None = None
) -> tuple[list[dict], list[str]]:
    """Return (a row for each form, every broken promise). With `seeds`, judge each right answer as it stands, as often
    as that, because some cases are drawn in one check of thirty."""
    chosen = [one for one in kernel_questions() if question in (None, one.id)]
    broken = [trouble for one in chosen for trouble in misfits(one)]
    tasks = [(one.id, name) for one in chosen for name in (forms(one) if everything else sampled(one))]
    if seeds:
        drawn = [SystemRandom().getrandbits(64) for _ in range(seeds)]
        tasks = [(one.id, AS_IT_STANDS, seed) for seed in drawn for one in chosen]
    rows = []
    for task, row in pool.with_signs_of_life(pool.judged(judge, tasks, jobs), tasks):
        broken += [f"{', '.join(map(str, task))}: {row['broken']}"] if row["broken"] else []
        rows.append(row)
        say(row)
    return rows, broken


def sampled(question) -> list[str]:
    """Return the sample of continuous integration, one form per topic, since a right answer is judged to its last
    part."""
    return sample([name for name in forms(question) if name != AS_IT_STANDS], 1) if leads(question) else []


def words(row: dict) -> list[str]:
    return [row["question"], row["form"], f"{row['verdict']}  {row['points']:g} of {row['of']:g}"]


def misfits(question) -> list[str]:
    """Return what is wrong with a question's forms, found without judging anything."""
    found = [trouble for name in forms(question) for trouble in _misfits_of_form(question, name)]
    if len(forms(question)) - 1 < LEAST:
        found.append(f"must have {LEAST} honest forms or more, got {len(forms(question)) - 1}")
    return [f"{question.id}: {trouble}" for trouble in found]


def _misfits_of_form(question, name: str) -> list[str]:
    found, correct = [], right(question.id)
    try:
        same = ast.dump(ast.parse(source(question, name))) == ast.dump(ast.parse(correct))
        if same != (name == AS_IT_STANDS):
            found.append("is the right answer itself")
    except (NoSuchWords, SyntaxError, OSError) as error:
        found.append(str(error))
    lost = set(forms(question)[name][0]) - {p.name for p in question.parts}
    return [
        f"{name}: {trouble}"
        for trouble in found + [f"loses a part that the question lacks: {part}" for part in lost]
    ]
