"""The layer where somebody else has chosen: its order and its sums beside the reference, and what it says no to."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.compare import relative_error
from kernels.moe_routing import cases, reference
from kernels.moe_routing.arguments import TILES, Experts
from kernels.moe_routing.chosen import layer_of_chosen
from kernels.moe_routing.routed import order_of
from kernels.moe_routing.rules import Rule
from kernels.moe_routing.tests.test_kernels import DEVICE, ROUNDING, on_device, same_order
from kernels.moe_routing.tests.test_refusals import DOWN, EXPERTS, GATE_UP, X, refuses
from kernels.tensors import to_numpy


def drawn(tokens: int, slots: int, experts: int, lean: float, rng):
    """topk_ids (tokens, slots), no expert twice, and topk_weights; the more `lean`, the more tokens on the first experts."""
    likes = rng.gumbel(size=(tokens, experts)) - lean * np.arange(experts)
    topk_ids = np.argsort(-likes, axis=1)[:, :slots].astype(np.int32)
    return topk_ids, rng.uniform(0.1, 1.0, topk_ids.shape).astype(np.float32)


def to_device(array):
    return torch.from_numpy(array).to(DEVICE)


@settings(max_examples=12)
@given(
    tokens=st.integers(0, 70),
    experts=st.integers(1, 20),
    slots=st.integers(1, 4),
    tile=st.sampled_from(TILES),
    copy=st.booleans(),
    lean=st.sampled_from((0.0, 0.3, 9.0)),
    seed=st.integers(0, 999),
)
def test_any_choice_is_ordered_as_the_reference_does(tokens, experts, slots, tile, copy, lean, seed):
    rng = np.random.default_rng(seed)
    topk_ids, topk_weights = drawn(tokens, min(slots, experts), experts, lean, rng)
    x = rng.standard_normal((tokens, 16)).astype(np.float32)
    found = order_of(*map(to_device, (x, topk_ids, topk_weights)), experts, tile=tile, copy=copy)
    expected = reference.order(topk_ids, experts, tile)
    same_order(found, expected)
    if copy:
        real = expected.sorted_token_ids != reference.EMPTY
        assert np.array_equal(
            to_numpy(found.rows)[: expected.rows][real], reference.permute(x, expected)[real]
        )


@pytest.mark.parametrize("lean", (0.0, 9.0), ids=("even", "few experts"))
@pytest.mark.parametrize("slots", (1, 3))
@pytest.mark.parametrize("tokens", (0, 1, 5, 150))
def test_the_layer_of_a_choice_is_the_reference(tokens, slots, lean):
    case = cases.Case(tokens, 6, Rule(slots), 72, 40)
    a = cases.arrays(case)
    t = on_device(a)
    topk_ids, topk_weights = drawn(tokens, slots, case.experts, lean, np.random.default_rng(tokens))
    experts, told = Experts(t["gate_up"], t["down"]), (t["x"], to_device(topk_ids))
    out = torch.full_like(t["x"], float("nan"))
    assert layer_of_chosen(*told, experts, topk_weights=to_device(topk_weights), out=out) is out
    for found, counted in (
        (out, topk_weights),
        (layer_of_chosen(*told, experts), np.ones_like(topk_weights)),
    ):
        expected = reference.direct(a["x"], topk_ids, counted, a["gate_up"], a["down"])
        assert relative_error(to_numpy(found), expected) < ROUNDING[case.dtype]


def test_blocks_of_tokens_count_each_for_itself():
    """More blocks than are added at a time."""
    topk_ids, topk_weights = drawn(300, 2, 10, 0.2, np.random.default_rng(3))
    x = torch.zeros(300, 16, device=DEVICE)
    same_order(
        order_of(x, *map(to_device, (topk_ids, topk_weights)), 10, tile=32), reference.order(topk_ids, 10, 32)
    )


IDS = torch.zeros(3, 2, dtype=torch.int32)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"x": X[0]}, "x must be 2-d"),
        ({"x": torch.zeros(16, 3).bfloat16().t()}, "x must be dense along a row"),
        ({"x": X.half()}, "x must be torch.bfloat16"),
        ({"topk_ids": IDS[:2]}, r"topk_ids must be \(3, at least 1\) of int32"),
        ({"topk_ids": IDS.long()}, r"topk_ids must be \(3, at least 1\) of int32"),
        ({"topk_ids": IDS[:, :0]}, r"topk_ids must be \(3, at least 1\) of int32"),
        ({"topk_ids": IDS + 4}, "topk_ids must be from 0 to 3, got 4 to 4"),
        ({"topk_ids": IDS - 1}, "topk_ids must be from 0 to 3, got -1 to -1"),
        ({"topk_ids": IDS.to("meta")}, "topk_ids must be on x's device"),
        ({"topk_weights": torch.zeros(3, 1)}, r"topk_weights must be \(3, 2\) of fp32"),
        ({"topk_weights": torch.zeros(3, 2).half()}, r"topk_weights must be \(3, 2\) of fp32"),
        ({"experts": Experts(GATE_UP, DOWN, shared=1)}, "shared must be 0"),
        ({"experts": (GATE_UP, DOWN)}, "experts must be Experts"),
        ({"out": torch.zeros(3, 8).bfloat16()}, r"out must be \(3, 16\)"),
    ],
)
def test_it_refuses(change, name):
    told = {"x": X, "topk_ids": IDS, "experts": EXPERTS} | change
    refuses(lambda: layer_of_chosen(**told), name)
