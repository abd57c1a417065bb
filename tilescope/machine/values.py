"""Lay out a value in numpy: a leading axis of programs (1 if all agree), then one axis for each axis of its
tensor, 1 if the tensor is constant along it. So splat, broadcast and expand_dims are free."""

import numpy as np


def full(value: np.ndarray, shape: tuple, programs: int = 0) -> np.ndarray:
    """Return the value with every lane of its tensor, for `programs` programs (its own number if 0)."""
    return np.broadcast_to(value, (programs or len(value), *shape))


def aligned(values, types) -> list[np.ndarray]:
    """Values of several tensors with every lane, and with the same programs."""
    programs = max(map(len, values))
    return [full(value, type.shape, programs) for value, type in zip(values, types, strict=True)]


def unsigned(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "i" else x


def rows_of(value: np.ndarray, rows) -> np.ndarray:
    return value[rows] if len(value) > 1 else value


def merged(pieces, count: int) -> np.ndarray:
    """Join rows from several sets of programs. Earlier pieces win where rows overlap."""
    pieces = [(rows, value) for rows, value in pieces if len(rows)]
    if len(pieces) == 1 and len(pieces[0][0]) == count:
        return pieces[0][1]
    shape = np.broadcast_shapes(*(value.shape[1:] for _, value in pieces))
    found = np.zeros((count, *shape), pieces[0][1].dtype)
    for rows, value in reversed(pieces):
        found[rows] = value
    return found


def bits(x: np.ndarray) -> np.ndarray:
    """View the same memory as plain unsigned numbers. NaNs compare, and -0 differs from 0."""
    return x.view(f"u{x.dtype.itemsize}")


def poison(shape: tuple, dtype: np.dtype, kind: int = 0) -> np.ndarray:
    """Fill lanes that were masked without `other`: NaN and, in every second one, a large number, or 0 (kind
    1).

    Whole numbers alternate between -1, a large one and 0. One reads as unowned, another as owned."""
    if kind:
        return np.zeros(shape, dtype)
    if dtype.kind == "b":
        return np.ones(shape, bool)
    pattern = np.full((*shape, dtype.itemsize), 0xFF, np.uint8)
    lanes = pattern.reshape(-1, dtype.itemsize)
    lanes[1::2] = 0x77
    if dtype.kind in "iu":
        lanes[2::3] = 0
    return pattern.view(dtype).reshape(shape)
