"""Generate right answers that spend too much of one counted quantity, and check that they lose points. Every way to
spend more must be closed.

Each kernel question's right answer is made to spend more in each way of `wasteful`, at every size, at the compiled
one alone, at secret sizes, or for one dtype, stride or ratio of sizes that is neither metered nor compiled. Its
results stay right, so only evidence can tell. Answers about ranks send too much, and all questions get useless
answers: zeros, the mean, the last case's output, and output that is wrong beyond every known size.
"""

import math
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from grader import questions
from grader.judge import kernel_evidence, referee
from grader.judge.budgets_at_scale import SLACK, two_blocks
from grader.judge.every_case import FREE_OF, FREE_OF_ALL
from grader.judge.every_case import ROOM as NO_MODEL
from grader.judge.kernel_evidence import CORNER, WHOLE, KernelEvidence
from grader.judge.record import FAIL, REFUSED, Record
from grader.proofs import resumed, useless, wasteful_ranks
from grader.proofs.resumed import DIES, LIVES, NOT_MADE
from grader.proofs.right import kernel_questions, right
from grader.proofs.wasteful import WAYS, NotMade, cell
from grader.proofs.wrong import sample, soonest_of_topic
from grader.questions import reach
from grader.questions.account import account, in_blocks
from grader.questions.memory import shape_only

SEED = 2026
CORNERS_DRAWN = 6  # checks whose corners say where corners are
DRAWS = 40  # of the metered case, to learn between which sizes it is drawn
EVERYWHERE, COMPILED, ELSEWHERE = "everywhere", "at the compiled size", "where no program looks"
LOADS = "every load twice"
OFTEN = 4  # times instead, where drawn programs stand for all: limits there allow tiles of half the sides
BYTES = (LOADS, "every store twice", "outputs read back", "scratch")  # bounded in every case
ALONE = ("one program after the other", "idle programs")
IN_CORNERS, FAR = "where several axes are long", "beyond the size of memory"
BEYOND = "beyond every known "  # and the name of an axis
ALONE_FOR = "for one property alone: "  # and an expression of `p`
OF_A_PROPERTY = (LOADS, "whole numbers", "dots", *ALONE)
WRONG = tuple(useless.RESULTS)
# axes of a fixed set of sizes, and those that no hidden case can take further
CANNOT_BE_MADE = (
    "CompilationError",
    "NotImplementedError",
    "AttributeError",
    "BadIR",
)  # the changed cell isn't a kernel
OF_A_SET = {"TILE", "BITS", "D", "G"}


def condition(question, where: str) -> str:
    """Return where an answer does more, as an expression of `p`, or "" if the question has no such case."""
    drawn = [question.metered(np.random.default_rng(seed)).sizes for seed in range(DRAWS)]
    near = " and ".join(
        f"{min(d[name] for d in drawn)} <= p.{name} <= {max(d[name] for d in drawn)}" for name in drawn[0]
    )
    large = question.compile_case
    if where.startswith(ALONE_FOR):
        return where.removeprefix(ALONE_FOR)
    if where.startswith(BEYOND):
        axis = where.removeprefix(BEYOND)
        return f"p.{axis} > {known(question)[axis]}"
    if where in (IN_CORNERS, FAR):
        return far_out(question).get(where, "")
    compiled = " and ".join(f"p.{name} == {size}" for name, size in large.sizes.items()) if large else ""
    return {
        EVERYWHERE: "True",
        COMPILED: compiled,
        ELSEWHERE: f"not ({near})" + (f" and not ({compiled})" if compiled else ""),
    }[where]


class OfCorners(KernelEvidence):
    """Draw a check's corners, which depend on no hidden case, and none of these."""

    def hidden_cases(self) -> list:
        return []


@cache
def corners_of(question_id: str) -> tuple[list, list]:
    """Return what corners and far corners some checks have."""
    question = questions.find(question_id)
    found: tuple[list, list] = [], []
    for seed in range(CORNERS_DRAWN):
        evidence = OfCorners(question, "", seed)
        for kind, purposes in zip(found, ((CORNER, *WHOLE), (kernel_evidence.FAR,)), strict=True):
            kind += [evidence.known[one] for one in purposes if one in evidence.known]
    return found


def far_out(question) -> dict[str, str]:
    """Return where only corners are: an expression of `p` for those of a usual size, and for those larger than memory."""
    corners, far = corners_of(question.id)
    sizes = [t.shape for t in question.tensors if not callable(t.shape) and len(set(t.shape)) > 1]
    if not corners or not sizes:
        return {}
    axes = max(sizes, key=lambda shape: product(shape, corners[0]))
    named = [name for name in axes if isinstance(name, str)]
    usual = [*question.public, *question.hidden(np.random.default_rng(SEED)), question.compile_case]
    usual += [question.metered(np.random.default_rng(seed)) for seed in range(DRAWS)]
    usual += [case for seed in range(DRAWS) for case in reach.ends(question, np.random.default_rng(seed))]
    longest = max(product(axes, case) for case in usual if case)
    words, found = " * ".join(f"p.{name}" for name in named), {}
    if min(product(axes, case) for case in corners) > longest:
        found[IN_CORNERS] = f"{words} > {longest}"
    largest = max([longest, *(product(axes, case) for case in corners)])
    if far and max(product(axes, case) for case in far) > largest:
        found[FAR] = f"{words} > {largest}"
    return found


def product(axes: tuple, case) -> int:
    return math.prod(case.sizes[name] for name in axes if isinstance(name, str))


def known(question) -> dict[str, int]:
    """Return the largest public size along each axis, among the shown, metered, compiled and timed cases."""
    metered = [question.metered(np.random.default_rng(seed)) for seed in range(DRAWS)]
    timed = question.speed.case if question.speed else None
    return largest(case for case in (*question.public, *metered, question.compile_case, timed) if case)


def largest(cases) -> dict[str, int]:
    found: dict = {}
    for case in cases:
        for axis, size in case.sizes.items():
            found[axis] = max(found.get(axis, 0), size)
    return found


def beyond(question) -> list[str]:
    """Return the axes along which a hidden case goes further than all that are known."""
    drawn, known_ones = largest(question.hidden(np.random.default_rng(SEED))), known(question)
    return [axis for axis, size in known_ones.items() if axis not in OF_A_SET and drawn.get(axis, 0) > size]


def properties(question) -> dict[str, tuple]:
    """Return what `of_question` does, found once."""
    return of_question(question.id)


@cache
def of_question(question_id: str) -> dict[str, tuple]:
    """Return expressions of `p` that hold for some hidden cases, but not for the metered or the compiled case. There
    is one for a dtype, one for a stride, and one for a size of a fixed set or two sizes that differ, each with its
    cases."""
    question = questions.find(question_id)
    drawn = [question.metered(np.random.default_rng(seed)) for seed in range(DRAWS)]
    looked_at = [*drawn, *filter(None, [question.compile_case])]
    kinds: list[dict] = [{}, {}, {}]
    for case in question.hidden(np.random.default_rng(SEED)):
        for tensor in question.tensors:
            name, dtype = tensor.name, case.dtype_of(tensor)
            kinds[0].setdefault(f'p.dtypes["{name}"] == "{dtype}"', []).append(case)
            if name in case.layout and len(tensor.axes) > 1:
                kinds[1].setdefault(f"p.stride_{name}{tensor.axes[-1]} != 1", []).append(case)
        for axis, size in case.sizes.items():
            if axis in OF_A_SET:
                kinds[2].setdefault(f"p.{axis} == {size}", []).append(case)
        if {"M", "N"} <= set(case.sizes):
            kinds[2].setdefault("p.M != p.N", []).append(case)
    found = {}
    for kind in kinds:
        new = {
            told: cases
            for told, cases in kind.items()
            if not any(holds(question, told, c) for c in looked_at)
        }
        for told, cases in list(new.items())[:1]:
            if cases := [case for case in cases if holds(question, told, case)]:
                found[told] = tuple(cases)
    return found


def holds(question, told: str, case) -> bool:
    """Whether a case has a property."""
    placed = [shape_only(tensor, case).as_task() for tensor in question.tensors]
    facts = dict(case.sizes, dtypes={one["name"]: one["dtype"] for one in placed})
    for one in placed:
        facts |= {
            f"stride_{one['name']}{axis}": s for axis, s in zip(one["axes"], one["strides"], strict=True)
        }
    return eval(told, {"p": SimpleNamespace(**facts)})


def limit(question, way: str, where: str) -> int:
    """Return the operations, the FLOP in tl.dot or the bytes of scratch that an answer may spend at a size, and some
    more."""
    cases = [question.metered(np.random.default_rng(seed)) for seed in range(DRAWS)]
    if where == COMPILED and question.compile_case:
        cases = [replace(question.compile_case, sm_count=cases[0].sm_count or 32)]
    more, free = 1.4 * SLACK if where == COMPILED else 1.1, 0
    if where == ELSEWHERE:
        cases = [*question.public, *question.hidden(np.random.default_rng(SEED))]
    if where in (IN_CORNERS, FAR):
        cases = [two_blocks(question, case) for case in corners_of(question.id)[where == FAR]]
    if where.startswith(ALONE_FOR):
        cases = properties(question)[where.removeprefix(ALONE_FOR)]
    if where in (ELSEWHERE, IN_CORNERS, FAR) or where.startswith(ALONE_FOR):
        cases = [in_blocks(question, replace(case, sm_count=32)) for case in cases]
        more = 1.1 * NO_MODEL * (SLACK if where in (IN_CORNERS, FAR) else 1)
        free = FREE_OF["dot"] if way == "dots" else FREE_OF_ALL
    fewest = min if where.startswith(ALONE_FOR) else max  # one case that tells is enough
    return math.ceil(more * fewest(allowed(question, way, case) for case in cases) + free)


def allowed(question, way: str, case) -> float:
    """Return the strictest limit of a way's quantity, or 0 if the way counts nothing."""
    every = [budget for part in question.budgets for budget in account(question, part, case)]
    if way == "scratch":
        found = [b for b in every if b.tensor in ("scratch", "all") and b.access in ("any", "store")]
        return min((b.most for b in found if b.count == "dedup"), default=0)
    counts = {"dots": ("dot",), "whole numbers": ("work",)}.get(way, ())
    most = [b.most for b in every if b.count in counts and math.isfinite(b.most)]
    if way == "dots" and not most:  # a sixteenth of the FLOP counts with the rest
        most = [16 * budget.most for budget in every if budget.count == "work"]
    return min(most, default=0)


def places(question, way: str) -> tuple[str, ...]:
    """Return the cases in which a way must be caught. Bytes count in every case, the rest where all is counted, and
    zeros also beyond every size."""
    if way in WRONG:
        if way != useless.ZEROS or not question.compiles:
            return (EVERYWHERE,)
        return (EVERYWHERE, *(BEYOND + axis for axis in beyond(question)), *far_out(question))
    if not question.compiles:
        return (EVERYWHERE,)
    large = (COMPILED,) if question.compile_case else ()
    alone = [ALONE_FOR + told for told in properties(question)] if way in OF_A_PROPERTY else []
    out = far_out(question) if way in OF_A_PROPERTY else ()
    return (EVERYWHERE, *large, *((ELSEWHERE,) if way in BYTES else ()), *alone, *out)


def ways(question) -> tuple[str, ...]:
    """Return all that is done to a question's right answer."""
    if question.compiles:
        return (*WAYS, *WRONG)
    if question.kind == "ranks":
        return (*wasteful_ranks.SENDING, *wasteful_ranks.conditions(question), *WRONG)
    return WRONG


def many(question, where: str) -> bool:
    """Return whether any limit asks for a second program."""
    large = where == COMPILED and question.compile_case
    if where.startswith(ALONE_FOR):
        cases = [replace(case, sm_count=32) for case in properties(question)[where.removeprefix(ALONE_FOR)]]
        every = [b for case in cases for part in question.budgets for b in account(question, part, case)]
        return any(budget.count == "programs" and budget.least > 2 for budget in every)
    if where in (IN_CORNERS, FAR):
        large = corners_of(question.id)[where == FAR][0]
    case = large or question.metered(np.random.default_rng(SEED))
    case = replace(case, sm_count=case.sm_count or 32)
    every = [budget for part in question.budgets for budget in account(question, part, case)]
    return any(budget.count == "programs" and budget.least > 1 for budget in every)


def made(question, way: str, where: str) -> str:
    """Return the answer that does too much. Raises NotMade."""
    source = right(question.id)
    if not question.compiles:
        if way in WRONG:
            return useless.function(source, question.entry, way)
        if way in wasteful_ranks.SENDING:
            return wasteful_ranks.cell(source, question.entry, way)
        return wasteful_ranks.beyond(source, question.entry, wasteful_ranks.conditions(question)[way])
    if not (told := condition(question, where)):
        raise NotMade("no such case")
    if way in WRONG:
        return cell(source, question.entry, useless.OF_KERNELS[way], told)
    if way in ALONE and not many(question, where):
        raise NotMade("one program may do it all")
    often = way == LOADS and where in (COMPILED, FAR)
    how = partial(WAYS[way], times=OFTEN) if often else WAYS[way]
    return cell(source, question.entry, how, told, limit(question, way, where))


def judge(question_id: str, way: str, where: str) -> str:
    """Say whether an answer that does too much lives, dies or cannot be made."""
    return judged(question_id, way, where)[0]


def judged(question_id: str, way: str, where: str, mode: str = "cpu") -> tuple[str, Record | None]:
    """Return what became of an answer, and its verdict."""
    question = questions.find(question_id)
    try:
        source = made(question, way, where)
    except NotMade:
        return NOT_MADE, None
    verdict = referee.grade_one(source, question, seed=SEED, mode=mode, eager=mode == "gpu")
    wrong = way in WRONG or where.startswith(BEYOND) or not question.compiles
    if verdict.verdict == REFUSED or not verdict.parts:
        return NOT_MADE, verdict
    error = verdict.parts[0].facts.get("error") or {}
    if verdict.parts[0].state == FAIL and (not wrong or error.get("kind") in CANNOT_BE_MADE):
        return NOT_MADE, verdict  # this answer cannot be changed so and stay right
    return (DIES if verdict.points < verdict.of else LIVES), verdict


def tasks(everything: bool, question: str | None = None) -> list[tuple[str, str, str]]:
    chosen = [one for one in questions.load().values() if question in (None, one.id)]
    quick = {soonest_of_topic(one) for one in kernel_questions()}
    if not (everything or question):
        chosen = [one for one in chosen if one.id in quick]
    every = [(one.id, way, where) for one in chosen for way in ways(one) for where in places(one, way)]
    if everything or question:
        return every
    of_quick = {": ".join(task): task for task in every if task[2] == EVERYWHERE}
    return [of_quick[name] for name in sample(list(of_quick), 6)]


TASK = ("question", "way", "where")


def run(
    everything: bool, say, question: str | None = None, jobs: int = 1, record: Path | None = None
) -> tuple[list[dict], list[str]]:
    """Return (a row for each answer that was made, the survivors)."""
    asked = tasks(everything, question)
    return resumed.run(TASK, asked, tasks(everything=True) if record else asked, judge, say, jobs, record)
