"""Tiles, drops and stragglers of the sources; the six steps of a forward; what an MoE layer must move."""

import numpy as np
import pytest

from kernels.moe_routing import cost
from kernels.tests.figures import GEMM_MOE, PERF, REAL, REFUSAL, hold, table
from kernels.tests.properties import given, st


def balanced(**more):
    return cost.route_tiles(32, **{"experts": 4, "tile": 8, **more})


def each(name, **more):
    return [getattr(one, name) for one in balanced(**more).experts]


FIGURES = [
    (REAL, "balanced: kept", lambda: each("kept"), [8, 8, 8, 8], "exact"),
    (REAL, "balanced: tiles", lambda: each("tiles"), [1, 1, 1, 1], "exact"),
    (REAL, "balanced: padded", lambda: each("padded"), [0, 0, 0, 0], "exact"),
    (REAL, "balanced: dropped", lambda: each("dropped"), [0, 0, 0, 0], "exact"),
    (REAL, "balanced: slots", lambda: balanced().slots, 32, "exact"),
    (REAL, "balanced: useful", lambda: balanced().useful_share, 1.0, "exact"),
    (REAL, "balanced: busiest holds", lambda: max(each("kept")), 8, "exact"),
    (REAL, "8 experts: half-empty tiles", lambda: balanced(experts=8).useful_share, 0.5, "exact"),
    (REAL, "8 experts: slots", lambda: balanced(experts=8).slots, 64, "exact"),
    (
        GEMM_MOE,
        "DeepSeek-V3: 8 of 256",
        lambda: cost.moe_parameters(256, 8, 7168, 2048)[0] / cost.moe_parameters(256, 8, 7168, 2048)[1],
        32,
        "exact",
    ),
    (
        PERF,
        "active parameters drop 8x",
        lambda: cost.moe_parameters(16, 2, 4096, 4096)[0] / cost.moe_parameters(16, 2, 4096, 4096)[1],
        8,
        "exact",
    ),
]


@table(FIGURES)
def test_figures_of_the_sources(source, given, formula, expect, tolerance):
    hold(formula, expect, tolerance)


@pytest.mark.parametrize("experts", [4, 8])
def test_skew_pads_tiles_and_makes_a_straggler(experts):
    even, skewed = balanced(experts=experts), balanced(experts=experts, skew=1.0)
    assert even.straggler == 1 < skewed.straggler
    assert skewed.slots > even.slots and skewed.useful_share < even.useful_share
    assert skewed.dropped == 0 and skewed.busiest == 0


@pytest.mark.parametrize("experts", [4, 8])
def test_a_capacity_limit_shrinks_the_busiest_and_drops_tokens(experts):
    free = balanced(experts=experts, skew=1.0)
    limited = [balanced(experts=experts, skew=1.0, capacity_factor=f) for f in (2.0, 1.5, 1.0)]
    busiest = [max(e.kept for e in u.experts) for u in (free, *limited)]
    dropped = [u.dropped for u in (free, *limited)]
    assert busiest == sorted(busiest, reverse=True) and busiest[-1] < busiest[0]
    assert dropped == sorted(dropped) and dropped[-1] > dropped[0] == 0
    assert limited[-1].straggler < free.straggler
    assert max(e.kept for e in limited[-1].experts) == 32 // experts


@given(
    tokens=st.integers(1, 200),
    experts=st.integers(1, 32),
    k=st.integers(1, 8),
    skew=st.floats(0, 8),
    tile=st.integers(1, 128),
    factor=st.none() | st.floats(0.1, 4),
)
def test_every_token_is_kept_or_dropped_and_every_slot_is_real_or_padding(
    tokens, experts, k, skew, tile, factor
):
    k = min(k, experts)
    loads = cost.expert_loads(tokens, k, experts, skew)
    assert sum(loads) == tokens * k and max(loads) <= tokens and list(loads) == sorted(loads, reverse=True)
    used = cost.route_tiles(tokens, experts, k, tile=tile, skew=skew, capacity_factor=factor)
    assert used.routed == tokens * k == used.kept + used.dropped
    assert used.slots == used.kept + used.padded == used.tiles * tile
    assert all(0 <= one.padded < tile for one in used.experts)
    assert 0 < used.useful_share <= 1 <= used.straggler
    if factor is not None:
        assert max(one.kept for one in used.experts) <= cost.capacity_limit(tokens, k, experts, factor)


@given(tokens=st.integers(1, 60), experts=st.integers(1, 16), k=st.integers(1, 4), skew=st.floats(0, 4))
def test_assignments_give_every_token_different_experts_and_the_loads_asked_for(tokens, experts, k, skew):
    k = min(k, experts)
    loads = cost.expert_loads(tokens, k, experts, skew)
    choices = cost.assignments(loads, tokens, k)
    assert len(choices) == tokens and all(len(set(one)) == k for one in choices)
    assert tuple(sum(e in one for one in choices) for e in range(experts)) == loads


def test_drops_and_stragglers_by_hand():
    used = cost.tile_utilization([9, 3, 0], tile=4, capacity=6)
    assert [(one.kept, one.dropped, one.tiles, one.padded) for one in used.experts] == [
        (6, 3, 2, 2),
        (3, 0, 1, 1),
        (0, 0, 0, 0),
    ]
    assert (used.slots, used.useful_share, used.dropped_share) == (12, 0.75, 0.25)
    assert (used.straggler, used.straggler_tiles, used.busiest) == (2, 2, 0)


def test_no_skew_is_balanced_and_one_is_zipf():
    assert cost.expert_loads(30, 1, 4) == (8, 8, 7, 7)
    assert cost.expert_loads(25, 1, 4, skew=1.0) == (12, 6, 4, 3)
    assert cost.expert_loads(10, 3, 4, skew=5.0) == (10, 10, 8, 2)  # no expert sees a token twice
    assert cost.expert_loads(7, 4, 4, skew=3.0) == (7, 7, 7, 7)


def test_the_six_steps_equal_numpy_and_the_direct_sum():
    x, router, experts = cost.example(tokens=9, experts=5, hidden=4, intermediate=3)
    steps = cost.moe_forward(x, router, experts, top_k=3)
    np.testing.assert_allclose(steps.combined, cost.direct_forward(x, router, experts, 3), rtol=1e-12)
    rows, expected = np.array(x), np.zeros((9, 4))
    logits = rows @ np.array(router)
    for token in range(9):
        best = np.argsort(-logits[token], kind="stable")[:3]
        weights = np.exp(logits[token, best]) / np.exp(logits[token, best]).sum()
        for expert, weight in zip(best, weights, strict=True):
            gate, up, down = (
                np.array(m) for m in (experts[expert].gate, experts[expert].up, experts[expert].down)
            )
            gated = rows[token] @ gate
            expected[token] += weight * (gated / (1 + np.exp(-gated)) * (rows[token] @ up)) @ down
    np.testing.assert_allclose(steps.combined, expected, rtol=1e-12)
    np.testing.assert_allclose(steps.logits, logits, rtol=1e-12)


@given(tokens=st.integers(1, 12), experts=st.integers(1, 6), k=st.integers(1, 3))
def test_permuting_groups_rows_by_expert_and_back_again_loses_nothing(tokens, experts, k):
    k = min(k, experts)
    x, router, mlps = cost.example(tokens, experts)
    steps = cost.moe_forward(x, router, mlps, k)
    by_expert = [steps.topk_ids[token][slot] for token, slot in steps.order]
    assert by_expert == sorted(by_expert) and sorted(steps.order) == [
        (t, s) for t in range(tokens) for s in range(k)
    ]
    for expert, (start, load) in enumerate(zip(steps.expert_offsets, steps.loads, strict=True)):
        assert by_expert[start : start + load] == [expert] * load
    assert steps.permuted == [x[token] for token, _ in steps.order]
    assert [steps.restored[t][s] for t, s in steps.order] == steps.expert_rows
    assert all(sum(weights) == pytest.approx(1) for weights in steps.topk_weights)


def test_the_example_shows_every_case_worth_seeing():
    """Different loads, every expert used, and no two logits of a token alike."""
    steps = cost.moe_forward(*cost.example(), top_k=2)
    assert len(set(steps.loads)) > 1 and min(steps.loads) > 0
    assert all(len(set(row)) == len(row) for row in steps.logits)


def test_a_small_batch_reads_most_experts_for_little_work():
    """Mixtral's shape: 16 tokens of top-2 touch nearly all 8 experts, so the layer is bound by weights."""
    small = cost.layer_cost(16, 2, 8, hidden=4096, intermediate=14336)
    large = cost.layer_cost(4096, 2, 8, hidden=4096, intermediate=14336)
    assert cost.expected_experts(16, 2, 8) == pytest.approx(7.92, abs=0.01)
    assert small.weight_bytes > 0.99 * small.bytes_moved
    assert small.intensity < 5 and large.intensity > 500
    assert large.expert_flops == 2 * 4096 * 2 * 3 * 4096 * 14336
    assert cost.layer_cost(16, 2, 8, 4096, 14336, active_experts=8).weight_bytes == 8 * 3 * 4096 * 14336 * 2


@given(tokens=st.integers(0, 4096), experts=st.integers(2, 64))
def test_expected_experts_lie_between_what_one_token_and_all_experts_use(tokens, experts):
    expected = cost.expected_experts(tokens, 2, experts)
    assert expected <= min(experts, 2 * tokens) + 1e-9
    assert tokens == 0 or expected >= 2 - 1e-9


def test_a_layer_and_its_unfused_steps_by_hand():
    one = cost.layer_cost(3, 2, 4, hidden=10, intermediate=5, active_experts=3)
    assert one.router_flops == 2 * 3 * 10 * 4 and one.expert_flops == 2 * 3 * 2 * 3 * 50
    assert one.flops == one.router_flops + one.expert_flops
    assert (one.weight_bytes, one.router_bytes, one.token_bytes) == (3 * 150 * 2, 80, 2 * 3 * 10 * 2)
    assert cost.unfused_bytes(3, 2, hidden=10, intermediate=5) == {
        "permute": 60 + 120,
        "gate and up": 120 + 120,
        "activation": 180,
        "down": 60 + 120,
        "un-permute": 240,
        "combine": 120 + 60,
    }


def test_large_logits_do_not_overflow():
    x, router, experts = cost.example()
    loud = [[400 * value for value in row] for row in router]
    steps = cost.moe_forward(x, loud, experts, 2)
    assert all(sum(weights) == pytest.approx(1) for weights in steps.topk_weights)


def test_the_example_is_small_and_its_experts_differ():
    x, _, experts = cost.example()
    assert all(abs(value) <= 1.2 for row in x for value in row)
    matrices = [str(m) for one in experts for m in (one.gate, one.up, one.down)]
    assert len(set(matrices)) == len(matrices)


def test_unfused_steps_move_the_tokens_many_times_over():
    steps = cost.unfused_bytes(1024, 2, hidden=2048, intermediate=512)
    assert steps["un-permute"] == 2 * 2048 * 2048 * 2
    assert sum(steps.values()) > 8 * cost.layer_cost(1024, 2, 8, 2048, 512).token_bytes
    assert cost.launches(8, fused=False) == 51 > 10 * cost.launches(8, fused=True)


def test_every_step_has_launches_and_one_fused_launch_that_runs_it():
    assert dict(zip(cost.STEPS, cost.step_launches(4), strict=True))["grouped GEMM"] == 4 * (3 + 1)
    runs = {step for first, last in cost.FUSED_LAUNCHES.values() for step in range(first, last + 1)}
    assert runs == set(range(len(cost.STEPS)))


@pytest.mark.parametrize(
    "refused",
    [
        lambda: cost.expert_loads(0, 1, 4),
        lambda: cost.expert_loads(8, 5, 4),
        lambda: cost.expert_loads(8, 1, 4, skew=-1),
        lambda: cost.expert_loads(8, 1, 4, skew=float("nan")),
        lambda: cost.route_tiles(32, 4, tile=0),
        lambda: cost.route_tiles(32, 4, tile=8, capacity_factor=0),
        lambda: cost.tile_utilization([], 8),
        lambda: cost.tile_utilization([0, 0], 8),
        lambda: cost.tile_utilization([3, -1], 8),
        lambda: cost.tile_utilization([3, 1], 8, capacity=0),
        lambda: cost.assignments([3, 2], 4, 1),
        lambda: cost.assignments([5, 3], 4, 2),
        lambda: cost.expected_experts(4, 9, 8),
        lambda: cost.moe_forward([[1.0]], [[1.0, 2.0], [3.0, 4.0]], cost.example(1, 2)[2], 1),
        lambda: cost.moe_forward(*cost.example(), top_k=5),
        lambda: cost.layer_cost(16, 2, 8, 4096, 14336, active_experts=9),
        lambda: cost.launches(0, fused=True),
    ],
)
def test_nonsense_is_refused(refused):
    with pytest.raises(ValueError, match=REFUSAL):
        refused()
