"""Draw a corner: a hidden case in which several axes of a kernel question are long together.

The ends of reach.py are long along one axis. Real calls are long along several, and an answer could go wrong or waste
there alone. A large corner is judged by programs drawn from its grid, a small one whole.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from grader.box.systems import has_processes
from grader.questions.draws import log_uniform
from grader.questions.far import Repeated
from grader.questions.model import Case, KernelQuestion, UpTo
from grader.questions.reach import sized, stepped

UNEVEN = 1.2  # at most this factor more or less of each axis, so that a corner's shape can't be known
ALIKE = 2 / 3  # of the corners have long axes of about the same size, as far as each goes
EVEN = 16, 16, 64, 256, 1024  # divide the sizes of half the corners: rows begin with a sector, or are round
AS_COMPILED = 2 / 3  # of corners are nowhere shorter than the compiled case, if they may have
TO_GROW = 1.5  # times its numbers
STEPS = 50  # of the way to the largest sizes
KIND = "several axes long"
FAR_KIND = "several axes very long"
LONG = 3  # axes at most: of many axes, drawn ones
SHORTER = 0.9  # times two axes that are too long together
PAIRS = 3  # of axes that go to their ends together, in a check
TRIES = 12  # axes that are too long together where they are known are drawn again


@dataclass(frozen=True)
class Most:
    """Hold the limits of a check, the numbers of the largest tensor and of all inputs, and the FLOP of the whole case."""

    numbers: int
    inputs: int
    flop: int

    def holds(self, question: KernelQuestion, case: Case) -> bool:
        """Return whether a case stays within it, and within what the lab says of each axis."""
        for axis, one in question.up_to.items():
            if isinstance(one, UpTo) and case.sizes[axis] > one.most:
                return False
        numbers = {t.name: math.prod(t.sizes(case.sizes)) for t in question.tensors}
        if max(numbers.values()) > self.numbers or drawn(question, case) > self.inputs:
            return False
        return not question.useful or question.useful(case) <= self.flop

    def less(self, times: float) -> Most:
        return replace(
            self, numbers=self.numbers // times, inputs=self.inputs // times, flop=self.flop // times
        )


@dataclass(frozen=True)
class Far(Most):
    """Hold the limits of a check where inputs repeat drawn numbers."""

    drawn: int

    def holds(self, question: KernelQuestion, case: Case) -> bool:
        return drawn(question, in_small(question, case)) <= self.drawn and super().holds(question, case)


# The memory of a tab grows to what its largest case takes, and never shrinks. What nobody touches takes memory there, so no
# corner is larger than memory.
PART, OF_FAR = (1, 1) if has_processes() else (3, 256)
LARGE = Most(24_000_000, 12_000_000, 1 << 38).less(PART)  # where a few programs run
WHOLE = Most(1 << 22, 1 << 22, 1 << 29)
FEW = Most(1 << 21, 1 << 21, 1 << 28)  # where programs run one by one
EVERY = Most(1 << 22, 1 << 22, 1 << 30)  # where each program is judged by its values alone
FAR = Far(1 << 30, 1 << 31, 1 << 44, drawn=1 << 23).less(OF_FAR)  # where inputs repeat what is drawn
# of each axis of `far`, in the case whose numbers are repeated: odd, so that an offset that wraps round meets others
SMALL = 1021, 253, 61, 13, 3, 1
POOL = 1 << 21  # numbers of that case, if it can be so small


def in_small(question: KernelQuestion, case: Case) -> Case:
    """Return the case whose numbers are repeated: short along each axis along which results don't depend on one another."""
    for few in SMALL:
        small = replace(case, sizes=case.sizes | {axis: min(case.sizes[axis], few) for axis in question.far})
        if drawn(question, small) <= POOL:
            break
    return small


def drawn(question: KernelQuestion, case: Case) -> int:
    """Return the numbers of all inputs."""
    return sum(math.prod(t.sizes(case.sizes)) for t in question.tensors if t.role != "out")


def less_far(rng: np.random.Generator) -> Far:
    """Return limits of any size between those of the large corner and of the far one."""
    return replace(FAR, numbers=int(log_uniform(rng, LARGE.numbers, max(LARGE.numbers, FAR.numbers))))


def far(question: KernelQuestion, metered: Case | None, most: Far, rng: np.random.Generator) -> Case | None:
    """Return a corner that is larger than memory, where there can be any."""
    if FAR.numbers <= LARGE.numbers:
        return None
    found = corner(question, metered, most, rng)
    large = found and max(math.prod(t.sizes(found.sizes)) for t in question.tensors) > LARGE.numbers
    return replace(found, kind=FAR_KIND) if large else None


def pairs(question: KernelQuestion, rng: np.random.Generator) -> list[Case]:
    """Return cases in which two axes go to their ends together while the others stay short, those of one tensor first: a
    product of just these two sizes is largest there."""
    axes = {axis: one for axis, one in question.up_to.items() if isinstance(one, UpTo)}
    if len(axes) < LONG or question.prepare:  # an answer would pack weights that are too large
        return []
    shapes = [t.shape for t in question.tensors if not callable(t.shape)]
    every = list(itertools.combinations(axes, 2))
    apart = [not any(set(pair) <= set(shape) for shape in shapes) for pair in every]
    chosen = sorted(rng.permutation(len(every)), key=lambda number: apart[number])[:PAIRS]
    found = (_at_ends(question, axes, every[number], rng) for number in chosen)
    return [case for case in found if case is not None]


def _at_ends(
    question: KernelQuestion, axes: dict[str, UpTo], pair: tuple[str, str], rng: np.random.Generator
) -> Case | None:
    """Return a case in which both axes are as long as the limits of a check let them be, or None."""
    fixed = {axis: one[rng.integers(len(one))] for axis, one in question.up_to.items() if axis not in axes}
    short = fixed | {axis: one.least for axis, one in axes.items()}
    long = {axis: axes[axis].drawn(rng) for axis in pair}
    base = question.public[rng.integers(len(question.public))]
    most = FAR if question.far else LARGE
    while all(size > axes[axis].least for axis, size in long.items()):
        case = sized(question, short | long)
        if most.holds(question, case):
            large = max(math.prod(t.sizes(case.sizes)) for t in question.tensors) > LARGE.numbers
            kind = FAR_KIND if large else KIND
            return replace(case, kind=kind, dtype=base.dtype, dtypes=base.dtypes)
        long = {axis: stepped(axes[axis], SHORTER * size) for axis, size in long.items()}
    return None


def repeated(
    question: KernelQuestion, case: Case, rng: np.random.Generator, inputs_of: Callable | None = None
) -> dict:
    """Return the inputs of a far corner, as `inputs_of` draws them."""
    inputs = (inputs_of or question.drawn_inputs)(in_small(question, case), rng)
    shapes = {t.name: t.sizes(case.sizes) for t in question.tensors}
    return {
        name: Repeated(one, shapes[name]) if name in shapes and one.shape != shapes[name] else one
        for name, one in inputs.items()
    }


def corner(
    question: KernelQuestion, metered: Case | None, most: Most, rng: np.random.Generator
) -> Case | None:
    """Return a corner that is as large as may be, or None for a question with one axis."""
    axes = {axis: one for axis, one in question.up_to.items() if isinstance(one, UpTo)}
    if len(axes) < 2:
        return None
    large = (
        question.compile_case if rng.random() < 0.5 else None
    )  # else a corner may be below the compiled case along an axis
    known = [*question.public, *filter(None, (large, metered))]
    longest = {axis: max(case.sizes[axis] for case in known) for axis in axes}
    least = {n: min(one.most, max(one.least, longest[n] + one.step)) for n, one in axes.items()}
    fixed = {axis: one[rng.integers(len(one))] for axis, one in question.up_to.items() if axis not in axes}
    even = int(rng.choice(EVEN)) if rng.random() < 0.5 else 1
    alike = rng.random() < ALIKE
    shortest = {axis: one.least for axis, one in axes.items()}
    # not where an expert's rows follow from two sizes: few experts of many rows load their weights again for each tile
    compiled = question.compile_case if rng.random() < AS_COMPILED and "E" not in axes else None
    if compiled and most.less(TO_GROW).holds(question, compiled):
        fixed = {axis: compiled.sizes[axis] for axis in fixed}
        shortest = {axis: compiled.sizes[axis] for axis in axes}
        for axis, one in axes.items():
            step = one.step if one.step > 1 else even
            longer = int(log_uniform(rng, 1, 2) * shortest[axis]) // step * step
            least[axis] = min(one.most, max(least[axis], longer))
    for _ in range(TRIES):
        long = rng.permutation(list(axes))[:LONG].tolist()
        uneven = {axis: log_uniform(rng, 1 / UNEVEN, UNEVEN) for axis in long}
        ends = min(least[axis] for axis in long), max(axes[axis].most for axis in long)
        short = fixed | {axis: size for axis, size in shortest.items() if axis not in long}

        def case(way: float, uneven=uneven, short=short, ends=ends) -> Case:
            """Return a case that goes this share of the way from what is known to the largest sizes, by factors."""
            sizes = dict(short)
            for axis, factor in uneven.items():
                first, last = ends if alike else (least[axis], axes[axis].most)
                size = first * (last / first) ** way * (factor if way else 1)
                step = axes[axis].step if axes[axis].step > 1 else even
                sizes[axis] = min(axes[axis].most, max(least[axis], int(size) // step * step))
            return replace(sized(question, {axis: int(sizes[axis]) for axis in question.up_to}), kind=KIND)

        if most.holds(question, case(0.0)):
            low, high = 0, STEPS + 1
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if most.holds(question, case(middle / STEPS)) else (low, middle)
            base = question.public[rng.integers(len(question.public))]
            return replace(case(low / STEPS), dtype=base.dtype, dtypes=base.dtypes)
    return None
