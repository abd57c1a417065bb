"""Show a dispatch: it sends a token's row once per pair, once per rank or once per node, and the network is where it
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
WAYS = {"pair": "once per pair", "rank": "once per rank", "node": "once per node, then NVLink"}
TOP_K = slider("top_k", "Experts per token", 8, 1, 8)
TOKENS = slider("tokens", "Tokens", 3, 1, 4)
NODES = steps("nodes", "Nodes of four GPUs", 4, (2, 3, 4))
# (tokens' left, their width, ranks' left, their width, top, bottom, room at the right, height)
PLACES = {True: (0, 76, 470, 150, 40, 372, 30, 396), False: (0, 58, 196, 106, 44, 420, 30, 446)}


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
    saved_share: float  # of the network's rows, against once per pair


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
    saved = 1 - ways[way].network_rows / pair.network_rows if pair.network_rows else 0.0
    away = pair.network_rows + pair.nvlink_rows
    return Result(way, tokens, nodes, top_k, chosen, away, **ways, saved_share=saved)


def _rank_y(rank: int, r: Result, top: float, bottom: float) -> float:
    """Return the middle of a rank's box. Nodes are apart by half a box."""
    pitch = (bottom - top) / (4 * PER_NODE + 2.4)
    return top + pitch * (0.5 + rank + 0.8 * (rank // PER_NODE))


def _token_y(token: int, top: float, bottom: float) -> float:
    return top + (bottom - top) * (token + 0.5) / 4


def _lines(r: Result, place) -> list[dict]:
    """Draw every row that travels, from its token to a rank, or from a rank to a neighbour of its node."""
    left, wide, at, box, top, bottom, room, _ = place
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
            marks += about("way", path(id, points, role, words))
        else:
            lane = passed.setdefault(send.source, 0)
            passed[send.source] += 1
            x, low = at + box + 4 + lane % 6 * 4, _rank_y(send.source, r, top, bottom)
            points = [(at + box, low), (x, low), (x, y + lane % 3 * 2 - 2), (at + box, y + lane % 3 * 2 - 2)]
            marks += about("way", path(id, points, role, words))
    return marks


def _ranks(r: Result, place) -> list[dict]:
    left, wide, at, box, top, bottom, room, _ = place
    marks, high = [], 0.86 * (bottom - top) / (4 * PER_NODE + 2.4)
    rows = [send.target for send in getattr(r, r.way).sends]
    pairs = [expert // PER_RANK for mine in r.chosen for expert in mine]
    for rank in range(r.nodes * PER_NODE):
        y, here = _rank_y(rank, r, top, bottom), rows.count(rank)
        used = pairs.count(rank)
        role = "primary" if rank == 0 else "useful" if used else "idle"
        words = "its own" if rank == 0 else units.counted(here, "row")
        tip = f"rank {rank} of node {rank // PER_NODE}: {units.counted(here, 'row')} for {units.counted(used, 'pair')}"
        marks.append(rect(f"rank-{rank}", at, y - high / 2, box, high, role, tip))
        ink = "ink" if role == "idle" else "inverse"
        marks.append(text(f"rank-name-{rank}", at + 6, y + 4, f"r{rank}", ink, "small", on=role))
        marks.append(text(f"rank-rows-{rank}", at + box - 6, y + 4, words, ink, "small", "end", on=role))
    for node in range(1, r.nodes):
        y = (_rank_y(4 * node - 1, r, top, bottom) + _rank_y(4 * node, r, top, bottom)) / 2
        marks.append(line(f"node-{node}", at - 30, y, at + box + room - 4, y, "limit"))
    return marks


def _tokens(r: Result, place) -> list[dict]:
    left, wide, at, box, top, bottom, room, _ = place
    marks = []
    for token, experts in enumerate(r.chosen):
        y = _token_y(token, top, bottom)
        tip = f"token {token} of rank 0 chose experts {', '.join(map(str, experts))}"
        marks.append(rect(f"token-{token}", left, y - 18, wide, 36, "primary", tip))
        marks.append(
            text(
                f"token-name-{token}",
                left + wide / 2,
                y + 4,
                f"token {token}",
                "inverse",
                "small",
                "middle",
                on="primary",
            )
        )

    def end(count: float) -> float:
        return _token_y(count - 1, top, bottom) + 36

    marks.append(handle("pull-tokens", left + wide / 2, end(r.tokens), "primary", drag(TOKENS, "y", end)))
    return marks


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"


def _takeaway(r: Result) -> str:
    if not r.pair.network_rows:
        return "All experts are in the sender's own node, so nothing crosses the network."
    if r.way == "node":
        return "The slow link carries each row once per node. The fast links inside a node spread it."
    if r.way == "rank":
        return "Once per rank helps little with many ranks, because a token rarely meets one twice."
    return "Sent once per pair, a token's row crosses the slow network as often as it has experts there."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    place = PLACES[width == WIDE]
    left, wide, at, box, top, bottom, room, height = place
    now = getattr(r, r.way)
    across = figure(
        f"{_rows(now.network_rows)} over the network", now.network_rows, units.count, "hot", "rows"
    )
    within = figure(f"{_rows(now.nvlink_rows)} over NVLink", now.nvlink_rows, units.count, "secondary")
    slow = figure("on the network", now.network_s, units.seconds)
    saved = figure("fewer than once per pair", r.saved_share, lambda v: units.percent(v, 0))
    return Scene(
        summary=f"Sent {WAYS[r.way]}, {units.counted(r.tokens, 'token')} of {units.counted(r.top_k, 'expert')} each put "
        f"{units.counted(now.network_rows, 'row')} on the network and {within.text} on NVLink. The network takes {slow.text}, {saved.text} fewer "
        "rows than once per pair.",
        takeaway=_takeaway(r),
        marks=[
            text("from", left, 14, "rank 0 sends", bold=True),
            text("to", at, 14, "ranks", bold=True),
            text("to-nodes", at, 30, f"{r.nodes} nodes of four", "muted", "small"),
        ]
        + _lines(r, place)
        + _ranks(r, place)
        + _tokens(r, place),
        figures=(across, within, slow, saved),
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
        legend=(("hot", "a row over the network, 50 GB/s"), ("secondary", "a row over NVLink, 450 GB/s")),
        formula=(
            (
                "time on the network = {rows:rows} · 7168 bytes / 50 GB/s",
                f"{{rows:{now.network_rows}}} · 7168 / 50 GB/s = {slow.text}",
            ),
        ),
    )


SIMULATOR = Declaration(
    title="Dispatch",
    question="Who sends what to whom, and how often?",
    controls=(select("way", "A token's row travels", "pair", WAYS), TOP_K, TOKENS, NODES),
    presets={
        "Once per pair": {},
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
