"""Controls: their stops, their texts, what they take and what they refuse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets import controls


@given(st.floats(1e-3, 1e3), st.floats(1.5, 1e6), st.integers(1, 20))
def test_a_log_slider_climbs_from_end_to_end_through_its_default(low, ratio, per_decade):
    default = low * ratio**0.3
    made = controls.log_slider("x", "X", default, low, low * ratio, per_decade)
    assert list(made.stops) == sorted(set(made.stops))
    assert made.stops[0] == low and made.stops[-1] == low * ratio and default in made.stops
    assert len(made.texts) == len(made.stops)
    assert all(made.check(stop) == stop for stop in made.stops)


def test_whole_ladders_stay_whole():
    made = controls.log_slider("x", "X", 64, 1, 100_000)
    assert all(isinstance(stop, int) for stop in made.stops) and made.check(65.0) == 65
    with pytest.raises(controls.InputError, match="X must be a whole number from 1 to 100,000, got 0.5; "):
        made.check(0.5)


def test_powers_of_two():
    assert controls.powers_of_two("x", "X", 4, 1, 16).stops == (1, 2, 4, 8, 16)


@pytest.mark.parametrize(
    "made", [controls.slider("x", "X", 1.0, 0.0, 2.0), controls.number("x", "X", 1.0, 0.0, 2.0)]
)
def test_ends_are_allowed_and_what_lies_beyond_is_not(made):
    assert made.check(0.0) == 0.0 and made.check(2) == 2
    for value in (2.0001, -1e-9, float("nan"), float("inf"), None, "", "1", False):
        with pytest.raises(controls.InputError):
            made.check(value)


def test_a_select_knows_types_apart():
    made = controls.select("x", "X", 1, {1: "one", 2: "two"})
    assert made.texts == ("one", "two") and made.check(2) == 2
    for value in (True, 1.0, "1", 3, None):
        with pytest.raises(controls.InputError, match="X must be one of 1, 2"):
            made.check(value)


def test_a_toggle():
    made = controls.toggle("x", "X", True)
    assert made.check(False) is False
    for value in (0, 1, "on", None):
        with pytest.raises(controls.InputError, match="X must be on"):
            made.check(value)


def test_units_stand_on_the_stops():
    assert controls.steps("x", "X", 1, (1, 2.5), unit="TB/s").texts == ("1\u202fTB/s", "2.5\u202fTB/s")
    assert controls.steps("x", "X", 10, (10, 90), unit="%").texts == ("10%", "90%")
