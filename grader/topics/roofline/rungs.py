"""What all first kernels share: small fp32 tensors named by their axes, a tolerance of a few roundings, bytes moved once."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from grader.questions import Budget, Case, KernelQuestion, Part, Tensor
from grader.questions.draws import ROUNDING, rounded, where_finite
from grader.questions.side_by_side import side_by_side
from grader.topics.roofline.ladder_wrong import mistakes as named
from kernels.roofline import cost

FP32_SUM = 2.0**-18  # of the size of what is summed: any order of an fp32 sum stays within
CARRIED = "what is stored and loaded again: a block lives in its variable as long as the program needs it"
OWN = "which elements a program loads and stores, and whether another program does so too"
PARTS = (Part("values", 2, "values"), Part("traffic", 1, "traffic"))


def tensor(words: str, role: str) -> Tensor:
    """ "x mn" is an fp32 tensor of M x N; "a mk fp16" has another dtype."""
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
    **more,
) -> KernelQuestion:
    """`formula` takes the inputs in float64 by their names, and the case; it gives the output, or a tuple of them.

    `size_of_terms` does the same with the size of what each output sums, where a sum rounds more than once.
    `a_program`: the most that one program may do of these axes: ("mn", 4096) numbers of M x N."""
    outputs = [tensor(words, "out") for words in writes]
    inputs = [tensor(words, "in") for words in reads]

    def computed(function: Callable, found: dict, case: Case) -> dict:
        return by_name(outputs, function({name: v.astype(np.float64) for name, v in found.items()}, case))

    def within(found: dict, case: Case, want: dict) -> dict:
        size = computed(size_of_terms, found, case) if size_of_terms else dict.fromkeys(want, 0.0)
        return {
            name: where_finite(4 * ROUNDING["fp32"] * np.abs(v) + FP32_SUM * size[name] + 1e-30, v)
            for name, v in want.items()
        }

    def traffic(c: Case) -> list[Budget]:
        return [*budgets["traffic"](c), *_shared(outputs[0].name, c, a_program), nothing_read_back()]

    return KernelQuestion(
        id=id,
        budgets={"traffic": traffic},
        notebook="first_kernels",
        mistakes=named(id.split(".")[1], tuple(t.name for t in outputs)),
        entry=f"launch_{id.split('.')[1]}",
        parts=parts,
        tensors=(*inputs, *outputs),
        inputs=lambda case, rng: normal(inputs, case, rng),
        reference=lambda found, case: computed(formula, found, case),
        tolerance=within,
        **more,
    )


def _shared(output: str, c: Case, a_program: tuple[str, int] | None) -> list[Budget]:
    """As many programs as the most that one may do leaves."""
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
    return {spec.name: np.asarray(v, np.float64) for spec, v in zip(outputs, found, strict=True)}


MOVED = {  # by how much, then how many times; "the lowest" are near the end of fp32
    "below zero": (-10, 1),
    "far below zero": (-10, 1e35),
    "the lowest": (-10, 2.2e37),
    "far from zero": (100, 1),
}


def normal(inputs: list[Tensor], case: Case, rng: np.random.Generator) -> dict:
    """Normal numbers, moved and scaled as the case says."""
    moved, scale = MOVED.get(case.values, (0, 1))
    return {
        spec.name: rounded((rng.standard_normal(spec.sizes(case.sizes)) + moved) * scale, case.dtype_of(spec))
        for spec in inputs
    }


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
    """A budget for each tensor: "x mn" is loaded once, "y nm!" is stored once."""

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


# What single rungs need beside that.

BEFORE = "how often a number of x is loaded: once for itself and once for its successor"
SIDES = "how long the pieces are that neighbouring addresses make: on both sides, 8 numbers of 4 bytes fill a sector"
SHARED = "what a tile of results needs of a and of b: a piece of each, not a number of each for every result"
LANES = "how many lanes of the last piece are masked: they take instructions all the same"
DOT = "does the product go through tl.dot?"
TILES = "the sides of the tile: each program loads a band of A as high as its tile and a band of B as wide"
EDGES = 1.1
BESIDE = 0.25  # operations a product: the sums of two blocks of 32 x 32 take less
# operations a number: pieces of 128 or 256 stay within, a single block for 1,100 numbers does not
PIECES = 1.6


def paced(alpha: float, kind: str = "a plain size", values: str = "normal", **sizes: int) -> Case:
    return replace(case(kind, values, **sizes), scalars={"alpha": float(alpha)})


def smoothed(x: np.ndarray, alpha: float) -> np.ndarray:
    """y[t] = (1 - alpha) y[t - 1] + alpha x[t], from 0 on."""
    y, h = np.empty_like(x), np.zeros(x.shape[1])
    for t, row in enumerate(x):
        y[t] = h = (1 - alpha) * h + alpha * row
    return y


def twice(c: Case) -> list[Budget]:
    n = c.sizes["N"]
    return [
        Budget(
            what="read of x",
            tensor="x",
            most=2 * elements(c, "n"),
            least=elements(c, "n"),
            look=BEFORE,
            model=f"{n} elements of 4 bytes, at i and at i - 1",
        )
    ]


def whole_sectors(c: Case) -> list[Budget]:
    size = elements(c, "mn")
    model = f"{c.sizes['M']} x {c.sizes['N']} elements of 4 bytes + 10%"
    return [
        Budget(
            what="sectors of x",
            tensor="x",
            count="sectors",
            most=EDGES * size,
            least=size,
            look=SIDES,
            model=model,
        ),
        Budget(
            what="sectors of y",
            tensor="y",
            access="store",
            count="sectors",
            most=EDGES * size,
            least=size,
            look=SIDES,
            model=model,
        ),
    ]


def pieces_by_tile(c: Case) -> list[Budget]:
    """As often as tiles of 16 x 16 need them."""
    down, across = math.ceil(c.sizes["M"] / 16), math.ceil(c.sizes["N"] / 16)
    found = []
    for name, axis, times, what in (("a", "m", across, "columns"), ("b", "n", down, "rows")):
        piece = Budget(
            what=f"read of {name}",
            tensor=name,
            most=times * elements(c, axis),
            least=elements(c, axis),
            look=SHARED,
            model=f"{name} once for each of {times} {what} of 16 x 16 tiles",
        )
        asked = replace(piece, what=f"read of {name}, lane by lane", count="requested", least=0.0)
        found += [piece, asked]
    return found


def few_idle_lanes(c: Case) -> list[Budget]:
    m, n = c.sizes["M"], c.sizes["N"]
    return [
        Budget(
            what="operations",
            count="operations",
            most=PIECES * m * n,
            look=LANES,
            model=f"{PIECES} for each of {m} x {n} numbers",
        )
    ]


def in_dots(c: Case) -> list[Budget]:
    m, n, k = (c.sizes[s] for s in "MNK")
    flops = cost.gemm(m, n, k).flops
    return [
        Budget(
            what="FLOP in tl.dot",
            count="dot",
            least=flops,
            look=DOT,
            model=f"at least 2 M N K = {flops:,.0f}",
        ),
        Budget(
            what="operations beside tl.dot",
            count="operations",
            most=BESIDE * m * n * k,
            look=DOT,
            model=f"{BESIDE} for each of {m} x {n} x {k} products",
        ),
    ]


def large_tiles(c: Case) -> list[Budget]:
    """What 128 x 256 tiles load, or 256 x 128 ones."""
    m, n, k = (c.sizes[s] for s in "MNK")
    loads = max(m * k * n // wide + k * n * m // high for high, wide in ((128, 256), (256, 128)))
    return [
        Budget(
            what="all loads",
            most=2 * loads,
            look=TILES,
            model=f"{m} x {k} and {k} x {n} elements of 2 bytes, in tiles of 128 x 256",
        )
    ]
