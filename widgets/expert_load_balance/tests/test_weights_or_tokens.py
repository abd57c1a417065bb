"""The simulator's numbers against sums by hand, and what it says of them."""

import pytest

from widgets import units
from widgets.expert_load_balance import weights_or_tokens
from widgets.expert_load_balance.weights_or_tokens import SIMULATOR, run
from widgets.scene import NARROW, WIDE


def test_the_prediction_s_numbers_are_the_state_s():
    r = run(2048, 1, 450, 16)
    assert round(r.expert_bytes / 1e6) == 88 and round(1e6 * r.sent_s) == 196 and round(1e6 * r.kept_s) == 182
    assert r.even == pytest.approx(2 * 989e12 / 450e9, rel=2e-3)
    for words in ("88 MB", "196 µs", "2,048", "182 µs"):
        assert words in SIMULATOR.prediction.question


def test_copies_pay_from_the_break_even_on():
    even = run(2048, 3, 450, 16).even
    below, above = run(0.9 * even, 3, 450, 16), run(1.1 * even, 3, 450, 16)
    assert below.faster < 1 < above.faster
    assert "even split loses" in weights_or_tokens._takeaway(below)
    assert "long enough" in weights_or_tokens._takeaway(above)


@pytest.mark.parametrize("helpers", [1, 3])
def test_the_hot_gpu_waits_below_the_break_even_from_where_the_first_copy_arrives_in_time(helpers):
    """Helpers that took fewer pairs than an even share would pay as soon as a copy arrives before all is done."""
    even = run(2048, helpers, 450, 16).even
    first = run(even / (helpers + 1), helpers, 450, 16)
    assert first.kept_s == pytest.approx(first.sent_s / helpers) and first.faster < 1
    assert "even split" not in weights_or_tokens._takeaway(run(0.9 * first.pairs, helpers, 450, 16))
    assert "even split" in weights_or_tokens._takeaway(run(1.1 * first.pairs, helpers, 450, 16))
    marks = {mark["id"]: mark for mark in weights_or_tokens.scene(first).marks}
    assert marks["own-waits"]["s"] == "waits for the helper"


def test_over_a_slow_link_nothing_pays():
    r = run(65_536, 7, 25, 16)
    assert r.even > weights_or_tokens.MANY and r.faster < 1
    assert weights_or_tokens._takeaway(r).startswith("No surplus")
    assert weights_or_tokens._takeaway(run(16_384, 1, 50, 16)).startswith("Over this link")
    assert not [mark for mark in weights_or_tokens.scene(r).marks if mark["id"] == "even"]


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("pairs", [64, 2048, 16_384, 65_536])
@pytest.mark.parametrize("helpers", [1, 3, 7])
def test_the_knob_is_above_the_level_of_1_where_copies_pay_and_below_where_they_do_not(helpers, pairs, width):
    r = run(pairs, helpers, 450, 16)
    marks = {mark["id"]: mark for mark in weights_or_tokens.scene(r, width=width).marks}
    assert (marks["pull-pairs"]["y"] < marks["one-level"]["y"]) == (r.faster > 1)
    assert (
        marks["faster-now"]["s"] == units.times(r.faster)
        and marks["faster-now"]["role"] == marks["pull-pairs"]["role"]
    )
    top, low = marks["faster-grid0"]["y"], marks["one-level"]["y"]
    assert (top - marks["pull-pairs"]["y"]) / (top - low) == pytest.approx(r.faster, abs=0.02)
    assert r.faster < r.helpers + 1, "never more than all GPUs that share"


@pytest.mark.parametrize("pairs", [256, 2048, 16_384])
def test_the_end_of_the_expert_s_bar_is_pulled_too(pairs):
    r = run(pairs, 1, 450, 16)
    marks = {mark["id"]: mark for mark in weights_or_tokens.scene(r).marks}
    bar, knob = marks["kept-0"], marks["pull-kept"]
    assert knob["x"] == pytest.approx(bar["x"] + bar["w"] + 1, abs=0.02)
    (way,) = knob["drag"]
    assert way["input"] == "pairs"
    each = (knob["x"] - bar["x"]) / pairs
    far = marks["kept-idle"]["x"] + marks["kept-idle"]["w"]
    for n, x in zip(way["to"], way["at"], strict=True):
        assert x == pytest.approx(min(bar["x"] + n * each, far), rel=1e-3), "its end shows the pairs"
