"""Set how far a kernel question goes along each axis. The lab's table says so, and in every check one case goes that far.

An answer may stop at a size that the text leaves open. So each axis has a largest size, or a set of sizes.
Kernels often have a path of their own for large sizes. So a check also draws some crossings from `pool`: a long axis with
special values, a dtype or a layout. They are judged by their values alone, since no budget was made for such sizes.
"""

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import balanced, coincidences, regular
from grader.questions.draws import log_uniform
from grader.questions.memory import APART
from grader.questions.model import (
    NEAR,
    REPEATED,
    TRANSPOSED,
    TRANSPOSED_PADDED,
    WIDE,
    Case,
    KernelQuestion,
    Question,
    Tensor,
    UpTo,
)

SEEDS = 4
CROSSED = 9  # crossings of a check
COUNTS = re.compile(r"( \d+)+$")  # numbers at the end of a kind of values, which go with the sizes
LONG = 1 / 12  # of the largest size, the least of a long axis
AT_END = "as large as it may be"  # ends the kind of a case with one such axis
BY_BLOCKS = 3  # times as often: along an axis of blocks, where kernels have other tiles for large sizes
LANES = 1 << 18  # elements of the largest tensor of a crossing
AT_THE_END = 1 / 4  # of the crossings, where a long axis is one of its largest sizes
SIDES = 1010, 1200  # of two axes that are long together
FLOATS = "fp16", "bf16", "fp32"
FLOP = 1 << 29  # that a crossing needs
BEYOND_16_BITS = 1 << 17  # elements between the first and the last of a tensor of few numbers, about
WITH_GAPS = 1 / 2  # of the cases with transposed tensors
MANY_ALIKE = 1 << 17  # numbers of the largest tensor of a case whose inputs coincide
FEWEST = 2  # along each axis of these inputs
SPREAD, FAR_APART, FEW = "spread ", (256, 700), 1 << 13  # the most numbers of a tensor that lie so far apart
BEYOND_24_BITS, AT_RANDOM = 1 << 24, 1 << 12  # elements from one index to the next, and at most so many more
SOMETIMES = 1 / 3  # of the checks, because a machine is sent all that lies between
MOST_APART = 72_000_000  # bytes of such a tensor, with what lies between
HARD_TO_DIVIDE_BY = 41, 47, 55, 61  # n times fl(1 / n) is less than 1, also for 2 n, 4 n and so on
TILES = 128, 64, 32  # lengths
OF_MANY_TILES = 1 << 20  # numbers of the largest tensor
OTHERWISE = 2 / 3  # of the tensors of a case of the metered size have a layout
AS_IT_IS = 1 / 2  # of the crossings have a layout of another case
UNUSUAL = 4  # kinds of values that are also drawn at about the metered size
BEYOND = 2.0**15  # of a number that such a kind holds, or one that isn't finite
ALL_AXES = 1 / 2  # of the inputs with a stride of 0 are one number, expanded to a tensor


def ends(question: KernelQuestion, rng: np.random.Generator) -> list[Case]:
    """Return a case for each axis that has a largest size: this axis is long, and all others are short, or drawn from their set."""
    axes = question.up_to.items()
    short = {axis: one.least for axis, one in axes if isinstance(one, UpTo)}
    of_a_set = [(axis, one) for axis, one in axes if not isinstance(one, UpTo)]
    there = (
        question.compile_case.sizes if question.compile_case else {}
    )  # this case is judged in every check too
    long = {
        axis: one.drawn(rng)
        for axis, one in axes
        if isinstance(one, UpTo) and max(one.least, there.get(axis, 0)) < one.most
    }
    drawn = [{other: one[rng.integers(len(one))] for other, one in of_a_set} for _ in long]
    return [
        replace(sized(question, short | some | {axis: n}), kind=f"{axis} {AT_END}")
        for some, (axis, n) in zip(drawn, long.items(), strict=True)
    ]


def hidden(question: Question, rng: np.random.Generator) -> list:
    """Return the hidden cases of a check: those that the question draws, and of a kernel the ends of its axes and some
    crossings."""
    drawn = list(question.hidden(rng))
    if not question.compiles:
        return drawn
    drawn = [with_gaps(case, rng) for case in drawn]
    return [
        *(far_apart(question, case, rng) for case in drawn),
        *stride_of_0(question, drawn, rng),
        *coinciding(question, drawn, rng),
        *ends(question, rng),
        *crossings(question, drawn, rng),
        *metered_otherwise(question, drawn, rng),
        *many_tiles(question, rng),
        *rows_apart(question, drawn, rng),
        *balanced.cases(question, plain_ones(question, drawn), rng),
        *metered_unusual(question, drawn, rng),
        *balanced.metered(question, rng),
        *turned_apart(question, drawn, rng),
        *one_apart(question, drawn, rng),
        *but_for_one(question, plain_ones(question, drawn), rng),
        *one_column(question, drawn, rng),
        *views_of_larger(question, drawn, rng),
    ]


def with_gaps(case: Case, rng: np.random.Generator) -> Case:
    """Return the case, half the time with gaps between the columns of its transposed tensors, or between all their numbers,
    because a kernel may take the number of rows for the distance of two columns, or a short step for one."""
    how = TRANSPOSED_PADDED if rng.random() < WITH_GAPS else f"{TRANSPOSED} {SPREAD}{rng.integers(2, 6)}"
    gaps = {name: how for name, lies in case.layout.items() if lies == TRANSPOSED}
    return replace(case, layout=case.layout | gaps) if gaps and rng.random() < WITH_GAPS else case


def turned_apart(question: KernelQuestion, drawn: list[Case], rng: np.random.Generator) -> list[Case]:
    """Return a plain case whose matrices all lie column by column with gaps between all their numbers, of those tensors that
    lie so in some case, because a kernel may take a step of 1 for granted where all are transposed."""
    turned = {name for c in (*question.public, *drawn) for name, how in c.layout.items() if TRANSPOSED in how}
    names = [t.name for t in question.tensors if t.name in turned]
    if not names:
        return []
    plain = plain_ones(question, drawn)
    case = plain[rng.integers(len(plain))]
    layout = {name: f"{TRANSPOSED} {SPREAD}{rng.integers(2, 6)}" for name in names}
    return [replace(case, layout=layout, kind="matrices column by column, with gaps", crossed=True)]


def far_apart(question: KernelQuestion, case: Case, rng: np.random.Generator) -> Case:
    """Return the case, half the time with its spread tensors of few numbers far apart, as in every 300th column, and with the
    shortest so far that 16 bits don't hold their offsets."""
    numbers = {tensor.name: math.prod(tensor.sizes(case.sizes)) for tensor in question.tensors}
    names = [name for name, how in case.layout.items() if how.startswith(SPREAD) and numbers[name] <= FEW]
    if not names or rng.random() < WITH_GAPS:
        return case
    steps: dict[str, int] = {}
    for name in names:
        most = max(FAR_APART[1], BEYOND_16_BITS // max(1, numbers[name]))
        while (step := int(rng.integers(FAR_APART[0], most))) in steps.values():
            pass
        steps[name] = step
    return replace(case, layout=case.layout | {name: f"{SPREAD}{step}" for name, step in steps.items()})


def views_of_larger(question: KernelQuestion, drawn: list[Case], rng: np.random.Generator) -> list[Case]:
    """Return a case whose tensors are views of larger ones, with offsets beyond 16 bits, because a kernel may take fewer bits for
    them. In some checks the stride of an input of few matrices is beyond 24 bits."""
    strided = {name for c in drawn for name, how in c.layout.items() if not how.startswith(REPEATED)}
    tensors = [t for t in question.tensors if t.name in strided]
    if not tensors:
        return []
    of_matrices = [t for t in tensors if t.role == "in" and len(t.axes) > 2]
    of_matrices = of_matrices if rng.random() < SOMETIMES else []
    few = [(t, _of_few(question, t, drawn)) for t in of_matrices]
    few = [(t, case) for t, case in few if case is not None]
    layout = {t.name: f"{APART}{rng.integers(BEYOND_16_BITS // 2, 2 * BEYOND_16_BITS)}" for t in tensors}
    base = sized(question, question.public[0].sizes)
    if few:
        tensor, base = few[rng.integers(len(few))]
        step = BEYOND_24_BITS + int(rng.integers(1, AT_RANDOM))
        layout[tensor.name] = f"{APART}{step * (tensor.sizes(base.sizes)[0] - 1)}"
    return [replace(base, layout=layout, kind="tensors that are parts of larger ones", crossed=True)]


def _of_few(question: KernelQuestion, tensor: Tensor, drawn: list[Case]) -> Case | None:
    """Return a case in which a tensor whose outermost stride is beyond 24 bits takes so many bytes at most, or None."""
    usual = question.public[0]
    fewer = [
        {axis: max(FEWEST, one.least, one.step) if isinstance(one, UpTo) else min(one)}
        for axis, one in question.up_to.items()
    ]
    tried = (sized(question, usual.sizes | some) for some in fewer)
    plain = (case for case in drawn if words(case) == words(usual))
    cases = (replace(case, layout={}) for case in itertools.chain(tried, plain))
    return next((case for case in cases if 0 < _beyond_24_bits(case, tensor) <= MOST_APART), None)


def _beyond_24_bits(case: Case, tensor: Tensor) -> int:
    """Return how many bytes a tensor takes whose outermost stride is beyond 24 bits."""
    return (tensor.sizes(case.sizes)[0] - 1) * BEYOND_24_BITS * DTYPES[case.dtype_of(tensor)].itemsize


def coinciding(question: KernelQuestion, drawn: list[Case], rng: np.random.Generator) -> list[Case]:
    """Return a case for each way in which inputs may coincide, in place of the numbers of a plain hidden case."""
    if not question.alike:
        return []
    plain = plain_ones(question, drawn)
    kinds = [kind for kind, way in coincidences.KINDS.items() if way or len(question.alike) > 1]
    chosen = rng.choice(len(plain), len(kinds), replace=len(kinds) > len(plain))
    found = [replace(plain[i], kind=kind, crossed=True) for i, kind in zip(chosen, kinds, strict=True)]
    longest = max(plain, key=lambda case: max(case.sizes.values()))  # with whole blocks
    return [
        replace(longest, kind=case.kind, crossed=True) if case.kind in coincidences.LONG else case
        for case in found
    ]


def but_for_one(question: KernelQuestion, plain: list[Case], rng: np.random.Generator) -> list[Case]:
    """Return a case for each way in which rows may be regular but for one place, in place of the numbers of the plain case whose
    inputs have the longest rows, or of one that the question draws for it."""
    tensors = [tensor for tensor in question.tensors if tensor.name in question.may_be_regular]

    def shortest(case: Case) -> list[int]:
        return sorted(tensor.sizes(case.sizes)[-1] for tensor in tensors)

    if not tensors:
        return []
    base = question.regular_case(rng) if question.regular_case else max(plain, key=shortest)
    return [replace(base, kind=kind, crossed=True) for kind in regular.KINDS]


def plain_ones(question: KernelQuestion, drawn: list[Case]) -> list[Case]:
    """Return the hidden cases of usual numbers, sizes and strides, or a public case if there are none."""
    usual = question.public[0]
    plain = [case for case in drawn if not case.layout and case.values == usual.values]
    return [case for case in plain if _holds_some(question, case)] or [usual]


def _holds_some(question: KernelQuestion, case: Case) -> bool:
    """Return whether no such input is short along an axis, and no tensor is large."""
    shapes = {tensor.name: tensor.sizes(case.sizes) for tensor in question.tensors}
    short = min((min(shapes[name]) for name in question.alike if name in shapes), default=FEWEST)
    return short >= FEWEST and max(map(math.prod, shapes.values())) <= MANY_ALIKE


def metered_otherwise(question: KernelQuestion, drawn: list[Case], rng: np.random.Generator) -> list[Case]:
    """Return cases of about the metered size in a dtype and a layout of other cases, which are mostly too small to show what
    a kernel spends on these alone."""
    ways: dict[str, list[str]] = {}
    for case in drawn:
        for name, how in case.layout.items():
            if not how.startswith(REPEATED):
                ways.setdefault(name, []).append(how)
    usual = question.public[0]
    kinds = {(c.dtype, str(c.dtypes)): c for c in [*question.public, *drawn] if c.values == usual.values}
    if not question.metered or (not ways and len(kinds) < 2):
        return []
    layouts = [
        {name: how[rng.integers(len(how))] for name, how in ways.items() if rng.random() < OTHERWISE},
        {name: TRANSPOSED for name, how in ways.items() if any(one.startswith(TRANSPOSED) for one in how)},
    ]
    found = []
    for layout in layouts[: 1 + bool(layouts[1])]:
        base = list(kinds.values())[rng.integers(len(kinds))]
        case = replace(question.metered(rng), layout=layout, dtype=base.dtype, dtypes=base.dtypes)
        found.append(replace(case, sm_count=0, kind="about the metered size, with another dtype or layout"))
    return [with_gaps(case, rng) for case in found]


def metered_unusual(question: KernelQuestion, drawn: list[Case], rng: np.random.Generator) -> list[Case]:
    """Return cases of about the metered size with unusual values of other cases, which are mostly too small to show what a
    kernel spends on these alone."""
    usual = words(question.public[0])
    bases = list({words(case): case for case in drawn if words(case) != usual}.values())
    bases = [bases[i] for i in rng.permutation(len(bases))] if question.metered else []
    found = []
    for base in sorted(bases, key=lambda case: not extreme(question, case)):
        if case := like(base, question.metered(rng)):
            case = replace(case, sm_count=0, kind=f"about the metered size: {base.kind}")
            found.append(question.crossed(case) if question.crossed else case)
    return [case for case in found if case is not None][:UNUSUAL]


EXTREME: dict[tuple, bool] = {}  # by question, kind of values and dtype


def extreme(question: KernelQuestion, case: Case) -> bool:
    """Return whether inputs of a case's kind hold numbers beyond fp16, or what isn't finite, which a kernel may treat in a
    second pass. This is found once, from inputs that no check has."""
    kind = question.id, words(case), case.dtype
    if kind not in EXTREME:
        inputs = question.drawn_inputs(case, np.random.default_rng(0)).values()
        floats = [np.abs(one.astype(np.float64)) for one in inputs if one.dtype.kind not in "iub"]
        EXTREME[kind] = any(one.size and not one.max() <= BEYOND for one in floats)
    return EXTREME[kind]


def many_tiles(question: KernelQuestion, rng: np.random.Generator) -> list[Case]:
    """Return cases with numbers of tiles along an axis by which no fp32 reciprocal divides exactly, whatever power of two a
    tile is, and some tiles along the others, so that a program's number is divided by them."""
    stored = {axis for t in question.tensors if t.role != "in" and not callable(t.shape) for axis in t.shape}
    axes = [a for a in question.blocks if a in stored and isinstance(question.up_to.get(a), UpTo)]
    short = {axis: one.least if isinstance(one, UpTo) else one[0] for axis, one in question.up_to.items()}
    found = []
    for axis in axes if len(axes) > 1 else ():
        sizes = short | {other: few_tiles(question, other, rng) for other in axes if other != axis}
        tiles = int(rng.choice(HARD_TO_DIVIDE_BY))
        tried = (sized(question, sizes | {axis: tiles * tile}) for tile in TILES)
        found += [*filter(partial(affordable, question), tried)][:1]
    return [replace(case, kind="many tiles along an axis", crossed=True) for case in found]


def affordable(question: KernelQuestion, case: Case) -> bool:
    """Return whether no axis is too long, and a check can afford a case of many tiles."""
    limits = {axis: one.most for axis, one in question.up_to.items() if isinstance(one, UpTo)}
    fits = all(case.sizes[axis] <= most for axis, most in limits.items())
    return fits and _cheap(question, case, OF_MANY_TILES)


def few_tiles(question: KernelQuestion, axis: str, rng: np.random.Generator) -> int:
    """Return a size of two tiles along an axis, of the largest that are usual."""
    one = question.up_to[axis]
    return stepped(one, min(one.most, TILES[0] + one.step * int(rng.integers(1, TILES[1]))))


def rows_apart(question: KernelQuestion, drawn: list[Case], rng: np.random.Generator) -> list[Case]:
    """Return a case in which all tensors with strides have gaps between their rows and none between neighbours, because a
    kernel may have a path of its own for such neighbours."""
    strided = {name for case in drawn for name, how in case.layout.items() if not how.startswith(REPEATED)}
    layout = {t.name: "padded" for t in question.tensors if t.name in strided and len(t.axes) > 1}
    plain = [
        case
        for case in (*question.public, *drawn)
        if not case.layout and words(case) == words(question.public[0])
    ]
    if not layout or not plain:
        return []
    return [
        replace(plain[rng.integers(len(plain))], layout=layout, crossed=True, kind="gaps between all rows")
    ]


def one_apart(question: KernelQuestion, drawn: list[Case], rng: np.random.Generator) -> list[Case]:
    """Return a case for each matrix with strides that alone has gaps between its rows, because a kernel may tell by another one
    whether all are without."""
    (together,) = rows_apart(question, drawn, rng) or (None,)
    layout = together.layout if together else {}
    return [
        replace(together, layout={name: how}, kind=f"gaps between the rows of {name} alone")
        for name, how in layout.items()
        if len(layout) > 1
    ]


def stride_of_0(question: KernelQuestion, drawn: list[Case], rng: np.random.Generator) -> list[Case]:
    """Return a case in which an input of floats repeats itself along some of its axes, if tensors of the question have
    strides."""
    plain = [case for case in drawn if case.layout and words(case) == words(question.public[0])]
    found = [
        (case, t)
        for case in plain or question.public[:1]
        for t in repeating(question, drawn)
        if case.dtype_of(t) in FLOATS
    ]
    if not found:
        return []
    case, tensor = found[rng.integers(len(found))]
    name, axes = tensor.name, len(tensor.axes)
    chosen = range(axes) if rng.random() < ALL_AXES else [rng.integers(axes - 1)]
    layout = REPEATED + " ".join(map(str, chosen))
    return [replace(case, layout={name: layout}, kind="an input with a stride of 0")]


def one_column(question: KernelQuestion, drawn: list[Case], rng: np.random.Generator) -> list[Case]:
    """Return a case for each such input that is one column of a matrix throughout: its rows are as far apart as ever, so that
    their stride alone doesn't tell."""
    plain = plain_ones(question, drawn) or question.public[:1]
    base = replace(plain[rng.integers(len(plain))], layout={}, crossed=True)
    return [
        replace(
            base,
            layout={t.name: f"{REPEATED}{len(t.axes) - 1}{WIDE}"},
            kind=f"one column of {t.name} throughout",
        )
        for t in repeating(question, drawn)
        if base.dtype_of(t) in FLOATS
    ]


def repeating(question: KernelQuestion, drawn: list[Case]) -> list[Tensor]:
    """Return the inputs that may be the same all along an axis: those of several axes that have strides."""
    strided = {name for case in drawn for name in case.layout} if question.repeats else set()
    return [t for t in question.tensors if t.role == "in" and t.name in strided and len(t.axes) > 1]


def repeats(question: KernelQuestion, drawn: list[Case]) -> dict[str, list[str]]:
    """Return by input of floats its layouts with a stride of 0, along each axis alone and along all together."""
    floats = [t for t in repeating(question, drawn) if question.public[0].dtype_of(t) in FLOATS]
    of = {t.name: range(len(t.axes)) for t in floats}
    return {
        name: [f"{REPEATED}{' '.join(map(str, some))}" for some in (*((axis,) for axis in axes), axes)]
        for name, axes in of.items()
    }


@dataclass(frozen=True)
class Crossing:
    """Hold long axes, and the cases whose values are tried on them, one, or all of a dtype that may share a case."""

    long: tuple[str, ...]
    kinds: tuple[Case, ...]


def crossings(question: KernelQuestion, drawn: list[Case], rng: np.random.Generator) -> list[Case]:
    """Return cases of CROSSED crossings of the pool, each with a layout that the question has, or with none.

    A check has all crossings of most questions, and at least a fifth (test_sizes.py holds that). The seed draws them,
    and it is drawn once an answer is fixed and salted with its text, so no answer chooses its crossings."""
    layouts = [{}, *({tuple(sorted(case.layout)): case.layout for case in drawn if case.layout}.values())]
    found = pool(question, [*question.public, *drawn])
    if not found:
        return []
    often = np.array([BY_BLOCKS if question.blocks.keys() & set(one.long) else 1.0 for one in found])
    found = [found[i] for i in rng.choice(len(found), len(found), replace=False, p=often / often.sum())]
    twice = [one for one in found if len(one.kinds) > 1]  # because not all kinds fit into one case
    chosen = [*found, *twice][:CROSSED]
    cases = [_crossed(question, one, _layout(layouts, rng), rng) for one in chosen]
    return [case for case in cases if case is not None]


def _layout(layouts: list[dict], rng: np.random.Generator) -> dict:
    """Return a layout that the question has, or one in which each tensor lies in its own way of those that it has, plainly
    or with gaps between its rows."""
    if rng.random() < AS_IT_IS:
        return layouts[rng.integers(len(layouts))]
    ways: dict[str, list[str]] = {}
    for layout in layouts:
        for name, how in layout.items():
            ways.setdefault(name, ["", "padded"]).append(how)
    return {name: how for name, own in ways.items() if (how := own[rng.integers(len(own))])}


def pool(question: KernelQuestion, drawn: list[Case]) -> list[Crossing]:
    """Return all crossings: each long axis with each kind of values. Kinds of a dtype share one case where rows don't
    depend on one another."""
    axes = [axis for axis, one in question.up_to.items() if isinstance(one, UpTo)]
    kinds = list({(words(case), case.dtype): case for case in drawn}.values())
    together = [case for case in kinds if question.rows and words(case) not in question.alone]
    shared = [
        tuple(one for one in together if one.dtype == d) for d in dict.fromkeys(c.dtype for c in together)
    ]
    groups = [*shared, *((case,) for case in kinds if case not in together)]
    found = [Crossing((axis,), group) for axis in axes for group in groups]
    # a compiled case is long along all axes, and other first kernels need little for each number
    both = len(axes) == 2 and question.compile_case is None and question.useful is None
    return [*found, Crossing(tuple(axes), (question.public[0],))] if both else found


def words(case: Case) -> str:
    """Return the kind of "positive loads 2 0 3", which is "positive loads"."""
    return COUNTS.sub("", case.values)


def counts(case: Case) -> str:
    """Return the numbers at the end of a case's kind of values, which go with its sizes."""
    return case.values[len(words(case)) :]


def like(base: Case, case: Case) -> Case | None:
    """Return a case with the dtypes, scalars and kind of values of another one, or None where its own values lack the counts
    that this kind needs."""
    if counts(base) and not counts(case):
        return None
    scalars, values = case.scalars | base.scalars, words(base) + counts(case)
    return replace(case, dtype=base.dtype, dtypes=base.dtypes, scalars=scalars, values=values)


def _crossed(
    question: KernelQuestion, crossing: Crossing, layout: dict, rng: np.random.Generator
) -> Case | None:
    """Return a case of a crossing, or None where the question says that sizes and values don't go together."""
    base = crossing.kinds[rng.integers(len(crossing.kinds))]
    case = like(base, sized(question, _sizes(question, crossing, base, rng)))
    if case is None:
        return None
    long, plain = " and ".join(crossing.long), words(question.public[0])
    special = len(crossing.kinds) == 1 and words(base) != plain
    kind = f"{base.kind}, with {long} large" if special else f"{long} large"
    case = replace(case, layout=layout, kind=kind, crossed=True)
    case = question.crossed(case) if question.crossed else case
    return (
        case if case is None or len(crossing.kinds) == 1 else _of_parts(question, case, crossing.kinds, rng)
    )


def _of_parts(
    question: KernelQuestion, case: Case, kinds: tuple[Case, ...], rng: np.random.Generator
) -> Case:
    """Return a case with a part of the rows for each kind, as far as there are enough rows."""
    rows = case.sizes[question.rows]
    count = min(len(kinds), rows)
    ends = [rows * i // count for i in range(count + 1)]
    chosen = [kinds[i] for i in rng.permutation(len(kinds))[:count]]
    parts = []
    for one, (start, end) in zip(chosen, itertools.pairwise(ends), strict=True):
        part = sized(question, case.sizes | {question.rows: end - start})
        parts.append(replace(case, sizes=part.sizes, values=words(one) + counts(part), layout={}))
    return replace(case, values=words(chosen[0]) + counts(case), parts=tuple(parts))


def _sizes(question: KernelQuestion, crossing: Crossing, base: Case, rng: np.random.Generator) -> dict:
    """Return sizes of long axes drawn from all that is long, and of the others as the budget lets them be."""
    alone, sizes = len(crossing.long) == 1, dict(base.sizes)
    short = {n: one for n, one in question.up_to.items() if isinstance(one, UpTo) and n not in crossing.long}
    for axis in crossing.long:
        one = question.up_to[axis]
        few, most = (max(one.least, LONG * one.most), one.most) if alone else SIDES
        drawn = log_uniform(rng, few, most)
        to_the_end = alone and rng.random() < AT_THE_END
        sizes[axis] = (
            one.drawn(rng) if to_the_end else stepped(one, min(drawn, one.most if alone else one.most / 2))
        )
    short = {axis: replace(one, least=1) if one.least == UpTo.least else one for axis, one in short.items()}
    sizes |= {axis: max(one.least, sizes[axis]) for axis, one in short.items()}
    if question.rows in short and len(crossing.kinds) > 1:
        sizes[question.rows] = 2 * len(crossing.kinds)
    while alone and not _cheap(question, sized(question, sizes), LANES):
        less = {axis: stepped(one, sizes[axis] / 2) for axis, one in short.items()}
        if all(less[axis] == sizes[axis] for axis in short):
            less = {axis: min(one) for axis, one in question.up_to.items() if not isinstance(one, UpTo)}
            short = {axis: question.up_to[axis] for axis in crossing.long}
            less |= {axis: stepped(one, 0.8 * sizes[axis]) for axis, one in short.items()}
        sizes |= less
    return sizes


def stepped(axis: UpTo, size: float) -> int:
    """Return the next size below that an axis may have, or its least."""
    return max(axis.least, int(size) // axis.step * axis.step)


def _cheap(question: KernelQuestion, case: Case, most: int) -> bool:
    """Return whether a check can afford a case, with this many numbers at most in its largest tensor."""
    numbers = max(math.prod(tensor.sizes(case.sizes)) for tensor in question.tensors)
    return numbers <= most and (question.useful is None or question.useful(case) <= FLOP)


def sized(question: KernelQuestion, sizes: dict) -> Case:
    """Return a plain case of these sizes."""
    if question.sized:
        return question.sized(**sizes)
    return replace(question.public[0], sizes=dict(sizes), layout={})


def all_cases(question: KernelQuestion) -> Iterator[Case]:
    """Yield every case that a check may have, for a few seeds, without the cases at the ends."""
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
    """Say how far each axis goes: axes that go equally far are named together. Few axes have a case of size 0."""
    drawn = [*question.public, *question.hidden(np.random.default_rng(0))]
    empty = {axis for case in drawn for axis, n in case.sizes.items() if n == 0}
    groups: dict = {}
    for axis, limit in question.up_to.items():
        least = limit.step * (axis not in empty) if isinstance(limit, UpTo) else 0
        said = f"from {least} to {in_words(limit)}" if isinstance(limit, UpTo) else in_words(limit)
        groups.setdefault(said, []).append(axis)
    named = (f"{', '.join(axes[:-1])} and {axes[-1]}" if axes[1:] else axes[0] for axes in groups.values())
    return ", ".join(f"{axes} {said}" for axes, said in zip(named, groups, strict=True))
