"""Hidden cases in which what is unlikely wins: far more than rounding separates it from what is likely."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from grader import questions
from grader.topics.sampling_fusion.grouped_draw.cases import MOST
from grader.topics.sampling_fusion.masked_draw.cases import LIFTED
from grader.topics.sampling_fusion.shared_logits import (
    BLOCKS_FAR_BELOW,
    LOWEST,
    MANY_TIED,
    MOST_FAR_BELOW,
    RISING,
    of_kind,
)
from grader.topics.sampling_fusion.shared_rows import (
    OUTNUMBERED,
    gumbel_of,
    noise,
    rounding,
    row_scores,
    the_last_wins,
    tokens_wanted,
    uniform,
)
from kernels.sampling_fusion.cost import GROUP


def drawn(name: str, values: str, **sizes: int):
    question = questions.find(f"sampling_fusion.{name}")
    case = next(c for c in question.hidden(np.random.default_rng(5)) if c.values == values)
    case = replace(case, sizes=case.sizes | sizes)
    return question.inputs(case, np.random.default_rng(6))


@pytest.mark.parametrize(
    "name, values, sizes",
    [
        ("draw", OUTNUMBERED, {"V": 40_000}),
        ("masked_draw", OUTNUMBERED, {}),
        ("masked_draw", LIFTED, {}),
    ],
)
def test_a_token_wins_that_a_bound_on_noise_or_on_penalties_would_skip(name, values, sizes):
    inputs = drawn(name, values, **sizes)
    plain = inputs | ({"history": np.full_like(inputs["history"], -1)} if values == LIFTED else {})
    for i, logits in enumerate(inputs["logits"]):
        scores = row_scores(inputs, i)
        first = int(np.argmax(scores))
        likely = int(np.argmax(row_scores(plain, i) if values == LIFTED else logits))
        assert first > likely and scores[first] - scores[likely] > rounding(inputs, i, scores, first, likely)
        if values == OUTNUMBERED:
            assert noise(int(inputs["seed"][i]), logits.size)[first] > 9
        else:
            assert set(inputs["history"][i]) == {first} and len(lifting(inputs, i)) == 1
    assert (
        values != LIFTED or len(set().union(*(lifting(inputs, i) for i in range(len(inputs["logits"]))))) == 4
    )


def lifting(inputs: dict, i: int) -> set[str]:
    """Return the penalties that raise a row's token."""
    found = {name for name in ("frequency", "presence") if inputs[name][i] < 0}
    sign = "above" if inputs["logits"][i, inputs["history"][i, 0]] > 0 else "below"
    return found | ({f"repetition {sign} 0"} if inputs["repetition"][i] < 1 else set())


@pytest.mark.parametrize("values", [OUTNUMBERED, LIFTED])
def test_rows_of_one_token_are_drawn_too(values):
    inputs = drawn("masked_draw", values, V=1)
    assert inputs["logits"].shape[1] == 1 and np.isfinite(inputs["logits"]).all()


@pytest.mark.parametrize("name", ["draw", "masked_draw", "grouped_draw"])
def test_where_logits_rise_one_of_the_last_wins_and_many_programs_may_share_the_row(name):
    question = questions.find(f"sampling_fusion.{name}")
    case = next(c for c in question.hidden(np.random.default_rng(5)) if c.values == RISING)
    inputs = question.inputs(case, np.random.default_rng(6))
    late = [np.argmax(row_scores(inputs, i)) / case.sizes["V"] for i in range(case.sizes["B"])]
    assert min(late) > 0.99 and case.sm_count >= 150


def test_many_tokens_far_below_weigh_nothing_even_where_all_is_warm():
    """A bound on x - max before the division by T would keep some of their weight."""
    inputs = drawn("filtered_draw", MOST_FAR_BELOW)
    x = inputs["logits"].astype(np.float64)
    bounded = inputs | {"logits": np.maximum(x - x.max(1, keepdims=True), -80).astype(np.float32)}
    case = SimpleNamespace(sizes={"B": len(x)})
    assert (tokens_wanted(bounded, case)["token"] != tokens_wanted(inputs, case)["token"]).any()


def test_whole_blocks_lie_so_far_below_that_no_halving_of_floats_tells_the_others_apart():
    for row in drawn("grouped_draw", BLOCKS_FAR_BELOW)["logits"]:
        blocks = {bool((row[at : at + GROUP] == LOWEST).all()) for at in range(0, len(row), GROUP)}
        assert blocks == {True, False} and row.max() - row.min() > 2.0**64 * np.ptp(row[row > LOWEST])


def test_no_row_is_all_so_far_below_that_a_temperature_below_1_makes_it_a_row_of_inf():
    assert (of_kind(BLOCKS_FAR_BELOW, 500, 100, np.random.default_rng(5)).max(1) > LOWEST).all()


def test_more_groups_tie_than_are_read_again_before_better_ones():
    inputs = drawn("grouped_draw", MANY_TIED)
    wanted = tokens_wanted(inputs, SimpleNamespace(sizes={"B": len(inputs["logits"])}))["token"]
    for row, k in zip(inputs["logits"], inputs["top_k"], strict=True):
        largest = np.array([row[at : at + GROUP].max() for at in range(0, len(row), GROUP)])
        border = np.sort(largest)[-k]
        assert (largest >= border).sum() > MOST and largest[:MOST].max() == border < largest.max()
    assert (wanted >= MOST * GROUP).any()


def test_seeds_with_which_the_last_token_wins_are_those_of_a_whole_search():
    rng = np.random.default_rng(3)
    rows = [(rng.permutation(500)[:n], np.sort(rng.normal(size=n))[::-1]) for n in (1, 2, 9, 40, 300)]
    tries = rng.integers(-(2**31), 2**31, (len(rows), 64)).astype(np.int32)
    wins = the_last_wins(rows, tries)
    for (tokens, x), seeds, found in zip(rows, tries, wins, strict=True):
        scores = x + gumbel_of(uniform(seeds[:, None], tokens))
        assert (found == (scores.argmax(1) == len(tokens) - 1)).all()
    assert wins[0].all() and wins[1:4].any() and not wins[1:].all()
