"""What a round yields, against guessing played out; when it pays, and when it stops paying."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets import units
from widgets.next_bottleneck.speculative_decoding import kept_in
from widgets.registry import find
from widgets.scene import NARROW, WIDE

GUESSING = find("speculative_decoding")


def guessing(**inputs):
    return GUESSING.run(**GUESSING.inputs(inputs))


@given(st.integers(0, 20), st.integers(0, 12))
def test_the_round_is_the_sum_of_its_tokens_chances(twentieths, drafts):
    r = guessing(acceptance=twentieths / 20, drafts=drafts)
    assert r.tokens == pytest.approx(sum(r.chances)) and 1 <= r.tokens <= drafts + 1
    assert r.round_s == pytest.approx(r.draft_s + r.verify_s)
    assert r.speedup == pytest.approx(r.plain_s / r.token_s)


def test_played_out_a_hundred_thousand_times():
    kept = np.random.default_rng(7).random((100_000, 5)) < 0.78
    assert (1 + np.cumprod(kept, axis=1).sum(axis=1)).mean() == pytest.approx(guessing().tokens, rel=0.01)


@given(st.integers(1, 12), st.integers(0, 19), st.sampled_from([1, 8, 16, 64, 256]))
def test_the_best_number_of_guesses_is_the_best(drafts, twentieths, batch):
    r = guessing(acceptance=twentieths / 20, drafts=drafts, batch=batch)
    best = guessing(acceptance=twentieths / 20, drafts=r.best_drafts, batch=batch)
    assert best.token_s <= r.token_s * (1 + 1e-12) and best.speedup >= 1


@given(st.integers(1, 12), st.integers(1, 8))
def test_at_the_break_even_acceptance_nothing_is_gained(drafts, guess_ms):
    r = guessing(drafts=drafts, draft_ms=guess_ms)
    if r.break_even_acceptance < 1:
        assert (r.speedup > 1) == (r.acceptance > r.break_even_acceptance)


def test_without_guesses_it_is_plain_decoding():
    r = guessing(drafts=0)
    assert (r.tokens, r.speedup, r.draft_s) == (1, 1, 0)


def test_quiz_four_guesses_kept_a_quarter_of_the_time():
    """1.33 tokens a round for a check of 32 ms and 3.2 ms of guesses: 1.21x, not 5x; with a slow draft a loss."""
    r = guessing(acceptance=0.25, drafts=4)
    assert r.tokens == pytest.approx(1.33, abs=0.005) and r.speedup == pytest.approx(1.21, abs=0.005)
    assert guessing(acceptance=0.25, drafts=4, draft_ms=4).speedup < 1


def test_the_policy_below_sixteen_leaves_room_and_a_full_batch_loses():
    """The check of 6 places is free up to 12 requests; at 15 guessing pays twice over, at 64 it costs."""
    assert guessing(batch=8).speedup == guessing().speedup > guessing(batch=16).speedup
    sixteen, full = guessing(batch=16), guessing(batch=64)
    assert guessing(batch=8).policy_guesses and not sixteen.policy_guesses
    assert sixteen.speedup > 2 and full.speedup < 1 and full.best_drafts <= 1
    assert guessing(batch=16, weight_bits=16).speedup == guessing(weight_bits=16).speedup


@given(st.integers(0, 12), st.sampled_from([1, 16, 64]), st.sampled_from([0.0, 0.8, 8.0]))
def test_the_bars_are_the_times_of_a_token(drafts, batch, draft_ms):
    """The bar under the knob is the time shown, and no bar is lower than the one said to be best."""
    r = guessing(drafts=drafts, batch=batch, draft_ms=draft_ms)
    assert [one.drafts for one in r.at_guesses] == list(range(13))
    assert r.at_guesses[drafts].token_s == r.token_s and r.at_guesses[0].token_s == r.plain_s
    assert min(one.token_s for one in r.at_guesses) == r.at_guesses[r.best_drafts].token_s
    assert all(one.draft_s + one.check_s == pytest.approx(one.token_s) for one in r.at_guesses)


@pytest.mark.parametrize("state", [{}, {"batch": 64}, {"batch": 256, "drafts": 12}, {"acceptance": 0.0}])
def test_every_bar_is_as_high_as_its_time(state):
    r = guessing(**state)
    marks = {m["id"]: m for m in GUESSING.scenes(r)[-1].marks}
    level = marks["token-tick0"]["y"], marks["plain-level"]["y"]
    high = [
        sum(marks[f"guess-bar-{k}-{part}"]["h"] for part in (0, 1) if f"guess-bar-{k}-{part}" in marks)
        for k in range(13)
    ]
    per_s = high[0] / r.plain_s
    assert (
        high == pytest.approx([one.token_s * per_s for one in r.at_guesses], abs=0.5) and level[0] > level[1]
    )


def test_the_best_bar_and_no_other_is_marked():
    marks = {m["id"]: m for m in GUESSING.scenes(guessing())[-1].marks}
    green = [k for k in range(13) if marks[f"guess-bar-{k}-0"]["role"] == "useful"]
    assert green == [guessing().best_drafts] and marks["guesses-best"]["s"].startswith("9 guesses are best")
    assert marks["pull-guesses"]["drag"][0]["input"] == "drafts"


@pytest.mark.parametrize("drafts", [1, 3, 5, 12])
def test_it_stops_paying_after_the_last_batch_that_pays(drafts):
    last = guessing(drafts=drafts).pays_up_to
    assert 16 < last < 256
    assert guessing(drafts=drafts, batch=last).speedup > 1 >= guessing(drafts=drafts, batch=last + 1).speedup


def test_guesses_that_never_pay_say_so():
    r = guessing(acceptance=0.0, batch=16)
    assert r.pays_up_to == 0 and "never pay" in GUESSING.scenes(r)[-1].warning


@given(st.integers(0, 20), st.integers(0, 12))
def test_a_long_run_keeps_its_average(twentieths, drafts):
    """The rounds that are drawn are an even sample: 64 of them yield what a round yields on average."""
    p = twentieths / 20
    mean = sum(kept_in(i, p, drafts) for i in range(64)) / 64 + 1
    assert mean == pytest.approx(guessing(acceptance=p, drafts=drafts).tokens, abs=0.13)


@pytest.mark.parametrize(
    "state", [{}, {"acceptance": 0.25, "drafts": 4}, {"batch": 64}, {"drafts": 12}, {"drafts": 0}]
)
def test_nothing_is_drawn_before_its_time(state):
    r = guessing(**state)
    scenes, last = GUESSING.scenes(r), {}
    for i, scene in enumerate(scenes):
        marks = {m["id"]: m for m in scene.marks}
        now = marks["now-s"]["x"]
        bars = [
            m
            for id, m in marks.items()
            if id.split("-")[0] in ("plain", "draft", "check") and m["t"] == "rect"
        ]
        assert all(m["x"] + m["w"] <= now + 0.02 for m in bars if not m["id"].endswith("-out")), i
        signs = {id: m["role"] for id, m in marks.items() if id.startswith("guess-") and id.count("-") == 2
                 and m["t"] == "rect" and "bar" not in id}  # fmt: skip
        assert set(last) <= set(signs), "no guess goes away"
        assert all(last[id] == role or last[id] == "now" for id, role in signs.items() if id in last)
        last = signs
    kept = [
        sum(role == "primary" for id, role in last.items() if id.startswith(f"guess-{i}-"))
        for i in range(len(r.kept))
    ]
    assert tuple(kept) == r.kept, "what is kept at the end is what the run keeps"
    struck = sum(role == "dropped" for role in last.values())
    assert struck == sum(k < r.drafts for k in r.kept), (
        "a round strikes out its first wrong guess, if there is one"
    )
    words = next(m["s"] for m in scenes[-1].marks if m["id"] == "guess-out")
    assert words.startswith(str(r.guessed_tokens)) and r.guessed_tokens == sum(r.kept) + len(r.kept)


@pytest.mark.parametrize("batch", [16, 32, 64, 96, 256])
@pytest.mark.parametrize("drafts", [1, 5, 8])
def test_the_words_never_send_to_plain_decoding_while_a_bar_says_that_guesses_are_best(batch, drafts):
    r = guessing(batch=batch, drafts=drafts)
    words = GUESSING.stepper.frames(r)[-1].takeaway
    assert ("plain decoding is faster" in words) == (r.best_drafts == 0)
    if r.speedup < 1 <= r.best_drafts:
        assert f"{drafts} guesses are slower than none" in words and "would still pay" in words


def test_one_guess_is_one():
    for state in ({"batch": 64}, {"drafts": 1}, {"drafts": 1, "batch": 256}, {"acceptance": 0.0}):
        scene = GUESSING.scenes(guessing(**state))[-1]
        words = [scene.summary, scene.takeaway, scene.warning]
        words += [f"{one.text} {one.label}" for one in scene.figures]
        words += [m.get("s", "") + m.get("tip", "") for m in scene.marks]
        assert not [s for s in words if re.search(r"(?<![\d.,])1 (guesses|tokens a round)", s)]


@pytest.mark.parametrize("preset", GUESSING.presets)
def test_the_run_that_is_drawn_says_what_the_average_says(preset):
    """Whoever is faster on average has more tokens at the end of the run, and each round of the run is whole."""
    r = guessing(**GUESSING.presets[preset])
    assert (r.guessed_tokens > r.plain_tokens) == (r.speedup > 1)
    assert r.guessed_tokens == pytest.approx(len(r.kept) * r.tokens, abs=0.8)
    assert r.shown_s == pytest.approx(len(r.kept) * r.round_s) and r.shown_s >= 4 * r.plain_s - 1e-9


@pytest.mark.parametrize("state", [{}, {"batch": 32}, {"drafts": 12, "acceptance": 0.9}])
def test_a_rounds_tokens_end_with_its_check_and_guesses_begin_under_their_time(state):
    r = guessing(**state)
    scenes = GUESSING.scenes(r)
    marks = {m["id"]: m for m in scenes[-1].marks}
    for i in range(len(r.kept)):
        check, own = marks[f"check-{i}"], marks[f"own-{i}"]
        assert own["x"] + own["w"] == pytest.approx(check["x"] + check["w"], abs=3)
        assert all(marks[f"guess-{i}-{k}"]["x"] < own["x"] for k in range(r.drafts))
    first = next(s for s in scenes if any(m["id"] == "guess-0-0" for m in s.marks))
    marks = {m["id"]: m for m in first.marks}
    guess, draft = marks["guess-0-0"], marks["draft-0"]
    if guess["role"] == "now":
        assert draft["x"] - 0.1 <= guess["x"] and guess["x"] + guess["w"] <= draft["x"] + draft["w"] + 1.1


def test_the_takeaway_names_the_cause_that_makes_fewer_guesses_better():
    """A full batch makes the check longer and a slow draft makes the guess dear; the chance is 78% in both."""
    busy, slow = guessing(batch=32), guessing(draft_ms=8.0)
    assert busy.verify_s == pytest.approx(0.0832, abs=1e-4) and (busy.best_drafts, slow.best_drafts) == (2, 3)
    assert (
        "checking 5 takes 83.2\u202fms, checking 2 takes 41.6\u202fms" in GUESSING.scenes(busy)[-1].takeaway
    )
    assert (
        slow.verify_s == slow.at_guesses[3].verify_s
        and "at 8\u202fms each" in GUESSING.scenes(slow)[-1].takeaway
    )


def test_numbers_of_guesses_that_are_nearly_best_are_within_five_percent():
    r = guessing()
    best = r.at_guesses[r.best_drafts].token_s
    low, high = r.nearly_best
    assert low <= r.best_drafts <= high
    assert all((one.token_s <= 1.05 * best) == (low <= one.drafts <= high) for one in r.at_guesses)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("preset", GUESSING.presets)
def test_plain_decoding_is_busy_until_the_clock_stops(preset, width):
    """Its last pass may be unfinished: then it reaches the end of the run and has no token."""
    r = GUESSING.run(**GUESSING.inputs(GUESSING.presets[preset]))
    marks = {mark["id"]: mark for mark in GUESSING.scenes(r, width=width)[-1].marks}
    passes = [m for id, m in marks.items() if id.startswith("plain-") and id.removeprefix("plain-").isdigit()]
    assert max(m["x"] + m["w"] for m in passes) == pytest.approx(marks["now-s"]["x"], abs=1.1)
    assert (
        len([id for id in marks if id.startswith("plain-") and id.endswith("-out") and id[6].isdigit()])
        == r.plain_tokens
    )


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("drafts", [0, 1, 5, 9, 12])
@pytest.mark.parametrize("acceptance", [0, 0.78, 1])
def test_the_chosen_bar_has_its_time_and_its_top_is_in_sight(acceptance, drafts, width):
    r = GUESSING.run(**GUESSING.inputs({"acceptance": acceptance, "drafts": drafts}))
    marks = {mark["id"]: mark for mark in GUESSING.scenes(r, width=width)[-1].marks}
    top = min(marks[id]["y"] for id in (f"guess-bar-{drafts}-0", f"guess-bar-{drafts}-1"))
    assert marks["pull-guesses"]["y"] + 9 < top and marks["guesses-now-ms"]["s"] == units.seconds(r.token_s)
    assert marks[f"guess-bar-{drafts}-0"]["set"] == {"drafts": drafts}
