"""What is drawn, over many seeds: the filtered distribution, and after speculation the target's own."""

import numpy as np
import pytest
import torch

from kernels.sampling_fusion import fused, philox, reference, speculative
from kernels.sampling_fusion.reference import Ranking, kept
from kernels.sampling_fusion.requests import Requests
from kernels.sampling_fusion.state import State
from kernels.sampling_fusion.tests.distribution import ALARM, chi_square_tail, p_value

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SPLIT = 2**31  # seeds on both sides of 32 bits


def expected(x, **ask) -> np.ndarray:
    ranking = Ranking.of(np.asarray(x, np.float64), 1.0)
    keep = kept(ranking, *(ask.get(k, d) for k, d in (("top_k", 0), ("top_p", 1.0), ("min_p", 0.0))))
    p = np.zeros(len(x))
    p[ranking.token[keep]] = ranking.weight[keep] / ranking.weight[keep].sum()
    return p


def test_the_tail_of_chi_square():
    # 10 degrees of freedom: 5% lie above 18.307, 0.1% above 29.588 (any table).
    assert chi_square_tail(18.307, 10) == pytest.approx(0.05, rel=1e-3)
    assert chi_square_tail(29.588, 10) == pytest.approx(0.001, rel=1e-3)
    assert chi_square_tail(3.841, 1) == pytest.approx(0.05, rel=1e-3)
    assert chi_square_tail(24.322, 7) == pytest.approx(0.001, rel=1e-3)


def test_the_test_notices_a_wrong_sampler():
    p = expected(np.linspace(0, 3, 20))
    tokens = np.random.default_rng(0).choice(20, 20000, p=expected(np.linspace(0, 2.7, 20)))
    assert p_value(tokens, p) < ALARM
    with pytest.raises(AssertionError, match="never"):
        p_value(np.array([1]), [1.0, 0.0])


@pytest.mark.parametrize("draw", reference.DRAWS)
@pytest.mark.parametrize("ask", ({}, {"top_k": 7, "top_p": 0.8}, {"top_p": 0.6}, {"min_p": 0.2}), ids=str)
def test_the_reference_draws_from_what_is_kept(ask, draw):
    x = np.random.default_rng(1).normal(size=30) * 1.5
    ranking = Ranking.of(x, 1.0)
    keep = kept(ranking, ask.get("top_k", 0), ask.get("top_p", 1.0), ask.get("min_p", 0.0))
    ranks = [reference.pick(ranking, keep, seed * SPLIT, 3, draw) for seed in range(3000)]
    assert p_value(ranking.token[ranks], expected(x, **ask)) > ALARM


def test_positions_of_one_seed_are_as_good_as_seeds():
    x = np.random.default_rng(2).normal(size=16)
    ranking, keep = Ranking.of(x, 1.0), np.ones(16, bool)
    ranks = [reference.pick(ranking, keep, 7, position) for position in range(3000)]
    assert p_value(ranking.token[ranks], expected(x)) > ALARM


def test_noise_of_neighbours_and_streams_is_independent():
    tokens = np.arange(4096)
    a, b = philox.gumbel(1, 2, tokens), philox.gumbel(1, 3, tokens)
    other = philox.gumbel(1, 2, tokens, philox.RESAMPLE)
    for pair in ((a[:-1], a[1:]), (a, b), (a, other)):
        assert abs(np.corrcoef(*pair)[0, 1]) < 6 / np.sqrt(4095), "six standard deviations"


@pytest.mark.gpu
@pytest.mark.parametrize("draw", reference.DRAWS)
@pytest.mark.parametrize("ask", ({}, {"top_k": 7, "top_p": 0.8}, {"top_p": 0.6}, {"min_p": 0.2}), ids=str)
def test_the_kernel_draws_from_what_is_kept(ask, draw):
    """One batch of many requests that differ in their seeds alone. Without a GPU single draws must do."""
    if draw == "inverse" and "top_k" not in ask:
        pytest.skip("the fused inverse CDF needs a top-k")
    n = 20000
    x = (np.random.default_rng(1).normal(size=80) * 1.5).astype(np.float32)
    requests = Requests.of(n, 80, seed=[i * SPLIT for i in range(n)], **ask)
    logits = torch.from_numpy(x).to(DEVICE).repeat(n, 1)
    tokens = fused.sample(logits, State.of(requests, DEVICE), draw=draw).tokens.cpu().numpy()
    assert p_value(tokens, expected(x, **ask)) > ALARM


def speculate(target, guess, tries: int, verify):
    """First tokens, and second tokens where there is one, of `tries` rounds of two drafts."""
    vocabulary = target.shape[1]
    rng = np.random.default_rng(3)
    draft = np.stack([rng.choice(vocabulary, tries, p=guess[i]) for i in range(2)], axis=1).astype(np.int32)
    tile = lambda a: np.broadcast_to(a.astype(np.float32), (tries, *a.shape)).copy()  # noqa: E731
    seeds, positions = np.arange(tries) * SPLIT, np.zeros(tries, np.int32)
    tokens, accepted = verify(draft, tile(target), tile(guess), seeds, positions)
    return tokens[:, 0], tokens[accepted >= 1, 1], accepted


def by_kernel(draft, target, guess, seeds, positions):
    arrays = (torch.from_numpy(a).to(DEVICE) for a in (draft, target, guess, seeds, positions))
    got = speculative.verify(*arrays)
    return got.tokens.cpu().numpy(), got.accepted.cpu().numpy()


@pytest.mark.parametrize(
    "verify, tries",
    ((reference.verify, 4000), pytest.param(by_kernel, 20000, marks=pytest.mark.gpu)),
    ids=("reference", "kernel"),
)
def test_speculation_leaves_the_targets_distribution(verify, tries):
    """Whatever the draft proposes: every emitted token is the target's, and the rest of the drafts is dropped."""
    rng = np.random.default_rng(4)
    target, guess = rng.dirichlet(np.ones(12), size=3), rng.dirichlet(np.ones(12), size=2)
    guess[1, :4] = 0  # the draft never proposes what the target likes
    guess[1] /= guess[1].sum()
    first, second, accepted = speculate(target, guess, tries, verify)
    assert p_value(first, target[0]) > ALARM
    assert p_value(second, target[1]) > ALARM
    rate = np.minimum(target[0], guess[0]).sum()
    assert abs((accepted >= 1).mean() - rate) < 6 * np.sqrt(rate * (1 - rate) / tries)


def test_without_the_residual_the_distribution_would_be_wrong():
    """Resampling from the target itself after a refusal, the classic mistake, is caught by the same test."""

    def careless(draft, target, guess, seeds, positions):
        tokens, accepted = reference.verify(draft, target, guess, seeds, positions)
        for b in np.flatnonzero(accepted < 1):
            tokens[b, 0] = reference.gumbel_max(target[b, 0], int(seeds[b]), 9, philox.RESAMPLE)
        return tokens, accepted

    rng = np.random.default_rng(4)
    target, guess = rng.dirichlet(np.ones(12), size=3), rng.dirichlet(np.ones(12), size=2)
    first, _, _ = speculate(target, guess, 4000, careless)
    assert p_value(first, target[0]) < ALARM
