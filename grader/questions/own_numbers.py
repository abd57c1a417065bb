"""Draw inputs near the numbers that an answer's own cell names.

An answer may be wrong for a band of values that no case draws, and its text names the ends of the band. So some elements of
the inputs that may hold any finite number are set near these numbers, and between them.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions.draws import log_uniform
from grader.questions.model import WHOLE, Case, Free, KernelQuestion, UpTo, repeated
from grader.questions.reach import sized, stepped

KIND = "numbers near those of your cell"
MOST = 48  # ends of bands that a case has, drawn if there are more
ANY = 12  # bands of a factor of two at drawn sizes, because an answer may compute its ends
FEWEST = 2 * (MOST // 2 + ANY)  # indices along which bands differ, if there may be so many
LEAST = 2.0**-12  # of the numbers of such a band
NEAR = 2.0**-10, 2.0**-3  # relative distances from an end
HELD = 0.4  # of the elements of a case that is drawn for them
ROWS, HELD_THERE = 1 / 3, 1 / 4  # of the rows of another case, and of their elements
MOST_HELD = 1 << 18  # elements, since there may be millions
NUMBERS = 1 << 15  # of the largest tensor
SHORT = 16  # axes that aren't halved
BITS = 1 << 23, 1 << 32  # whole numbers whose bits may be those of an fp32 number
FEW_BITS = "fp16"


def ends(numbers: list[float]) -> np.ndarray:
    """Return the sizes at which a band of values may end: the numbers of a cell, the roots of those with which it may
    compare a square, and the fp32 numbers whose bits they are."""
    plain = {abs(float(n)) for n in numbers if n and abs(n) < 2.0**127}
    roots = {math.sqrt(n) for n in plain if n > 1}
    whole = [int(n) for n in plain if n == n // 1 and BITS[0] <= n < BITS[1]]
    with np.errstate(invalid="ignore"):  # the bits of a NaN
        bits = np.abs(np.array(whole, np.uint32).view(np.float32)).astype(float)
    return np.array(sorted(plain | roots | set(bits[np.isfinite(bits) & (bits > 0)].tolist())))


def drawn(question: KernelQuestion, known: list[Case], own: np.ndarray, rng: np.random.Generator) -> Case:
    """Return a small case with many indices along the axes where results don't depend on one another, and with the most
    exact results that the question has."""
    base = question.metered(rng) if question.metered else question.public[0]
    axes = {axis: one for axis, one in question.up_to.items() if isinstance(one, UpTo)}
    along = {one.along for one in question.free.values()}
    sizes = dict(base.sizes)
    least = {axis: max(one.least, SHORT) for axis, one in axes.items()}
    for axis in along & axes.keys():
        one = axes[axis]
        least[axis] = min(one.most, math.ceil(FEWEST / one.step) * one.step)
        sizes[axis] = max(sizes[axis], least[axis])
    while _largest(question, sizes) > NUMBERS:
        axis = max(axes, key=lambda one: sizes[one] / least[one])
        if sizes[axis] <= least[axis]:
            break
        sizes[axis] = max(least[axis], stepped(axes[axis], sizes[axis] / 2))
    exact = [case.dtypes for case in known if "fp32" in case.dtypes.values()]
    wide = [case.dtype for case in known if case.dtype != FEW_BITS]
    asked = wide and (own > np.finfo(DTYPES[FEW_BITS]).max).any()
    return replace(
        sized(question, sizes),
        dtype=str(rng.choice(wide if asked else [case.dtype for case in known])),
        dtypes=exact[0] if exact else base.dtypes,
        scalars=base.scalars,
        kind=KIND,
    )


def _largest(question: KernelQuestion, sizes: dict) -> int:
    """Return the numbers of the largest tensor."""
    case = sized(question, sizes)
    return max(math.prod(tensor.sizes(case.sizes)) for tensor in question.tensors)


def held(
    question: KernelQuestion, case: Case, inputs: dict, own: np.ndarray, rng: np.random.Generator
) -> dict:
    """Return inputs of which some elements are near these numbers. Elements with the same index along an axis are in one
    band, so that no large one hides another's error."""
    found, by_axis, for_them = dict(inputs), {}, case.kind == KIND
    for tensor in question.tensors:
        free, value = question.free.get(tensor.name), inputs.get(tensor.name)
        if free is None or not value.size or not for_them and not (free.along and free.anywhere):
            continue
        least, most = limits(free, value.dtype)
        count = math.ceil(HELD * value.size if for_them else min(HELD_THERE * value.size, MOST_HELD))
        at = rng.permutation(value.size)[:count] if for_them else rng.integers(value.size, size=count)
        axis = tensor.axes.find(free.along.lower()) if free.along else None
        if free.along == WHOLE:
            length, index = 1, np.zeros(count, int)
        elif free.along:
            length = value.shape[axis]
            index = at // math.prod(value.shape[axis + 1 :]) % length
        else:
            length, index = count, np.arange(count)
        key = free.along or tensor.name, least, most
        if key not in by_axis:
            by_axis[key] = _bands(own, least, most, length, 1 if for_them else ROWS, rng)
        bands, scales = by_axis[key]
        if for_them and free.along and length < value.size:
            shape = [length if i == axis else 1 for i in range(value.ndim)]
            scaled = np.clip(value.astype(np.float64) * scales.reshape(shape), max(-most, free.lowest), most)
            changed = scaled.astype(np.float32).astype(value.dtype)
        else:
            changed = value.copy(order="C")
        there, of_each = changed.reshape(-1), bands[index]
        kept = np.isfinite(there[at].astype(np.float32)) & (of_each[:, 0] > 0)
        at, near = at[kept], _near(of_each[kept], least, most, rng)
        if (there[at] < 0).any():
            near = np.maximum(near * rng.choice([-1.0, 1.0], len(at)), free.lowest)
        there[at] = near.astype(np.float32).astype(value.dtype)
        found[tensor.name] = changed
    return repeated(found, case)  # what a stride of 0 repeats stays the same all along its axis


def limits(free: Free, dtype: np.dtype) -> tuple[float, float]:
    """Return the smallest number that an input may hold near those of the cell, and the largest one."""
    most = free.fp16 if dtype == DTYPES[FEW_BITS] else free.wide
    return free.least or 1 / most, most


def _bands(
    own: np.ndarray, least: float, most: float, length: int, share: float, rng: np.random.Generator
) -> tuple:
    """Return the ends of the band of each index along an axis, or zeros for indices without one, and the size of its other
    numbers."""
    inside = own[(own < most) & (own > least)]
    inside = np.sort(rng.permutation(inside)[:MOST])
    drawn = np.array([log_uniform(rng, max(LEAST, least), most / 2) for _ in range(ANY)])
    low, high = (
        np.concatenate([inside, drawn]),
        np.concatenate([inside[1:], [most][: len(inside)], 2 * drawn]),
    )
    first = np.concatenate([rng.permutation(len(inside)), len(inside) + rng.permutation(ANY)])
    chosen = rng.permutation(np.resize(first, length))
    bands = np.stack([low[chosen], high[chosen]], axis=1) * (rng.random((length, 1)) < share)
    scales = np.where(rng.random(length) < 0.5, np.minimum(low[chosen], most / 4), 1.0)
    return bands, scales


def _near(bands: np.ndarray, least: float, most: float, rng: np.random.Generator) -> np.ndarray:
    """Return a number of each band: below, at or above its first end, or anywhere between both."""
    low, high = bands.T
    off = np.exp(rng.uniform(*np.log(NEAR), len(low))) * rng.integers(-1, 2, len(low))
    between = np.exp(rng.uniform(np.log(low), np.log(high)))
    return np.clip(np.where(rng.random(len(low)) < 0.5, between, low * (1 + off)), least, most)
