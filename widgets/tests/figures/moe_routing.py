"""The figures of moe_routing, as its simulators give them."""

from widgets.registry import find


def tiles(**inputs):
    simulator = find("tile_utilization")
    return simulator.run(**simulator.inputs(inputs))


def moe_balanced():
    r = tiles(tokens=32, experts=4, top_k=1, tile=8, skew=0.0)
    rows = [(e.kept_tokens, e.tiles, e.padded_slots, e.dropped_tokens) for e in r.experts]
    assert rows == [(8, 1, 0, 0)] * 4  # the table of the scene
    assert (r.slots, r.kept, r.useful_share) == (32, 32, 1.0)
    assert max(e.kept_tokens for e in r.experts) == 8


def moe_skew():
    even = tiles(experts=4, skew=0.0)
    for worse in (tiles(experts=4), tiles(experts=8, skew=0.0), tiles(experts=8)):
        assert worse.useful_share < even.useful_share
        assert worse.padded_slots > 0
    skewed = tiles(experts=4)
    assert skewed.straggler_ratio > even.straggler_ratio
    limited = [tiles(experts=4, capacity=c) for c in (0, 1.5, 1.25, 1)]
    busiest = [max(e.kept_tokens for e in r.experts) for r in limited]
    dropped = [r.dropped_tokens for r in limited]
    assert busiest == sorted(busiest, reverse=True) and busiest[-1] < busiest[0]
    assert dropped == sorted(dropped) and dropped[-1] > dropped[0] == 0


FIGURES = {"moe_balanced": moe_balanced, "moe_skew": moe_skew}
