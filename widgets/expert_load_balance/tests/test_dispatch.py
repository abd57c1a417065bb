"""The simulator's rows against numbers counted from the same choices."""

import pytest

from widgets.expert_load_balance import dispatch
from widgets.scene import NARROW, WIDE

STATES = [(top_k, tokens, nodes) for top_k in (1, 2, 8) for tokens in (1, 4) for nodes in (2, 3, 4)]


@pytest.mark.parametrize("top_k, tokens, nodes", STATES)
def test_rows_are_counted_from_the_choices(top_k, tokens, nodes):
    r = dispatch.run("node", top_k, tokens, nodes)
    ranks = [[e // dispatch.PER_RANK for e in mine] for mine in r.chosen]
    far = [[one for one in mine if one // dispatch.PER_NODE] for mine in ranks]
    near = [[one for one in mine if 0 < one < dispatch.PER_NODE] for mine in ranks]
    assert all(len(set(mine)) == top_k for mine in r.chosen)
    assert (r.pair.network_rows, r.pair.nvlink_rows) == (sum(map(len, far)), sum(map(len, near)))
    assert r.rank.network_rows == sum(len(set(mine)) for mine in far)
    assert r.node.network_rows == sum(len({one // dispatch.PER_NODE for one in mine}) for mine in far)
    passed_on = sum(len({one for one in mine if one % dispatch.PER_NODE}) for mine in far)
    assert r.node.nvlink_rows == sum(len(set(mine)) for mine in near) + passed_on


def test_more_experts_keep_the_first_choices():
    few, many = (dispatch.choices(3, top_k, 64) for top_k in (2, 8))
    assert [mine[:2] for mine in many] == list(few)


def test_times_are_bytes_over_links():
    r = dispatch.run("pair", 8, 3, 4)
    assert r.pair.network_s == pytest.approx(r.pair.network_rows * 7168 / 50e9)
    assert r.pair.nvlink_s == pytest.approx(r.pair.nvlink_rows * 7168 / 450e9)


@pytest.mark.parametrize("way", dispatch.WAYS)
@pytest.mark.parametrize("top_k, tokens, nodes", STATES)
def test_the_knob_says_what_each_route_costs_and_each_row_belongs_to_its_token(way, top_k, tokens, nodes):
    r = dispatch.run(way, top_k, tokens, nodes)
    shown = dispatch.frames(r)[dispatch.CROSSING]
    marks = {m["id"]: m for m in shown.marks}
    for name in dispatch.WAYS:
        assert marks[f"route-{name}-rows"]["s"].split()[0] == str(getattr(r, name).network_rows)
    assert r.node.network_rows in [one.value for one in shown.figures]
    rows = [m for id, m in marks.items() if id.startswith("row-") and m["t"] == "rect"]
    assert len(rows) == len(getattr(r, way).sends)
    for token in range(tokens):
        own = [m for m in rows if f"token{token}" in m["k"].split()]
        assert len(own) == sum(send.token == token for send in getattr(r, way).sends)
        assert marks[f"token-{token}"]["k"] == f"token{token}"


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("way", dispatch.WAYS)
@pytest.mark.parametrize("top_k, tokens, nodes", STATES)
def test_each_row_starts_at_its_token_crosses_the_link_of_its_node_and_ends_in_its_rank(
    way, top_k, tokens, nodes, width
):
    r, place = dispatch.run(way, top_k, tokens, nodes), dispatch.PLACES[width == WIDE]
    copies, crossing, arrived = ({m["id"]: m for m in one.marks} for one in dispatch.frames(r, width=width))
    for id in (id for id, mark in copies.items() if id.startswith("row-") and mark["t"] == "rect"):
        token, source, target, _ = map(int, id.removeprefix("row-").split("-"))
        assert 0 <= copies[id]["x"] < place.token_w
        assert abs(copies[id]["y"] - dispatch._token_y(token, place)) < place.links.h / 8
        link = crossing[f"link-{(source or target) // dispatch.PER_NODE}"]
        assert within(crossing[id], link), (id, "crosses")
        assert within(arrived[id], arrived[f"rank-{target}"]), (id, "arrives")
    crossed = [m for m in crossing.values() if m["id"].startswith("row-") and m["role"] == "network"]
    assert len(crossed) == getattr(r, way).network_rows == len({(m["x"], m["y"]) for m in crossed})
    said = [int(crossing[f"link-{node}-name"]["s"].split(": ")[1].split()[0]) for node in range(1, nodes)]
    assert sum(said) == len(crossed)


def within(mark: dict, box: dict) -> bool:
    return (
        box["x"] <= mark["x"]
        and mark["x"] + mark["w"] <= box["x"] + box["w"] + 1
        and box["y"] - 1 <= mark["y"]
        and mark["y"] + mark["h"] <= box["y"] + box["h"] + 1
    )


@pytest.mark.parametrize("way", dispatch.WAYS)
def test_every_step_says_how_many_rows_nvlink_carries_in_the_end(way):
    r = dispatch.run(way, 8, 3, 4)
    said = {one.value for scene in dispatch.frames(r) for one in scene.figures if "NVLink" in one.label}
    assert said == {getattr(r, way).nvlink_rows}


@pytest.mark.parametrize("way", dispatch.WAYS)
def test_a_row_bears_its_token_and_leaves_a_trace_on_the_link_that_it_crossed(way):
    """So that one can check, on the last step too, that a token crosses once per node."""
    r = dispatch.run(way, 8, 3, 4)
    _, crossing, arrived = ({m["id"]: m for m in one.marks} for one in dispatch.frames(r))
    rows = [id for id, mark in crossing.items() if id.startswith("row-") and mark["t"] == "rect"]
    for id in rows:
        token, source = id.removeprefix("row-").split("-")[:2]
        assert arrived[f"{id}-of"]["s"] == token
        assert crossing[f"{id}-of"]["s"] == ("" if source != "0" else token)
        if source == "0":
            trace = arrived[f"trace-{id}"]
            assert tuple(trace["p"][:2]) == (crossing[id]["x"], crossing[id]["y"])
            assert arrived[f"trace-{id}-of"]["s"] == token
    traces = [id for id, mark in arrived.items() if id.startswith("trace-row-") and mark["t"] == "path"]
    assert len(traces) == sum(send.source == 0 for send in getattr(r, way).sends)
    assert sum(arrived[id]["role"] == "network" for id in traces) == getattr(r, way).network_rows


def test_the_fewest_rows_are_green_and_more_are_red():
    for way, role in (("pair", "hot"), ("rank", "hot"), ("node", "useful")):
        scene = dispatch.frames(dispatch.run(way, 8, 3, 4))[-1]
        marks = {m["id"]: m for m in scene.marks}
        assert scene.figures[0].role == marks[f"route-{way}-rows"]["role"] == role
