"""Search for sizes at which an answer's own comparisons and divisions are just even, or one beside it.

A condition that is off by one goes the right way at nearly all sizes. So sizes are changed until both sides of each
comparison are equal, or one apart, and until each division leaves no remainder, or the largest one.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from grader.questions import corner
from grader.questions.model import Case, KernelQuestion, UpTo
from grader.questions.on_condition import fewest
from grader.questions.reach import sized, words

KIND = "sizes at which numbers of yours meet"
MOST = 6  # cases of a check
TRIED = 120  # changed sizes
OFTEN = 3  # known cases at an edge, where one may be right for another reason
BASES = 6  # cases whose sizes are changed
EVEN, LAST = "even", "last"  # a division's remainder
Gaps = Callable[
    [Case], dict
]  # place in the text -> pairs: a difference and 0, or a remainder and its divisor


def search(question: KernelQuestion, gaps: Gaps, known: list[Case], rng: np.random.Generator) -> list[Case]:
    """Return small cases at edges that few known cases are at."""
    each = [(case, gaps(case)) for case in known]
    plain = words(question.public[0])
    few = [pair for pair in each if words(pair[0]) == plain and small(question, pair[0].sizes)]
    bases = [Base(question, gaps, *few[i]) for i in rng.permutation(len(few))[:BASES]]
    at = Counter(edge for _, one in each for edge in edges(one))
    gone = {edge for edge, cases in at.items() if cases >= OFTEN}
    found: list[tuple[Case, set]] = []
    tried = (
        (case, (place, edge))
        for place, edge in wanted([one for _, one in each], gone, rng)
        if not any((place, edge) in one for _, one in found)
        for base in bases
        for case in base.changed(place, edge)
    )
    for case, edge in islice(tried, TRIED):
        now = edges(gaps(case))
        if edge in now and not any(edge in one for _, one in found):
            found.append((case, now))
    return fewest([(case, now - gone) for case, now in found], MOST)


def small(question: KernelQuestion, sizes: dict) -> Case | None:
    """Return the plain case of these sizes, or None if a check can't afford it beside all others, or they don't go together."""
    case = sized(question, sizes)
    return case if case.sizes == sizes and corner.FEW.holds(question, case) else None


class Base:
    """Hold a case with its gaps, and how much each gap changes with each size."""

    def __init__(self, question: KernelQuestion, gaps: Gaps, case: Case, own: dict):
        self.question, self.sizes = question, case.sizes
        self.pairs = {place: nearest(pairs) for place, pairs in own.items()}
        self.slopes: dict[str, dict] = {}
        self.axes = {axis: one for axis, one in question.up_to.items() if isinstance(one, UpTo)}
        for axis, one in self.axes.items():
            if longer := small(question, self.sizes | {axis: self.sizes[axis] + one.step}):
                there = gaps(longer).items()
                self.slopes[axis] = {
                    place: nearest(pairs)[0] - self.pairs[place][0]
                    for place, pairs in there
                    if place in self.pairs
                }

    def changed(self, place: tuple, edge) -> Iterator[Case]:
        """Yield small cases with one other size, by which this edge should be reached."""
        gap, of = self.pairs.get(place, (0, -1))
        if of < 0:
            return
        target = {EVEN: 0, LAST: of - 1}.get(edge, edge)
        for axis, slopes in self.slopes.items():
            slope, one = slopes.get(place, 0), self.axes[axis]
            for way in (target - gap, target - gap + of, target - gap - of) if of else (target - gap,):
                by = way // slope * one.step if slope and way % slope == 0 else 0
                size = self.sizes[axis] + by
                if not by or not one.least <= size <= one.most:
                    continue
                if case := small(self.question, self.sizes | {axis: size}):
                    yield replace(case, kind=KIND, crossed=True)


def nearest(pairs: set) -> tuple[int, int]:
    """Return the pair of a place that is nearest to an edge, since it may be met several times."""
    return min(pairs, key=lambda pair: (abs(pair[0]), pair))


def edges(gaps: dict) -> set:
    """Return which edges a case is at."""
    found = set()
    for place, pairs in gaps.items():
        for gap, of in pairs:
            if of:
                found |= {(place, name) for name, at in ((EVEN, 0), (LAST, of - 1)) if gap == at}
            elif abs(gap) <= 1:
                found.add((place, gap))
    return found


def wanted(each: list[dict], gone: set, rng: np.random.Generator) -> list[tuple]:
    """Return the edges that few cases are at, of all that differ by case: comparisons first."""
    values: dict = {}
    for one in each:
        for place, pairs in one.items():
            values.setdefault(place, set()).update(pairs)
    places = [place for place, pairs in values.items() if len(pairs) > 1]
    places = [places[i] for i in rng.permutation(len(places))]
    divided = {place for place in places if any(of for _, of in values[place])}
    compared = [(place, edge) for edge in (0, -1, 1) for place in places if place not in divided]
    rests = [(place, edge) for edge in (EVEN, LAST) for place in places if place in divided]
    return [one for one in [*compared, *rests] if one not in gone]
