"""Every kernel against the reference: interpreted where there is no GPU, compiled where there is one."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.compare import relative_error
from kernels.counters import STORED, Counters
from kernels.moe_routing import cases, reference
from kernels.moe_routing.arguments import TILES, Experts
from kernels.moe_routing.combine import combine
from kernels.moe_routing.cost_traffic import most_tiles
from kernels.moe_routing.experts import down, gate_up
from kernels.moe_routing.layer import layer, pick_hopper_tile, pick_tile
from kernels.moe_routing.narrow import Narrow
from kernels.moe_routing.routed import cut, route
from kernels.moe_routing.rules import Rule
from kernels.tensors import to_numpy, to_torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROUNDING = {"fp16": 1e-3, "bf16": 6e-3}  # three roundings to 16 bits
RULES = {
    "softmax of all": {},
    "softmax of chosen": {},
    "sigmoid": {"renormalise": True, "scale": 2.5},
    "groups": {"scores": "sigmoid", "groups": 2, "groups_kept": 1},
}


def on_device(a: dict) -> dict:
    return {name: None if array is None else to_torch(array, DEVICE) for name, array in a.items()}


def forward(case, a: dict, tile: int = 1) -> reference.Forward:
    weights = (a[name] for name in ("x", "router", "gate_up", "down"))
    return reference.six_steps(*weights, case.rule, bias=a["bias"], shared=case.shared, tile=tile)


def run(case, t: dict, **more) -> np.ndarray:
    out = torch.full((case.tokens, case.hidden), float("nan"), device=DEVICE).to(t["x"].dtype)
    experts = Experts(t["gate_up"], t["down"], case.shared)
    layer(t["x"], t["router"], experts, case.rule, bias=t["bias"], out=out, **more)
    return to_numpy(out)


@pytest.mark.parametrize("case", cases.CORRECT, ids=lambda c: c.name)
def test_the_layer_is_the_reference(case):
    a = cases.arrays(case)
    assert relative_error(run(case, on_device(a)), forward(case, a).combined) < ROUNDING[case.dtype]


def by_logits(logits):
    """(x, router) whose product is just these logits: each token looks at a column of its own."""
    tokens, experts = logits.shape
    width = -(-max(tokens, 1) // 8) * 8
    x, router = np.zeros((tokens, width)), np.zeros((experts, width))
    x[np.arange(tokens), np.arange(tokens)] = 1
    router[:, :tokens] = logits.T
    return [to_torch(one.astype(np.float32), DEVICE).half() for one in (x, router)]


def same_order(found, expected: reference.Order):
    tiles, rows = len(expected.expert_ids), expected.rows
    assert tiles <= found.tiles == most_tiles(*found.topk_ids.shape, len(expected.loads), expected.tile)
    assert np.array_equal(to_numpy(found.expert_offsets), expected.expert_offsets)
    assert np.array_equal(to_numpy(found.inv_permuted_idx), expected.inv_permuted_idx)
    is_real = expected.sorted_token_ids != reference.EMPTY
    assert np.array_equal(
        to_numpy(found.sorted_token_ids)[:rows][is_real], expected.sorted_token_ids[is_real]
    )
    whose = to_numpy(found.expert_ids)
    assert np.array_equal(whose[:tiles], expected.expert_ids) and (whose[tiles:] == reference.EMPTY).all()
    real = (expected.sorted_token_ids.reshape(tiles, expected.tile) != reference.EMPTY).sum(1)
    assert np.array_equal(to_numpy(found.tile_rows), np.pad(real, (0, found.tiles - tiles)))


@settings(max_examples=12)
@given(
    tokens=st.integers(0, 70),
    experts=st.integers(1, 20),
    top_k=st.integers(1, 9),
    form=st.sampled_from(sorted(RULES)),
    shared=st.integers(0, 2),
    tile=st.sampled_from(TILES),
    copy=st.booleans(),
    levels=st.sampled_from((0, 1, 20)),
    seed=st.integers(0, 999),
)
def test_any_routing_is_ordered_as_the_reference_does(
    tokens, experts, top_k, form, shared, tile, copy, levels, seed
):
    """Scores of few levels: many ties, and with one level alone every token on the first experts."""
    experts += form == "groups" and experts % 2
    rule = Rule(min(top_k, experts // 2 if form == "groups" else experts), **{"scores": form, **RULES[form]})
    rng = np.random.default_rng(seed)
    logits = rng.integers(-levels, levels + 1, (tokens, experts)) / 8
    bias = rng.integers(-2, 3, experts).astype(np.float32) / 4 if rule.scores == "sigmoid" else None
    x, router = by_logits(logits)
    on = None if bias is None else to_torch(bias, DEVICE)
    found = route(x, router, rule, bias=on, shared=shared, tile=tile, copy=copy)
    topk_ids, topk_weights = reference.route(logits, rule, bias, shared)
    assert np.array_equal(to_numpy(found.topk_ids), topk_ids)
    assert np.allclose(to_numpy(found.topk_weights), topk_weights, rtol=1e-5)
    expected = reference.order(topk_ids, experts + shared, tile)
    same_order(found, expected)
    if copy:
        real = expected.sorted_token_ids != reference.EMPTY
        rows = to_numpy(found.rows)[: expected.rows][real]
        assert np.array_equal(rows, reference.permute(to_numpy(x), expected)[real])


@pytest.mark.parametrize("ordered", (16, 32))
@pytest.mark.parametrize(
    "rule", (Rule(3), Rule(2, "sigmoid", renormalise=True)), ids=lambda rule: rule.scores
)
def test_many_tokens_are_multiplied_in_one_launch_and_chosen_for_in_another(rule, ordered, monkeypatch):
    """The last block of either is not full, and neither is that of the experts; more tokens may be ordered at a time."""
    monkeypatch.setattr("kernels.moe_routing.routed.block_tokens", lambda *_: ordered)
    cut.cache_clear()
    tokens, experts, hidden = 1030, 68, 40
    rng = np.random.default_rng(0)
    x = rng.standard_normal((tokens, hidden)).astype(np.float16)
    router = (rng.standard_normal((experts, hidden)) / hidden**0.5).astype(np.float16)
    how = cut(tokens, hidden, experts, False)
    assert how.block_x > how.block and how.splits == 1 and how.ordered == ordered
    topk_ids, topk_weights = reference.route(x.astype(float) @ router.astype(float).T, rule)
    found = route(to_torch(x, DEVICE), to_torch(router, DEVICE), rule, tile=64)
    cut.cache_clear()
    assert np.array_equal(to_numpy(found.topk_ids), topk_ids)
    assert np.allclose(to_numpy(found.topk_weights), topk_weights, rtol=1e-3)
    same_order(found, reference.order(topk_ids, experts, 64))


@settings(max_examples=8)
@given(
    loads=st.lists(st.integers(0, 40), min_size=1, max_size=5),
    tile=st.sampled_from((16, 32, 64)),
    hidden=st.sampled_from((8, 40, 64)),
    intermediate=st.sampled_from((8, 24, 72)),
    dtype=st.sampled_from(("fp16", "bf16")),
    seed=st.integers(0, 99),
)
def test_ragged_experts_of_any_load(loads, tile, hidden, intermediate, dtype, seed):
    """Each token goes to one expert, in any numbers: gate and up, down, combine, each beside the reference."""
    rng = np.random.default_rng(seed)
    whose = rng.permutation(np.repeat(np.arange(len(loads)), loads))
    case = cases.Case(len(whose), len(loads), Rule(1), hidden, intermediate, dtype=dtype)
    a = cases.arrays(case, seed)
    t = on_device(a)
    logits = np.where(np.arange(len(loads))[None] == whose[:, None], 4.0, 0.0)
    found = route(*by_logits(logits), case.rule, tile=tile)
    order = reference.order(whose[:, None], len(loads), tile)
    same_order(found, order)
    if not len(whose):
        return
    real = order.sorted_token_ids != reference.EMPTY
    rows = reference.permute(a["x"], order)
    h = gate_up(t["x"], t["gate_up"], found, 1)
    expected = np.zeros((order.rows, intermediate))
    for e in range(len(loads)):
        mine = slice(order.expert_offsets[e], order.expert_offsets[e + 1])
        expected[mine] = reference.gated(rows[mine], a["gate_up"][e])
    assert relative_error(to_numpy(h)[: order.rows][real], expected[real]) < ROUNDING[dtype]
    y = down(h, t["down"], found)
    grouped = reference.grouped(rows, order, a["gate_up"], a["down"])
    assert relative_error(to_numpy(y)[: order.rows][real], grouped[real]) < ROUNDING[dtype]
    combined = reference.combine_pairs(reference.un_permute(grouped, order), np.ones((len(whose), 1)))
    assert relative_error(to_numpy(combine(y, found)), combined) < ROUNDING[dtype]


def test_the_order_of_many_blocks_of_tokens():
    """More blocks than are counted at a time, and more pairs in a block than are compared at a time."""
    rng = np.random.default_rng(0)
    logits = rng.integers(-9, 10, (300, 10)) / 8
    x, router = by_logits(logits)
    for rule in (Rule(1), Rule(9)):
        found = route(x, router, rule, tile=32)
        same_order(found, reference.order(reference.route(logits, rule)[0], 10, 32))


def test_wide_rows_are_copied_in_parts_and_padding_is_left_alone():
    case = cases.Case(19, 6, Rule(2), hidden=1048, intermediate=8)
    a = cases.arrays(case)
    found = route(to_torch(a["x"], DEVICE), to_torch(a["router"], DEVICE), case.rule, tile=16, copy=True)
    order = reference.order(to_numpy(found.topk_ids), case.experts, 16)
    same_order(found, order)
    real = order.sorted_token_ids != reference.EMPTY
    rows = to_numpy(found.rows)[: order.rows][real]
    assert np.array_equal(rows, reference.permute(a["x"], order)[real])


def test_no_tokens_and_no_launch():
    case = replace(cases.CORRECT[0], tokens=0)
    a = cases.arrays(case)
    t = on_device(a)
    assert run(case, t).shape == (0, case.hidden)
    assert to_numpy(route(t["x"], t["router"], case.rule).expert_offsets).tolist() == [0] * (case.experts + 1)


def test_scores_that_are_no_numbers_choose_experts_that_exist_and_show_in_the_answer():
    case = cases.CORRECT[3]
    t = on_device(cases.arrays(case))
    t["x"][1] = float("nan")
    found = route(t["x"], t["router"], case.rule)
    topk_ids = to_numpy(found.topk_ids)
    assert ((topk_ids >= 0) & (topk_ids < case.experts)).all() and topk_ids[1, 0] != topk_ids[1, 1]
    out = run(case, t)
    assert np.isnan(out[1].astype(float)).all() and np.isfinite(np.delete(out, 1, 0).astype(float)).all()


def test_rows_that_are_not_next_to_each_other_and_an_answer_inside_a_view():
    case = cases.CORRECT[3]
    a = cases.arrays(case)
    t = on_device(a)
    home = torch.full((case.tokens, case.hidden + 8), float("nan"), device=DEVICE).to(t["x"].dtype)
    home[:, : case.hidden] = t["x"]
    answers = torch.zeros(case.tokens + 2, case.hidden + 3, device=DEVICE, dtype=t["x"].dtype)
    inside = answers[1:-1, 2:-1]
    layer(home[:, : case.hidden], t["router"], Experts(t["gate_up"], t["down"]), case.rule, out=inside)
    assert relative_error(to_numpy(inside), forward(case, a).combined) < ROUNDING[case.dtype]
    inside.zero_()
    assert not answers.any()


def test_launches_that_may_overlap_count_apart():
    counters = Counters(torch.device(DEVICE))
    early = counters.take(3, capturing=True)
    one, again, other = counters.take(3, 1), counters.take(5, 1), counters.take(3, 2)
    assert one.data_ptr() == again.data_ptr() != other.data_ptr(), "launches of one stream follow each other"
    assert len(counters.take(5000, 1)) >= 5000
    captured = [counters.take(count, 1, capturing=True) for count in (4, 4, STORED)]
    assert [len(one) for one in captured] == [4, 4, STORED] and not any(one.any() for one in captured)
    places = [early, again, other, *captured]
    assert len({one.data_ptr() for one in places}) == len(places)
    assert captured[1].data_ptr() == captured[0].data_ptr() + 16, "out of the store"


def by_expert(weights):
    """A grouped product in the form that Narrow asks for."""

    def call(rows, *, offsets, most):
        ends = offsets.tolist()
        assert ends[-1] == len(rows) and max(b - a for a, b in zip(ends, ends[1:], strict=False)) <= most
        parts = [rows[a:b] @ w.T for a, b, w in zip(ends, ends[1:], weights, strict=False)]
        return torch.cat(parts)

    return call


@pytest.mark.parametrize("case", (cases.CORRECT[1], cases.CORRECT[6]), ids=lambda c: c.name)
def test_experts_behind_calls(case):
    a = cases.arrays(case)
    t = on_device(a)
    narrow = Narrow(
        by_expert(t["gate_up"]),
        by_expert(t["down"]),
        case.experts + case.shared,
        case.hidden,
        t["x"].dtype,
        t["x"].device,
        case.shared,
    )
    out = layer(t["x"], t["router"], narrow, case.rule, bias=t["bias"])
    assert relative_error(to_numpy(out), forward(case, a).combined) < 2 * ROUNDING[case.dtype]


@pytest.mark.parametrize("case", (cases.CORRECT[0], cases.Case(9, 6, Rule(2), 128, 64)), ids=lambda c: c.name)
@pytest.mark.skipif(DEVICE == "cuda", reason="the machine counts")
def test_few_tokens_read_each_weight_of_a_picked_expert_once(case, watch):
    """And no weight of any other; the rows that are combined are read once too."""
    case = replace(case, hidden=128, intermediate=64)
    a = cases.arrays(case)
    t = on_device(a)
    active = len(np.unique(forward(case, a).topk_ids))
    moved = {name: watch(t[name]) for name in ("gate_up", "down")}
    run(case, t)
    for name, one in moved.items():
        assert one.loaded == 2 * one.distinct == active * a[name][0].nbytes, name


def test_a_tile_holds_what_most_experts_get():
    picked = {(16, 2, 8): 16, (256, 2, 8): 128, (4096, 2, 8): 128, (2, 8, 128): 16, (256, 8, 128): 32}
    for sizes, tile in picked.items():
        assert pick_tile(*sizes) == tile
    fetched = {(256, 2, 8): 128, (4096, 8, 256): 192, (4096, 8, 128): 128, (4096, 2, 8): 128}
    assert [pick_hopper_tile(*sizes) for sizes in fetched] == list(fetched.values())
    assert [most_tiles(*sizes) for sizes in ((1, 2, 8, 16), (16, 2, 8, 16), (4096, 8, 256, 128), (0, 2, 8, 16))] == [
        2, 8, 510, 0,
    ]  # fmt: skip
