"""Draw inputs that are regular but for one number of each row: a constant, even steps, or a pattern that repeats.

An answer may look at the first, the middle and the last number of a row and guess all others. The odd number is in none of
these places, and it is the one that was drawn.
"""

import numpy as np

from grader.box.serve.frames import DTYPES

CONSTANT = "one number all along a row but for one place"
STEPS = "even steps along a row but for one"
ZEROS = "zeros all along a row but for one place"  # of one input
KINDS = CONSTANT, STEPS, ZEROS
ROWS = "rows"  # of an input that only whole rows may be taken from
LONGEST, SHORT = 256, 8  # numbers of a pattern, of which 16 bits hold every step
FEW_BITS = 16  # of one in 8 bits


def applied(kind: str, names: dict[str, str], inputs: dict, rng: np.random.Generator) -> dict:
    """Return the inputs, those that may be regular as the kind says."""
    here = [name for name in names if name in inputs and inputs[name].size]
    found = dict(inputs)
    for name in [rng.choice(here)] if kind == ZEROS and here else here:
        value = inputs[name]
        if names[name] == ROWS:
            found[name] = but_for_a_row(value, FEW_BITS if kind == STEPS else 1, rng)
        else:
            made = in_steps(value, rng) if kind == STEPS else constant(value, kind == ZEROS)
            found[name] = but_for_one(made, value, rng)
    return found


def constant(value: np.ndarray, zero: bool) -> np.ndarray:
    """Return zeros, or the first finite number for all, or of whole numbers the one in the middle of those that there are."""
    if value.dtype.kind in "iu":
        return np.full_like(value, 0 if zero else (int(value.max()) + 1) // 2)
    return np.full_like(value, 0 if zero else value[np.isfinite(value)][:1])


def in_steps(value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return even steps that begin anew after some numbers, each as exact as the dtype is. Numbers of which none is negative
    stay so, and whole ones stay between those that there are."""
    count, whole = value.shape[-1], value.dtype.kind in "iu"
    narrow = whole or value.dtype == DTYPES["fp8e4nv"]
    most = FEW_BITS if narrow else LONGEST if count <= LONGEST else int(rng.choice([SHORT, LONGEST]))
    period = min(most, 1 << max(1, (count - 1).bit_length()))
    number = np.arange(count) % period
    if whole:
        low, high = int(value.min()), int(value.max())
        return np.broadcast_to(low + number % (high - low + 1), value.shape).astype(value.dtype)
    wide = value[np.isfinite(value)].astype(np.float64)
    size = np.sqrt(np.mean(wide**2)) or 1.0
    step = 2.0 ** np.floor(np.log2(2 * size / period))
    steps = number + 1 if wide.min() >= 0 else number - period // 2
    return np.broadcast_to(step * steps, value.shape).astype(np.float32).astype(value.dtype)


def free(count: int) -> list[int]:
    """Return the places in the middle half of a row, without the middle."""
    return [i for i in range(count // 4, 3 * count // 4) if i not in (0, count // 2, (count - 1) // 2)]


def but_for_one(made: np.ndarray, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return regular numbers with the one that was drawn at one place of each row. A row that has no such place stays."""
    if not (places := free(value.shape[-1])):
        return value
    place = rng.choice(places, (*value.shape[:-1], 1))
    found = made.copy()
    np.put_along_axis(found, place, np.take_along_axis(value, place, -1), -1)
    return found


def but_for_a_row(value: np.ndarray, period: int, rng: np.random.Generator) -> np.ndarray:
    """Return the first rows again and again, and at one place the row that was drawn."""
    if not (places := free(len(value))):
        return value
    found, place = value[np.arange(len(value)) % period], rng.choice(places)
    found[place] = value[place]
    return found
