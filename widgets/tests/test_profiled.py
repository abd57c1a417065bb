"""A step is timed part by part, whole and in order, and the one that is kept is of that form."""

from dataclasses import asdict, replace
from itertools import pairwise

import pytest

from kernels.next_bottleneck import cost_trace
from widgets import profiled

PARTS = ["norm", "attention", "norm", "moe.router", "moe.order", "moe.experts", "moe.combine"]
SMALL = profiled.Sizes(
    tokens=5, context=8, blocks=3, hidden=16, heads=2, experts=4, intermediate=8, vocabulary=32
)


def in_order(events) -> bool:
    """No event begins before the last one ended, but for rounding."""
    return all(start + us <= after + 0.15 for (_, start, us), (_, after, _) in pairwise(events))


@pytest.fixture(scope="module")
def found():
    return profiled.profiled("cpu", SMALL, steps=2)


def test_every_part_of_every_block_is_timed_once(found):
    assert [name for name, _, _ in found["events"]] == [*PARTS * SMALL.blocks, "logits"]
    assert found["sizes"] == asdict(SMALL) and in_order(found["events"])
    assert all(us >= 0 for _, _, us in found["events"]) and found["events"][0][1] == 0


@pytest.fixture
def no_trace(monkeypatch):
    """While no GPU's trace is kept, the model's stands in its place, and labs read the CPU's step."""
    monkeypatch.setattr(profiled.cost, "trace", cost_trace.modelled)


@pytest.mark.parametrize("slots", [("router", "order"), ("routed", "routed")])
def test_a_gpus_trace_is_read_with_the_layers_parts_named(monkeypatch, slots):
    """A trace may have router and order as one slot; both are the layer's."""
    trace = cost_trace.modelled("graph", layers=2)
    names = dict(zip(("router", "order"), slots, strict=True))
    launches = tuple(replace(one, slot=names.get(one.slot, one.slot)) for one in trace.launches)
    seen = replace(trace, measured=True, where="a GPU", launches=launches)
    monkeypatch.setattr(profiled.cost, "trace", lambda run: seen)
    kept = profiled.recorded_step()
    assert kept["where"] == "a GPU" and in_order(kept["events"]) and kept["events"][0][1] == 0
    layer = [name for name, _, _ in kept["events"] if name.startswith("moe.")]
    assert len(layer) == 2 * 5 and layer.count("moe.experts") == 2 * 2 and layer.count("moe.combine") == 2
    assert len(kept["events"]) == len(trace.launches)


def test_the_kept_step_has_the_same_form(no_trace):
    kept = profiled.recorded_step()
    assert kept["sizes"] == asdict(profiled.Sizes()) and in_order(kept["events"])
    assert [name for name, _, _ in kept["events"]] == [*PARTS * kept["sizes"]["blocks"], "logits"]


def test_what_is_written_is_read_again(no_trace, tmp_path, monkeypatch, capsys, found):
    monkeypatch.setattr(profiled, "profiled", lambda: found)
    monkeypatch.setattr(profiled, "KEPT", tmp_path / "step.json")
    assert profiled.main([str(profiled.KEPT)]) == 0 and "22 events" in capsys.readouterr().out
    again = profiled.recorded_step()
    assert [e[0] for e in again["events"]] == [e[0] for e in found["events"]]
    assert again["sizes"] == found["sizes"] and isinstance(again["events"][0], tuple)


def test_it_says_how_it_is_used(capsys):
    assert profiled.main([]) == 64 and "profiled FILE" in capsys.readouterr().out


def test_the_layer_is_the_layer():
    """Each token's experts, weighed: against a sum token by token."""
    torch = pytest.importorskip("torch")
    model = profiled.Model(torch, "cpu", SMALL)
    block, y = model.blocks[0], model.x
    came = model._layer(y, block, profiled.Clock(torch, "cpu"))
    best, chosen = torch.topk(y @ block["router"].T, SMALL.top_k)
    weights = torch.softmax(best, -1)
    for t in range(SMALL.tokens):
        want = sum(
            weights[t, j] * model._expert(y[t : t + 1], int(chosen[t, j]), block)[0]
            for j in range(SMALL.top_k)
        )
        assert torch.allclose(came[t], want, atol=1e-5)
