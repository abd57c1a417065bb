"""The bytes that the kernels' launches ask for are those of the cost model, tensor by tensor."""

from dataclasses import astuple

import pytest
import torch

from kernels.moe_routing import cases, cost_traffic
from kernels.moe_routing.combine import combine
from kernels.moe_routing.experts import Config, down, gate_up
from kernels.moe_routing.routed import route
from kernels.moe_routing.rules import Rule
from kernels.tensors import to_numpy, to_torch
from kernels.tests.figures import REFUSAL

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="the machine counts")
CASES = (
    cases.Case(9, 6, Rule(2), 128, 64),
    cases.Case(37, 4, Rule(3), 128, 64, shared=1, why="an expert with several tiles"),
    cases.Case(20, 2, Rule(1), 128, 64, leaning=40.0, why="all tokens on one expert"),
)


def watched(watch, tensors: dict) -> dict:
    return {name: watch(tensor) for name, tensor in tensors.items()}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_grouped_products_and_the_combine_ask_for_what_they_should(case, watch):
    t = {name: to_torch(array, "cpu") for name, array in cases.arrays(case).items() if array is not None}
    found = route(t["x"], t["router"], case.rule, shared=case.shared, tile=16)
    tiles = int((to_numpy(found.expert_ids) >= 0).sum())
    real = case.tokens * case.slots
    tables = {"pairs": found.sorted_token_ids, "whose": found.expert_ids, "real": found.tile_rows}
    config = Config(32, 64, 4, 3)

    parts = watched(watch, {"rows": t["x"], "weights": t["gate_up"], **tables})
    h = gate_up(t["x"], t["gate_up"], found, case.slots, config=config)
    asked = cost_traffic.grouped_traffic(tiles, real, 64, 128, tile=16, block_n=32, gated=True)
    assert (parts["rows"].loaded, parts["weights"].loaded) == (asked.rows, asked.weights)
    nobody = (found.tiles - tiles) * 2 * 4  # programs without a tile ask whose it is
    assert sum(parts[name].loaded for name in tables) == asked.tables + nobody

    parts = watched(watch, {"rows": h, "weights": t["down"]})
    y = down(h, t["down"], found, config=config)
    asked = cost_traffic.grouped_traffic(tiles, real, 128, 64, tile=16, block_n=32)
    assert (parts["rows"].loaded, parts["weights"].loaded) == (asked.rows, asked.weights)

    out = torch.empty(case.tokens, 128, dtype=y.dtype)
    parts = watched(watch, {"y": y, "index": found.inv_permuted_copies, "by": found.topk_weights, "out": out})
    combine(y, found, out)
    asked = cost_traffic.combine_traffic(case.tokens, case.slots, 128, block_h=1024)
    assert parts["y"].loaded == asked.rows == 2 * parts["y"].distinct and parts["out"].stored == asked.written
    assert parts["index"].loaded + parts["by"].loaded == asked.tables


def test_fewer_columns_a_program_read_the_rows_more_often():
    whole, half = (
        cost_traffic.grouped_traffic(4, 50, 64, 128, tile=16, block_n=block, gated=True) for block in (64, 32)
    )
    assert half.rows == 2 * whole.rows and (half.weights, half.written) == (whole.weights, whole.written)
    assert whole.loaded == whole.rows + whole.weights + whole.tables == sum(astuple(whole)) - whole.written


@pytest.mark.parametrize(
    "refused",
    [
        lambda: cost_traffic.grouped_traffic(1, 17, 8, 8, tile=16, block_n=8),
        lambda: cost_traffic.grouped_traffic(-1, 0, 8, 8, tile=16, block_n=8),
        lambda: cost_traffic.grouped_traffic(1, 1, 8, 0, tile=16, block_n=8),
        lambda: cost_traffic.combine_traffic(1, 0, 8, block_h=8),
        lambda: cost_traffic.combine_traffic(1.5, 1, 8, block_h=8),
    ],
)
def test_sizes_that_cannot_be_are_refused(refused):
    with pytest.raises(ValueError, match=REFUSAL):
        refused()
