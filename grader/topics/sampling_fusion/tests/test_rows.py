"""What the draws' judge forgives and what it does not."""

import numpy as np
import pytest

from grader import questions
from grader.questions import Case
from grader.topics.sampling_fusion.shared_rows import (
    CLOSE,
    MARGIN,
    agree,
    best,
    filters,
    final_logits,
    in_turn,
    noise,
    row_scores,
    seeds,
    survivors,
    tokens_wanted,
)

NAMES = ("draw", "masked_draw", "filtered_draw", "grouped_draw")
QUESTIONS = {name: questions.find(f"sampling_fusion.{name}") for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_right_tokens_are_refused_nowhere(name):
    question, rng = QUESTIONS[name], np.random.default_rng(8)
    for case in (*question.public, *question.hidden(rng)):
        inputs = question.inputs(case, rng)
        want = question.reference(inputs, case)
        assert question.agree(inputs, case, want, want) == ""


def row(logits, temperature, **more) -> tuple[dict, Case]:
    inputs = {
        "logits": np.array([logits], np.float32),
        "temperature": np.array([temperature], np.float32),
        "seed": np.array([11], np.int32),
    } | {name: np.array([value], np.int32 if name == "top_k" else np.float32) for name, value in more.items()}
    return inputs, Case({"B": 1, "V": len(logits)})


def agrees(inputs, case, token) -> bool:
    return agree(inputs, case, {"token": np.array([token])}, tokens_wanted(inputs, case)) == ""


@pytest.mark.parametrize(
    ("filters_of_row", "said"),
    [
        ((0, 1.0, 0.0), "; top_k = 0, top_p = 1 and min_p = 0 turn all three filters off in this row"),
        ((1, 1.0, 0.0), "; top_k = 1, top_p = 1 and min_p = 0 rule it out"),
        ((0, 1.0, 1e-9), "; the filters of this row are top_k = 0, top_p = 1 and min_p = 1e-09"),
    ],
)
def test_a_wrong_token_is_told_with_its_rows_filters(filters_of_row, said):
    inputs, case = row(
        [0.0, 9.0, 1.0], 1.0, **dict(zip(("top_k", "top_p", "min_p"), filters_of_row, strict=True))
    )
    want = tokens_wanted(inputs, case)
    mine = {"token": (want["token"] + 1) % 3}
    assert said in agree(inputs, case, mine, want)


def test_of_equal_logits_the_lowest_id_alone_is_right():
    inputs, case = row([1.0, 3.0, 3.0], 0.0)
    assert [agrees(inputs, case, token) for token in range(3)] == [False, True, False]


def test_greedy_logits_are_compared_to_the_last_bit():
    inputs, case = row([1.0, np.nextafter(np.float32(1), np.float32(2))], 0.0)
    assert not agrees(inputs, case, 0) and agrees(inputs, case, 1)


def test_what_rounding_decides_is_forgiven_and_no_more():
    g = noise(11, 2)
    for apart, forgiven in ((1e-7, True), (1e-3, False)):
        inputs, case = row(list(np.float32([-g[0], -g[1] + apart])), 1.0)
        wanted = int(tokens_wanted(inputs, case)["token"][0])
        assert agrees(inputs, case, 1 - wanted) is forgiven


def test_a_token_at_the_very_edge_of_top_p_may_be_in_or_out():
    """Two tokens and p the share of the first: whether the mass before the second is below the limit, rounding decides."""
    share = 1 / (1 + np.exp(-1))
    for p, loose in ((share - 1e-6, True), (0.6, False)):
        inputs, case = row([2.0, 1.0], 1.0, top_k=0, top_p=p, min_p=0.0)
        inputs["seed"][:] = next(s for s in range(99) if np.diff(noise(s, 2)) > 1.1)  # the second would win
        assert agrees(inputs, case, 0) and agrees(inputs, case, 1) is loose
        inputs["top_p"][:] = 2 * share - p  # now the second stays, and wins
        assert agrees(inputs, case, 1) and agrees(inputs, case, 0) is loose


def test_where_masses_are_whole_numbers_rounding_decides_nothing():
    for logits, top_p in (([2.0, 2.0], 0.5), ([2.0, 2.0, 2.0, 2.0], 0.25)):
        inputs, case = row(logits, 1.0, top_k=0, top_p=top_p, min_p=0.0)
        inputs["seed"][:] = next(s for s in range(99) if noise(s, len(logits))[1] > 2)
        assert agrees(inputs, case, 0) and not agrees(inputs, case, 1)


def test_zeros_of_both_signs_are_equal_and_are_drawn():
    """top_k = 1 of [-0.0, 0.0] is the lower id, as for all equals; every check holds a right kernel to it."""
    inputs, case = row([-0.0, 0.0], 1.0, top_k=1, top_p=1.0, min_p=0.0)
    assert tokens_wanted(inputs, case)["token"] == 0
    assert any(case.values == "zeros" for case in QUESTIONS["filtered_draw"].hidden(np.random.default_rng(0)))


def test_minus_one_is_right_only_where_nothing_is_left():
    assert not agrees(*row([1.0, 2.0], 1.0), -1)
    inputs, case = row([-np.inf, -np.inf], 1.0)
    assert agrees(inputs, case, -1) and not agrees(inputs, case, 0)


def test_each_choice_comes_as_often_as_the_others():
    found = in_turn(np.random.default_rng(0), (0.0, 0.5, 1.0), 7)
    assert sorted(np.unique(found, return_counts=True)[1]) == [2, 2, 3]


def test_close_calls_are_close_and_never_closer_than_rounding():
    question = QUESTIONS["draw"]
    rng = np.random.default_rng(2)
    case = next(c for c in question.hidden(rng) if c.values == "close calls")
    inputs = question.inputs(case, rng)
    for i in range(case.sizes["B"]):
        second, first = np.sort(row_scores(inputs, i))[-2:]
        assert first - second == pytest.approx(MARGIN if i % 2 else CLOSE, rel=0.1)


def test_scores_in_steps_draw_other_tokens_in_close_calls():
    for name in ("draw", "grouped_draw"):
        question, rng = QUESTIONS[name], np.random.default_rng(3)
        case = next(c for c in question.hidden(rng) if c.values == "close calls")
        inputs = question.inputs(case, rng)
        want, got = question.reference(inputs, case), []
        for i in range(case.sizes["B"]):
            s = row_scores(inputs, i)
            got.append(best(np.floor(8192 * s) if inputs["temperature"][i] else s))
        assert question.agree(inputs, case, {"token": np.array(got)}, want)


def test_a_border_anywhere_in_a_row_is_told_from_others():
    """A filter that counts as none, or as a little stricter, draws another token in nearly each of its rows."""
    question, rng = QUESTIONS["filtered_draw"], np.random.default_rng(3)
    for case in (c for c in question.hidden(rng) if c.values == "borders anywhere"):
        inputs = question.inputs(case, rng)
        want = question.reference(inputs, case)["token"]
        k, p, m = (inputs[n] for n in ("top_k", "top_p", "min_p"))
        changes = (
            {"top_k": 0 * k, "top_p": p * 0 + 1, "min_p": 0 * m},
            {"top_k": np.where(k > 0, k - 1, 0), "top_p": np.where(p < 1, p - 1 / case.sizes["V"], p)},
            {"min_p": np.where(m > 0, np.minimum(1, m * 1.004), m)},
        )
        shares = [np.mean(question.reference(inputs | change, case)["token"] != want) for change in changes]
        assert shares[0] > 0.8 and shares[1] > 0.5 and shares[2] > 0.15, shares
        if case.sizes["V"] > 1000:
            assert k.max() > 0.7 * case.sizes["V"] and m.max() > 0.9 and k[k > 0].min() < 99


def test_seeds_of_special_bits_come_in_each_large_case():
    found = seeds(np.random.default_rng(0), 256).astype(np.int64)
    ones, zeros = ({int(n) for n in each} for each in (~found & found + 1, found & -found))
    assert ones >= {1 << k for k in range(31)} <= zeros


def test_every_other_row_of_a_telling_case_draws_the_last_that_stays():
    question = QUESTIONS["filtered_draw"]
    rng = np.random.default_rng(2)
    case = next(c for c in question.hidden(rng) if c.values == "few tokens")
    inputs, last = question.inputs(case, rng), []
    for i in range(0, case.sizes["B"], 2):
        x, t = final_logits(inputs, i), float(inputs["temperature"][i])
        if t:
            kept = np.where(survivors(x, t, filters(inputs, i)), x, np.inf)
            last.append(best(row_scores(inputs, i)) == np.argmin(kept))
    assert np.mean(last) > 0.8  # where the last has hardly a chance no seed is found


def test_a_token_past_the_vocabulary_comes_from_lanes_past_the_row():
    inputs, case = row([0.0, 9.0, 1.0], 1.0)
    said = agree(inputs, case, {"token": np.array([3.0])}, tokens_wanted(inputs, case))
    assert "the last token is 2, so do lanes past the row's end take part" in said
    said = agree(inputs, case, {"token": np.array([2.0**31 - 1])}, tokens_wanted(inputs, case))
    assert said and "lanes" not in said


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("repetition", 0.4, 3), ("frequency", -1, 1), ("presence", -1, 1), ("temperature", 0.3, 3)],
)
def test_a_strong_penalty_that_is_cut_off_draws_another_token(name, low, high):
    question, rng = QUESTIONS["masked_draw"], np.random.default_rng(0)
    case = next(c for c in question.hidden(rng) if c.values == "strong penalties")
    inputs = question.inputs(case, rng)
    cut = np.where(inputs[name] == 0, 0, inputs[name].clip(low, high)).astype(np.float32)
    mine, want = (question.reference(one, case) for one in (inputs | {name: cut}, inputs))
    assert question.agree(inputs, case, mine, want)
