"""Hold tensors of a far corner, which are too large for memory: inputs that repeat drawn numbers, and what programs wrote of
an output."""

import math

import numpy as np


class Repeated:
    """Hold an input whose numbers, in the order of its memory, are those of a pool, over and over.

    A pool's length is prime, so that no row and no tile begins at the same number as another."""

    def __init__(self, drawn: np.ndarray, shape: tuple[int, ...]):
        self.pool, self.shape, self.dtype = drawn.reshape(-1)[: prime(drawn.size)], shape, drawn.dtype

    def __getitem__(self, spot) -> np.ndarray:
        return self.pool[elements(self.shape, spot) % self.pool.size]


class Written:
    """Hold the part of an output that programs wrote, as indices, a row each, and values."""

    def __init__(self, shape: tuple[int, ...], at: np.ndarray, values: np.ndarray):
        self.shape, self.at = shape, at
        flat = np.ravel_multi_index(tuple(at.T), shape) if len(at) else np.empty(0, np.int64)
        order = np.argsort(flat)
        self.flat, self.values = flat[order], values[order]

    def along(self, axis: int) -> np.ndarray:
        """Return the indices along an axis at which anything was written."""
        return np.unique(self.at[:, axis])

    def rows(self) -> np.ndarray:
        """Return the indices along all axes but the last one, a row each."""
        rows = self.flat // self.shape[-1]  # in order
        first = np.flatnonzero(np.diff(rows, prepend=-1))
        return np.stack(np.unravel_index(rows[first], self.shape[:-1]), axis=-1)

    def looked_up(self, spot) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of a spot, and where anything was written."""
        wanted = elements(self.shape, spot)
        if not self.flat.size:
            return np.zeros(wanted.shape), np.zeros(wanted.shape, bool)
        near = np.minimum(np.searchsorted(self.flat, wanted), self.flat.size - 1)
        return self.values[near], self.flat[near] == wanted


class Whole:
    """Hold an output that ran whole, with a mask of its written elements and the attributes of `Written`."""

    def __init__(self, values: np.ndarray, there: np.ndarray):
        self.values, self.there = values, there

    def along(self, axis: int) -> np.ndarray:
        others = tuple(one for one in range(self.there.ndim) if one != axis)
        return np.flatnonzero(self.there.any(axis=others))

    def rows(self) -> np.ndarray:
        return np.argwhere(self.there.any(axis=-1))

    def looked_up(self, spot) -> tuple[np.ndarray, np.ndarray]:
        spots = for_each(spot, self.there.ndim)
        return picked(self.values, spots), picked(self.there, spots)


def elements(shape: tuple[int, ...], spot) -> np.ndarray:
    """Return the elements of a tensor without gaps at a spot, a slice or indices for each axis, in all combinations."""
    axes = [np.arange(n)[one] for n, one in zip(shape, for_each(spot, len(shape)), strict=True)]
    found = np.zeros((1,) * len(shape), np.int64)
    for axis, (along, stride) in enumerate(zip(axes, steps(shape), strict=True)):
        found = found + (along * stride).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return found


def for_each(spot, axes: int) -> tuple:
    """Return a spot with what it leaves out, all of the last axes."""
    given = () if spot is ... else spot if isinstance(spot, tuple) else (spot,)
    return (*given, *(slice(None),) * (axes - len(given)))


def steps(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def prime(most: int) -> int:
    """Return the largest prime number up to `most`, or 1."""
    for one in range(most, 1, -1):
        if all(one % by for by in range(2, math.isqrt(one) + 1)):
            return one
    return 1


def picked(value, spot) -> np.ndarray:
    """Return a part of an input, whole or repeated, a slice or indices for each axis, in all combinations."""
    if isinstance(value, Repeated):
        return value[spot]
    for axis, one in enumerate(spot):
        if not isinstance(one, slice):
            value = value.take(one, axis)
        elif one != slice(None):
            value = value[(slice(None),) * axis + (one,)]
    return np.ascontiguousarray(value)
