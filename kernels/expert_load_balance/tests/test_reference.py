"""The reference against the formulas, against derivatives, and against what each of its words means."""

import numpy as np
import pytest

from kernels import routing
from kernels.expert_load_balance import cases, cost, reference
from kernels.tests.properties import given, st


def drawn(seed, tokens=23, experts=6, top_k=2):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.standard_normal((tokens, experts))
    return logits, reference.choose(logits, top_k)


@given(seed=st.integers(0, 10**6), tokens=st.integers(1, 40), top_k=st.integers(1, 4))
def test_loads_and_imbalance_are_those_of_the_formulas(seed, tokens, top_k):
    _, topk_ids = drawn(seed, tokens, 6, top_k)
    loads = reference.loads_of(topk_ids, 6)
    assert loads.sum() == tokens * top_k and loads.shape == (6,)
    assert reference.imbalance(loads) == pytest.approx(cost.imbalance(loads.tolist()))


@given(loads=st.lists(st.integers(0, 99), min_size=2, max_size=12).filter(any), ranks=st.integers(1, 4))
def test_the_step_is_the_busiest_ranks_and_so_says_the_formula(loads, ranks):
    placement = cost.replicate(loads, ranks, spare_slots=ranks)
    held = reference.rank_loads(np.array(loads), placement, ranks)
    assert held == pytest.approx(cost.device_loads(loads, placement, ranks))
    step = cost.ep_step(loads, placement, ranks, token_s=2e-6, communication_s=1e-4)
    assert reference.step_time(np.array(loads), placement, ranks, 2e-6, 1e-4) == pytest.approx(step.step_s)


def test_one_hot_expert_makes_the_step_more_than_two_and_a_half_times_longer_at_equal_work():
    even, hot = (np.array(cost.hot_loads(1024, 1, 8, share)) for share in (1 / 8, 0.35))
    eight = cost.contiguous(8, 8)
    assert even.sum() == hot.sum()
    assert reference.step_time(hot, eight, 8, 1e-6) > 2.5 * reference.step_time(even, eight, 8, 1e-6)


@given(seed=st.integers(0, 10**6), capacity=st.integers(1, 20))
def test_capacity_drops_as_many_as_the_formula_says_and_the_last_choices_first(seed, capacity):
    _, topk_ids = drawn(seed)
    kept = reference.kept_by_capacity(topk_ids, 6, capacity)
    dropped = [int(((topk_ids == e) & ~kept).sum()) for e in range(6)]
    assert dropped == routing.drops(reference.loads_of(topk_ids, 6).tolist(), capacity)
    for e in range(6):
        served = [kept[t, j] for j in range(2) for t in range(len(topk_ids)) if topk_ids[t, j] == e]
        assert served == sorted(served, reverse=True), "who comes first is served first"


def test_a_dropped_choice_adds_nothing():
    rng = np.random.default_rng(3)
    x, gate, up = rng.standard_normal((5, 4)), *rng.standard_normal((2, 3, 4, 6))
    down = rng.standard_normal((3, 6, 4))
    topk_ids, topk_weights = np.array([[0, 1], [1, 2], [2, 0], [0, 2], [1, 0]]), np.full((5, 2), 0.5)
    kept = np.ones((5, 2), bool)
    kept[2, 1] = False
    less = topk_weights * kept
    whole = reference.moe_of_experts(x, topk_ids, topk_weights, gate, up, down)
    assert np.allclose(
        reference.moe_of_experts(x, topk_ids, topk_weights, gate, up, down, kept),
        reference.moe_of_experts(x, topk_ids, less, gate, up, down),
    )
    g = x[1] @ gate[1]
    first = (g * (x[1] @ up[1]) / (1 + np.exp(-g))) @ down[1]
    g = x[1] @ gate[2]
    second = (g * (x[1] @ up[2]) / (1 + np.exp(-g))) @ down[2]
    assert np.allclose(whole[1], 0.5 * first + 0.5 * second)


@given(seed=st.integers(0, 10**6))
def test_the_auxiliary_loss_is_the_formula_and_its_gradient_the_slope(seed):
    """The choices stand still while the slope is taken: they have no gradient."""
    logits, topk_ids = drawn(seed, 7, 5)
    value, gradient = reference.auxiliary_loss(logits, topk_ids)
    mean = reference.probabilities(logits).mean(axis=0)
    loads = reference.loads_of(topk_ids, 5)
    assert value == pytest.approx(cost.auxiliary_loss(loads.tolist(), np.minimum(mean, 1).tolist()))
    assert gradient.sum(axis=1) == pytest.approx(np.zeros(7), abs=1e-12)
    step = 1e-5
    for t, e in ((0, 0), (3, 2), (6, 4)):
        moved = [logits.copy(), logits.copy()]
        moved[0][t, e] += step
        moved[1][t, e] -= step
        up, down = (reference.auxiliary_loss(m, topk_ids)[0] for m in moved)
        assert gradient[t, e] == pytest.approx((up - down) / (2 * step), abs=1e-8)


def test_the_auxiliary_loss_is_one_when_even_and_all_experts_when_all_choose_one():
    even = np.zeros((6, 3))
    assert reference.auxiliary_loss(even, np.arange(6)[:, None] % 3)[0] == pytest.approx(1)
    sure = np.tile([50.0, 0, 0], (6, 1))
    assert reference.auxiliary_loss(sure, np.zeros((6, 1), int))[0] == pytest.approx(3)


@given(seed=st.integers(0, 10**6))
def test_the_bias_chooses_and_its_steps_are_the_formulas(seed):
    rng = np.random.default_rng(seed)
    bias, loads = rng.standard_normal(5), rng.integers(0, 4, 5)
    assert reference.bias_update(bias, loads, 0.25) == pytest.approx(
        cost.bias_step(bias.tolist(), loads.tolist(), 0.25)
    )
    scores = rng.random((4, 5))
    assert (reference.choose(scores, 2, np.array([0, 0, 9, 0, 0]))[:, 0] == 2).all()
    assert (reference.choose(np.ones((2, 5)), 3) == [0, 1, 2]).all(), "of equals the lower"


@pytest.mark.parametrize("skew", cases.SKEWS)
@pytest.mark.parametrize("shape", [cases.SMALL, cases.QWEN], ids=lambda shape: shape.name)
def test_a_routing_has_its_skews_loads(skew, shape):
    topk_ids, topk_weights = cases.routing(skew, 50, shape.top_k, shape.experts, seed=1)
    assert reference.loads_of(topk_ids, shape.experts).tolist() == list(
        cases.loads_of_skew(skew, 50, shape.top_k, shape.experts)
    )
    assert all(len(set(line)) == shape.top_k for line in topk_ids.tolist())
    assert topk_weights.sum(axis=1) == pytest.approx(1) and (topk_weights > 0).all()
    halves = [reference.loads_of(half, shape.experts) for half in np.split(topk_ids, 2)]
    assert abs(halves[0] - halves[1]).max() < 25, "dealt at random, not by number"


def test_a_traced_routing_is_the_text_itself_and_balancing_shows():
    topk_ids, _ = cases.routing("traced", 5000, 2, 8)
    assert (topk_ids[:4096] == cases.traced("none")).all() and (topk_ids[4096:] == topk_ids[:904]).all()
    skewed, balanced = (
        reference.imbalance(np.array(cases.loads_of_skew(skew, 4096, 2, 8))) for skew in cases.TRACED
    )
    assert skewed > 2.5 and balanced < 1.25
