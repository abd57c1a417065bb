"""Search for cases at which an answer's own conditions go ways that no other case goes.

The search is a small coverage-guided fuzzer: sizes come from the numbers of the cell, and a case that went a new way is
changed along an axis or two, until each condition has gone both ways. What launch(p) really plans for the drawn cases
are ways too, so that a condition counts in whatever form Python lets it be written.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from grader.questions import corner
from grader.questions.draws import log_uniform
from grader.questions.model import TRANSPOSED, TRANSPOSED_PADDED, Case, KernelQuestion, UpTo
from grader.questions.reach import repeats, sized, stepped, words

KIND = "sizes that a condition of yours tells from all others"
AT_NUMBER = "a size at a number of yours"
BEYOND = "sizes beyond numbers of yours along all axes"
KINDS = KIND, BEYOND
FARTHER = 1.02, 1.2  # times a number
A_SIZE = 256  # the least number of the cell that may be one
SIDE, CLOSE = 16, 0.08  # the most of the other axes, and what is near another size
TRIED = 500  # cases whose ways are looked at
PLANNED = 1500  # these and more, whose plans are looked at
DRAWN = 4 * PLANNED  # because many are too large
HALVED = 8  # sizes of one that is
NAMED, SHORT = 0.5, 0.2  # of the sizes are near a number of the cell, and as short as may be
# as rng.choice(..., p=...) draws, which takes a search long
OF_THREE = np.cumsum([NAMED, SHORT, 1 - NAMED - SHORT])
AS_IT_IS = 0.4  # of the cases have the dtypes and layouts of a hidden case
CHANGED = 0.6  # of the cases are cases that went a new way, changed
NEARBY = 0.4  # of those change a size by a factor of two at most
LANES, IN_SECTORS = 16, 0.5  # divide the sizes of so many cases
FEW = 6  # values of an expression that are ways; one with more of them is a size
FEW_IN_PLANS = 10  # the same of what plans hold, as a table of block sizes does
USUAL = 0.5  # of the cases have a value, which is a way then, and any other value another way
MOST = 8  # cases of a check
OF_PLANS = 5  # of them are those at which plans differ most
AT_NUMBERS = 3  # cases at numbers of the cell
PLAN = "plan"  # begins the place of a way that a plan tells
SETTINGS = "num_warps", "num_stages", "together"  # change no bytes, or repeat what constants say
SECTORS = "in sectors"  # ends the place of a way that a case goes whose sectors are limited
PROGRAMS = 2  # of a case that are drawn
AT_NUMBERS_TOO = 4  # and those at numbers of the cell, which may be the same
LARGE = replace(corner.LARGE, inputs=corner.LARGE.numbers)
Ways = Callable[[Case], dict]  # way -> the program that goes it, or None
Plans = Callable[
    [list[Case], list[Case]], list[dict]
]  # of limited and of drawn cases, the ways that their plans go


@dataclass(frozen=True)
class Telling:
    """Hold a case that goes new ways, and the programs that go them."""

    case: Case
    programs: list[tuple[int, int, int]]


def search(
    question: KernelQuestion,
    numbers: list[int],
    ways: Ways,
    plans: Plans,
    limited: list[Case],
    strict: Callable[[Case], bool],
    long: dict[str, Callable[[Case], bool]],
    most: corner.Most,
    rng: np.random.Generator,
) -> list[Telling]:
    """Return the cases that go ways which no limited case goes: each time the one that goes most of them. A way of a case
    whose sectors are limited is a way of its own, since a case without this limit may hide what it wastes. So is a
    constant of a plan at sizes that are long along an axis."""
    question = in_part(question)
    plain = words(question.public[0])
    usual = [*question.public, *question.hidden(rng)]
    bases = [case for case in usual if words(case) == plain]
    look = Looks(usual, repeats(question, usual))
    near = {axis: _near(one, numbers) for axis, one in question.up_to.items()}
    values, found, progress = defaultdict(set), [], []
    first = list(map(ways, limited))
    for place, value in set().union(*first):
        values[place].add(value)
    for _ in range(DRAWN):
        if len(found) == PLANNED:
            break
        sizes = {axis: _size(one, near[axis], rng) for axis, one in question.up_to.items()}
        base = look.drawn(bases[rng.integers(len(bases))], rng)
        if progress and rng.random() < CHANGED:
            earlier, base = progress[rng.integers(len(progress), size=2).max()]  # rather a late one
            changed = rng.choice(list(sizes), min(len(sizes), int(rng.integers(1, 3))), replace=False)
            near_it = rng.random() < NEARBY
            sizes = earlier | {
                axis: _about(question.up_to[axis], earlier[axis], rng) if near_it else sizes[axis]
                for axis in changed
            }
            base = look.changed(base, rng)
        if rng.random() < IN_SECTORS:
            sizes = {axis: _whole(question.up_to[axis], size) for axis, size in sizes.items()}
        case = _within(question, sizes, most, rng)
        if case is None:
            continue
        case = replace(case, dtype=base.dtype, dtypes=base.dtypes, layout=base.layout, kind=KIND)
        found.append((case, ways(case) if len(found) < TRIED else {}))
        new = [(p, v) for p, v in found[-1][1] if v not in values[p] and len(values[p]) < FEW]
        for place, value in found[-1][1]:
            values[place].add(value)
        if new:
            progress.append((case.sizes, base))
    cases = [case for case, _ in found]
    each = [*first, *(way for _, way in found)]
    each = in_few([one | more for one, more in zip(each, plans(limited, cases), strict=True)])
    blocks = block_sizes(each, [*limited, *cases])
    each = [
        one
        | ({((*place, SECTORS), v): p for (place, v), p in one.items()} if strict(case) else {})
        | {
            ((*place, along), v): p
            for along, holds in long.items()
            if holds(case)
            for (place, v), p in one.items()
            if place in blocks
        }
        for case, one in zip([*limited, *cases], each, strict=True)
    ]
    gone = set().union(*each[: len(limited)])
    new = [{way: p for way, p in one.items() if way not in gone} for one in each[len(limited) :]]
    told = [
        (Telling(case, sorted(set(filter(None, one.values())))), set(one))
        for case, one in zip(cases, new, strict=True)
    ]
    planned = [(one, {way for way in way_of if way[0][0] == PLAN}) for one, way_of in told]
    planned.sort(key=lambda one: not in_sectors(one[0].case))
    picked = fewest(planned, OF_PLANS)
    went = set().union(*(way_of for one, way_of in told if one in picked))
    picked += fewest([(one, way_of - went) for one, way_of in told], MOST - len(picked))
    again = [pair for pair in planned[::-1] if not any(pair[0] is one for one in picked)]
    return [*picked, *fewest(again, MOST - len(picked))]


def block_sizes(each: list[dict], cases: list[Case]) -> set:
    """Return the places of plans' constants that aren't settings of the compiler, nor mostly a size or the next power of
    two."""
    values = defaultdict(list)
    for one, case in zip(each, cases, strict=True):
        sizes = {str(n) for size in case.sizes.values() for n in (size, 1 << max(0, size - 1).bit_length())}
        for place, value in one:
            if place[0] == PLAN and len(place) == 2 and place[1].split()[-1] not in SETTINGS:
                values[place].append(value in sizes)
    return {place for place, like_sizes in values.items() if sum(like_sizes) < USUAL * len(like_sizes)}


def in_sectors(case: Case) -> bool:
    return all(size % LANES == 0 for size in case.sizes.values())


def in_few(each: list[dict]) -> list[dict]:
    """Return the ways of each case without sizes. Of a place with many values, a way is whether it has its usual one."""
    cases_of = Counter(way for one in each for way in one)
    values: dict = defaultdict(dict)
    for (place, value), cases in cases_of.items():
        values[place][value] = cases
    few = {place: len(of) <= (FEW_IN_PLANS if place[0] == PLAN else FEW) for place, of in values.items()}
    usual = {
        place: max(of, key=of.get)
        for place, of in values.items()
        if not few[place] and max(of.values()) >= USUAL * len(each)
    }
    return [
        {(p, v): program for (p, v), program in one.items() if few[p]}
        | {((*p, "usual"), usual[p] == v): program for (p, v), program in one.items() if p in usual}
        for one in each
    ]


def at_numbers(
    question: KernelQuestion, numbers: list[int], known: list[Case], rng: np.random.Generator
) -> list[Case]:
    """Return cases at numbers of the cell that no known case comes near, since not every dependence on a size is a
    condition. Their other axes are short, and they are judged by their values alone."""
    axes = {axis: one for axis, one in question.up_to.items() if isinstance(one, UpTo)}
    found = []
    for axis, n in rng.permutation([(axis, n) for axis in axes for n in numbers if n >= A_SIZE]).tolist():
        one, base = axes[axis], question.public[0].sizes
        size = int(n) // one.step * one.step
        tried = (case.sizes[axis] for case in known)
        if not one.least <= size <= one.most or any(abs(other / size - 1) < CLOSE for other in tried):
            continue
        short = {other: stepped(axes[other], min(base[other], SIDE)) for other in axes}
        case = sized(question, base | short | {axis: size})
        if corner.FEW.holds(question, case):
            found.append(replace(case, kind=AT_NUMBER, crossed=True))
            known = [*known, case]
        if len(found) == AT_NUMBERS:
            break
    return found


def beyond(
    question: KernelQuestion, numbers: list[int], known: list[Case], rng: np.random.Generator
) -> Case | None:
    """Return a case that is beyond numbers of a kernel along all axes together, the largest that a check affords, since a
    dependence on several sizes need not be a condition. Return None if a known case is beyond them."""
    question = in_part(question)
    axes = {axis: one for axis, one in question.up_to.items() if isinstance(one, UpTo)}
    left = {axis: [n for n in numbers if A_SIZE <= n < one.most] for axis, one in axes.items()}
    while sum(map(bool, left.values())) > 1:
        named = {axis: each[-1] for axis, each in left.items() if each}
        sizes = question.public[0].sizes | {
            axis: min(axes[axis].most, stepped(axes[axis], n * log_uniform(rng, *FARTHER)) + axes[axis].step)
            for axis, n in named.items()
        }
        case = sized(question, sizes)
        if case.sizes == sizes and corner.EVERY.holds(question, case):
            there = any(all(other.sizes[axis] > n for axis, n in named.items()) for other in known)
            return None if there else replace(case, kind=BEYOND)
        left[rng.choice(list(named))].pop()
    return None


def in_part(question: KernelQuestion) -> KernelQuestion:
    """Return the question with the sizes of cases of which a few programs run."""
    there = question.sized_in_part and question.in_corners
    return replace(question, sized=question.sized_in_part) if there else question


def programs(grid: tuple | None, numbers: list[int], rng: np.random.Generator) -> list[tuple[int, int, int]]:
    """Return programs whose ways are looked at: the first and the last, some at numbers of the cell along each axis, and
    drawn ones."""
    if grid is None:
        return []
    ends = {(0, 0, 0), tuple(n - 1 for n in grid)}
    near = [[n for n in numbers if 0 < n < size] for size in grid]
    named = {
        tuple(int(each[rng.integers(len(each))]) if each else 0 for each in near)
        for _ in range(AT_NUMBERS_TOO)
    }
    drawn = [tuple(int(rng.integers(n)) for n in grid) for _ in range(PROGRAMS)]
    return sorted({*ends, *named, *drawn})


class Looks:
    """Combine dtypes and layouts that cases have, since conditions may name several together."""

    def __init__(self, cases: list[Case], repeats: dict[str, list[str]]):
        self.dtypes = list({(case.dtype, *sorted(case.dtypes.items())): case for case in cases}.values())
        names = {name: None for case in cases for name in case.layout}
        self.layouts = {name: list({case.layout.get(name, ""): None for case in cases}) for name in names}
        for name, each in self.layouts.items():
            if TRANSPOSED not in each and any(one.startswith("spread") for one in each):
                each.append(TRANSPOSED)  # any strides are promised
            if TRANSPOSED in each and TRANSPOSED_PADDED not in each:
                each.append(TRANSPOSED_PADDED)
            self.layouts[name] = each + repeats.get(name, [])

    def drawn(self, case: Case, rng: np.random.Generator) -> Case:
        """Return the case as it is, or with a dtype and a layout of each tensor that are drawn apart."""
        if rng.random() < AS_IT_IS:
            return case
        case = self.of_dtypes(case, rng)
        layout = {name: each[rng.integers(len(each))] for name, each in self.layouts.items()}
        return replace(case, layout={n: one for n, one in layout.items() if one})

    def changed(self, case: Case, rng: np.random.Generator) -> Case:
        """Return the case as it is, or with other dtypes, or with another layout of one tensor."""
        if rng.random() < AS_IT_IS:
            return case
        one = int(rng.integers(len(self.layouts) + 1))
        if one == len(self.layouts):
            return self.of_dtypes(case, rng)
        name = [*self.layouts][one]
        layout = case.layout | {name: self.layouts[name][rng.integers(len(self.layouts[name]))]}
        return replace(case, layout={n: one for n, one in layout.items() if one})

    def of_dtypes(self, case: Case, rng: np.random.Generator) -> Case:
        of = self.dtypes[rng.integers(len(self.dtypes))]
        return replace(case, dtype=of.dtype, dtypes=of.dtypes)


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
        sizes = sizes | {axis: stepped(one, sizes[axis] / 2)}
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
    drawn = stepped(axis, log_uniform(rng, axis.least, axis.most))
    named = near[rng.integers(len(near))] if near else drawn
    return (named, axis.least, drawn)[OF_THREE.searchsorted(rng.random(), "right")]


def _about(axis, size: int, rng: np.random.Generator) -> int:
    """Return a size of an axis near another one."""
    return stepped(axis, size * log_uniform(rng, 1 / 2, 2)) if isinstance(axis, UpTo) else size


def _whole(axis, size: int) -> int:
    """Return a size of an axis at which rows begin with a sector, where limits are strictest."""
    return stepped(axis, size // LANES * LANES) if isinstance(axis, UpTo) and size > LANES else size


def _near(axis, numbers: list[int]) -> list[int]:
    """Return the sizes of an axis at a number, next to it and somewhat beyond it."""
    if not isinstance(axis, UpTo):
        return []
    steps = -axis.step, 0, axis.step
    each = {round(n * more) // axis.step * axis.step + d for n in numbers for more in (1, 1.2) for d in steps}
    return sorted(n for n in each if axis.least <= n <= axis.most)
