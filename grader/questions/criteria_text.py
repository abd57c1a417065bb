"""Describe a question's judging for its lab: its parts, their points, the numbers of its row, and all limits of its
account."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from grader.questions.account import account
from grader.questions.model import (
    ANYTHING,
    DOT,
    ONE_ANOTHER,
    SCRATCH,
    WEIGHTS,
    Case,
    KernelQuestion,
    Part,
    Question,
    Steers,
)
from grader.questions.reach import sizes_in_words

WIDE_ENOUGH = "neighbours in memory: {} bytes or more by one instruction, so the compiler must see that they are neighbours"
COUNTED = (
    "The grader counts these quantities in every case, and each has a limit. You needn't plan for them one by one: if a "
    "kernel breaks a limit, the report of a check names it, with its number and where to look. The numbers below "
    "belong to one of the sizes that a check may draw, {sizes}."
)

NOTHING_STEERS = "Numbers in tensors don't decide what is loaded"
OTHERS = {SCRATCH: "scratch", WEIGHTS: "the prepared arrays", DOT: "`tl.dot`"}
OFFSETS = "Every tensor has fewer than 2^31 elements, so offsets fit into 32 bits"


def table(question: Question) -> str:
    """Return a Markdown table with a row per part. A number of the question is never written twice."""
    points = "bonus points" if question.bonus else "points"
    rows = [
        f"| {part.name} | {part.points:g} | {part.asks.format(**numbers(question))}{sizes(question, part)}{steering(question, part)} |"
        for part in question.parts
    ]
    return "\n".join([f"| part | {points} | asks |", "|---|---|---|", *rows])


def limits(question: Question) -> str:
    """Return all counted limits, by part, folded, or an empty text."""
    rows = [row for part in question.parts for row in counted(question, part)]
    if not rows:
        return ""
    said = COUNTED.format(sizes=", ".join(f"{axis} = {n:,}" for axis, n in one_size(question).sizes.items()))
    return "\n".join(
        ["<details><summary>All counted limits, by part</summary>", "", said, "", *rows, "", "</details>"]
    )


def one_size(question: KernelQuestion) -> Case:
    """Return one of the cases whose traffic is counted."""
    case = question.metered(np.random.default_rng(0))
    return replace(case, sm_count=case.sm_count or 32)


def steering(question: Question, part: Part) -> str:
    """Say in the first part with limits which numbers may decide what a kernel loads, and which it may compare."""
    first = isinstance(question, KernelQuestion) and part.name == next(iter(question.budgets), "")
    return "".join(f". {rule}" for rule in (steered(question), compared(question)) if rule) if first else ""


def steered(question: KernelQuestion) -> str:
    """Say which numbers may decide what a kernel loads."""
    found = [b for rule in question.budgets.values() for b in rule(one_size(question))]
    rule = NOTHING_STEERS + " or multiplied by `tl.dot`" * any(budget.count == "dot" for budget in found)
    return (
        f"{rule}, except those of {listed([*map(exception, question.steered)])}" if question.steered else rule
    )


def compared(question: KernelQuestion) -> str:
    """Say which constants numbers may be compared with, or nothing if all may."""
    if ANYTHING in question.compared:
        return ""
    single = dict.fromkeys([ONE_ANOTHER, "0", "inf", *question.compared])
    rule = f"Floats are compared only with {of_constants(single)}, and not rounded to whole numbers"
    if ONE_ANOTHER in question.compared:
        return rule
    many = f"only with {of_constants(question.compared)}" if question.compared else "with nothing"
    return f"{rule}. Maxima, sums and products of many numbers are compared {many}"


def of_constants(constants: Iterable[str]) -> str:
    """List what numbers may be compared with. Infinities stand for both signs."""
    return listed(list(dict.fromkeys("infinities" if "inf" in one else one for one in constants)))


def exception(row: Steers) -> str:
    """Say what the numbers of one input may decide."""
    by = "the prepared arrays" if row.by == WEIGHTS else f"`{row.by}`"
    of = listed([OTHERS.get(one, f"`{one}`") for one in row.of]) if row.of else "everything"
    return f"{by} ({'' if row.whether else 'which elements of '}{of})"


def sizes(question: Question, part: Part) -> str:
    """Say how large the sizes of a kernel's cases and their tensors may be."""
    if part.judge != "values" or not question.compiles:
        return ""
    not_all = ", but not all at their largest together" * (len(question.up_to) > 1)
    return f". Sizes: {sizes_in_words(question)}{not_all}. {OFFSETS}"


def counted(question: Question, part: Part) -> list[str]:
    """Return a part's limits as a Markdown list, each with its sum for one size."""
    if part.judge != "traffic":
        return []
    limits = [f"{b.what}: {b.model}" for b in account(question, part.name, one_size(question))]
    if part.name == next(iter(question.budgets)):
        limits.append(f"{launches(question.most_launches)} at most")
        limits.append(WIDE_ENOUGH.format(question.vector // 8))
        if not question.compiled_part:
            limits.append(f"registers: at most {question.most_spills_elsewhere:,} bytes spilled")
    return [f"- *{part.name}*" + ", without a GPU" * bool(part.gpu), *(f"  - {one}" for one in limits)]


def numbers(question: Question) -> dict:
    """Return the names that a part's words may use in braces."""
    found = {"public": cases(len(question.public))}
    if not isinstance(question, KernelQuestion):
        return found
    found |= {
        "launches": launches(question.most_launches),
        "targets": listed([f"sm_{target}" for target in question.targets]),
    }
    spills = question.most_spills
    found["spills"] = f"at most {spills:,} bytes of registers spilled" if spills else "no register spilled"
    if question.most_spills_elsewhere > spills:
        found["spills"] += (
            f" ({question.most_spills_elsewhere:,} bytes where launch(p) plans otherwise for another size)"
        )
    if question.compile_case:
        found["compiled"] = question.compile_case.sizes
    if question.speed:
        full, none = question.speed.full, question.speed.none
        found |= {"timed": question.speed.case.sizes, "full": f"{full:g}", "none": f"{none:g}"}
        found |= {"full_speed": f"{1 / full:.0%}", "none_speed": f"{1 / none:.0%}"}
    return found


def launches(count: int) -> str:
    words = ("no", "one", "two", "three", "four")
    return f"{words[count] if count < len(words) else count} launch{'es' * (count != 1)}"


def cases(count: int) -> str:
    return "one case" if count == 1 else f"{count} cases"


def listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
