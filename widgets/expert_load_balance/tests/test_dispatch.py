"""The simulator's rows against numbers counted from the same choices."""

import pytest

from widgets.expert_load_balance import dispatch
from widgets.scene import NARROW, WIDE

STATES = [(top_k, tokens, nodes) for top_k in (1, 2, 8) for tokens in (1, 4) for nodes in (2, 3, 4)]


@pytest.mark.parametrize("top_k, tokens, nodes", STATES)
def test_rows_are_counted_from_the_choices(top_k, tokens, nodes):
    r = dispatch.run("node", top_k, tokens, nodes)
    ranks = [[e // dispatch.PER_RANK for e in mine] for mine in r.topk_ids]
    far = [[one for one in mine if one // dispatch.PER_NODE] for mine in ranks]
    near = [[one for one in mine if 0 < one < dispatch.PER_NODE] for mine in ranks]
    assert all(len(set(mine)) == top_k for mine in r.topk_ids)
    assert (r.pair.network_rows, r.pair.nvlink_rows) == (sum(map(len, far)), sum(map(len, near)))
    assert r.rank.network_rows == sum(len(set(mine)) for mine in far)
    assert r.node.network_rows == sum(len({one // dispatch.PER_NODE for one in mine}) for mine in far)
    home = [[one for one in mine if not one] for mine in ranks]
    assert (r.pair.own_rows, r.node.own_rows) == (sum(map(len, home)), sum(map(bool, home)))
    assert r.pair.network_rows + r.pair.nvlink_rows + r.pair.own_rows == tokens * top_k, "no pair is lost"
    passed_on = sum(len({one for one in mine if one % dispatch.PER_NODE}) for mine in far)
    assert r.node.nvlink_rows == sum(len(set(mine)) for mine in near) + passed_on


@pytest.mark.parametrize("way", ["pair", "rank", "node"])
def test_a_rank_that_only_passes_a_row_on_is_not_drawn_as_if_it_had_been_picked(way):
    r = dispatch.run(way, 8, 3, 4)
    marks = {m["id"]: m for m in dispatch.frames(r)[-1].marks}
    for send in getattr(r, way).sends:
        boxes = [
            m
            for id, m in marks.items()
            if id.startswith(f"row-{send.token}-{send.source}-{send.target}-") and m["t"] == "rect"
        ]
        wanted = any(expert // dispatch.PER_RANK == send.target for expert in r.topk_ids[send.token])
        assert boxes and all((one["role"] == "idle") != wanted for one in boxes)


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
        start = dispatch.Box(place.token.x, dispatch._token_y(token, place), place.token.w, place.token.h)
        assert within(copies[id], vars(start))
        link = dispatch._window((source or target) // dispatch.PER_NODE, place)
        assert within(crossing[id], vars(link)), (id, "crosses")
        assert within(arrived[id], arrived[f"rank-{target}"]), (id, "arrives")
    crossed = [m for m in crossing.values() if on_the_wall(m, place)]
    assert len(crossed) == getattr(r, way).network_rows == len({(m["x"], m["y"]) for m in crossed})
    said = [int(crossing[f"link-{node}-name"]["s"].split()[-2]) for node in range(1, nodes)]
    assert sum(said) == len(crossed)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("way", dispatch.WAYS)
@pytest.mark.parametrize("top_k, tokens, nodes", STATES)
def test_the_wall_keeps_a_mark_in_the_token_s_colour_of_each_row_and_rank_0_keeps_its_own(
    way, top_k, tokens, nodes, width
):
    """So that one can count, on the last step, what crossed, and no pair is missing."""
    r, place = dispatch.run(way, top_k, tokens, nodes), dispatch.PLACES[width == WIDE]
    marks = dispatch.frames(r, width=width)[-1].marks
    traces = [m for m in marks if m["id"].startswith("trace-row-") and m["t"] == "rect"]
    assert len(traces) == getattr(r, way).network_rows
    for m in traces:
        token, source = map(int, m["id"].removeprefix("trace-row-").split("-")[:2])
        assert (m["role"], source) == (dispatch.TOKEN_ROLES[token], 0)
        assert within(m, vars(place.wall))
    own = [m for m in marks if m["t"] == "path" and m["id"].startswith("row-")]
    assert len(own) == getattr(r, way).own_rows
    home = next(m for m in marks if m["id"] == "rank-0")
    for m in own:
        assert m["role"] == dispatch.TOKEN_ROLES[int(m["id"].split("-")[1])]
        assert home["x"] < min(m["p"][::2]) and max(m["p"][::2]) <= home["x"] + home["w"] + 1


def on_the_wall(mark: dict, place) -> bool:
    """Whether a row of rank 0 is on the network; what another rank passes on lies under it."""
    sent = mark["t"] == "rect" and mark["id"].startswith("row-") and mark["id"].split("-")[2] == "0"
    return sent and within(mark, vars(place.wall))


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
def test_a_row_bears_its_token_and_the_mark_that_it_leaves_lies_where_it_crossed(way):
    r = dispatch.run(way, 8, 3, 4)
    _, crossing, arrived = ({m["id"]: m for m in one.marks} for one in dispatch.frames(r))
    for id in (id for id, m in crossing.items() if id.startswith("row-") and m["t"] == "rect"):
        token, source, target, _ = id.removeprefix("row-").split("-")
        assert arrived[f"{id}-of"]["s"] == token
        if source == "0" and int(target) >= dispatch.PER_NODE:
            assert crossing[f"{id}-of"]["s"] == arrived[f"trace-{id}-of"]["s"] == token
            trace = arrived[f"trace-{id}"]
            assert (trace["x"], trace["y"], trace["w"]) == tuple(crossing[id][key] for key in "xyw")


def test_the_fewest_rows_are_green_and_more_are_red():
    for way, role in (("pair", "hot"), ("rank", "hot"), ("node", "useful")):
        scene = dispatch.frames(dispatch.run(way, 8, 3, 4))[-1]
        marks = {m["id"]: m for m in scene.marks}
        assert scene.figures[0].role == marks[f"route-{way}-rows"]["role"] == role
        assert marks["network-title"]["role"] == role
