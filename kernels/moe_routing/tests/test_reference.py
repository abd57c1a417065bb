"""The six steps equal the layer token by token, for any rule and routing; each rule equals its definition."""

import numpy as np
import pytest

from kernels.moe_routing import cases, cost, reference
from kernels.moe_routing.rules import DEEPSEEK_V3, MIXTRAL, QWEN3, Rule
from kernels.tests.properties import given, st

SIDES = {"tokens": st.integers(0, 30), "experts": st.integers(1, 12), "seed": st.integers(0, 10**6)}


def tables(tokens, experts, seed, levels=5):
    """(logits, rng): few levels, so that many scores tie."""
    rng = np.random.default_rng(seed)
    return rng.integers(-levels, levels + 1, (tokens, experts)) / 4, rng


@given(top_k=st.integers(1, 12), tile=st.sampled_from((1, 4, 16)), shared=st.integers(0, 2), **SIDES)
def test_six_steps_are_the_layer_token_by_token(tokens, experts, top_k, tile, shared, seed):
    rng = np.random.default_rng(seed)
    x, router = rng.standard_normal((tokens, 6)), rng.standard_normal((experts, 6))
    gate_up, down = (
        rng.standard_normal((experts + shared, 8, 6)),
        rng.standard_normal((experts + shared, 6, 4)),
    )
    rule = Rule(min(top_k, experts), "softmax of all")
    found = reference.six_steps(x, router, gate_up, down, rule, shared=shared, tile=tile)
    direct = reference.direct(x, found.topk_ids, found.topk_weights, gate_up, down)
    assert found.combined.shape == (tokens, 6) and np.allclose(found.combined, direct, rtol=1e-10, atol=1e-10)


@given(top_k=st.integers(1, 12), tile=st.sampled_from((1, 3, 8)), **SIDES)
def test_the_order_is_a_stable_padded_round_trip(tokens, experts, top_k, tile, seed):
    logits, rng = tables(tokens, experts, seed)
    topk_ids = reference.top_k(logits, min(top_k, experts))
    found = reference.order(topk_ids, experts, tile)
    real = found.sorted_token_ids[found.sorted_token_ids != reference.EMPTY]
    assert sorted(real) == list(range(topk_ids.size)), "every pair has one row"
    assert (found.sorted_token_ids[found.inv_permuted_idx.ravel()] == np.arange(topk_ids.size)).all()
    for e in range(experts):
        mine = found.sorted_token_ids[found.expert_offsets[e] : found.expert_offsets[e + 1]]
        padding = mine[found.loads[e] :]
        assert (np.diff(mine[: found.loads[e]]) > 0).all(), "tokens keep their order"
        assert (padding == reference.EMPTY).all() and len(padding) < tile
    assert (found.expert_ids == np.repeat(np.arange(experts), np.diff(found.expert_offsets) // tile)).all()
    x = rng.standard_normal((tokens, 3))
    back = reference.un_permute(reference.permute(x, found), found)
    assert (back == x[:, None]).all()


@given(**SIDES)
def test_ties_go_to_the_lower_expert(tokens, experts, seed):
    logits, _ = tables(tokens, experts, seed, levels=1)
    for row, best in zip(logits, reference.top_k(logits, experts), strict=True):
        assert list(best) == sorted(range(experts), key=lambda e: (-row[e], e))


@given(top_k=st.integers(1, 4), **SIDES)
def test_a_softmax_before_the_choice_and_after_it_differ_by_a_factor(tokens, experts, top_k, seed):
    logits, _ = tables(tokens, experts, seed)
    k = min(top_k, experts)
    before, whole = reference.route(logits, Rule(k, "softmax of all"))
    after, topk_weights = reference.route(logits, Rule(k))
    divided = reference.route(logits, Rule(k, "softmax of all", renormalise=True))[1]
    assert (
        (before == after).all() and np.allclose(divided, topk_weights) and np.allclose(topk_weights.sum(1), 1)
    )
    assert (whole.sum(1) <= 1 + 1e-12).all()


def test_deepseek_chooses_within_groups_and_weighs_without_the_bias():
    logits = np.array([[0.0, 3.0, 0.9, 0.9, 2.0, -5.0]])
    rule = Rule(2, "sigmoid", renormalise=True, groups=3, groups_kept=1, scale=2.5)
    topk_ids, topk_weights = reference.route(logits, rule)
    assert list(topk_ids[0]) == [1, 0], "0.95 + 0.5 is more than 2 * 0.71, and more than 0.88 + 0.01"
    one, other = (1 / (1 + np.exp(-score)) for score in (3.0, 0.0))
    assert np.allclose(topk_weights, [[2.5 * one / (one + other), 2.5 * other / (one + other)]])
    moved, topk_weights = reference.route(logits, rule, bias=np.array([0, 0, 0.2, 0.1, 0, 0]))
    assert list(moved[0]) == [2, 3] and np.allclose(topk_weights, 1.25), (
        "equal scores, whatever moved the choice"
    )


def test_an_expert_outside_the_best_groups_is_never_chosen():
    logits, _ = tables(200, 256, 3, levels=40)
    topk_ids, topk_weights = reference.route(logits, DEEPSEEK_V3)
    groups = [set(row // 32) for row in topk_ids]
    assert max(map(len, groups)) <= 4 and np.allclose(topk_weights.sum(1), 2.5)


def test_shared_experts_follow_with_weight_one():
    topk_ids, topk_weights = reference.route(np.zeros((3, 4)), MIXTRAL, shared=2)
    assert topk_ids.tolist() == [[0, 1, 4, 5]] * 3 and topk_weights.tolist() == [[0.5, 0.5, 1, 1]] * 3


@pytest.mark.parametrize("case", cases.CORRECT, ids=lambda c: c.name)
def test_tiles_are_those_of_the_cost_model(case):
    a = cases.arrays(case)
    rule = case.rule
    found = reference.six_steps(
        a["x"], a["router"], a["gate_up"], a["down"], rule, bias=a["bias"], shared=case.shared, tile=16
    )
    used = cost.tile_utilization([int(n) for n in found.order.loads], 16)
    assert (used.tiles, used.slots) == (len(found.order.expert_ids), found.order.rows)


def test_the_small_forward_of_the_simulators_is_this_one():
    x, router, experts = cost.example(6, 4, 3, 2)
    small = cost.moe_forward(x, router, experts, 2)
    gate_up = np.stack([np.concatenate([np.transpose(e.gate), np.transpose(e.up)]) for e in experts])
    down = np.stack([np.transpose(e.down) for e in experts])
    found = reference.six_steps(x, np.transpose(router), gate_up, down, MIXTRAL)
    assert small.topk_ids == found.topk_ids.tolist() and small.loads == found.order.loads.tolist()
    assert small.order == [divmod(int(pair), 2) for pair in found.order.sorted_token_ids]
    assert np.allclose(small.combined, found.combined)


def test_named_rules_are_those_of_their_models():
    assert (MIXTRAL.top_k, QWEN3.top_k, DEEPSEEK_V3.top_k) == (2, 8, 8)
    assert QWEN3.renormalise and DEEPSEEK_V3.groups_kept == 4
