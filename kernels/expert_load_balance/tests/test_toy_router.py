"""A router that really trains: its gradients are slopes, it learns, and balancing evens what it would pile up."""

from functools import cache

import numpy as np
import pytest

from kernels.expert_load_balance import toy_router
from kernels.expert_load_balance.toy_router import WAYS, Layer, forward, gradients, train
from kernels.tests.figures import REFUSAL

SEEDS = (0, pytest.param(1, marks=pytest.mark.slow))


@cache
def trained(way, seed):
    return train(way, seed=seed)


def test_gradients_are_slopes():
    """Seed 4: the squared error along random directions, with the choice held by a bias."""
    rng = np.random.default_rng(4)
    layer = Layer(
        0.1 * rng.standard_normal((6, 4)), rng.standard_normal((4, 6, 6)), np.array([0, 9.0, 9.0, 0])
    )
    x, wanted = rng.standard_normal((2, 9, 6))
    by_logits, by_experts = gradients(layer, x, wanted, forward(layer, x, 2))

    def loss(router, experts):
        return ((forward(Layer(router, experts, layer.bias), x, 2).out - wanted) ** 2).mean()

    for _ in range(5):
        a, b = rng.standard_normal(layer.router.shape), rng.standard_normal(layer.experts.shape)
        step = 1e-5
        up = loss(layer.router + step * a, layer.experts + step * b)
        down = loss(layer.router - step * a, layer.experts - step * b)
        slope = (x.T @ by_logits * a).sum() + (by_experts * b).sum()
        assert slope == pytest.approx((up - down) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_it_learns(way, seed):
    one = trained(way, seed)
    assert one.losses[0] > 1.0 and one.fresh_loss < 0.25 * one.losses[0]
    assert (one.loads.sum(axis=1) == 512 * 2).all() and one.loads.shape == (400, 8)


@pytest.mark.parametrize("seed", SEEDS)
def test_balancing_evens_the_loads_and_costs_the_task_nothing(seed):
    none, auxiliary, bias = (trained(way, seed) for way in WAYS)
    assert none.imbalance > 1.75 and (none.fresh_loads < 0.1 * none.fresh_loads.mean()).any()
    assert max(auxiliary.imbalance, bias.imbalance) < min(1.6, none.imbalance - 0.3)
    assert auxiliary.fresh_loss < none.fresh_loss and bias.fresh_loss < none.fresh_loss
    assert not none.layer.bias.any() and not auxiliary.layer.bias.any() and bias.layer.bias.any()


def test_the_same_seed_trains_the_same_router():
    one, other = (train("bias", steps=5, seed=3) for _ in range(2))
    assert one.losses.tolist() == other.losses.tolist()
    steps = []
    train("none", steps=3, say=lambda step, loss, loads: steps.append(step))
    assert steps == [0, 1, 2]


@pytest.mark.parametrize(
    "given",
    [
        {"way": "prayer"},
        {"top_k": 9},
        {"steps": 0},
        {"strength": -1},
        {"rate": float("nan")},
        {"tokens": 2.5},
    ],
)
def test_nonsense_is_refused(given):
    with pytest.raises(ValueError, match=REFUSAL):
        toy_router.train(**given)
