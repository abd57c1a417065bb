"""Share mistakes among questions of quantization layouts."""

from collections.abc import Callable

import numpy as np

from grader.questions import Case
from grader.questions.families import family
from grader.topics.quantization_layouts.shared_mistakes_sums import stored
from kernels.quantization_layouts import reference

AGAIN = "w = w | tl.load(w_ptr + offs_n[:, None] * stride_wn + word[None, :] * stride_wk, mask=mask, other=0)"
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
    """Return the right layer with one step exchanged. Scales and zero points come one per column."""

    def wrong(inputs: dict, case: Case) -> dict:
        group = case.sizes["G"]
        s = reference.along_k(scales(inputs["s"].astype(np.float64)), group)
        z = reference.along_k(zeros(zeros_of(inputs).astype(np.float64)), group)
        return stored(reference.linear(inputs["x"], weight(codes_by(inputs, shifts, kept), z, s)), case)

    return wrong


def groups_of(size: int) -> Callable:
    """Take scales (and zero points) as if each served this number of columns."""

    def wrong(inputs: dict, case: Case) -> dict:
        at = np.minimum(np.arange(case.sizes["K"]) // size, inputs["s"].shape[1] - 1)
        s, z = inputs["s"].astype(np.float64)[:, at], zeros_of(inputs).astype(np.float64)[:, at]
        return stored(reference.linear(inputs["x"], (codes_by(inputs) - z) * s), case)

    return wrong


def steps_of(size: int) -> Callable:
    """Do the same, and skip the part of K after the last whole step."""

    def wrong(inputs: dict, case: Case) -> dict:
        whole = case.sizes["K"] // size * size
        left = {**inputs, "x": np.where(np.arange(case.sizes["K"]) < whole, inputs["x"], 0)}
        return groups_of(size)(left, case)

    return wrong


def signed(c: np.ndarray) -> np.ndarray:
    return np.where(c > 7, c - 16, c)


def scaled_after(which: int) -> Callable:
    """Sum bare numbers along K, then apply one scale to all of them."""

    def wrong(inputs: dict, case: Case) -> dict:
        bare = codes_by(inputs) - reference.along_k(zeros_of(inputs), case.sizes["G"])
        return stored(reference.linear(inputs["x"], bare) * inputs["s"].astype(np.float64)[:, which], case)

    return wrong


CODES = (
    family(
        "first code on top",
        "the first of a word's eight codes is in its lowest four bits: shift by 4 j, not by 28 - 4 j",
        would(shifts=SHIFTS[::-1]),
    ),
    family(
        "bytes turned round",
        "the two codes of each byte are swapped: code j is in bits 4 j to 4 j + 3",
        would(shifts=SHIFTS.reshape(4, 2)[:, ::-1].ravel()),
    ),
    family(
        "evens first",
        "the codes of a word are read in the order 0 2 4 6 1 3 5 7: in this layout they follow each other",
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
        "a code has four bits, & 15: here it keeps eight, so the next code is in it, too",
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
        "these are the bare codes minus the zero point: multiply each by the scale of its group",
        would(scales=np.ones_like),
    ),
    family(
        "the first scale",
        "this uses a row's first scale for all columns: column k has scale k // G "
        "(word i holds columns 8 i to 8 i + 7)",
        would(scales=lambda s: np.broadcast_to(s[:, :1], s.shape)),
    ),
    family(
        "groups of one size",
        "G differs from case to case: column k has scale k // G, and a step of one group is p.G columns long",
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
