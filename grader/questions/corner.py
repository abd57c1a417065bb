"""Draw a corner: a hidden case in which all axes of a kernel question are longer than in every case that is known.

The ends of reach.py are long along one axis. Real calls are long along several, and an answer could go wrong or waste
there alone. A large corner is judged by programs drawn from its grid, a small one whole.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from grader.questions.draws import log_uniform
from grader.questions.model import Case, KernelQuestion, UpTo
from grader.questions.reach import sized

UNEVEN = 1.5  # at most this factor more or less of each axis, so that nobody knows a corner's shape
STEPS = 50  # of the way to the largest sizes
KIND = "all axes long"


@dataclass(frozen=True)
class Most:
    """What a check can afford: numbers of the largest tensor and of all inputs, and FLOP of the whole case."""

    numbers: int
    inputs: int
    flop: int

    def holds(self, question: KernelQuestion, case: Case) -> bool:
        """Return whether a case stays within it."""
        numbers = {t.name: math.prod(t.sizes(case.sizes)) for t in question.tensors}
        drawn = sum(numbers[t.name] for t in question.tensors if t.role != "out")
        useful = question.useful(case) if question.useful else 0
        return max(numbers.values()) <= self.numbers and drawn <= self.inputs and useful <= self.flop


LARGE = Most(1 << 25, 1 << 23, 1 << 38)  # where a few programs run
WHOLE = Most(1 << 21, 1 << 21, 1 << 30)


def corner(
    question: KernelQuestion, metered: Case | None, most: Most, rng: np.random.Generator
) -> Case | None:
    """Return a corner that is as large as may be, or None for a question with one axis."""
    axes = {axis: one for axis, one in question.up_to.items() if isinstance(one, UpTo)}
    if len(axes) < 2:
        return None
    known = [*question.public, *filter(None, (question.compile_case, metered))]
    least = {axis: min(one.most, 1 + max(c.sizes[axis] for c in known)) for axis, one in axes.items()}
    uneven = {axis: log_uniform(rng, 1 / UNEVEN, UNEVEN) for axis in axes}
    fixed = {axis: one[rng.integers(len(one))] for axis, one in question.up_to.items() if axis not in axes}

    def case(way: float) -> Case:
        """Return a case that goes this share of the way from what is known to the largest sizes, by factors."""
        far = {n: least[n] * (axes[n].most / least[n]) ** way * (uneven[n] if way else 1) for n in uneven}
        return _of(question, {n: min(axes[n].most, max(least[n], size)) for n, size in far.items()} | fixed)

    while not most.holds(question, case(0.0)):
        if len(uneven) <= 2:
            return None
        axis = str(rng.choice(list(uneven)))
        uneven.pop(axis)
        fixed[axis] = axes[axis].least
    low, high = 0, STEPS + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if most.holds(question, case(middle / STEPS)) else (low, middle)
    base = question.public[rng.integers(len(question.public))]
    return replace(case(low / STEPS), dtype=base.dtype, dtypes=base.dtypes)


def _of(question: KernelQuestion, sizes: dict) -> Case:
    whole = {}
    for axis, one in question.up_to.items():
        step, least = (one.step, one.least) if isinstance(one, UpTo) else (1, 0)
        whole[axis] = max(least, int(sizes[axis]) // step * step)
    return replace(sized(question, whole), kind=KIND)
