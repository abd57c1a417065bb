"""Find one formula that wrong results of many calls have in common, or one condition that no right call meets.

A sentence is returned only if it explains every wrong call, and if these calls are unlikely to agree by chance.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from math import comb

import numpy as np

EXACT = 1e-9  # relative, for formulas of a few numbers, computed in fp64
CHANCE = 10  # a condition is named if the ways to be wrong exceed the tried conditions by this factor
ENOUGH, FEW = 8, 3
MORE_CALLS = 3  # than a formula has exponents
MOST_FACTORS = 6
COEFFICIENTS = sorted(
    {a / b for a in range(1, 65) for b in (1, 2, 3, 4, 8, 16, 32)} | {1 / n for n in range(2, 65)}
)


@dataclass(frozen=True)
class Sample:
    """Hold one call, with its arguments by name, its result, the expected result, and whether it is wrong."""

    arguments: dict
    came: float
    want: float
    wrong: bool
    kind: str = ""


def in_common(samples: list[Sample]) -> str:
    """Say what the wrong samples share, or return an empty text if nothing is sure."""
    wrong = [one for one in samples if one.wrong]
    if not wrong or not all(np.isfinite([one.came, one.want]).all() for one in wrong):
        return condition(samples)
    said = formula(wrong) or unrounded(samples)
    which = condition(samples)
    return "; ".join(filter(None, (said, which)))


def unrounded(samples: list[Sample]) -> str:
    """Say that results should be whole numbers, if all wanted ones are and some wrong ones are not."""
    wanted = [one.want for one in samples]
    if len(wanted) < ENOUGH or any(one != int(one) for one in wanted if np.isfinite(one)):
        return ""
    broken = [one.came for one in samples if one.wrong and one.came != int(one.came)]
    if len(broken) < FEW:
        return ""
    return f"all wanted results are whole numbers, and {broken[0]:.6g} is none: something must be rounded on its way"


# ---- one formula


def formula(wrong: list[Sample]) -> str:
    """Say how wrong results differ from wanted ones by a product of the arguments, or by a sum of two products."""
    factors = {
        name: values
        for name, values in factors_of([one.arguments for one in wrong]).items()
        if (values > 0).all() and len(np.unique(values)) > 1
    }
    factors = dict(list(factors.items())[:MOST_FACTORS])
    came, want = (np.array([getattr(one, side) for one in wrong], np.float64) for side in ("came", "want"))
    if len({(one.came, one.want) for one in wrong}) < 2 or (want == 0).any():
        return ""
    each = f"each of the {len(wrong)} wrong calls" if len(wrong) > 1 else "the wrong call"
    if same := alike(came, want):
        return same
    if said := monomial(factors, came / want):
        return f"{each} gives {as_factor(*said)} what it should"
    apart = came - want
    if (apart > 0).all() or (apart < 0).all():
        words = "too much" if apart[0] > 0 else "too little"
        if found := monomial(factors, np.abs(apart), constant=True):
            return f"{each} gives {written(*found)} {words}"
        if found := binomial(factors, np.abs(apart)):
            return f"{each} gives {' + '.join(written(*one) for one in found)} {words}"
    return ""


def alike(came: np.ndarray, want: np.ndarray) -> str:
    """Say a relation for any number of arguments: one result for all, 1 minus the right one, or 1 divided by the
    right one."""
    if len(np.unique(want)) < FEW:
        return ""
    if len(np.unique(came)) == 1:
        return f"all {len(came)} wrong calls give {came[0]:g}, whatever their arguments"
    if np.allclose(came, 1 - want, rtol=EXACT, atol=EXACT):
        return f"each of the {len(came)} wrong calls gives 1 minus what it should"
    if np.allclose(came * want, 1, rtol=EXACT, atol=EXACT):
        return (
            f"each of the {len(came)} wrong calls gives 1 divided by what it should: a fraction upside down"
        )
    return ""


def factors_of(arguments: list[dict]) -> dict[str, np.ndarray]:
    """Return the numbers that a formula may be made of, by how the learner writes them."""
    found: dict[str, list[float]] = {}
    for given in arguments:
        for name, value in given.items():
            for written_as, number in numbers_in(name, value):
                found.setdefault(written_as, []).append(number)
    return {name: np.array(values) for name, values in found.items() if len(values) == len(arguments)}


def numbers_in(name: str, value) -> Iterator[tuple[str, float]]:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float | np.number):
        yield name, float(value)
    elif isinstance(value, np.ndarray) and value.ndim > 1:
        yield from ((f"{name}.shape[{axis}]", float(size)) for axis, size in enumerate(value.shape))
    elif isinstance(value, list | tuple | np.ndarray):
        yield f"len({name})", float(len(value))


def monomial(factors: dict, values: np.ndarray, constant: bool = False) -> tuple[float, dict] | None:
    """Return (coefficient, exponents) of the simplest product that gives all values, or None if none or several do.

    A ratio without any factor has words of its own. It may be any number, and the pattern says which.
    """
    if (values <= 0).any():
        return None
    logs, names = np.log(values), list(factors)
    columns = np.log(np.array([factors[name] for name in names]).reshape(len(names), len(values)))
    for count in range(len(names) + 1):
        if len(values) < count + MORE_CALLS:
            return None
        found = []
        for chosen in combinations(range(len(names)), count):
            for powers in product(*[(1, -1) if count > 1 else (1, -1, 2, -2, 0.5, -0.5)] * count):
                rest = logs - np.tensordot(powers, columns[list(chosen)], 1) if count else logs
                if np.ptp(rest) < EXACT * 10 and (fitting := coefficient(float(np.exp(rest.mean())))):
                    found.append((fitting, {names[at]: p for at, p in zip(chosen, powers, strict=True)}))
        if len(found) == 1 and (count or not constant or len(values) > MORE_CALLS):
            return found[0]
        if found:
            return None
    return None


def coefficient(value: float) -> float | None:
    nearest = min(COEFFICIENTS, key=lambda one: abs(one / value - 1)) if value > 0 else 0
    return nearest if value > 0 and abs(nearest / value - 1) < 1e-7 else None


def binomial(factors: dict, values: np.ndarray) -> list[tuple[float, dict]] | None:
    """Return the two products whose sum gives all values, if just one pair does."""
    names = list(factors)
    if not names or len(values) < len(names) + MORE_CALLS:
        return None
    exponents = [one for one in product((0, 1), repeat=len(names)) if any(one)]
    logs = np.log(np.array([factors[name] for name in names]).reshape(len(names), -1))
    terms = np.exp(np.array(exponents) @ logs) if names else np.empty((0, len(values)))
    found = []
    for first, second in combinations(range(len(terms)), 2):
        both = (terms[[first, second]] / values).T
        fitted, *_ = np.linalg.lstsq(both, np.ones(len(values)), rcond=None)
        if np.abs(both @ fitted - 1).max() < EXACT * 100 and all(coefficient(float(one)) for one in fitted):
            of = [
                {n: 1 for n, power in zip(names, exponents[at], strict=True) if power}
                for at in (first, second)
            ]
            found.append([(coefficient(float(c)), one) for c, one in zip(fitted, of, strict=True)])
    return found[0] if len(found) == 1 else None


def written(number: float, powers: dict) -> str:
    """Write 2 * m * n / k, as a learner would."""
    whole = number if number >= 1 or number == 0 else 1
    above = [raised(name, power) for name, power in powers.items() if power > 0]
    below = [raised(name, -power) for name, power in powers.items() if power < 0]
    if number < 1:
        below = [f"{1 / number:g}", *below]
    head = [] if whole == 1 and above else [f"{whole:g}"]
    text = " * ".join([*head, *above])
    return text + "".join(f" / {one}" for one in below)


def raised(name: str, power: float) -> str:
    return {1: name, 2: f"{name}²", 0.5: f"sqrt({name})"}[power]


def as_factor(number: float, powers: dict) -> str:
    if not powers:
        return f"{number:g} times" if number >= 1 else f"1/{1 / number:g} of"
    return f"{written(number, powers)} times"


# ---- one condition


def condition(samples: list[Sample]) -> str:
    """Say which condition all wrong calls meet and no right call meets."""
    wrong = np.array([one.wrong for one in samples])
    if not wrong.any() or wrong.all():
        return ""
    tried = list(conditions([one.arguments for one in samples]))
    if ways(samples) < CHANCE * len(tried):
        return ""
    found = [(names, words) for names, words, meets in tried if np.array_equal(meets, wrong)]
    if not found:
        return ""
    said = list(dict(reversed(found)).values())[::-1][:2]  # of the same names the first
    return f"wrong are the {wrong.sum()} calls of {len(samples)} where {' and '.join(said)}, and no others"


def ways(samples: list[Sample]) -> int:
    """Count the ways in which this number of calls may be wrong. Calls of one kind that are all wrong or all right
    count as one."""
    sides = {}
    for one in samples:
        sides.setdefault(one.kind, []).append(one.wrong)
    told = [side for row in sides.values() for side in (row if any(row) and not all(row) else row[:1])]
    return comb(len(told), sum(told))


def conditions(given: list[dict]) -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield (names, words, which calls meet them), each that some meet and some do not, the simplest first."""
    for names, words, meets in _conditions(given):
        meets = np.asarray(meets, bool)
        if meets.any() and not meets.all():
            yield names, words, meets


def _conditions(given: list[dict]) -> Iterator[tuple[str, str, list]]:
    names = list(given[0])
    columns = {name: [one.get(name) for one in given] for name in names}
    for name, values in columns.items():
        if all(isinstance(one, bool) for one in values):
            yield name, f"{name} is True", values
            yield name, f"{name} is False", [not one for one in values]
        elif any(one is None for one in values):
            yield name, f"{name} is None", [one is None for one in values]
            yield name, f"{name} is not None", [one is not None for one in values]
        elif all(isinstance(one, np.ndarray | list | tuple) for one in values):
            yield from of_arrays(name, values)
    numbers = factors_of(given)
    for name, values in numbers.items():
        for edge in (0, 1):
            yield name, f"{name} is {edge}", values == edge
            yield name, f"{name} is above {edge}", values > edge
            yield name, f"{name} is below {edge}", values < edge
            yield name, f"{name} is not {edge}", values != edge
        whole = values[np.isfinite(values)]
        if len(whole) == len(values) and (values == np.rint(values)).all():
            yield name, f"{name} is odd", values % 2 == 1
            yield name, f"{name} is even", values % 2 == 0
    for (first, a), (second, b) in combinations(numbers.items(), 2):
        yield f"{first} {second}", f"{first} is {second}", a == b
        yield f"{first} {second}", f"{first} is above {second}", a > b
        yield f"{first} {second}", f"{first} is below {second}", a < b
        for one, x, other, y in ((first, a, second, b), (second, b, first, a)):
            if (y > 0).all() and (x == np.rint(x)).all() and (y == np.rint(y)).all():
                yield f"{first} {second}", f"{one} isn't a multiple of {other}", x % y != 0
                yield f"{first} {second}", f"{one} is a multiple of {other}", x % y == 0


def of_arrays(name: str, values: list) -> Iterator[tuple[str, str, list]]:
    """Yield conditions about what arrays and lists of numbers hold."""
    try:
        arrays = [np.asarray(one, np.float64).ravel() for one in values]
    except (TypeError, ValueError):
        return
    yield name, f"{name} is empty", [one.size == 0 for one in arrays]
    yield name, f"{name} holds a negative number", [bool((one < 0).any()) for one in arrays]
    yield name, f"{name} holds a 0", [bool((one == 0).any()) for one in arrays]
    yield name, f"{name} holds equal numbers", [len(np.unique(one)) < one.size for one in arrays]
    yield name, f"{name} holds an infinity or a NaN", [bool((~np.isfinite(one)).any()) for one in arrays]
