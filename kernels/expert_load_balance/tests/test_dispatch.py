"""Which row goes where, on one process: every pair once, to a copy of its expert, and copies take turns."""

import numpy as np
import pytest
import torch

from kernels.expert_load_balance import cost
from kernels.expert_load_balance.dispatch import Slots, by_slot, edges, numbered, plan
from kernels.tests.figures import REFUSAL
from kernels.tests.properties import given, st


@given(seed=st.integers(0, 10**6), tokens=st.integers(0, 40), home_first=st.booleans())
def test_every_pick_goes_once_to_a_rank_that_holds_its_expert(seed, tokens, home_first):
    rng = np.random.default_rng(seed)
    ranks, experts = int(rng.integers(1, 6)), int(rng.integers(2, 9))
    placement = [rng.permutation(ranks)[: rng.integers(1, ranks + 1)].tolist() for _ in range(experts)]
    topk_ids = torch.from_numpy(np.array([rng.permutation(experts)[:2] for _ in range(tokens)], np.int64))
    topk_ids = topk_ids.reshape(-1, 2)
    slots, rank = Slots(placement, ranks), int(rng.integers(ranks))
    made = plan(topk_ids, slots, rank, home_first)
    assert sorted(made.order.tolist()) == list(range(2 * tokens))
    assert made.counts.shape == (ranks, slots.width)
    at = 0
    for to, line in enumerate(made.counts.tolist()):
        for slot, count in enumerate(line):
            sent = made.order[at : at + count].tolist()
            at += count
            assert sent == sorted(sent), "a slot's rows keep the order of their pairs"
            for pair in sent:
                expert = topk_ids.reshape(-1)[pair].item()
                assert slots.held[to][slot] == expert
                assert to == rank or not (home_first and rank in placement[expert])
    assert at == 2 * tokens


@given(seed=st.integers(0, 10**6), parts=st.integers(1, 6))
def test_parts_come_one_after_another_and_hold_what_a_plan_without_parts_holds(seed, parts):
    rng = np.random.default_rng(seed)
    slots = Slots([rng.permutation(3)[: rng.integers(1, 4)].tolist() for _ in range(7)], 3)
    topk_ids = torch.from_numpy(rng.integers(0, 7, (20, 1)))
    whole, cut = plan(topk_ids, slots, 1), plan(topk_ids, slots, 1, parts=parts)
    assert torch.equal(whole.counts, cut.counts)
    of_slot = [piece.tolist() for piece in whole.order.split(whole.counts.flatten().tolist())]
    bounds = edges(slots.width, parts)
    expected = [
        pair
        for a, b in zip(bounds, bounds[1:], strict=False)
        for rank in range(3)
        for slot in range(a, b)
        for pair in of_slot[rank * slots.width + slot]
    ]
    assert cut.order.tolist() == expected


def test_copies_take_turns_and_ranks_start_at_different_ones():
    slots = Slots([(0, 1, 2), (0,), (1,)], 3)
    hot = torch.zeros(9, 1, dtype=torch.int64)
    assert plan(hot, slots, rank=0).counts.sum(1).tolist() == [3, 3, 3]
    one = torch.zeros(1, 1, dtype=torch.int64)
    assert [plan(one, slots, rank).counts.sum(1).argmax().item() for rank in range(3)] == [0, 1, 2]
    assert plan(hot, slots, rank=1, home_first=True).counts.sum(1).tolist() == [0, 9, 0]


@given(seed=st.integers(0, 10**6))
def test_rows_of_the_ranks_are_those_of_the_cost_model(seed):
    """Copies share evenly, to within a row a rank and expert."""
    rng = np.random.default_rng(seed)
    ranks, loads = 4, rng.integers(0, 40, 8)
    placement = cost.replicate(loads.tolist(), ranks, spare_slots=4)
    topk_ids = torch.from_numpy(np.repeat(np.arange(8), loads))[:, None]
    parts = topk_ids[torch.from_numpy(rng.permutation(len(topk_ids)))].tensor_split(ranks)
    slots = Slots(placement, ranks)
    held = sum(plan(part, slots, rank).counts.sum(1) for rank, part in enumerate(parts))
    expected = cost.device_loads(loads.tolist(), placement, ranks) if loads.sum() else [0] * ranks
    assert np.abs(held.numpy() - expected).max() <= ranks * len(loads)
    assert held.sum() == loads.sum()


def test_numbered_and_by_slot():
    assert numbered(torch.tensor([3, 1, 3, 3, 1, 0]), 4).tolist() == [0, 0, 1, 2, 1, 0]
    assert numbered(torch.tensor([], dtype=torch.int64), 4).tolist() == []
    # sender 0: slot 0 twice, slot 1 once; sender 1: slot 0 once, slot 1 twice
    assert by_slot([[2, 1], [1, 2]], "cpu").tolist() == [0, 1, 3, 2, 4, 5]
    assert by_slot([[0, 0], [0, 0]], "cpu").tolist() == []


@pytest.mark.parametrize("placement", [[], [()], [(0, 0)], [(2,)], [(-1,)]])
def test_a_placement_that_cannot_be_is_refused(placement):
    with pytest.raises(ValueError, match=REFUSAL):
        Slots(placement, 2)
