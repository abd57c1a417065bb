"""Share sizes, references and costs among questions of roofline."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from grader.questions import Budget, Case, KernelQuestion, Part, Tensor, samples
from grader.questions.draws import ROUNDING, rounded, where_finite
from grader.questions.min_programs import side_by_side
from kernels.roofline import cost

FP32_SUM = 2.0**-18  # of the size of the summed terms, within which any order of an fp32 sum stays


BEYOND = 2.0**128 - 2.0**103  # what rounds to an infinity in fp32
CARRIED = "what is stored and loaded again: a block lives in its variable as long as the program needs it"
OWN = "which elements a program loads and stores, and whether another program does so too"
PARTS = (
    Part("values", 2, "values", asks="right for {public} that you can see and more that you can't"),
    Part("traffic", 1, "traffic", asks="nothing is moved twice, and programs share the work"),
)


def tensor(words: str, role: str) -> Tensor:
    """Parse a tensor: "x mn" is an fp32 tensor of M x N, and "a mk fp16" has another dtype."""
    name, axes, dtype = (words + " fp32").split()[:3]
    return Tensor(name, axes, tuple(axis.upper() for axis in axes), dtype, role)


def rung(
    *,
    id: str,
    reads: tuple[str, ...],
    writes: tuple[str, ...],
    formula: Callable,
    size_of_terms: Callable | None = None,
    parts: tuple[Part, ...] = PARTS,
    a_program: tuple[str, int] | None = None,
    budgets: dict,
    hidden: Callable,
    far: str = "M",
    **more,
) -> KernelQuestion:
    """Make a question of a `formula`, which takes the inputs in float64 by their names, and the case, and gives the
    output, or a tuple of outputs.

    `size_of_terms` does the same with the size of each output's terms, for sums that round more than once.
    `a_program`: the most that one program may do of these axes: ("mn", 4096) numbers of M x N."""
    outputs = [tensor(words, "out") for words in writes]
    inputs = [tensor(words, "in") for words in reads]

    def computed(function: Callable, found: dict, case: Case) -> dict:
        with np.errstate(invalid="ignore"):  # infinity less infinity
            wide = function({name: v.astype(np.float64) for name, v in found.items()}, case)
        return by_name(outputs, wide)

    def within(found: dict, case: Case, want: dict) -> dict:
        size = computed(size_of_terms, found, case) if size_of_terms else dict.fromkeys(want, 0.0)
        least = UNDERFLOW if size_of_terms else SMALLEST
        return {
            name: where_finite(4 * ROUNDING["fp32"] * np.abs(v) + FP32_SUM * size[name] + least, v)
            for name, v in want.items()
        }

    def with_all_kinds(rng: np.random.Generator) -> list[Case]:
        drawn = hidden(rng)
        if size_of_terms:
            return drawn
        return [*drawn, replace(drawn[rng.integers(len(drawn))], values=ALL_KINDS, kind=ALL_KINDS)]

    def traffic(c: Case) -> list[Budget]:
        return [*budgets["traffic"](c), *shared(outputs[0].name, c, a_program), nothing_read_back()]

    return KernelQuestion(
        id=id,
        budgets={"traffic": traffic},
        notebook="first_kernels",
        entry=f"launch_{id.split('.')[1]}",
        parts=parts,
        tensors=(*inputs, *outputs),
        inputs=lambda case, rng: normal(inputs, case, rng),
        reference=lambda found, case: computed(formula, found, case),
        tolerance=within,
        hidden=with_all_kinds,
        in_corners=samples.rows(*far) if "M" in more["up_to"] else None,
        far=far,
        **more,
    )


def shared(output: str, c: Case, a_program: tuple[str, int] | None) -> list[Budget]:
    """Require the number of programs that results when each does the most allowed."""
    if a_program is None:
        return []
    axes, most = a_program
    size = math.prod(c.sizes[axis.upper()] for axis in axes)
    of = " x ".join(str(c.sizes[axis.upper()]) for axis in axes)
    least = math.ceil(size / most)
    return [side_by_side(f"store {output}", output, "store", least, f"one for every {most:,} of {of}")]


def nothing_read_back() -> Budget:
    return Budget(
        what="outputs read back, and scratch",
        tensor="scratch",
        access="any",
        most=0,
        look=CARRIED,
        model="0 bytes: what a program still needs it keeps",
    )


def by_name(outputs: list[Tensor], found) -> dict:
    found = found if isinstance(found, tuple) else (found,)
    wide = {spec.name: np.asarray(v, np.float64) for spec, v in zip(outputs, found, strict=True)}
    return {name: np.where(np.abs(v) >= BEYOND, np.copysign(np.inf, v), v) for name, v in wide.items()}


MOVED = {  # exponent, then factor, where "the lowest" are near the end of fp32
    "below zero": (-10, 1),
    "far below zero": (-10, 1e35),
    "the lowest": (-10, 2.2e37),
    "far from zero": (100, 1),
    "large": (0, 1e30),
    "next to zero": (0, 1e-34),
}


ALL_KINDS = (
    "all that fp32 can hold"  # infinities, NaN, zeros of both signs, the largest and the smallest numbers
)
EXPONENTS = -149, 127  # of two, of the numbers of fp32; the largest leave room for a rounding
LARGEST = 0.999 * 2.0**128
SPECIAL = np.array([0.0, np.inf, np.nan, 2.0**-149, 2.0**127, LARGEST])
SMALLEST = 2.0**-149
UNDERFLOW = 2.0**-125  # of terms that are smaller than fp32 holds well
ENDLESS = "infinities"  # one in most rows but the first, anywhere, both in some, and nothing but minus infinity in another
SUMMED = 2.4e37  # times ten and the length of a row, at most, so that fp32 holds the row's sum
INFINITE = "an infinity first"
OF_ZEROS = "a row of zeros, and an infinity first"
HUGE_FIRST = "an infinity and a huge number first"
HUGE = 1e30
MEETING = "infinities in A and in B that meet nothing but zeros"
A_RUN = "a run of infinities"
TOO_LARGE = "numbers whose sum fp32 does not hold"  # in all rows but the first


def normal(inputs: list[Tensor], case: Case, rng: np.random.Generator) -> dict:
    """Normal numbers, moved and scaled as the case says."""
    moved, scale = MOVED.get(case.values, (0, 1))
    longest = max(spec.sizes(case.sizes)[-1] for spec in inputs)
    scale = min(scale, SUMMED / longest) if moved < 0 else scale
    found = {
        spec.name: rounded((rng.standard_normal(spec.sizes(case.sizes)) + moved) * scale, case.dtype_of(spec))
        for spec in inputs
    }
    if case.values == MEETING:
        a, b = found["a"], found["b"]
        a[:, 0], b[-1] = 0, 0
        b[0, 0], a[-1, -1] = np.inf, -np.inf
    for values in found.values():
        if case.values == HUGE_FIRST:
            values.flat[1] = HUGE
        if case.values in (INFINITE, OF_ZEROS, HUGE_FIRST):
            values.flat[0] = np.inf
        if case.values == OF_ZEROS:
            values[-1] = 0
        if case.values == TOO_LARGE:
            values[...] = LARGEST * rng.uniform(0.3, 1, values.shape)
            values[0] *= 1e-9
        if case.values == A_RUN:
            values.flat[values.size // 3 :] = np.inf
        if case.values == ALL_KINDS:
            values[...] = all_kinds(values.shape, rng)
        if case.values == ENDLESS:
            for row in values[1:]:
                places = rng.integers(row.size, size=rng.integers(3))
                row[places] = rng.choice([np.inf, -np.inf], places.size)
            values[len(values) // 2] = -np.inf
            values[-1][[0, -1]] = np.inf, -np.inf
    return found


def all_kinds(shape: tuple, rng: np.random.Generator) -> np.ndarray:
    """Draw numbers of every size and sign that fp32 has, in a fifth of the places one of those that are special, and in a
    tenth one that is too large to be doubled. The largest and the lowest are neighbours somewhere."""
    kind, size = rng.random(shape), np.exp2(rng.uniform(*EXPONENTS, shape))
    size = np.where(kind < 0.3, LARGEST * rng.uniform(0.5, 1, shape), size)
    size = np.where(kind < 0.2, rng.choice(SPECIAL, shape), size)
    found = (size * rng.choice([-1.0, 1.0], shape)).astype(np.float32)
    if found.size == 1:
        found.flat[0] = rng.standard_normal()  # a single special number tells little
    else:
        at = rng.integers(found.size - 1)
        found.flat[at : at + 2] = LARGEST, -LARGEST
    return found


def case(
    kind: str = "a plain size",
    values: str = "normal",
    layout: dict | None = None,
    dtype: str = "fp32",
    **sizes: int,
) -> Case:
    return Case(
        {name: int(n) for name, n in sizes.items()}, dtype, kind=kind, values=values, layout=layout or {}
    )


def halves(**more) -> Case:
    """A case of fp16 operands."""
    return case(dtype="fp16", **more)


def elements(c: Case, axes: str) -> float:
    """Bytes of an fp32 tensor with these axes."""
    rows, cols = ([1, 1] + [c.sizes[axis.upper()] for axis in axes])[-2:]
    return cost.tensor_bytes(rows, cols, 4)


def each_moved_once(*words: str) -> Callable:
    """Make a budget for each tensor: "x mn" is loaded once, "y nm!" is stored once."""

    def budgets(c: Case) -> list[Budget]:
        return [
            moved_once(c, *one.rstrip("!").split(), "store" if one.endswith("!") else "load") for one in words
        ]

    return budgets


def moved_once(c: Case, name: str, axes: str, access: str) -> Budget:
    size = elements(c, axes)
    sides = " x ".join(str(c.sizes[axis.upper()]) for axis in axes)
    verb = "write" if access == "store" else "read"
    return Budget(
        what=f"{verb} of {name}",
        tensor=name,
        access=access,
        most=size,
        least=size,
        look=OWN,
        model=f"{sides} elements of 4 bytes, once",
    )


LESSON = "course/00_roofline/a_machine.ipynb"
FUSION = 'course/00_roofline/d_fusion.ipynb, "Fusion: what stays on the chip"'
PROGRAMS = f'{LESSON}, "One function, many programs"'
