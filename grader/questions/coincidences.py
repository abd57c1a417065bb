"""Draw inputs whose numbers coincide as independent draws never do: equal ones, ones that cancel, zeros, copies.

A shortcut for such inputs may be wrong and look right everywhere else.
"""

from collections.abc import Callable

import numpy as np

ALL_ROWS, OF_BLOCKS = 1 / 4, 1 / 3
BLOCKS = 128, 256  # numbers of a row
ZEROS = 1 / 2  # of the numbers of an input, and of its rows


def equal(value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Make all numbers equal, or those of each row."""
    one = value.reshape(-1)[:1] if rng.random() < 0.5 else value[..., :1]
    return np.broadcast_to(one, value.shape).copy()


def cancelling(value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Make sums along the last axis, or along the one before it, exactly 0, in the order of a tree too. Ascending numbers
    stay ascending."""
    if value.dtype.kind in "iu":
        return np.full_like(value, (int(value.max(initial=0)) + 1) // 2)
    axis = -1 if value.ndim < 2 or rng.random() < 0.5 else -2
    found = np.moveaxis(value.copy(), axis, -1)
    half = found.shape[-1] // 2
    found[..., half : found.shape[-1] - half] = 0
    found[..., found.shape[-1] - half :] = -(found[..., :half] if value.ndim > 1 else found[:half][::-1])
    return np.ascontiguousarray(np.moveaxis(found, -1, axis))


def beginning_alike(value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Make the first half of all rows and their last quarter the same, and each end as it begins, along the last two axes."""
    found = value.copy()
    if value.ndim > 1:
        found[..., : value.shape[-1] // 2] = value[..., :1, : value.shape[-1] // 2]
        found[..., 3 * value.shape[-1] // 4 :] = value[..., :1, 3 * value.shape[-1] // 4 :]
        found[..., -1, :] = found[..., 0, :]
        found[..., -1] = found[..., 0]
    return found


def zeros(value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Make half of the rows and half of all other numbers zeros of either sign."""
    found = value.copy()
    found[rng.random(value.shape) < ZEROS] = 0
    found[rng.random(len(value)) < ZEROS] = 0
    return found if value.dtype.kind in "iu" else found * rng.choice([-1, 1], value.shape).astype(value.dtype)


def zeros_first(value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Make three quarters of each row zeros, those that come first, or in some draws of all rows, or the first half of each
    block."""
    found = value.copy()
    if rng.random() < OF_BLOCKS:
        found[..., np.arange(value.shape[-1]) % rng.choice(BLOCKS) < min(BLOCKS) // 2] = 0
    elif value.ndim > 1 and rng.random() < ALL_ROWS:
        found[: 3 * len(value) // 4] = 0
    else:
        found[..., : 3 * value.shape[-1] // 4] = 0
    return found


FIRST = "zeros first"
ALIKE = "rows that begin alike and end as they begin"
LONG = FIRST, ALIKE  # in long rows
KINDS: dict[str, Callable | None] = {
    "equal numbers": equal,
    "numbers that cancel": cancelling,
    ALIKE: beginning_alike,
    "many zeros": zeros,
    FIRST: zeros_first,
    "inputs that are copies of one another": None,
}


def applied(kind: str, alike: tuple[str, ...], inputs: dict, rng: np.random.Generator) -> dict:
    """Return the inputs, those that may be alike as the kind says."""
    names = [name for name in alike if name in inputs and inputs[name].size]
    if way := KINDS[kind]:
        return inputs | {name: way(inputs[name], rng) for name in names}
    found = dict(inputs)
    for first, second in zip(names, names[1:], strict=False):
        if found[first].dtype == found[second].dtype:
            count = min(found[first].size, found[second].size)
            copy = found[second].copy(order="C")
            copy.reshape(-1)[:count] = np.ascontiguousarray(found[first]).reshape(-1)[:count]
            found[second] = copy
    return found
