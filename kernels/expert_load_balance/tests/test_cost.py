"""The hot expert of the source, placements and copies, the exchange, and what must hold for any loads."""

import pytest

from kernels.expert_load_balance import cost
from kernels.tests.figures import GEMM_MOE, PERF, REFUSAL, hold, table
from kernels.tests.properties import given, st

LOADS = st.lists(st.integers(0, 500), min_size=1, max_size=24).filter(any)


def hot(share, devices=8, capacity=None):
    loads = cost.hot_loads(1024, 1, 8, share)
    return cost.ep_step(loads, cost.round_robin(8, devices), devices, token_s=1e-6, capacity=capacity)


FIGURES = [
    (GEMM_MOE, "even routing: no slowdown", lambda: hot(1 / 8).slowdown, 1.0, "exact"),
    (GEMM_MOE, "40% to one of 8: above 2.5", lambda: hot(0.4).slowdown, 3.2, "0.5%"),
    (GEMM_MOE, "the same work in all", lambda: sum(hot(0.4).device_tokens), 1024, "exact"),
    (GEMM_MOE, "everyone to one expert", lambda: hot(1.0).slowdown, 8.0, "exact"),
    (PERF, "all even: an 8th of the work", lambda: cost.sparse_layer_s(1e-3, 1 / 8), 0.125e-3, "0.01%"),
]


@table(FIGURES)
def test_figures_of_the_sources(source, given, formula, expect, tolerance):
    hold(formula, expect, tolerance)


def test_a_hot_expert_inflates_the_step_more_than_two_and_a_half_times_at_equal_work():
    even, one_hot = hot(1 / 8), hot(0.35)
    assert sum(even.device_tokens) == sum(one_hot.device_tokens)
    assert one_hot.step_s > 2.5 * even.step_s and one_hot.busiest == 0
    assert one_hot.balanced_step_s == pytest.approx(even.step_s)
    assert one_hot.slowdown == pytest.approx(one_hot.imbalance)
    assert one_hot.idle_share == pytest.approx(1 - 1 / one_hot.imbalance)


def test_capacity_bounds_the_step_and_drops_tokens():
    limit = cost.capacity_limit(1024, 1, 8, factor=1.25)
    limited = hot(0.4, capacity=limit)
    assert limit == 160 and max(limited.device_tokens) == 160
    assert limited.dropped == round(0.4 * 1024) - 160
    assert limited.step_s < hot(0.4).step_s


def test_sparse_is_slower_once_exchange_and_imbalance_outweigh_the_eighth():
    """The quiz: active parameters drop 8x, and the layer still gets slower."""
    assert cost.sparse_layer_s(1e-3, 1 / 8, imbalance=2.5, communication_s=0.5e-3) < 1e-3
    assert cost.sparse_layer_s(1e-3, 1 / 8, imbalance=4.0, communication_s=0.6e-3) > 1e-3


def test_placements_by_number():
    assert cost.contiguous(8, 4) == ((0,), (0,), (1,), (1,), (2,), (2,), (3,), (3,))
    assert cost.round_robin(8, 4) == ((0,), (1,), (2,), (3,)) * 2
    loads = cost.expert_loads(256, 1, 8, skew=1.0)
    heaviest = {
        name: max(cost.device_loads(loads, place, 4))
        for name, place in {
            "contiguous": cost.contiguous(8, 4),
            "round robin": cost.round_robin(8, 4),
            "greedy": cost.greedy(loads, 4),
            "two copies more": cost.replicate(loads, 4, spare_slots=4),
        }.items()
    }
    assert (
        heaviest["two copies more"] < heaviest["greedy"] <= heaviest["round robin"] < heaviest["contiguous"]
    )


@given(loads=LOADS, devices=st.integers(1, 8), spare=st.integers(0, 8))
def test_every_expert_is_held_and_every_token_runs_once(loads, devices, spare):
    placement = cost.replicate(loads, devices, spare)
    assert all(copies and len(set(copies)) == len(copies) for copies in placement)
    assert len(loads) <= cost.slots_used(placement) <= len(loads) + spare
    held = cost.device_loads(loads, placement, devices)
    assert sum(held) == pytest.approx(sum(loads))
    assert max(held) >= sum(loads) / devices - 1e-9
    slots = [sum(device in copies for copies in placement) for device in range(devices)]
    assert max(slots) <= -(-(len(loads) + spare) // devices)
    assert 1 <= cost.imbalance(held) <= devices + 1e-9


@given(loads=LOADS)
def test_with_a_device_for_every_expert_the_heaviest_sets_the_pace(loads):
    devices = len(loads)
    alone = cost.device_loads(loads, cost.greedy(loads, devices), devices)
    assert max(alone) == max(loads)


def test_copies_split_a_hot_expert():
    loads = [60, 10, 10, 10]
    placement = cost.replicate(loads, devices=4, spare_slots=4)
    assert max(len(copies) for copies in placement) == len(placement[0]) == 4
    held = cost.device_loads(loads, placement, 4)
    assert max(held) == pytest.approx(25) and cost.imbalance(held) < cost.imbalance(loads)
    assert cost.expert_memory_bytes(8, 4096, 14336) == 2 * cost.expert_memory_bytes(4, 4096, 14336)


def test_copies_and_experts_are_placed_heaviest_first():
    """The hot expert has a copy everywhere, 33 tokens each; then 40 to the first, 30 to the others."""
    loads = [100, 40, 30, 30]
    placement = cost.replicate(loads, devices=3, spare_slots=2)
    assert placement == ((1, 2, 0), (0,), (1,), (2,))
    assert cost.device_loads(loads, placement, 3) == pytest.approx([73.3, 63.3, 63.3], abs=0.05)
    assert cost.replicate([10, 10], devices=2, spare_slots=9) == ((0, 1), (0, 1))


def test_a_step_adds_what_all_pay_and_the_exchange():
    one = cost.ep_step([6, 2], ((0,), (1,)), 2, token_s=1.0, fixed_s=2.0, communication_s=3.0)
    assert (one.experts_s, one.step_s, one.balanced_step_s) == (8, 11, 9)
    assert one.slowdown == 11 / 9 and one.imbalance == 1.5
    assert cost.expert_memory_bytes(2, 3, 5, matrices=3, bits=4) == 45
    assert cost.hot_loads(10, 3, 3, 0.9) == (10, 10, 10)
    assert cost.hot_loads(10, 2, 3, 0.9) == (9, 6, 5)


def test_the_exchange_sends_a_hidden_state_a_pick():
    assert cost.alltoall_bytes(16, 2, 4096, devices=8) == 16 * 2 * 4096 * 2 * 7 / 8
    both = cost.alltoall_bytes(16, 2, 4096, devices=8, combine=True)
    assert both == 2 * cost.alltoall_bytes(16, 2, 4096, devices=8)
    assert cost.alltoall_bytes(16, 2, 4096, devices=1) == 0
    assert cost.alltoall_s(450e6, 450e9, launch_s=5e-6) == pytest.approx(1.005e-3)
    assert cost.alltoall_s(450e6, 450e9, receiver_imbalance=3.0) == pytest.approx(3e-3)


@given(loads=LOADS)
def test_the_auxiliary_loss_is_one_when_even_and_grows_with_the_imbalance(loads):
    count = len(loads)
    even = [1 / count] * count
    assert cost.auxiliary_loss(loads, even) == pytest.approx(1)
    shares = [load / sum(loads) for load in loads]
    assert cost.auxiliary_loss(loads, shares) >= 1 - 1e-9


def test_bias_steps_push_tokens_from_busy_to_idle():
    assert cost.bias_step([0.0, 0.0, 0.0], [9, 3, 6], rate=0.1) == [-0.1, 0.1, 0.0]


@pytest.mark.parametrize(
    "refused",
    [
        lambda: cost.device_loads([1, 2], ((0,),), 2),
        lambda: cost.device_loads([1, 2], ((0,), (2,)), 2),
        lambda: cost.device_loads([1], ((),), 2),
        lambda: cost.device_loads([-1], ((0,),), 1),
        lambda: cost.round_robin(0, 4),
        lambda: cost.greedy([], 4),
        lambda: cost.replicate([1], 1, -1),
        lambda: cost.hot_loads(10, 1, 4, 1.5),
        lambda: cost.ep_step([0, 0], ((0,), (1,)), 2, token_s=1e-6),
        lambda: cost.ep_step([1, 2], ((0,), (1,)), 2, token_s=0),
        lambda: cost.alltoall_s(1, 0),
        lambda: cost.alltoall_s(1, 1, receiver_imbalance=0.5),
        lambda: cost.auxiliary_loss([1, 2], [1.0]),
        lambda: cost.bias_step([0.0], [1, 2], 0.1),
        lambda: cost.sparse_layer_s(1e-3, 8),
        lambda: cost.imbalance([0, 0]),
    ],
)
def test_nonsense_is_refused(refused):
    with pytest.raises(ValueError, match=REFUSAL):
        refused()
