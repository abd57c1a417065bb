"""Search for cases at which an answer's own conditions go ways that no other case goes.

The search is a small coverage-guided fuzzer: sizes come from the numbers of the cell, and a case that went a new way is
changed along an axis or two, until each condition has gone both ways.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from grader.questions import corner
from grader.questions.draws import log_uniform
from grader.questions.model import Case, KernelQuestion, UpTo
from grader.questions.reach import sized, words

KIND = "sizes that a condition of yours tells from all others"
TRIED = 500  # cases whose ways are looked at
DRAWN = 4 * TRIED  # because many are too large
HALVED = 8  # sizes of one that is
NAMED, SHORT = 0.6, 0.25  # of the sizes are near a number of the cell, and as short as may be
CHANGED = 0.6  # of the cases are cases that went a new way, changed
FEW = 6  # values of an expression that are ways; one with more of them is a size
MOST = 3  # cases of a check
LARGE = replace(corner.LARGE, inputs=corner.LARGE.numbers)
Ways = Callable[[Case], frozenset]


def search(
    question: KernelQuestion,
    numbers: list[int],
    ways: Ways,
    gone: set,
    most: corner.Most,
    rng: np.random.Generator,
) -> list[Case]:
    """Return the cases that go ways which none has gone: each time the one that goes most of them."""
    plain = words(question.public[0])
    bases = [case for case in (*question.public, *question.hidden(rng)) if words(case) == plain]
    near = {axis: _near(one, numbers) for axis, one in question.up_to.items()}
    values, found, progress = defaultdict(set), [], []
    for place, value in gone:
        values[place].add(value)
    for _ in range(DRAWN):
        if len(found) == TRIED:
            break
        sizes = {axis: _size(one, near[axis], rng) for axis, one in question.up_to.items()}
        base = bases[rng.integers(len(bases))]
        if progress and rng.random() < CHANGED:
            earlier, base = progress[rng.integers(len(progress), size=2).max()]  # rather a late one
            changed = rng.choice(list(sizes), min(len(sizes), int(rng.integers(1, 3))), replace=False)
            sizes = earlier | {axis: sizes[axis] for axis in changed}
        case = _within(question, sizes, most, rng)
        if case is None:
            continue
        case = replace(case, dtype=base.dtype, dtypes=base.dtypes, layout=base.layout, kind=KIND)
        found.append((case, ways(case)))
        new = [(p, v) for p, v in found[-1][1] if v not in values[p] and len(values[p]) < FEW]
        for place, value in found[-1][1]:
            values[place].add(value)
        if new:
            progress.append((case.sizes, base))
    few = {place for place, each in values.items() if len(each) <= FEW}
    return fewest([(case, {way for way in each if way[0] in few} - gone) for case, each in found], MOST)


def _within(
    question: KernelQuestion, sizes: dict, most: corner.Most, rng: np.random.Generator
) -> Case | None:
    """Return a case of these sizes, some of them halved until a check can afford it."""
    axes = [axis for axis, one in question.up_to.items() if isinstance(one, UpTo)]
    for _ in range(HALVED):
        case = sized(question, sizes)
        if most.holds(question, case):
            return case
        axis = axes[rng.integers(len(axes))]
        one = question.up_to[axis]
        sizes = sizes | {axis: max(one.least, sizes[axis] // 2 // one.step * one.step)}
    return None


def fewest(rest: list[tuple], most: int) -> list:
    """Return the cases that go all new ways together, each time the one that goes most of them. `rest` holds cases with
    their new ways."""
    picked: list = []
    while rest and len(picked) < most:
        case, new = max(rest, key=lambda one: len(one[1]))
        if not new:
            break
        picked.append(case)
        rest = [(one, found - new) for one, found in rest]
    return picked


def _size(axis, near: list[int], rng: np.random.Generator) -> int:
    if not isinstance(axis, UpTo):
        return axis[rng.integers(len(axis))]
    drawn = max(axis.least, int(log_uniform(rng, axis.least, axis.most)) // axis.step * axis.step)
    named = near[rng.integers(len(near))] if near else drawn
    return rng.choice([named, axis.least, drawn], p=[NAMED, SHORT, 1 - NAMED - SHORT]).item()


def _near(axis, numbers: list[int]) -> list[int]:
    """Return the sizes of an axis at a number, next to it and somewhat beyond it."""
    if not isinstance(axis, UpTo):
        return []
    steps = -axis.step, 0, axis.step
    each = {round(n * more) // axis.step * axis.step + d for n in numbers for more in (1, 1.2) for d in steps}
    return sorted(n for n in each if axis.least <= n <= axis.most)
