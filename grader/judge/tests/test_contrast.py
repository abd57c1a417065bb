"""What wrong calls have in common is said if it explains them all, and nothing is said by chance."""

from math import ceil

import numpy as np
import pytest

from grader.judge.contrast import Sample, condition, in_common


def samples(answer, right, names: str, count: int = 24, seed: int = 3) -> list[Sample]:
    """Draw calls of a function of whole numbers, with what a wrong answer gives."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        given = {name: int(rng.integers(2, 400)) for name in names}
        came, want = float(answer(**given)), float(right(**given))
        found.append(Sample(given, came, want, not np.isclose(came, want, rtol=1e-9)))
    return found


def bytes_of(m, n, k, e):
    return e * (m * k + k * n + m * n)


@pytest.mark.parametrize(
    "answer, right, names, said",
    [
        (lambda m, n, k, e: bytes_of(m, n, k, e) + e * m * n, bytes_of, "mnke", "each of the 24 wrong calls gives m * n * e too much"),
        (lambda m, n, k, e: bytes_of(m, n, k, e) - e * k * n, bytes_of, "mnke", "gives n * k * e too little"),
        (lambda m, n, k, e: bytes_of(m, n, k, e) - 2 * m * k - 2 * m * n, bytes_of, "mnke", "gives 2 * m * k + 2 * m * n too little"),
        (lambda m, n, k, e: bytes_of(m, n, k, 8), bytes_of, "mnke", "gives 8 / e times what it should"),
        (lambda m, n: m * n, lambda m, n: 2 * m * n, "mn", "gives 1/2 of what it should"),
        (lambda m, n: 7, lambda m, n: m * n, "mn", "all 24 wrong calls give 7, whatever their arguments"),
        (lambda m, n: 1 - m / (m + n), lambda m, n: m / (m + n), "mn", "gives 1 minus what it should"),
        (lambda m, n: n / m, lambda m, n: m / n, "mn", "1 divided by what it should: a fraction upside down"),
        (lambda m, b: m / b, lambda m, b: ceil(m / b), "mb", "must be rounded on its way"),
        (lambda m, n: (m * 7919 + n * 104729) % 1009, lambda m, n: m * n, "mn", ""),
    ],
)  # fmt: skip
def test_a_formula_is_said(answer, right, names, said):
    found = in_common(samples(answer, right, names))
    assert said in found and bool(said) == bool(found), found


def test_what_tells_wrong_calls_from_right_ones_is_said():
    calls = samples(lambda m, b: m // b, lambda m, b: m // b + (m > 200), "mb", 40)
    assert "b" not in condition(calls)  # 200 is no argument
    ragged = samples(lambda m, b: m // b * b, lambda m, b: m if m > b else m // b * b, "mb", 40)
    found = condition(
        [Sample(one.arguments, 0, 0, one.arguments["m"] > one.arguments["b"]) for one in ragged]
    )
    assert "where m is above b, and no others" in found


def test_few_calls_and_calls_of_one_kind_prove_nothing():
    few = [Sample({"m": m, "b": 10}, 0, 0, m % 10 > 0) for m in (10, 20, 13)]
    assert condition(few) == ""
    edge = [Sample({"m": m}, 0, 0, True, "sizes") for m in range(1, 20)]
    edge += [Sample({"m": 0}, 0, 0, False, "nothing at all")] * 9
    assert condition(edge) == ""


def test_a_formula_that_fits_by_chance_is_not_said():
    """Of drawn wrong numbers nothing is said, whatever the seed."""
    rng = np.random.default_rng(8)
    for _ in range(40):
        given = [{name: int(rng.integers(1, 9)) for name in "mnk"} for _ in range(8)]
        drawn = [Sample(one, float(rng.integers(1, 50)), float(rng.integers(1, 50)), True) for one in given]
        assert in_common(drawn) == "", drawn
