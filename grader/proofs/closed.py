"""Closed by default, held by a generator: right answers that do too much of one counted quantity lose points.

Each kernel question's right answer is made to spend more in each way of `wasteful`, at every size, at the compiled one alone,
or at sizes that nobody names. Its results stay right, so only evidence can tell.
"""

import math
from dataclasses import replace

import numpy as np

from grader import questions
from grader.judge import referee
from grader.judge.record import FAIL, REFUSED
from grader.judge.tuned import SLACK
from grader.proofs import side_by_side
from grader.proofs.right import kernel_questions, right
from grader.proofs.wasteful import WAYS, NotMade, cell
from grader.proofs.wrong import sample, soonest_of_topic
from grader.questions.account import account

SEED = 2026
DRAWS = 40  # of the metered case, to learn between which sizes it is drawn
EVERYWHERE, COMPILED, ELSEWHERE = "everywhere", "at the compiled size", "where nobody looks"
BYTES = ("every load twice", "every store twice", "outputs read back", "scratch")  # bounded in every case
LIVES, DIES, NOT_MADE = "lives", "dies", "not made"


def condition(question, where: str) -> str:
    """Return where an answer does more, as an expression of `p`; "" where the question has no such place."""
    drawn = [question.metered(np.random.default_rng(seed)).sizes for seed in range(DRAWS)]
    near = " and ".join(
        f"{min(d[name] for d in drawn)} <= p.{name} <= {max(d[name] for d in drawn)}" for name in drawn[0]
    )
    large = question.compile_case
    compiled = " and ".join(f"p.{name} == {size}" for name, size in large.sizes.items()) if large else ""
    return {
        EVERYWHERE: "True",
        COMPILED: compiled,
        ELSEWHERE: f"not ({near})" + (f" and not ({compiled})" if compiled else ""),
    }[where]


def limit(question, way: str, where: str) -> int:
    """Return the operations, or the FLOP in tl.dot, that an answer may do at a size, and some more."""
    cases = [question.metered(np.random.default_rng(seed)) for seed in range(DRAWS)]
    if where == COMPILED and question.compile_case:
        cases = [replace(question.compile_case, sm_count=cases[0].sm_count or 32)]
    counts = {"dots": ("dot",), "whole numbers": ("work",)}.get(way, ())
    found = [0.0]
    for case in cases:  # what is drawn in a check may be any of these
        every = [budget for part in question.budgets for budget in account(question, part, case)]
        most = [budget.most for budget in every if budget.count in counts and math.isfinite(budget.most)]
        if way == "dots" and not most:  # a sixteenth of the FLOP counts with the rest
            most = [16 * budget.most for budget in every if budget.count == "work"]
        found.append(min(most, default=0))
    return math.ceil((1.4 * SLACK if where == COMPILED else 1.1) * max(found))


def places(way: str) -> tuple[str, ...]:
    """Return where a way must be caught: bytes in every case, the rest where all is counted."""
    return (EVERYWHERE, COMPILED, *((ELSEWHERE,) if way in BYTES else ()))


def judge(question_id: str, way: str, where: str) -> str:
    """Say whether an answer that does too much lives, dies or cannot be made."""
    question = questions.find(question_id)
    if not (told := condition(question, where)):
        return NOT_MADE
    try:
        source = cell(right(question_id), question.entry, way, told, limit(question, way, where))
    except NotMade:
        return NOT_MADE
    verdict = referee.grade_one(source, question, seed=SEED, eager=False)
    if verdict.verdict == REFUSED or not verdict.parts or verdict.parts[0].state == FAIL:
        return NOT_MADE  # this answer cannot be changed so and stay right
    return DIES if verdict.points < verdict.of else LIVES


def tasks(everything: bool, question: str | None = None) -> list[tuple[str, str, str]]:
    chosen = [one for one in kernel_questions() if question in (None, one.id)]
    every = [(one.id, way, where) for one in chosen for way in WAYS for where in places(way)]
    if everything or question:
        return every
    quick = {soonest_of_topic(one) for one in chosen}
    of_quick = {": ".join(task): task for task in every if task[0] in quick and task[2] == EVERYWHERE}
    return [of_quick[name] for name in sample(list(of_quick), 6)]


def run(everything: bool, say, question: str | None = None, jobs: int = 1) -> tuple[list[dict], list[str]]:
    """(a row for each answer that was made, those that live)."""
    asked = tasks(everything, question)
    rows, broken = [], []
    for task, found in side_by_side.with_signs_of_life(side_by_side.judged(judge, asked, jobs), asked):
        rows.append(dict(zip(("question", "way", "where"), task, strict=True), found=found))
        say(rows[-1])
        broken += [f"{', '.join(task)}: lives with all its points"] if found == LIVES else []
    made = [row for row in rows if row["found"] != NOT_MADE]
    died = sum(row["found"] == DIES for row in made)
    say(
        {
            "question": "all",
            "way": f"{died} of {len(made)} die",
            "where": f"{len(rows) - len(made)} not made",
            "found": f"{died / max(1, len(made)):.1%}",
        }
    )
    return rows, broken
