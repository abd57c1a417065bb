"""How far a kernel question goes along each axis: the lab's table says it, and in every check one case goes to the end.

A size that the text leaves open is one that an answer may stop at. So each axis has a largest size, or a set of sizes.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from grader.questions.model import NEAR, Case, KernelQuestion, Question, UpTo

SEEDS = 4


def ends(question: KernelQuestion, rng: np.random.Generator) -> list[Case]:
    """Return a case for each axis that has a largest size: this axis is long, and all others are short."""
    axes = question.up_to.items()
    short = {axis: one.least if isinstance(one, UpTo) else one[0] for axis, one in axes}
    there = (
        question.compile_case.sizes if question.compile_case else {}
    )  # this case is judged in every check too
    long = {
        axis: one.drawn(rng)
        for axis, one in axes
        if isinstance(one, UpTo) and max(one.least, there.get(axis, 0)) < one.most
    }
    sized = question.sized or (lambda **sizes: replace(question.public[0], sizes=sizes, layout={}))
    return [
        replace(sized(**short | {axis: n}), kind=f"{axis} as large as it may be") for axis, n in long.items()
    ]


def hidden(question: Question, rng: np.random.Generator) -> list:
    """Return the hidden cases of a check: those that the question draws, and of a kernel the ends of its axes."""
    return [*question.hidden(rng), *(ends(question, rng) if question.compiles else ())]


def all_cases(question: KernelQuestion) -> Iterator[Case]:
    """Yield every case that a check may have, for a few seeds; those at the ends left out."""
    yield from question.public
    yield from filter(None, (question.compile_case, question.speed and question.speed.case))
    for seed in range(SEEDS):
        yield from question.hidden(np.random.default_rng(seed))
        if question.metered:
            yield question.metered(np.random.default_rng(seed))


def unreached(question: KernelQuestion) -> list[str]:
    """Return where what the text promises and what the cases try are not the same, in words."""
    cases, said = list(all_cases(question)), []
    far = [case for seed in range(SEEDS) for case in ends(question, np.random.default_rng(seed))]
    names = dict.fromkeys(itertools.chain.from_iterable(case.sizes for case in cases))
    for axis in names:
        tried, limit = {case.sizes[axis] for case in cases}, question.up_to.get(axis)
        if limit is None:
            said.append(f"{axis} has no largest size in up_to, so an answer may stop anywhere")
        elif isinstance(limit, UpTo):
            if max(tried) > limit.most or any(size % limit.step for size in tried):
                said.append(f"{axis} is up to {in_words(limit)}, and a case has {max(tried):,}")
            if max(case.sizes[axis] for case in [*far, *cases]) <= limit.most - NEAR * limit.step:
                said.append(f"{axis} is up to {in_words(limit)}, and no case goes there")
        elif tried != set(limit):
            said.append(f"{axis} is {in_words(limit)}, and cases have {', '.join(map(str, sorted(tried)))}")
    return said


def in_words(limit) -> str:
    if isinstance(limit, UpTo):
        return f"{limit.most:,}" + f" in multiples of {limit.step}" * (limit.step > 1)
    sizes = sorted(limit)
    return f"{', '.join(map(str, sizes[:-1]))} or {sizes[-1]}"


def sizes_in_words(question: KernelQuestion) -> str:
    """Say how far each axis goes: axes that go equally far are named together."""
    groups: dict = {}
    for axis, limit in question.up_to.items():
        said = f"up to {in_words(limit)}" if isinstance(limit, UpTo) else in_words(limit)
        groups.setdefault(said, []).append(axis)
    named = (f"{', '.join(axes[:-1])} and {axes[-1]}" if axes[1:] else axes[0] for axes in groups.values())
    return ", ".join(f"{axes} {said}" for axes, said in zip(named, groups, strict=True))
