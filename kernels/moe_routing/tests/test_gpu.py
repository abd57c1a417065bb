"""On a GPU: the models' real shapes from one token to 4096, skewed and even; the same bits twice; inside a graph."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from kernels.compare import relative_error
from kernels.moe_routing import bench, cases, peers, reference
from kernels.moe_routing.arguments import Experts
from kernels.moe_routing.experts_hopper_turns import CONFIGS
from kernels.moe_routing.layer import gathered, hopper, layer, suits_hopper
from kernels.moe_routing.routed import route
from kernels.moe_routing.rules import Rule
from kernels.moe_routing.tests.test_kernels import same_order
from kernels.tensors import to_numpy

pytestmark = pytest.mark.gpu
TOKENS = (1, 2, 15, 16, 17, 64, 100, 256, 1000, 4096)
ROOM = {"Mixtral": 8e9, "Qwen3-like": 8e9, "DeepSeek-like": 48e9}  # bytes of the GPU's memory


def device():
    return torch.device("cuda", torch.cuda.current_device())


@pytest.fixture(scope="module", params=cases.MODELS)
def model(request):
    """(case, its weights), drawn once: those of the largest take seconds."""
    if torch.cuda.get_device_properties(device()).total_memory < ROOM[request.param]:
        pytest.skip(f"needs a GPU of {ROOM[request.param] / 1e9:.0f} GB")
    case = next(case for case in cases.TIMED if case.model == request.param)
    drawn = bench.draw(case, 0, device())
    yield case, drawn
    drawn.clear()
    torch.cuda.empty_cache()


def tokens_of(model, tokens: int, leaning: float = 0.0) -> dict:
    """The same weights with other tokens; `leaning` draws them all to the experts that one direction likes."""
    case, drawn = model
    rng = torch.Generator(device()).manual_seed(tokens)
    x = torch.randn(tokens, case.hidden, device=device(), generator=rng)
    if leaning:
        x += leaning * torch.randn(case.hidden, device=device(), generator=rng)
    return {**drawn, "case": replace(case, tokens=tokens), "x": x.bfloat16()} | {"expected": None}


def right(inputs, out):
    inputs.pop("expected")
    assert bench.check(inputs, out) < bench.TOLERANCE


@pytest.mark.parametrize("tokens", TOKENS)
def test_the_layer_at_real_shapes(model, tokens):
    inputs = tokens_of(model, tokens)
    right(inputs, bench.ours(inputs)())


@pytest.mark.parametrize("tokens", (16, 300, 4096))
def test_all_tokens_on_the_same_experts(model, tokens):
    inputs = tokens_of(model, tokens, leaning=3.0)
    right(inputs, bench.ours(inputs)())


@pytest.mark.parametrize("tokens", (7, 256, 4096))
def test_every_token_is_what_torch_makes_of_it(model, tokens):
    """Row by row; scores that all but tie may be chosen otherwise by another sum."""
    inputs = tokens_of(model, tokens)
    ours, theirs = (factory(inputs)().float() for factory in (bench.ours, peers.grouped_mm))
    far = (ours - theirs).norm(dim=1) / theirs.norm(dim=1)
    assert far.quantile(0.995) < 2 * bench.TOLERANCE and ours.isfinite().all()


@pytest.mark.parametrize("tokens", (1, 16, 17, 256, 4096))
def test_the_same_bits_at_every_run(model, tokens):
    call = bench.ours(tokens_of(model, tokens))
    first = call().clone()
    for _ in range(4):
        assert torch.equal(first, call())


@pytest.mark.parametrize("tokens", (1, 16, 256, 4096))
def test_a_graph_follows_other_tokens_to_other_experts(model, tokens):
    """Captured once: what it replays may not know how the first tokens were routed."""
    one, other = tokens_of(model, tokens), tokens_of(model, tokens, leaning=1.0)
    x = one["x"].clone()
    call = bench.ours(one | {"x": x})
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = call()
    for inputs in (other, one, other):
        x.copy_(inputs["x"])
        graph.replay()
        assert torch.equal(out, bench.ours(inputs)())


@pytest.mark.parametrize("tokens", (17, 300, 4096))
def test_the_order_at_real_sizes(model, tokens):
    case, _ = model
    inputs = tokens_of(model, tokens)
    given = partial(route, inputs["x"], inputs["router"], case.rule, bias=inputs["bias"], shared=case.shared)
    for tile in (1, 16, 128):
        found = given(tile=tile, copy=tile != 16)
        order = reference.order(to_numpy(found.topk_ids), case.experts + case.shared, tile)
        same_order(found, order)
        if found.rows is not None:
            pairs, real = order.sorted_token_ids, np.flatnonzero(order.sorted_token_ids != reference.EMPTY)
            token = torch.from_numpy(pairs[real] // case.slots).to(device())
            real = torch.from_numpy(real).to(device())
            assert torch.equal(found.rows[real], inputs["x"][token])


@pytest.mark.parametrize("tokens", (40, 256, 1000))
@pytest.mark.parametrize("sizes", ((512, 384), (520, 200), (64, 72)), ids=str)
@pytest.mark.parametrize("tile", (128, 192))
@pytest.mark.parametrize("box", (None, 64, 16), ids=lambda box: f"in turns by {box}" if box else "shared out")
def test_the_copy_engine_and_gathering_agree_at_any_width(box, tile, sizes, tokens, monkeypatch):
    monkeypatch.setattr("kernels.moe_routing.layer.LONG", 0 if box else 2**31)
    if box:
        monkeypatch.setitem(CONFIGS, tile, replace(CONFIGS[tile], box=box))
    if not suits_hopper(torch.empty(1, device=device())):
        pytest.skip("needs sm_90")
    case = cases.Case(tokens, 6, Rule(3), *sizes, shared=1)
    inputs = bench.draw(case, 0, device())
    experts = Experts(inputs["gate_up"], inputs["down"], 1)
    rows = []
    for way, rows_of_tile in ((hopper, tile), (gathered, 128)):
        found = route(
            inputs["x"], inputs["router"], case.rule, shared=1, tile=rows_of_tile, copy=way is hopper
        )
        rows.append(way(inputs["x"], experts, found)[found.inv_permuted_idx.flatten().long()])
    one, other = rows
    assert relative_error(to_numpy(one), to_numpy(other)) < 5e-3


@pytest.mark.parametrize("tokens", (1, 16, 200))
@pytest.mark.parametrize("case", cases.CORRECT, ids=lambda c: c.name)
def test_odd_layers_with_other_numbers_of_tokens(case, tokens):
    inputs = bench.draw(replace(case, tokens=tokens), 1, device())
    assert bench.check(inputs, bench.ours(inputs)()) < bench.TOLERANCE


def test_a_graph_counts_by_itself():
    """The second graph is replayed before the first ever was; what it counts with must be zero all the same."""
    inputs = bench.draw(replace(cases.CORRECT[6], tokens=40), 0, device())
    calls = [bench.ours(inputs) for _ in range(2)]
    expected = calls[0]().clone()
    torch.cuda.synchronize()
    graphs, outs = [], []
    for call in calls:
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1]):
            outs.append(call())
    for which in (1, 0, 1):
        outs[which].zero_()
        graphs[which].replay()
        assert torch.equal(outs[which], expected)


def test_layers_on_two_streams_do_not_meet():
    case = replace(cases.CORRECT[6], tokens=200, hidden=512, intermediate=256)
    inputs = bench.draw(case, 0, device())
    expected = bench.ours(inputs)().clone()
    torch.cuda.synchronize()
    streams, outs = [torch.cuda.Stream() for _ in range(2)], []
    for _ in range(20):
        for stream in streams:
            with torch.cuda.stream(stream):
                outs.append(bench.ours(inputs)())
    torch.cuda.synchronize()
    assert all(torch.equal(out, expected) for out in outs)


def test_a_call_does_not_wait_for_the_gpu():
    case = replace(cases.CORRECT[6], tokens=64)
    inputs = bench.draw(case, 0, device())
    experts = Experts(inputs["gate_up"], inputs["down"], case.shared)
    call = partial(layer, inputs["x"], inputs["router"], experts, case.rule, bias=inputs["bias"])
    call()
    torch.cuda.set_sync_debug_mode("error")
    try:
        call()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_row_of_the_benchmark_is_measured():
    from kernels.bench.measure import measure

    row = next(row for row in bench.rows(device()) if row.case == "Qwen3-like top-8 T = 256")
    found = measure(row, device(), {"copy": 4e12, "bf16": 7e14}, 0.05)
    assert "us" in found and "ratio" in found["peers"]["torch grouped_mm"]
