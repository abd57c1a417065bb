"""Show a dispatch: it sends a token's row once per expert picked, once per rank or once per node, and the network is where it
counts."""

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from kernels.expert_load_balance import cost
from widgets import units
from widgets.charts import Box
from widgets.controls import select, slider, steps
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import (
    WIDE,
    Column,
    Scene,
    about,
    drag,
    figure,
    handle,
    line,
    path,
    rect,
    sets,
    table,
    text,
    together,
)

PER_NODE, PER_RANK = 4, 4  # ranks of a node, experts of a rank
ROW_BYTES, NETWORK_BYTE_S, NVLINK_BYTE_S = (
    7168,
    50e9,
    450e9,
)  # a row in FP8, 400 Gbit/s a GPU, an H200's links
WAYS = {"pair": "once per expert picked", "rank": "once per rank", "node": "once per node"}
STOPS = {"pair": "per expert", "rank": "per rank", "node": "per node"}  # under the knob
WAY = select("way", "A row crosses", "pair", WAYS)
TOP_K = slider("top_k", "Experts per token", 8, 1, 8)
TOKENS = slider("tokens", "Tokens", 3, 1, 4)
NODES = steps("nodes", "Nodes of four GPUs", 4, (2, 3, 4))
COPIES, CROSSING, ARRIVED = range(3)  # the steps


class Place(NamedTuple):
    """Hold where tokens, links and ranks stand, and how large a row is drawn."""

    wide: bool
    token_w: int
    links: Box
    ranks: Box
    cell: float  # of a row, with its gap
    stops: tuple[int, int, int]  # of the knob
    height: int


PLACES = {
    True: Place(True, 92, Box(124, 92, 280, 312), Box(430, 92, 290, 312), 15, (72, 232, 392), 420),
    False: Place(False, 60, Box(68, 108, 118, 340), Box(194, 108, 146, 340), 9, (42, 164, 288), 464),
}


@dataclass(frozen=True)
class Way:
    network_rows: int
    nvlink_rows: int
    near_rows: int  # of these, to rank 0's own node
    network_s: float
    nvlink_s: float
    sends: tuple[cost.Send, ...]


@dataclass(frozen=True)
class Result:
    way: str
    tokens: int
    nodes: int
    top_k: int
    chosen: tuple[tuple[int, ...], ...]
    pairs_away: int
    pair: Way
    rank: Way
    node: Way


def choices(tokens: int, top_k: int, experts: int) -> tuple[tuple[int, ...], ...]:
    """Draw each token's experts. A token's first choices stay when it gets more."""
    state, chosen = 20, []
    for _ in range(tokens):
        left, mine = list(range(experts)), []
        for _ in range(8):
            state = (state * 1103515245 + 12345) % 2**31
            mine.append(left.pop(state // 65536 % len(left)))
        chosen.append(tuple(mine[:top_k]))
    return tuple(chosen)


def _way(chosen, way: str) -> Way:
    found = tuple(cost.sends(chosen, PER_RANK, PER_NODE, way))
    across = sum(send.over == "network" for send in found)
    within = len(found) - across
    near = sum(send.source == 0 and send.over != "network" for send in found)
    return Way(
        across, within, near, across * ROW_BYTES / NETWORK_BYTE_S, within * ROW_BYTES / NVLINK_BYTE_S, found
    )


def run(way, top_k, tokens, nodes):
    chosen = choices(tokens, top_k, nodes * PER_NODE * PER_RANK)
    ways = {name: _way(chosen, name) for name in WAYS}
    pair = ways["pair"]
    away = pair.network_rows + pair.nvlink_rows
    return Result(way, tokens, nodes, top_k, chosen, away, **ways)


def _rank_y(rank: int, place: Place) -> float:
    """Return the middle of a rank's box. Nodes are apart by most of a box."""
    pitch = place.ranks.h / (4 * PER_NODE + 2.4)
    return place.ranks.y + pitch * (0.5 + rank + 0.8 * (rank // PER_NODE))


def _node(node: int, place: Place) -> tuple[float, float]:
    """Return a node's upper and lower edge."""
    half = place.ranks.h / (4 * PER_NODE + 2.4) / 2
    return _rank_y(PER_NODE * node, place) - half, _rank_y(PER_NODE * node + PER_NODE - 1, place) + half


def _token_y(token: int, place: Place) -> float:
    return place.links.y + place.links.h * (token + 0.5) / 4


class _Row(NamedTuple):
    """One row that travels: where it is at each step."""

    send: cost.Send
    id: str
    places: tuple[tuple[float, float], ...]


def _large(r: Result, place: Place) -> float:
    """Return what a row takes on a link: as much as the fullest link has room for."""
    sends = getattr(r, r.way).sends
    most = max(Counter(send.target // PER_NODE for send in sends if send.source == 0).values(), default=0)
    top, low = _node(0, place)
    sizes = (24, 17, 13) if place.wide else (18, 14, 9)
    return next(size for size in sizes if (place.links.w - 4) // size * ((low - top - 20) // size) >= most)


def _rows(r: Result, place: Place) -> list[_Row]:
    """Return every row. What a rank passes on travels with the row that it is copied from, and drawn under it."""
    sends, cell = getattr(r, r.way).sends, place.cell
    targets = [send.target for send in sends]
    made, crossing, came, named, carriers = Counter(), Counter(), Counter(), Counter(), {}
    passed, carried, large = [], [], _large(r, place)
    for send in sorted(sends, key=lambda send: send.source):  # rank 0 sends first
        way = send.token, send.source, send.target
        nth, named[way] = named[way], named[way] + 1
        id = f"row-{send.token}-{send.source}-{send.target}-{nth}"
        room = place.ranks.w - (40 if place.wide else 28)
        pitch = min(cell, room / max(1, targets.count(send.target)))
        at_rank = (
            place.ranks.right - room + came[send.target] * pitch,
            _rank_y(send.target, place) - cell / 2 + 1,
        )
        came[send.target] += 1
        if send.source:
            start = carriers[send.token, send.source]
            passed.append(_Row(send, id, (*start, at_rank)))
            continue
        node, across = send.target // PER_NODE, int(place.token_w // cell)
        i, made[send.token] = made[send.token], made[send.token] + 1
        copy = (i % across * cell, _token_y(send.token, place) - 2 + i // across * cell)
        i, crossing[node] = crossing[node], crossing[node] + 1
        across = int((place.links.w - 4) // large)
        link = (place.links.x + 4 + i % across * large, _node(node, place)[0] + 21 + i // across * large)
        carriers[send.token, send.target] = copy, link
        carried.append(_Row(send, id, (copy, link, at_rank)))
    return passed + carried


def _travelling(rows: list[_Row], step: int, place: Place, large: float) -> list[dict]:
    """Draw each row with the number of its token. A row that has crossed a link leaves its outline there."""
    marks, size = [], (large if step == CROSSING else place.cell) - 2
    for send, id, places in rows:
        what = f"for expert {', '.join(map(str, send.experts))}" if send.experts else "to be passed on"
        tip = f"token {send.token}, rank {send.source} to rank {send.target}, {what}"
        role = "network" if send.over == "network" else "secondary"
        mine = f"token{send.token} rank{send.target}"
        if step == ARRIVED and not send.source:
            (x, y), far = places[CROSSING], large - 2
            corners = [(x, y), (x + far, y), (x + far, y + far), (x, y + far)]
            trace = [path(f"trace-{id}", corners, role, tip, closed=True)]
            marks += about(mine, *trace, *_number(f"trace-{id}-of", send.token, x, y, far, role, ""))
        box = rect(id, *places[step], size, size, role, tip)
        under = send.source and step != ARRIVED  # a row that is still one with its carrier
        number = _number(f"{id}-of", "" if under else send.token, *places[step], size, "inverse", role)
        marks += about(mine, *together(box, *number))
    return marks


def _number(id: str, token: int | str, x: float, y: float, size: float, role: str, on: str) -> list[dict]:
    """Write a row's token into its square, if it is large enough."""
    if size < 13:
        return []
    return [text(id, x + size / 2, y + size / 2 + 4, str(token), role, "small", "middle", on=on)]


def _links(r: Result, place: Place) -> list[dict]:
    """Draw the link into each node, with the rows that cross it in words."""
    marks, sends = [], getattr(r, r.way).sends
    for node in range(r.nodes):
        top, low = _node(node, place)
        count = sum(send.source == 0 and send.target // PER_NODE == node for send in sends)
        rows, over = units.counted(count, "row"), "over the network" if node else "over NVLink"
        words = f"to node {node}: {rows} {over}" if place.wide else f"node {node}: {rows}"
        marks += [
            rect(f"link-{node}", place.links.x, top + 17, place.links.w, low - top - 17, "idle", words),
            text(
                f"link-{node}-name",
                place.links.x,
                top + 11,
                words,
                "network" if node else "secondary",
                "small",
                bold=True,
            ),
        ]
    return marks


def _ranks(r: Result, place: Place) -> list[dict]:
    marks, high = [], 0.86 * place.ranks.h / (4 * PER_NODE + 2.4)
    rows = [send.target for send in getattr(r, r.way).sends]
    pairs = [expert // PER_RANK for mine in r.chosen for expert in mine]
    for rank in range(r.nodes * PER_NODE):
        y, here = _rank_y(rank, place), rows.count(rank)
        picked = units.counted(pairs.count(rank), "expert picked", "experts picked")
        tip = f"rank {rank} of node {rank // PER_NODE}: {units.counted(here, 'row')} for {picked}"
        marks += about(
            f"rank{rank}",
            rect(f"rank-{rank}", place.ranks.x, y - high / 2, place.ranks.w, high, "idle", tip),
            text(f"rank-name-{rank}", place.ranks.x + 5, y + 4, f"r{rank}", "ink", "small", on="idle"),
        )
    return marks


def _tokens(r: Result, place: Place) -> list[dict]:
    marks, wide = [], place.token_w
    for token, experts in enumerate(r.chosen):
        y = _token_y(token, place)
        tip = f"token {token} of rank 0 chose experts {', '.join(map(str, experts))}"
        marks += about(
            f"token{token}",
            rect(f"token-{token}", 0, y - 30, wide, 24, "primary", tip),
            text(
                f"token-name-{token}",
                wide / 2,
                y - 14,
                f"token {token}",
                "inverse",
                "small",
                "middle",
                on="primary",
            ),
        )

    def end(count: float) -> float:
        return _token_y(count - 1, place) + 36

    marks.append(handle("pull-tokens", wide / 2, end(r.tokens), "primary", drag(TOKENS, "y", end)))
    return marks


def _route(r: Result, place: Place) -> list[dict]:
    """Draw the knob that chooses the route, and under each stop the rows that it puts on the network."""
    places = dict(zip(WAYS, place.stops, strict=True))
    marks = [line("route", min(places.values()), 32, max(places.values()), 32, "axis")]
    for way, x in places.items():
        rows, bold = getattr(r, way).network_rows, way == r.way
        words, role = units.counted(rows, "row"), "useful" if rows == r.node.network_rows else "hot"
        marks += sets(
            {"way": way},
            line(f"route-{way}", x, 28, x, 36, "axis"),
            text(f"route-{way}-name", x, 53, STOPS[way], "ink" if bold else "muted", "small", "middle", bold),
            text(f"route-{way}-rows", x, 68, words, role if bold else "muted", "small", "middle", bold),
        )
    return [*marks, handle("pull-way", places[r.way], 32, "now", drag(WAY, "x", lambda way: places[way]))]


def _captions(r: Result) -> tuple[str, str, str]:
    now, sends = getattr(r, r.way), getattr(r, r.way).sends
    own = sum(send.source == 0 for send in sends)
    near = now.near_rows
    each = {"pair": "expert that it picked", "rank": "rank that it goes to", "node": "node that it goes to"}[
        r.way
    ]
    last = "Each rank has a row for each expert that was picked there."
    if r.way == "rank":
        last = "Each rank has a token's row once, and copies it for its experts."
    if r.way == "node":
        last = f"One rank of each node got the row and passed it on: {units.counted(now.nvlink_rows, 'row')} over NVLink in all."
    return (
        f"Rank 0 copies each token's row once per {each}: {units.counted(own, 'row')} to send.",
        f"{units.counted(now.network_rows, 'row')} on the slow network, and {units.counted(near, 'row')} on NVLink in rank 0's node.",
        last,
    )


def _noun(count: int) -> str:
    return "row" if count == 1 else "rows"


def _takeaway(r: Result) -> str:
    if not r.pair.network_rows:
        return "All experts are in the sender's own node, so nothing crosses the network."
    per_node = f"{r.node.network_rows} instead of {r.pair.network_rows}"
    if r.way == "node":
        if r.node.network_rows == r.pair.network_rows:
            return "Each token has only one expert in a node, so a row per node saves nothing here."
        return f"Once per node: {per_node} rows cross the network. Fast links spread them."
    if r.way == "rank":
        return f"Once per rank: {r.rank.network_rows} instead of {r.pair.network_rows} rows. A token rarely picks two experts of one rank."
    if r.node.network_rows == r.pair.network_rows:
        return "With one expert in each node, a token's row crosses the slow network as often on every route."
    return f"A row may cross once per expert picked. Once per node is enough: {per_node} rows."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    place, now = PLACES[width == WIDE], getattr(r, r.way)
    least = figure("if sent once per node", r.node.network_rows, units.count, term="least")
    still = [
        text("route-title", 0, 14, "A token's row crosses once", bold=True),
        text("from", 0, place.links.y - 2, "rank 0 sends" if place.wide else "rank 0", bold=True),
        text(
            "to",
            place.ranks.x,
            place.ranks.y - 8,
            f"{r.nodes} nodes of four GPUs" if place.wide else f"{r.nodes} nodes",
            bold=True,
        ),
        *about("way", _route(r, place)),
        *_links(r, place),
        *_ranks(r, place),
        *_tokens(r, place),
    ]
    rows = _rows(r, place)
    same = dict(
        takeaway=_takeaway(r),
        table=table(
            (
                "sent",
                Column("rows over the network", show=units.count),
                Column("rows over NVLink", show=units.count),
                Column("network", "s", units.seconds),
                Column("NVLink", "s", units.seconds),
            ),
            [
                (
                    words,
                    *(
                        getattr(getattr(r, name), f)
                        for f in ("network_rows", "nvlink_rows", "network_s", "nvlink_s")
                    ),
                )
                for name, words in WAYS.items()
            ],
        ),
        height=place.height,
        width=width,
        legend=(
            ("network", "a token's row over the network, 50 GB/s"),
            ("secondary", "over NVLink, 450 GB/s"),
        ),
        formula=(
            (
                "time on the network = {rows:rows} · 7168 bytes / 50 GB/s",
                f"{{rows:{now.network_rows}}} · 7168 / 50 GB/s = {units.seconds(now.network_s)}",
            ),
        ),
    )
    scenes, large = [], _large(r, place)
    network = (0, now.network_rows, now.network_rows)
    for step, caption in enumerate(_captions(r)):
        best = "useful" if now.network_rows == r.node.network_rows else "hot"
        across = figure(f"{_noun(network[step])} over the network", network[step], units.count, best, "rows")
        within = figure(
            f"{_noun(now.nvlink_rows)} over NVLink in the end", now.nvlink_rows, units.count, "secondary"
        )
        scenes.append(
            Scene(
                summary=f"Sent {WAYS[r.way]}, {units.counted(r.tokens, 'token')} of {units.counted(r.top_k, 'expert')} each: "
                f"{units.counted(across.value, 'row')} over the network so far and {within.text} over NVLink in the end; once per node "
                f"it is {least.text}.",
                figures=(across, least, within),
                marks=still + _travelling(rows, step, place, large),
                caption=caption,
                **same,
            )
        )
    return scenes


SIMULATOR = Declaration(
    title="Dispatch",
    question="How often must a token's row cross the slow network?",
    controls=(WAY, TOP_K, TOKENS, NODES),
    presets={
        "Once per expert": {},
        "Once per rank": {"way": "rank"},
        "Once per node": {"way": "node"},
        "Two nodes": {"nodes": 2},
        "Two experts per token": {"top_k": 2, "way": "node"},
    },
    run=run,
    stepper=Stepper("stage", frames, lambda r: ARRIVED),
    prediction=Prediction(
        "Rank 0 has 3 tokens with 8 experts each, spread over 16 ranks in 4 nodes. Each row crosses the network once per "
        "node that needs it. How many rows cross?",
        "node.network_rows",
        "rows",
        0.12,
        units.count,
    ),
    source="DeepEP; DeepSeek-V3 Technical Report",
)
