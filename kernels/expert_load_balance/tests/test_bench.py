"""What the busiest device is given, and what the benchmark asks of its results before it times them."""

import math

import numpy as np
import pytest
import torch

from kernels.bench.handed import handed_to
from kernels.compare import relative_error
from kernels.expert_load_balance import bench, cases, cost, experts, peers
from kernels.expert_load_balance.busiest import busiest
from kernels.expert_load_balance.cases import BUSIEST, MANY, SMALL, Setting
from kernels.tensors import to_numpy

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
FUSED = handed_to("expert_load_balance")["fused"]
TRIED = (
    Setting(SMALL, 2, 24, "Zipf"),
    Setting(SMALL, 8, 9, "traced", "replicated"),  # two experts a device, one of them a copy
    Setting(SMALL, 2, 40, "same few"),  # the other experts of the device have no row
    Setting(MANY, 8, 3, "Zipf", "greedy"),
    Setting(SMALL, 4, 1, "one hot"),
)


def name(setting) -> str:
    return f"{setting.shape.name}, {setting.skew}, {setting.ranks} x {setting.tokens}, {setting.placement}"


@pytest.mark.parametrize("setting", (*TRIED, *BUSIEST), ids=name)
def test_it_is_the_device_that_has_most_rows_by_the_cost_model(setting):
    given = busiest(setting)
    expected = cost.device_loads(setting.loads, setting.placed, setting.ranks)
    turns = 0 if setting.placement != "replicated" else setting.ranks  # copies take turns: a row each at most
    assert given.rows == pytest.approx(max(expected), abs=turns)
    assert given.imbalance == pytest.approx(
        cost.imbalance(expected), abs=turns * setting.ranks / sum(expected)
    )
    assert given.held == tuple(e for e, copies in enumerate(setting.placed) if given.rank in copies)
    loads = np.bincount(given.slots, minlength=len(given.held))
    assert len(given.slots) == given.rows and (loads > 0).sum() == given.read
    for e, load in zip(given.held, loads, strict=True):
        share = setting.loads[e] / len(setting.placed[e])
        assert load == pytest.approx(share, abs=setting.ranks if len(setting.placed[e]) > 1 else 0)


def test_rows_come_by_sender_and_then_by_slot():
    given = busiest(TRIED[1])
    parts = np.split(given.slots, np.cumsum([sum(line) for line in given.got])[:-1])
    assert len(parts) == 8 and all((np.diff(part) >= 0).all() for part in parts)
    assert any((np.diff(given.slots) < 0).tolist()), "no order by expert: that is the layer's work"


@pytest.mark.parametrize("setting", TRIED, ids=name)
def test_ours_and_peers_pass_and_a_wrong_row_does_not(setting):
    x = bench.draw(setting, 0, DEVICE)
    out = bench.ours(x, FUSED)()
    assert bench.check(x, out) < bench.TOLERANCE
    for peer in (peers.loop, peers.grouped_mm):
        theirs = peer(x)()
        assert bench.check(x, theirs) < bench.TOLERANCE
        assert relative_error(to_numpy(out), to_numpy(theirs)) < bench.TOLERANCE, "row by row"
    for row in (x["checked"][0], x["checked"][-1]):
        wrong = out.clone()
        wrong[row] = wrong[row].flip(0)
        assert bench.check(x, wrong) > 10 * bench.TOLERANCE
    last = out.clone()
    last[-1, -1] = math.nan
    assert bench.check(x, last) == bench.check(x, out[:-1]) == math.inf


def test_the_layers_own_experts_make_the_same_of_these_rows():
    """What the real exchange hands to `experts`, sorted by slot, and put back."""
    x = bench.draw(TRIED[0], 0, DEVICE)
    gate, up = x["gate_up"].transpose(1, 2).chunk(2, -1)
    weights = experts.Weights(gate, up, x["down"].transpose(1, 2))
    order = torch.argsort(x["slots"][:, 0], stable=True)
    loads = torch.bincount(x["slots"][:, 0], minlength=len(weights.down)).tolist()
    out = torch.empty_like(x["x"])
    out[order] = experts.one_by_one(weights)(x["x"][order], loads)
    assert bench.check(x, out) < bench.TOLERANCE


def test_two_seeds_give_two_inputs_and_one_seed_one():
    a, b, c = (bench.draw(TRIED[0], seed, DEVICE) for seed in (0, 0, 1))
    assert torch.equal(a["x"], b["x"]) and torch.equal(a["down"], b["down"])
    assert not torch.equal(a["x"], c["x"]) and torch.equal(a["slots"], c["slots"]), "the routing stays"


def test_every_row_has_a_bound_peers_and_says_what_it_is_of():
    rows = list(bench.rows(DEVICE, fused=FUSED))
    assert len({row.case for row in rows}) == len(rows) == len(BUSIEST) and any(row.quick for row in rows)
    for row, setting in zip(rows, BUSIEST, strict=True):
        facts, shape = row.facts, setting.shape
        assert {"torch loop", "torch grouped_mm"} <= set(row.peers)
        assert row.flops == facts["rows"] * shape.pair_flops
        weights = cost.expert_memory_bytes(facts["read"], shape.hidden, shape.intermediate)
        assert row.bytes == weights + 4 * facts["rows"] * shape.hidden
        assert facts["read"] <= facts["experts"] <= shape.experts // setting.ranks + 1


def test_a_balanced_placement_has_fewer_rows_and_a_copy_fewer_still():
    rows = {(s.shape.name, s.ranks, s.tokens, s.placement): busiest(s).rows for s in BUSIEST}
    for (shape, ranks, tokens, how), count in rows.items():
        if how == "contiguous":
            placed = rows.get((shape, ranks, tokens, "greedy"), count)
            assert rows[shape, ranks, tokens, "replicated"] < placed <= count


def test_one_gpu_says_nothing_of_the_exchange_and_several_say_how():
    assert bench.below(1) == "" and bench.below(0) == ""
    assert "python -m kernels.expert_load_balance.measure --ranks 4" in bench.below(4)


def test_a_device_without_work_is_refused():
    for rows, read in ((0, 0), (3, 4)):
        with pytest.raises(ValueError, match="must be"):
            cost.device_work(rows, read, 64, 128)


def test_the_settings_are_what_their_table_says():
    assert {s.ranks for s in BUSIEST} == {2, 8} and {s.skew for s in BUSIEST} == {"Zipf", "traced"}
    alone = cases.Setting(cases.MIXTRAL, 8, 4096, "traced", "greedy")
    assert busiest(alone).rows == busiest(BUSIEST[9]).rows, "moved about, and no better"


def test_greedys_device_has_one_expert_whose_weights_its_tiles_ask_for_sixteen_times():
    from kernels.moe_routing.layer import pick_tile

    given = busiest(Setting(cases.DEEPSEEK, 8, 64, "Zipf", "greedy"))
    loads = np.bincount(given.slots)
    assert loads.max() == 16 * pick_tile(given.rows, 1, len(given.held)) == 512 and sorted(loads)[-2] < 16


@pytest.mark.gpu
@pytest.mark.parametrize("setting", BUSIEST, ids=name)
def test_every_row_of_the_real_shapes_is_what_torch_makes_of_it(setting):
    given, shape = busiest(setting), setting.shape
    needed = 8 * cost.device_work(given.rows, given.read, shape.hidden, shape.intermediate).bytes_moved
    if torch.cuda.mem_get_info()[0] < needed:
        pytest.skip(f"needs {needed / 1e9:.0f} GB free")
    x = bench.draw(setting, 0, DEVICE)
    out, theirs = bench.ours(x, FUSED)(), peers.grouped_mm(x)()
    assert bench.check(x, out) < bench.TOLERANCE
    far = (out.float() - theirs.float()).norm(dim=1) / theirs.float().norm(dim=1)
    assert far.max() < 2 * bench.TOLERANCE
    assert torch.equal(out, bench.ours(x, FUSED)()), "the same bits at every run"


@pytest.mark.gpu
def test_a_row_of_the_benchmark_is_measured():
    from kernels.bench.measure import measure

    row = next(row for row in bench.rows(DEVICE, fused=FUSED) if row.quick)
    found = measure(row, DEVICE, {"copy": 4e12, "bf16": 7e14}, 0.05)
    assert "us" in found and "ratio" in found["peers"]["torch grouped_mm"]
