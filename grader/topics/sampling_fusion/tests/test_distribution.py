"""What a histogram of tokens sees, how often it is wrong, and that the check's own tokens pass it."""

import math

import numpy as np
import pytest

from grader.questions import Case
from grader.topics.sampling_fusion.shared_rows import gumbel_of, noise, tokens_wanted, uniform
from grader.topics.sampling_fusion.tests import biases as planted
from grader.topics.sampling_fusion.tests.biases import BIASES, DRAWS, ONCE_IN, RIGHT, ROW, T
from grader.topics.sampling_fusion.tests.chi_square import (
    LEAST,
    NEVER,
    limit,
    merged,
    noncentrality,
    p_value,
    passed,
    power,
    statistic,
    tail,
)
from kernels.sampling_fusion.requests import pack_bits

ALARM = 1e-6  # what is promised: not one right sampler in so many is refused
# of the distance of Kolmogorov and Smirnov, times the root of the number: once in 1000 by chance
UNIFORM_WITHIN = 1.95


def test_tail_limit_and_power_by_the_tables():
    # Any table: 10 degrees of freedom, 5% lie above 18.307 and 0.1% above 29.588; 1 degree, 5% above 3.841.
    for value, freedom, share in (
        (18.307, 10, 0.05),
        (29.588, 10, 0.001),
        (3.841, 1, 0.05),
        (24.322, 7, 0.001),
    ):
        assert tail(value, freedom) == pytest.approx(share, rel=1e-3)
        assert limit(freedom, 1 / share) == pytest.approx(value, rel=1e-3)
    # The 5% test with 1 degree of freedom is the two-sided normal one: 80% power at 2.8 standard deviations.
    assert passed(2.8016**2, 1, 3.8415) == pytest.approx(0.80, abs=1e-3)
    assert passed(0.0, 7, 24.322) == pytest.approx(0.001, rel=1e-3)
    assert noncentrality(1, 20, 0.80) == pytest.approx(7.849, rel=1e-3)


def test_rare_tokens_are_counted_together_and_forbidden_ones_are_told():
    place, shares = merged([0.5, 0.004, 0.0, 0.006, 0.49], 10_000)
    assert place.tolist() == [0, 3, -1, 1, 2] and shares.tolist() == [0.5, 0.006, 0.49, 0.004]
    assert statistic([50, 0, 1, 0, 49], [0.5, 0.004, 0.0, 0.006, 0.49])[0] == NEVER
    assert p_value(np.array([2]), [0.5, 0.5, 0.0]) == 0


def true_rate(
    chances: np.ndarray, draws: int, value: float, directions=2000, samples=40_000
) -> tuple[float, float]:
    """How often a right sampler's sum of squares passes `value`, and the error of that: by samplers that are wrong
    in many directions just so far that they pass it, each sample weighed by how much rarer it is from a right one."""
    rng, root, weights = np.random.default_rng(0), np.sqrt(chances), []
    z = rng.standard_normal((directions, chances.size))
    z -= (z @ root)[:, None] * root
    z /= np.linalg.norm(z, axis=1)[:, None]
    wrong = np.maximum(chances + math.sqrt(value / draws) * 1.03 * z * root, chances * 0.02)
    wrong /= wrong.sum(1, keepdims=True)
    for _ in range(samples // 1000):
        counts = rng.multinomial(draws, wrong[rng.integers(0, directions, 1000)])
        passed = ((counts - draws * chances) ** 2 / (draws * chances)).sum(1) > value
        ratios = counts @ np.log(wrong / chances).T
        weights.append(passed * directions / np.exp(np.minimum(ratios, 700)).sum(1))
    return float(np.mean(weights)), float(np.std(weights) / math.sqrt(samples))


def test_a_wrong_alarm_is_rarer_than_promised():
    shares = merged(RIGHT, DRAWS)[1]
    assert shares.min() * DRAWS < 2 * LEAST, "the tail is tried where it is at its worst"
    rate, error = true_rate(shares, DRAWS, limit(shares.size - 1, ONCE_IN))
    assert error < 0.15 * rate and 1 / ONCE_IN / 1.5 < rate < ALARM - 2 * error


def test_that_rate_is_measured_rightly_where_counting_can_tell():
    shares = merged(RIGHT, DRAWS)[1]
    value = limit(shares.size - 1, 1000)
    rate, error = true_rate(shares, DRAWS, value)
    counts = np.random.default_rng(1).multinomial(DRAWS, shares, size=200_000)
    counted = (((counts - DRAWS * shares) ** 2 / (DRAWS * shares)).sum(1) > value).mean()
    assert abs(rate - counted) < 4 * math.hypot(error, math.sqrt(counted / 200_000))


def test_p_values_of_honest_draws_are_uniform():
    """Gumbel-max from the uniform numbers of 1000 × 1000 different seeds, as the check makes them."""
    p, chances = np.empty(1000), planted.chances_of(ROW[:4])
    for run in range(p.size):
        seeds = run * 1000 + np.arange(1000)
        noise = gumbel_of(uniform(seeds[:, None], np.arange(4)))
        p[run] = p_value(planted.largest(ROW[:4], noise), chances)
    ranks, ordered = np.arange(p.size + 1) / p.size, np.sort(p)
    distance = max(np.abs(ordered - ranks[1:]).max(), np.abs(ordered - ranks[:-1]).max())
    assert distance * math.sqrt(p.size) < UNIFORM_WITHIN and p.min() > ALARM


def demanded(scores, **columns) -> np.ndarray:
    """The tokens that the check wants of ROW for neighbouring seeds; the first hundred by its own judge."""
    seeds = np.arange(DRAWS, dtype=np.int32)
    tokens = planted.largest(scores, noise(seeds[:, None], ROW.size))
    columns |= {"logits": ROW.astype(np.float32), "temperature": np.float32(T)}
    inputs = {name: np.broadcast_to(value, (100, *np.shape(value))) for name, value in columns.items()}
    wanted = tokens_wanted(inputs | {"seed": seeds[:100]}, Case({"B": 100, "V": ROW.size}))["token"]
    assert np.array_equal(tokens[:100], wanted)
    return tokens


def alarm(tokens, chances) -> bool:
    value, freedom = statistic(np.bincount(tokens, minlength=len(chances)), chances)
    return value > limit(freedom, ONCE_IN)


def test_what_the_check_demands_of_a_draw_comes_from_the_softmax_whatever_came_before():
    tokens = demanded(ROW / T)
    assert not alarm(tokens, RIGHT)
    pairs = tokens[0::2] * ROW.size + tokens[1::2]  # neighbouring seeds
    assert not alarm(pairs, np.outer(RIGHT, RIGHT).ravel())


def test_what_it_demands_after_mask_and_penalties_does_too():
    allowed = np.arange(ROW.size) % 5 != 4
    r, f, p = planted.PENALTIES
    tokens = demanded(
        np.where(allowed, planted.PENALISED / T, -np.inf),
        allowed=pack_bits(allowed[None])[0],
        history=planted.HISTORY.astype(np.int32),
        repetition=np.float32(r),
        frequency=np.float32(f),
        presence=np.float32(p),
    )
    assert not alarm(tokens, planted.chances_of(planted.PENALISED / T, allowed))


def test_and_among_survivors():
    k, p, m = planted.NUCLEUS
    tokens = demanded(
        np.where(planted.NARROW, ROW / T, -np.inf),
        top_k=np.int32(k),
        top_p=np.float32(p),
        min_p=np.float32(m),
    )
    assert not alarm(tokens, planted.chances_of(ROW / T, planted.NARROW))


@pytest.mark.parametrize("name", [n for n, b in BIASES.items() if b.together == 1])
def test_each_planted_bias_draws_what_is_said_of_it(name):
    bias = BIASES[name]
    tokens = bias.draw(np.random.default_rng(3).random((DRAWS, ROW.size)))
    assert not alarm(tokens, bias.biased)


@pytest.mark.parametrize("name", [n for n, b in BIASES.items() if b.together > 1])
def test_rows_that_share_a_seed_draw_the_same_token(name):
    tokens = BIASES[name].draw(np.random.default_rng(3).random((DRAWS, ROW.size)))
    assert (tokens[0::2] == tokens[1::2]).all()


@pytest.mark.parametrize("name", BIASES)
def test_the_power_of_a_histogram_is_what_the_formula_says(name):
    bias, trials = BIASES[name], 2000
    value = limit(merged(bias.chances, DRAWS)[1].size - 1, ONCE_IN)
    refused = [statistic(c, bias.chances)[0] > value for c in bias.counts(np.random.default_rng(4), trials)]
    computed = bias.power()
    spread = math.sqrt(max(0.0, computed * (1 - computed)) / trials)
    assert (
        abs(np.mean(refused) - computed) < 4 * spread + 0.02
    )  # the formula is chi-square's, the counts are whole


@pytest.mark.parametrize("name", BIASES)
def test_a_single_case_of_tokens_refuses_each_of_them(name):
    assert all(BIASES[name].differs(seed) for seed in range(2))


BLIND = ("noise of 12 bits", "u = 0 wins, of 10 bits", "temperature 1% too high", "neighbours share a seed")


def test_what_a_histogram_cannot_see():
    assert {name for name, bias in BIASES.items() if bias.power() < 0.05} == set(BLIND)
    assert BIASES["temperature 5% too high"].needed() == pytest.approx(29_300, rel=0.01)
    assert BIASES["temperature 1% too high"].needed() == pytest.approx(728_000, rel=0.01)


def test_the_smallest_bias_seen_for_sure():
    """A token of 10% is seen for sure from 12% on, one of 1% from 1.7% on."""
    for chance, seen in ((0.1, 0.119), (0.01, 0.0162)):
        rest = RIGHT[1:] / RIGHT[1:].sum()
        right, wrong = (np.append(c, (1 - c) * rest) for c in (chance, seen))
        assert power(right, wrong, DRAWS, ONCE_IN) == pytest.approx(0.99, abs=0.006)


def test_what_the_tokens_see_and_what_they_cannot():
    """Noise of 16 bits changes a token in every check, of 20 in nearly all, of 24 in none: fp32 has no more."""
    bits = {n: planted.tokens_of_bits(n) for n in (16, 20, 24)}
    found = {n: sum(one.differs(seed) for seed in range(6)) for n, one in bits.items()}
    assert found[16] == 6 and found[20] > 3 and found[24] == 0
