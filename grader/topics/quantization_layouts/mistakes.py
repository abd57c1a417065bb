"""What goes wrong where codes are unpacked: the whole output that each mistake gives, and the sentence that tells of it."""

from collections.abc import Callable

import numpy as np

from grader.questions import Case
from grader.questions.families import computing, dense, family, one_stride, same_strides, within_limit
from grader.topics.quantization_layouts.mistakes_sums import SUMS, stored
from grader.topics.quantization_layouts.wanted import weights
from kernels.quantization_layouts import reference

SHIFTS = 4 * np.arange(8)


def codes_by(inputs: dict, shifts: np.ndarray = SHIFTS, kept: int = 15) -> np.ndarray:
    """Codes as someone may read them, from words that carry a sign."""
    each = inputs["w"].astype(np.int64)[..., None] >> shifts
    return (each & kept if kept else each).reshape(len(inputs["w"]), -1)


def zeros_of(inputs: dict) -> np.ndarray:
    return inputs["z"] if "z" in inputs else np.full(inputs["s"].shape, reference.MIDDLE)


def would(
    shifts: np.ndarray = SHIFTS,
    kept: int = 15,
    weight: Callable = lambda c, z, s: (c - z) * s,
    scales: Callable = lambda s: s,
    zeros: Callable = lambda z: z,
) -> Callable:
    """The right layer with one of its steps exchanged; scales and zero points are given a column each."""

    def wrong(inputs: dict, case: Case) -> dict:
        group = case.sizes["G"]
        s = reference.along_k(scales(inputs["s"].astype(np.float64)), group)
        z = reference.along_k(zeros(zeros_of(inputs).astype(np.float64)), group)
        return stored(reference.linear(inputs["x"], weight(codes_by(inputs, shifts, kept), z, s)), case)

    return wrong


def groups_of(size: int) -> Callable:
    """Scales (and zero points) taken as if each served so many columns."""

    def wrong(inputs: dict, case: Case) -> dict:
        at = np.minimum(np.arange(case.sizes["K"]) // size, inputs["s"].shape[1] - 1)
        s, z = inputs["s"].astype(np.float64)[:, at], zeros_of(inputs).astype(np.float64)[:, at]
        return stored(reference.linear(inputs["x"], (codes_by(inputs) - z) * s), case)

    return wrong


def steps_of(size: int) -> Callable:
    """The same, and what is left of K behind the last whole step is not multiplied."""

    def wrong(inputs: dict, case: Case) -> dict:
        whole = case.sizes["K"] // size * size
        left = {**inputs, "x": np.where(np.arange(case.sizes["K"]) < whole, inputs["x"], 0)}
        return groups_of(size)(left, case)

    return wrong


def by_the_word(inputs: dict, case: Case) -> dict:
    """The codes of word i against x[i + j]."""
    k = np.arange(case.sizes["K"])
    return stored(reference.linear(inputs["x"][..., k // 8 + k % 8], weights(inputs, case)), case)


def reshaped(rows: int) -> Callable:
    """The numbers of a tile of so many rows of W read as if K already ran downwards."""

    def wrong(inputs: dict, case: Case) -> dict:
        n, k, group = (case.sizes[name] for name in ("N", "K", "G"))
        bare = codes_by(inputs) - reference.along_k(zeros_of(inputs).astype(np.float64), group)
        tiles = np.zeros((-(-n // rows) * rows, k))
        tiles[:n] = bare
        # (tile, group, G x rows in the order in which the tile's rows follow each other)
        tiles = tiles.reshape(-1, rows, k // group, group).swapaxes(1, 2).reshape(-1, k // group, group, rows)
        x = inputs["x"].astype(np.float64).reshape(-1, k // group, group)
        with np.errstate(invalid="ignore"):
            parts = np.einsum("mgk,tgkn->mtng", x, tiles).reshape(len(x), -1, k // group)[:, :n]
            return stored((parts * inputs["s"].astype(np.float64)).sum(-1), case)

    return wrong


def signed(c: np.ndarray) -> np.ndarray:
    return np.where(c > 7, c - 16, c)


def scaled_after(which: int) -> Callable:
    """Bare numbers summed along K, then one scale for all of them."""

    def wrong(inputs: dict, case: Case) -> dict:
        bare = codes_by(inputs) - reference.along_k(zeros_of(inputs), case.sizes["G"])
        return stored(reference.linear(inputs["x"], bare) * inputs["s"].astype(np.float64)[:, which], case)

    return wrong


def groups_in_fp16(inputs: dict, case: Case) -> dict:
    """Each group's bare sum in fp16, as a dot with such an accumulator leaves it; bf16 is summed in fp32 all the same."""
    group = case.sizes["G"]
    bare = codes_by(inputs) - reference.along_k(zeros_of(inputs).astype(np.float64), group)
    x, total = inputs["x"].astype(np.float64), 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for g, s in enumerate(inputs["s"].astype(np.float64).T):
            of_group = slice(g * group, (g + 1) * group)
            part = reference.linear(x[..., of_group], bare[:, of_group])
            total = total + (part.astype(np.float16).astype(np.float64) if case.dtype == "fp16" else part) * s
        return stored(total, case)


CODES = (
    family(
        "first code on top",
        "the first of a word's eight codes stands in its lowest four bits: shift by 4 j, not by 28 - 4 j",
        would(shifts=SHIFTS[::-1]),
    ),
    family(
        "bytes turned round",
        "the two codes of each byte have changed places: code j stands in bits 4 j to 4 j + 3",
        would(shifts=SHIFTS.reshape(4, 2)[:, ::-1].ravel()),
    ),
    family(
        "evens first",
        "neighbours of a word are taken in the order 0 2 4 6 1 3 5 7; here they follow each other",
        would(shifts=SHIFTS[[0, 2, 4, 6, 1, 3, 5, 7]]),
    ),
    family(
        "two bits kept",
        "a code has four bits, & 15: here it keeps two or three of them",
        would(kept=3),
        would(kept=7),
    ),
    family(
        "eight bits kept",
        "a code has four bits, & 15: here it keeps eight, and the next code with them",
        would(kept=255),
    ),
    family(
        "signed codes",
        "codes go from 0 to 15: this takes 8 to 15 for -8 to -1",
        would(weight=lambda c, z, s: signed(c) * s),
        would(weight=lambda c, z, s: (signed(c) - z) * s),
    ),
    family(
        "no scale",
        "these are the bare codes, less their zero point: each is still to be multiplied by the scale of its group",
        would(scales=np.ones_like),
    ),
    family(
        "the first scale",
        "every G columns have a scale of their own, that of column k is k // G (word i holds columns 8 i to 8 i + 7): "
        "this takes the first of a row for all",
        would(scales=lambda s: np.broadcast_to(s[:, :1], s.shape)),
    ),
    family(
        "groups of one size",
        "G is not always the same: column k has the scale k // G, and a step of one group is p.G columns long",
        *map(groups_of, (32, 64, 128)),
        *map(steps_of, (64, 128)),
    ),
    family(
        "scaled after the sum",
        "the scales change along K: scale each group's part before it is added",
        scaled_after(-1),
        scaled_after(0),
    ),
)
GEMV = (
    family("no zero", "code 8 stands for 0: subtract 8 from every code", would(weight=lambda c, z, s: c * s)),
    family("zero of seven", "code 8 stands for 0, not 7", would(weight=lambda c, z, s: (c - 7) * s)),
    family(
        "zero after the scale",
        "8 is a code, so it is subtracted before the scale: (code - 8) * scale",
        would(weight=lambda c, z, s: c * s - 8),
    ),
    family(
        "nothing cut off",
        "what stands above a code in its word is still there: keep four bits, & 15",
        would(kept=0),
    ),
    family(
        "x by the word",
        "word i holds columns 8 i to 8 i + 7: its code j meets x[8 i + j], not x[i + j]",
        by_the_word,
    ),
    *CODES,
    *SUMS,
)

GEMV_SHORTCUTS = {
    **{
        f"{axis} up to {most}": within_limit(axis, most)
        for axis, most in (("N", 64), ("N", 1024), ("N", 4096), ("K", 1024), ("K", 4096), ("K", 8192))
    },
    **{f"stride {axis} of {name} taken for 1": one_stride(name, axis) for name in "ws" for axis in (0, 1)},
    "the stride of x taken for 1": one_stride("x", 0),
    "the stride of y taken for 1": one_stride("y", 0),
    "words taken for dense": dense("w"),
    "scales taken for dense": dense("s"),
    "the strides of the words for the scales": same_strides("w", "s"),
    "the stride of x for y": same_strides("x", "y"),
}

GEMM = (
    family(
        "no zero point",
        "a weight is (code - zero point) times its scale: nothing is subtracted here",
        would(weight=lambda c, z, s: c * s),
    ),
    family(
        "zero of eight",
        "the zero point is not always 8: z holds one for each group",
        would(weight=lambda c, z, s: (c - 8) * s),
    ),
    family(
        "zero less one",
        "the zero points are stored as they are, not less one",
        would(weight=lambda c, z, s: (c - z - 1) * s),
    ),
    family(
        "the first zero point",
        "every G columns have a zero point of their own: this takes the first of a row for all",
        would(zeros=lambda z: np.broadcast_to(z[:, :1], z.shape)),
    ),
    family(
        "zero after the scale",
        "the zero point is a code, so it is subtracted before the scale: (code - zero) * scale",
        would(weight=lambda c, z, s: c * s - z),
    ),
    family(
        "reshaped, not turned",
        "rows of W became columns of a block by a reshape, which leaves the numbers in their order: K goes downwards by tl.trans",
        *map(reshaped, (64, 16, 32, 128)),
    ),
    *CODES,
    *SUMS,
)

GEMM_SHORTCUTS = {
    "a group's sum in fp16": computing(groups_in_fp16),
    **{
        f"{axis} up to {most}": within_limit(axis, most)
        for axis, most in (
            ("M", 4),
            ("M", 16),
            ("M", 64),
            ("M", 128),
            ("N", 64),
            ("N", 1024),
            ("N", 4096),
            ("K", 1024),
            ("K", 4096),
            ("K", 8192),
        )
    },
    **{f"stride {axis} of {name} taken for 1": one_stride(name, axis) for name in "wszxy" for axis in (0, 1)},
    **{f"{name} taken for dense": dense(name) for name in "wszxy"},
    "the strides of the scales for the zero points": same_strides("s", "z"),
    "the strides of the words for the scales": same_strides("w", "s"),
    "the strides of X for Y": same_strides("x", "y"),
}
