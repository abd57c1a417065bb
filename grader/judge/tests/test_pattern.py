"""What wrong elements have in common is said where it shows, and nothing where it does not."""

import numpy as np
import pytest

from grader.judge.compare import difference
from grader.judge.pattern import Pattern

RNG = np.random.default_rng(5)
WANT = RNG.standard_normal((6, 8)) + 3
TALL = np.random.default_rng(5).standard_normal((12, 4))
SQUARE = RNG.standard_normal((8, 8))
VECTOR = RNG.standard_normal(40)
CODES = RNG.integers(1, 16, (8, 256)).astype(float)


def changed(want, where, value):
    came = want.copy()
    came[where] = value
    return came


def random(shape):
    return np.random.default_rng(9).standard_normal(shape) * 10


@pytest.mark.parametrize(
    "came, want, said",
    [
        (2 * WANT, WANT, "each element of y is 2 times what it should be"),
        (WANT / 3, WANT, "1/3 of what it should be"),
        (np.log(2) * WANT, WANT, "(ln 2) times"),
        (-SQUARE, SQUARE, "-1 times"),
        (WANT + 4, WANT, "each element of y is 4 too much"),
        (SQUARE.T, SQUARE, "y is transposed"),
        (WANT[::-1], WANT, "opposite order: row 0 holds what the last should"),
        (np.roll(VECTOR, 1), VECTOR, "element 1 of y holds what element 0 should"),
        (np.random.default_rng(1).permutation(VECTOR), VECTOR, "the right numbers in other places"),
        (VECTOR[[1, 0, 2]], VECTOR[:3], "y is wrong only up to element 1"),
        (VECTOR[[2, 1, 0]] + [0, 1, 0], VECTOR[:3], ""),
        (changed(CODES, ([0, 3, 5], [1, 2, 7]), 0.0), CODES, "y is wrong only at row 0, 3, 5, at column 1, 2, 7; all that is wrong is 0"),
        (changed(WANT, np.s_[:, 5:], random((6, 3))), WANT, "y is wrong only from column 5 on"),
        (changed(WANT, np.s_[:, -1], random(6)), WANT, "at column 7, the last"),
        (changed(WANT, np.s_[:2], 0.0), WANT, "y is wrong only up to row 1; all that is wrong is 0"),
        (changed(VECTOR, [3, 4, 11], random(3)), VECTOR, "y is wrong only at element 3, 4, 11"),
        (changed(VECTOR, np.s_[::5], random(8)), VECTOR, "at element 0 and every 5 further"),
        (np.where(np.triu(np.ones((8, 8)), 1) > 0, random((8, 8)), SQUARE), SQUARE, "only above the diagonal"),
        (changed(TALL, np.s_[4:], random((8, 4))), TALL, "y is wrong only from row 4 on"),
        (changed(WANT, np.s_[3:], np.nan), WANT, "from row 3 on; what is wrong is NaN"),
        (WANT * np.arange(2, 8)[:, None], WANT, "each row is multiplied by a factor of its own"),
        (WANT + np.arange(1, 7)[:, None], WANT, "each row is moved by a number of its own"),
        (WANT + 0.003 * random(WANT.shape) / 10, WANT, "rounded on its way"),
        (changed(VECTOR, np.s_[:], 2**31 - 1), VECTOR, "no place was found"),
        (WANT * (1 + 3e-7), WANT, "rounded on its way"),
        (random(WANT.shape), WANT, ""),
        (changed(WANT, np.s_[3], np.nan), WANT, "y is wrong only at row 3"),
    ],
)  # fmt: skip
def test_a_pattern_is_said(came, want, said):
    sentence = difference("y", came, want, 1e-9).pattern.sentence()
    assert said in sentence and bool(said) == bool(sentence), sentence


def test_axes_of_more_dimensions_have_their_letters():
    want = RNG.standard_normal((2, 3, 6, 4))
    came = changed(want, np.s_[:, :, 4:], random((2, 3, 2, 4)))
    assert Pattern("o", came, want, came != want, tuple("bhmd")).sentence() == "o is wrong only from m = 4 on"


def test_what_tells_wrong_rows_from_right_ones_is_named():
    tokens, temperature = np.arange(8.0), np.array([0, 1, 0.7, 0, 1, 0, 2, 1.0])
    came = np.where(temperature == 0, 77 + tokens, tokens)
    pattern = Pattern("token", came, tokens, came != tokens)
    assert "the wrong rows are those whose temperature is 0" in pattern.sentence({"temperature": temperature})


def test_rows_that_are_right_because_nobody_writes_them_tell_nothing():
    pairs, want = np.array([3, -1, 2, -1, 5, -1]), np.ones((6, 4)) * np.arange(6)[:, None]
    want[pairs < 0] = 0.0
    came = np.where(pairs[:, None] < 0, want, random(want.shape))
    assert "sorted_token_ids" not in Pattern("h", came, want, came != want).sentence(
        {"sorted_token_ids": pairs}
    )


def test_a_wrong_sign_of_zero_is_no_rounding():
    want = np.array([-0.0, 0.0, -0.0, 1.0, -0.0])
    wrong = difference("y", np.abs(want), want, 1e-45, signed=True)
    assert wrong.pattern.sentence().endswith("only the sign of zeros is wrong: -0 and 0 are two numbers here")
    assert wrong.pattern.rounding() and "rounded" not in wrong.pattern.rounding()


def test_elements_that_nothing_was_stored_to_tell_no_place():
    """Of a cache of pages, only those that were used can be wrong."""
    want = np.random.default_rng(3).standard_normal((9, 4))
    used = np.zeros((9, 4), bool)
    used[3::2] = True
    came = np.where(used, random(want.shape), want)
    assert "every 2 further" in Pattern("v", came, want, came != want).place()
    assert Pattern("v", came, want, came != want, stored=used).place() == ""
    came[5] = want[5]
    assert Pattern("v", came, want, came != want, stored=used).place() == "v is wrong only at row 3, 7"


def test_no_load_is_named_where_there_is_none():
    moved = np.random.default_rng(1).permutation(VECTOR)
    wrong = moved != VECTOR
    assert "load" not in Pattern("y", moved, VECTOR, wrong).sentence()
    assert "the indices of a load" in Pattern("y", moved, VECTOR, wrong, ("n",)).sentence()


def test_a_nan_that_is_wanted_too_is_no_cause():
    want = np.arange(20.0)
    want[3] = np.nan
    came = np.roll(want, 1)
    said = Pattern("y", came, want, ~np.isclose(came, want, equal_nan=True)).sentence()
    assert "NaN" not in said and "the right numbers in other places" in said, said
    came[7] = 99.0
    said = Pattern("y", came, want, ~np.isclose(came, want, equal_nan=True)).sentence()
    assert "NaN" not in said and "other places" not in said, said


def test_rows_of_equal_numbers_have_no_factor_of_their_own():
    """Counts that are the same all along a row would have one whatever is wrong."""
    came, want = (np.repeat([rows], 12, 0).T for rows in ([4.0, 9.0, 25.0], [3.0, 5.0, 7.0]))
    assert "each row" not in difference("y", came, want, 1e-9).pattern.sentence()
