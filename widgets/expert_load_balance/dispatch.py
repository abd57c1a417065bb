"""Show a dispatch: it sends a token's row once per expert picked, once per rank or once per node, and the network is where it
counts."""

from dataclasses import dataclass

from kernels.expert_load_balance import cost
from widgets import units
from widgets.controls import select, slider, steps
from widgets.declare import Declaration, Prediction
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
    table,
    text,
)

PER_NODE, PER_RANK = 4, 4  # ranks of a node, experts of a rank
ROW_BYTES, NETWORK_BYTE_S, NVLINK_BYTE_S = (
    7168,
    50e9,
    450e9,
)  # a row in FP8, 400 Gbit/s a GPU, an H200's links
WAYS = {"pair": "once per expert picked", "rank": "once per rank", "node": "once per node, then NVLink"}
STOPS = {"pair": "per expert", "rank": "per rank", "node": "per node"}  # under the knob
WAY = select("way", "A token's row crosses the network", "pair", WAYS)
TOP_K = slider("top_k", "Experts per token", 8, 1, 8)
TOKENS = slider("tokens", "Tokens", 3, 1, 4)
NODES = steps("nodes", "Nodes of four GPUs", 4, (2, 3, 4))
# (tokens' left, their width, ranks' left, their width, top, bottom, room at the right, height, the knob's stops)
PLACES = {
    True: (0, 76, 470, 150, 88, 404, 80, 426, (72, 232, 392)),
    False: (0, 58, 196, 92, 108, 470, 46, 494, (42, 164, 288)),
}


@dataclass(frozen=True)
class Way:
    network_rows: int
    nvlink_rows: int
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
    return Way(across, within, across * ROW_BYTES / NETWORK_BYTE_S, within * ROW_BYTES / NVLINK_BYTE_S, found)


def run(way, top_k, tokens, nodes):
    chosen = choices(tokens, top_k, nodes * PER_NODE * PER_RANK)
    ways = {name: _way(chosen, name) for name in WAYS}
    pair = ways["pair"]
    away = pair.network_rows + pair.nvlink_rows
    return Result(way, tokens, nodes, top_k, chosen, away, **ways)


def _rank_y(rank: int, r: Result, top: float, bottom: float) -> float:
    """Return the middle of a rank's box. Nodes are apart by half a box."""
    pitch = (bottom - top) / (4 * PER_NODE + 2.4)
    return top + pitch * (0.5 + rank + 0.8 * (rank // PER_NODE))


def _token_y(token: int, top: float, bottom: float) -> float:
    return top + (bottom - top) * (token + 0.5) / 4


def _lines(r: Result, place) -> list[dict]:
    """Draw every row that travels, from its token to a rank, or from a rank to a neighbour of its node."""
    left, wide, at, box, top, bottom, room, *_ = place
    marks, found, taken, passed = [], getattr(r, r.way).sends, {}, {}
    for send in found:
        y = _rank_y(send.target, r, top, bottom)
        experts = ", ".join(map(str, send.experts))
        words = (
            f"token {send.token} to rank {send.target}, for expert {experts}"
            if experts
            else (f"token {send.token} to rank {send.target}, to be passed on")
        )
        role = "hot" if send.over == "network" else "secondary"
        nth = taken.setdefault((send.token, send.source, send.target), 0)
        taken[send.token, send.source, send.target] += 1
        id = f"row-{send.token}-{send.source}-{send.target}-{nth}"
        if send.source == 0:
            start = _token_y(send.token, top, bottom) + (send.target / 15 - 0.5) * 24
            bend = at - 34
            points = [(left + wide, start), (bend, y + 3 * nth - 2), (at, y + 3 * nth - 2)]
            marks += about(f"token{send.token} rank{send.target}", path(id, points, role, words))
        else:
            node = send.source // PER_NODE
            lane = passed.setdefault(node, 0)
            passed[node] += 1
            x, low = at + box + 6 + lane * (room - 12) / 11, _rank_y(send.source, r, top, bottom)
            low, y = low + lane % 3 * 3 - 3, y + lane % 4 * 2 - 3
            points = [(at + box, low), (x, low), (x, y), (at + box, y)]
            marks += about(f"token{send.token} rank{send.target}", path(id, points, role, words))
    return marks


def _ranks(r: Result, place) -> list[dict]:
    left, wide, at, box, top, bottom, room, *_ = place
    marks, high = [], 0.86 * (bottom - top) / (4 * PER_NODE + 2.4)
    rows = [send.target for send in getattr(r, r.way).sends]
    pairs = [expert // PER_RANK for mine in r.chosen for expert in mine]
    for rank in range(r.nodes * PER_NODE):
        y, here = _rank_y(rank, r, top, bottom), rows.count(rank)
        used = pairs.count(rank)
        role = "primary" if rank == 0 else "useful" if used else "idle"
        words = "its own" if rank == 0 else units.counted(here, "row")
        tip = f"rank {rank} of node {rank // PER_NODE}: {units.counted(here, 'row')} for {units.counted(used, 'expert picked', 'experts picked')}"
        ink = "ink" if role == "idle" else "inverse"
        marks += about(
            f"rank{rank}",
            rect(f"rank-{rank}", at, y - high / 2, box, high, role, tip),
            text(f"rank-name-{rank}", at + 6, y + 4, f"r{rank}", ink, "small", on=role),
            text(f"rank-rows-{rank}", at + box - 6, y + 4, words, ink, "small", "end", on=role),
        )
    for node in range(1, r.nodes):
        y = (_rank_y(4 * node - 1, r, top, bottom) + _rank_y(4 * node, r, top, bottom)) / 2
        marks.append(line(f"node-{node}", at - 30, y, at + box + room - 4, y, "limit"))
    return marks


def _tokens(r: Result, place) -> list[dict]:
    left, wide, at, box, top, bottom, room, *_ = place
    marks = []
    for token, experts in enumerate(r.chosen):
        y = _token_y(token, top, bottom)
        tip = f"token {token} of rank 0 chose experts {', '.join(map(str, experts))}"
        middle, name = left + wide / 2, f"token {token}"
        marks += about(
            f"token{token}",
            rect(f"token-{token}", left, y - 18, wide, 36, "primary", tip),
            text(f"token-name-{token}", middle, y + 4, name, "inverse", "small", "middle", on="primary"),
        )

    def end(count: float) -> float:
        return _token_y(count - 1, top, bottom) + 36

    marks.append(handle("pull-tokens", left + wide / 2, end(r.tokens), "primary", drag(TOKENS, "y", end)))
    return marks


def _route(r: Result, place) -> list[dict]:
    """Draw the knob that chooses the route, and under each stop the rows that it puts on the network."""
    places = dict(zip(WAYS, place[8], strict=True))
    marks = [line("route", min(places.values()), 32, max(places.values()), 32, "axis")]
    for way, x in places.items():
        rows, bold = getattr(r, way).network_rows, way == r.way
        words = units.counted(rows, "row")
        marks += [
            line(f"route-{way}", x, 28, x, 36, "axis"),
            text(f"route-{way}-name", x, 56, STOPS[way], "ink" if bold else "muted", "small", "middle", bold),
            text(f"route-{way}-rows", x, 72, words, "hot" if bold else "muted", "small", "middle", bold),
        ]
    return [*marks, handle("pull-way", places[r.way], 32, "now", drag(WAY, "x", lambda way: places[way]))]


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"


def _takeaway(r: Result) -> str:
    if not r.pair.network_rows:
        return "All experts are in the sender's own node, so nothing crosses the network."
    per_node = f"{r.node.network_rows} instead of {r.pair.network_rows}"
    if r.way == "node":
        if r.node.network_rows == r.pair.network_rows:
            return "Each token has only one expert in a node, so a row per node saves nothing here."
        return f"Once per node: {per_node} rows cross the slow network. Fast links inside a node spread them."
    if r.way == "rank":
        return "Once per rank helps little with many ranks, because a token rarely meets one twice."
    if r.node.network_rows == r.pair.network_rows:
        return "With one expert in each node, a token's row crosses the slow network as often on every route."
    return f"A row may cross once per expert picked. Once per node is enough: {per_node} rows."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    place = PLACES[width == WIDE]
    left, wide, at, box, top, bottom, room, height, stops = place
    now = getattr(r, r.way)
    across = figure(
        f"{_rows(now.network_rows)} over the network", now.network_rows, units.count, "hot", "rows"
    )
    within = figure(f"{_rows(now.nvlink_rows)} over NVLink", now.nvlink_rows, units.count, "secondary")
    slow = figure("on the network", now.network_s, units.seconds)
    least = figure(f"{_rows(r.node.network_rows)} if sent once per node", r.node.network_rows, units.count)
    return Scene(
        summary=f"Sent {WAYS[r.way]}, {units.counted(r.tokens, 'token')} of {units.counted(r.top_k, 'expert')} each put "
        f"{units.counted(now.network_rows, 'row')} on the network and {within.text} on NVLink. The network takes {slow.text}; sent once per "
        f"node, {units.counted(r.node.network_rows, 'row')} would cross it.",
        takeaway=_takeaway(r),
        marks=[
            text("route-title", 0, 14, "A token's row crosses once", bold=True),
            text("from", left, top + 6, "rank 0 sends", bold=True),
            text(
                "follow",
                left + (130 if width == WIDE else 0),
                height - 4,
                "Point at a token or a rank to follow its rows.",
                "muted",
                "small",
            ),
            text("to", at, top - 6, f"{r.nodes} nodes of four", bold=True),
        ]
        + about("way", _route(r, place))
        + _lines(r, place)
        + _ranks(r, place)
        + _tokens(r, place),
        figures=(across, least, within, slow),
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
        height=height,
        width=width,
        legend=(
            ("hot line", "a row over the network, 50 GB/s"),
            ("secondary line", "a row over NVLink, 450 GB/s"),
        ),
        formula=(
            (
                "time on the network = {rows:rows} · 7168 bytes / 50 GB/s",
                f"{{rows:{now.network_rows}}} · 7168 / 50 GB/s = {slow.text}",
            ),
        ),
    )


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
    scene=scene,
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
