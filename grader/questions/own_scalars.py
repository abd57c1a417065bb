"""Draw cases whose scalars lie between numbers that an answer's own cell names.

An answer may be wrong for a band of a scalar's values that no case draws, and its text names the ends of the band.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from grader.questions.model import Case, KernelQuestion

KIND = "a scalar between numbers of yours"
DRAWS = 6  # of the hidden cases, which tell how far a scalar goes
MOST = 2  # such cases of a check


def cases(
    question: KernelQuestion, constants: list[float], known: list[Case], rng: np.random.Generator
) -> list[Case]:
    """Return cases in the middle of bands without a known case, in place of hidden cases with nearly the same scalar. They are
    judged by their values alone."""
    drawn = [*known, *(case for _ in range(DRAWS) for case in question.hidden(rng))]
    found = [
        replace(base, scalars={**base.scalars, name: value}, kind=KIND, crossed=True)
        for name in question.any_scalar
        for base, value in between(name, constants, known, drawn)
    ]
    return [found[i] for i in rng.permutation(len(found))[:MOST]]


def between(
    name: str, constants: list[float], known: list[Case], drawn: list[Case]
) -> Iterator[tuple[Case, float]]:
    """Yield a hidden case for each band of a scalar that no known case is in, and the middle of the band."""
    usual = drawn[0].scalars[name]
    varied = [case for case in drawn if case.scalars[name] not in (usual, 0)]
    values = [case.scalars[name] for case in varied]
    if not values:
        return
    low, high = min(values), max(values)
    ends = [low, *sorted({n for n in map(abs, constants) if low < n < high}), high]
    for a, b in zip(ends, ends[1:], strict=False):
        if len(ends) > 2 and not any(a < case.scalars[name] < b for case in known):
            middle = math.sqrt(a * b)
            yield min(varied, key=lambda case: abs(math.log(case.scalars[name] / middle))), middle
