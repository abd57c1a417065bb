"""What a round yields, against guessing played out; when it pays, and when it stops paying."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets.registry import find

GUESSING = find("speculative_decoding")


def guessing(**inputs):
    return GUESSING.run(**GUESSING.inputs(inputs))


@given(st.integers(0, 20), st.integers(0, 12))
def test_the_round_is_the_sum_of_its_tokens_chances(twentieths, drafts):
    r = guessing(acceptance=twentieths / 20, drafts=drafts)
    assert r.tokens == pytest.approx(sum(r.chances)) and 1 <= r.tokens <= drafts + 1
    assert r.round_s == pytest.approx(r.draft_s + r.verify_s)
    assert r.speedup == pytest.approx(r.plain_s / r.token_s)
    assert next(one.speedup for one in r.at_batch if one.batch == 1) == r.speedup


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


def test_the_best_bar_and_no_other_is_marked():
    marks = {m["id"]: m for m in GUESSING.scenes(guessing())[-1].marks}
    green = [k for k in range(13) if marks[f"guess-bar-{k}-0"]["role"] == "useful"]
    assert green == [guessing().best_drafts] and marks["guesses-best"]["s"].startswith("9 guesses are best")
    assert marks["pull-guesses"]["drag"][0]["input"] == "drafts"


@pytest.mark.parametrize("drafts", [1, 3, 5, 12])
def test_where_it_stops_paying_is_where_the_curve_crosses(drafts):
    last = guessing(drafts=drafts).pays_up_to
    assert 16 < last < 256
    assert guessing(drafts=drafts, batch=last).speedup > 1 >= guessing(drafts=drafts, batch=last + 1).speedup
    words = [m["s"] for m in GUESSING.scenes(guessing(drafts=drafts))[-1].marks if m["t"] == "text"]
    assert any(f"up to {last} requests" in one for one in words)


def test_guesses_that_never_pay_say_so():
    r = guessing(acceptance=0.0)
    scene = GUESSING.scenes(r)[-1]
    assert (
        r.pays_up_to == 0 and "never pay" in GUESSING.scenes(guessing(acceptance=0.0, batch=16))[-1].warning
    )
    assert any(m.get("s") == "it pays at no batch" for m in scene.marks)


@pytest.mark.parametrize("batch", [16, 32, 64, 96, 256])
@pytest.mark.parametrize("drafts", [1, 5, 8])
def test_the_words_never_send_to_plain_decoding_while_a_bar_says_that_guesses_are_best(batch, drafts):
    r = guessing(batch=batch, drafts=drafts)
    words = GUESSING.stepper.frames(r)[-1].takeaway
    assert ("plain decoding is faster" in words) == (r.best_drafts == 0)
    if r.speedup < 1 <= r.best_drafts:
        assert f"{drafts} guesses are slower than none" in words and "would still pay" in words


def test_until_where_guessing_pays_with_the_best_count_is_drawn_too():
    r = guessing(batch=64)
    best = {one.batch: one.speedup for one in r.best_at_batch}
    own = {one.batch: one.speedup for one in r.at_batch}
    assert all(best[b] >= own[b] - 1e-9 for b in best if b in own) and best[1] == pytest.approx(
        max(guessing(drafts=k).speedup for k in range(13))
    )
    marks = {m["id"]: m for m in GUESSING.scenes(r)[-1].marks}
    assert len(marks["best-gain"]["p"]) == 2 * len(r.best_at_batch)
    assert ("idle", "grey line: with the best number of guesses") in GUESSING.scenes(r)[-1].legend


def test_one_guess_is_one():
    for state in ({"batch": 64}, {"drafts": 1}, {"drafts": 1, "batch": 256}, {"acceptance": 0.0}):
        scene = GUESSING.scenes(guessing(**state))[-1]
        words = [scene.summary, scene.takeaway, scene.warning]
        words += [f"{one.text} {one.label}" for one in scene.figures]
        words += [m.get("s", "") + m.get("tip", "") for m in scene.marks]
        assert not [s for s in words if re.search(r"(?<![\d.,])1 (guesses|tokens a round)", s)]
