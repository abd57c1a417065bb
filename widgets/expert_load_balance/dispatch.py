"""Show a dispatch, where a token's row crosses the slow network once per chosen expert, per rank or per node."""

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


TOKEN_ROLES = ("primary", "now", "measured", "overhead")  # a colour for each token, wherever its rows are


class Place(NamedTuple):
    """Hold the positions of the tokens, the wall and the ranks, and the size of a row."""

    wide: bool
    token: Box  # the first token's row, with its copies
    token_pitch: float
    lane: tuple[float, float]  # from a token's row to its rows on NVLink
    wall: Box  # the network
    ranks: Box  # of node 1
    own: Box  # the ranks of node 0
    node_pitch: float
    cell: float  # of a row at its rank, with its gap
    stops: tuple[int, int, int]  # of the knob
    height: int


LINE = 21  # from one rank or one token's rows to the next, on the wall and at the nodes
PLACES = {
    True: Place(
        True, Box(0, 116, 92, 12), 36, (104, 0), Box(222, 92, 220, 326), Box(486, 116, 234, 84),
        Box(12, 328, 184, 84), 106, 15, (72, 232, 392), 424,
    ),
    False: Place(
        False, Box(0, 116, 72, 11), 42, (0, 13), Box(84, 92, 122, 326), Box(230, 116, 110, 84),
        Box(8, 328, 66, 84), 106, 9, (42, 164, 288), 424,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Way:
    network_rows: int
    nvlink_rows: int
    near_rows: int  # rows to rank 0's own node
    own_rows: int  # for experts of rank 0 itself, over no link
    network_s: float
    nvlink_s: float
    sends: tuple[cost.Send, ...]


@dataclass(frozen=True)
class Result:
    way: str
    tokens: int
    nodes: int
    top_k: int
    topk_ids: tuple[tuple[int, ...], ...]
    pairs_away: int
    pair: Way
    rank: Way
    node: Way


def choices(tokens: int, top_k: int, experts: int) -> tuple[tuple[int, ...], ...]:
    """Draw each token's experts. A token's first choices stay when it gets more."""
    state, topk_ids = 20, []
    for _ in range(tokens):
        left, mine = list(range(experts)), []
        for _ in range(8):
            state = (state * 1103515245 + 12345) % 2**31
            mine.append(left.pop(state // 65536 % len(left)))
        topk_ids.append(tuple(mine[:top_k]))
    return tuple(topk_ids)


def _way(topk_ids, way: str) -> Way:
    found = tuple(cost.sends(topk_ids, PER_RANK, PER_NODE, way))
    across = sum(send.over == "network" for send in found)
    within = len(found) - across
    near = sum(send.source == 0 and send.over != "network" for send in found)
    here = [sum(expert < PER_RANK for expert in mine) for mine in topk_ids]
    own = sum(here if way == "pair" else map(bool, here))
    network_s, nvlink_s = across * ROW_BYTES / NETWORK_BYTE_S, within * ROW_BYTES / NVLINK_BYTE_S
    return Way(across, within, near, own, network_s, nvlink_s, found)


def run(way, top_k, tokens, nodes):
    topk_ids = choices(tokens, top_k, nodes * PER_NODE * PER_RANK)
    ways = {name: _way(topk_ids, name) for name in WAYS}
    pair = ways["pair"]
    away = pair.network_rows + pair.nvlink_rows
    return Result(way, tokens, nodes, top_k, topk_ids, away, **ways)


def _rank_box(rank: int, place: Place) -> Box:
    node, nth = divmod(rank, PER_NODE)
    at = place.ranks if node else place.own
    return Box(at.x, at.y + LINE * nth + max(0, node - 1) * place.node_pitch, at.w, LINE - 3)


def _token_y(token: int, place: Place) -> float:
    """Return the top of a token's row."""
    return place.token.y + place.token_pitch * token


def _window(node: int, place: Place) -> Box:
    """Return where the rows to a node pass, an opening of the wall or, for node 0, NVLink next to the tokens."""
    if not node:
        x, y = place.lane
        return Box(place.token.x + x, place.token.y + y, place.token.w, place.token_pitch * 3 + place.token.h)
    top = place.ranks.y + (node - 1) * place.node_pitch
    return Box(place.wall.x + 5, top, place.wall.w - 10, 4 * LINE)


class _Row(NamedTuple):
    """Hold one row that travels, with its box at each step."""

    token: int
    source: int
    target: int
    id: str
    boxes: tuple[Box, Box, Box]
    words: str
    picked: bool  # for an expert there, and not only to be passed on


def _crossing(token: int, node: int, nth: int, most: int, place: Place) -> Box:
    """Return a row's box on its way. Each token has a line of its own in the opening to a node, with room for `most`."""
    at = _window(node, place)
    pitch = at.w / (most if node else 8)
    if not node:
        return Box(at.x + nth * pitch, at.y + place.token_pitch * token, pitch - 1.5, place.token.h)
    return Box(at.x + 1 + nth * pitch, at.y + 1 + LINE * token, pitch - 2, LINE - 3)


def _rows(r: Result, place: Place) -> list[_Row]:
    """Return every row. A row that a rank passes on travels with the original, and is drawn under the original."""
    sends, size = getattr(r, r.way).sends, place.cell - 2
    own = [
        (token, cost.Send(token, 0, 0, "", tuple(served)))
        for token, mine in enumerate(r.topk_ids)
        for here in [[expert for expert in mine if expert < PER_RANK]]
        for served in ([(expert,) for expert in here] if r.way == "pair" else [here] if here else [])
    ]
    everything = [one for _, one in own] + sorted(sends, key=lambda send: send.source)  # rank 0 sends first
    targets = Counter(send.target for send in everything)
    made, crossing, came, named, carriers = Counter(), Counter(), Counter(), Counter(), {}
    passed, carried = [], []
    away = Counter((s.token, s.target // PER_NODE) for s in r.pair.sends if s.over == "network")
    most = max(4, *away.values(), 0)  # on every route, so that rows are as large on each
    for send in everything:
        way = send.token, send.source, send.target
        nth, named[way] = named[way], named[way] + 1
        id = f"row-{send.token}-{send.source}-{send.target}-{nth}"
        box = _rank_box(send.target, place)
        room = box.w - (36 if place.wide else 25)
        pitch = min(place.cell, room / targets[send.target])
        left = box.right - room + came[send.target] * pitch
        at_rank = Box(left, box.y + (box.h - size) / 2, min(size, pitch - 1), size)
        came[send.target] += 1
        serves = f"for expert {', '.join(map(str, send.experts))}" if send.experts else "to be passed on"
        words = f"token {send.token}, rank {send.source} to rank {send.target}, {serves}"
        if send.source:
            boxes, into = (*carriers[send.token, send.source], at_rank), passed
        else:
            i, made[send.token] = made[send.token], made[send.token] + 1
            pitch = place.token.w / 8
            copy = Box(i * pitch, _token_y(send.token, place), pitch - 1.5, place.token.h)
            key = send.token, send.target // PER_NODE
            link = at_rank
            if send.target:
                link = _crossing(*key, crossing[key], most, place)
                crossing[key] += 1
            carriers[send.token, send.target] = copy, link
            boxes, into = (copy, link, at_rank), carried
        into.append(_Row(send.token, send.source, send.target, id, boxes, words, bool(send.experts)))
    return passed + carried


def _outline(id: str, box: Box, role: str, tip: str = "") -> dict:
    corners = [(box.x, box.y), (box.right, box.y), (box.right, box.bottom), (box.x, box.bottom)]
    return path(id, corners, role, tip, closed=True)


def _travelling(rows: list[_Row], step: int) -> list[dict]:
    """Draw each row in the colour of its token. A row that has crossed a link leaves a mark at the crossing."""
    marks = []
    for row in rows:
        role, mine = TOKEN_ROLES[row.token], f"token{row.token} rank{row.target}"
        box, number = row.boxes[step], f"{row.id}-of"
        if not row.source and not row.target:  # it stays, so it is an outline
            marks += about(mine, _outline(row.id, box, role, f"{row.words}, over no link"))
            continue
        if step == ARRIVED and not row.source:
            on = row.boxes[CROSSING]
            if row.target >= PER_NODE:
                trace = rect(f"trace-{row.id}", on.x, on.y, on.w, on.h, role, row.words)
                marks += about(mine, trace, *_number(f"trace-{number}", row.token, on, role))
            else:
                marks += about(mine, _outline(f"trace-{row.id}", on, role, row.words))
        role = role if step != ARRIVED or row.picked else "idle"  # hollow where it was only passed on
        shown = rect(row.id, box.x, box.y, box.w, box.h, role, row.words)
        under = row.source and step != ARRIVED  # a row that is still one with its carrier
        marks += about(mine, *together(shown, *_number(number, "" if under else row.token, box, role)))
    return marks


def _number(id: str, token: int | str, box: Box, role: str) -> list[dict]:
    """Write a row's token into its box, if it is large enough."""
    if min(box.w, box.h) < 11:
        return []
    middle = box.x + box.w / 2, box.y + box.h / 2 + 4
    ink = "ink" if role == "idle" else "inverse"
    return [text(id, *middle, str(token), ink, "small", "middle", on=role)]


def _links(r: Result, place: Place) -> list[dict]:
    """Draw the network as a wall with an opening to each node, and NVLink as a line between the ranks of a node."""
    wall, now = place.wall, getattr(r, r.way)
    heights = wall.h - (4 - r.nodes) * place.node_pitch
    what = f"{units.counted(now.network_rows, 'row')} over the network"
    marks = [rect("wall", wall.x, wall.y, wall.w, heights, "network", what)]
    for node in range(r.nodes):
        at, count = (
            _window(node, place),
            sum(send.source == 0 and send.target // PER_NODE == node for send in now.sends),
        )
        rows = units.counted(count, "row")
        low, high = _rank_box(PER_NODE * node, place), _rank_box(PER_NODE * node + PER_NODE - 1, place)
        bus = line(f"nvlink-{node}", low.x - 5, low.y, low.x - 5, high.bottom, "secondary", "NVLink")
        if node:
            middle = at.y + at.h / 2
            marks += [
                rect(f"link-{node}", at.x, at.y, at.w, at.h, "ground", f"to node {node}: {rows} over the network"),
                text(f"link-{node}-name", wall.x + wall.w / 2, at.y - 7, f"to node {node}: {rows}" if place.wide else rows, "inverse", "small", "middle", True, "network"),
                line(f"into-{node}", wall.right, middle, low.x - 5, middle, "network"),
                text(f"node-{node}-name", low.x, low.y - 6, f"node {node}", "muted", "small"),
            ]  # fmt: skip
        marks.append(bus)
    return marks


def _ranks(r: Result, place: Place) -> list[dict]:
    marks, rows = [], [send.target for send in getattr(r, r.way).sends]
    pairs = [expert // PER_RANK for mine in r.topk_ids for expert in mine]
    for rank in range(r.nodes * PER_NODE):
        box = _rank_box(rank, place)
        here = rows.count(rank) if rank else getattr(r, r.way).own_rows
        picked = units.counted(pairs.count(rank), "expert picked", "experts picked")
        tip = f"rank {rank} of node {rank // PER_NODE}: {units.counted(here, 'row')} for {picked}"
        marks += about(
            f"rank{rank}",
            rect(f"rank-{rank}", box.x, box.y, box.w, box.h, "idle", tip),
            text(f"rank-name-{rank}", box.x + 3, box.y + 13, f"r{rank}", "ink", "small", on="idle"),
        )
    return marks


def _tokens(r: Result, place: Place) -> list[dict]:
    """Draw each token of rank 0, its way to the wall, and the knob that gives rank 0 more tokens."""
    marks = []
    for token, experts in enumerate(r.topk_ids):
        y, at = _token_y(token, place), place.token
        tip = f"token {token} of rank 0 chose experts {', '.join(map(str, experts))}"
        box = Box(at.x, y, at.w, at.h)
        name = text(f"token-name-{token}", at.x, y - 5, f"token {token}", "ink", "small", bold=True)
        marks += about(f"token{token}", _outline(f"token-{token}", box, TOKEN_ROLES[token], tip), name)

    def end(count: float) -> float:
        return _token_y(count - 1, place) + place.token.h + place.lane[1] + (20 if place.wide else 14)

    return [*marks, handle("pull-tokens", 46, end(r.tokens), "primary", drag(TOKENS, "y", end))]


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
    sent = sum(send.source == 0 for send in sends)
    near = now.near_rows
    each = {"pair": "expert that it picked", "rank": "rank that it goes to", "node": "node that it goes to"}[
        r.way
    ]
    own = " Those of rank 0 (outlines) cross no link." if now.own_rows else ""
    last = f"Each rank has a row for each expert that was picked there.{own}"
    if r.way == "rank":
        last = "Each rank has a token's row once, and copies it for its experts."
    if r.way == "node":
        last = f"One rank of each node got the row and passed it on: {units.counted(now.nvlink_rows, 'row')} over NVLink in all."
    return (
        f"Rank 0 copies each token's row once per {each}: {units.counted(sent, 'row')} to send.",
        f"{units.counted(now.network_rows, 'row')} on the slow network, and {units.counted(near, 'row')} on NVLink in rank 0's node.",
        last,
    )


def _noun(count: int) -> str:
    return "row" if count == 1 else "rows"


def _same_rank(r: Result) -> str:
    """Say how many experts are on a rank that gets the token's row for another of its experts."""
    shared = r.pair.network_rows - r.rank.network_rows
    if not shared:
        return "No token picks two experts of one rank."
    return f"{units.counted(shared, 'choice')} {'shares' if shared == 1 else 'share'} a rank with another choice."


def _takeaway(r: Result) -> str:
    if not r.pair.network_rows:
        return "All experts are in the sender's own node, so nothing crosses the network."
    per_node = f"{r.node.network_rows} instead of {r.pair.network_rows}"
    if r.way == "node":
        if r.node.network_rows == r.pair.network_rows:
            return "Each token has only one expert in a node, so a row per node saves nothing here."
        return f"Once per node: {per_node} rows cross the network. Fast links spread them."
    if r.way == "rank":
        return f"Once per rank: {r.rank.network_rows} instead of {r.pair.network_rows} rows. {_same_rank(r)}"
    if r.node.network_rows == r.pair.network_rows:
        return "With one expert in each node, a token's row crosses the slow network as often on every route."
    return f"A row may cross once per expert picked. Once per node is enough: {per_node} rows."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    place, now = PLACES[width == WIDE], getattr(r, r.way)
    least = figure("if sent once per node", r.node.network_rows, units.count, term="least")
    wall, rows_now = place.wall, units.counted(now.network_rows, "row")
    cross = "cross" if now.network_rows != 1 else "crosses"
    title = f"the slow network: {rows_now} {cross}" if place.wide else f"network: {rows_now}"
    others = f"nodes 1 to {r.nodes - 1}" if r.nodes > 2 else "node 1"
    best = "useful" if now.network_rows == r.node.network_rows else "hot"
    still = [
        text("route-title", 0, 14, "A token's row crosses once", bold=True),
        text("from", 0, 90, "rank 0 sends" if place.wide else "rank 0", bold=True),
        text("network-title", wall.x + wall.w / 2, 86, title, best, anchor="middle", bold=True),
        text("to", place.ranks.x, 90, others, bold=True),
        text("own", place.own.x, place.own.y - 8, "node 0", "muted", "small"),
        *about("way", _route(r, place)),
        *_links(r, place),
        *_ranks(r, place),
        *_tokens(r, place),
    ]
    if place.wide:
        at = place.token.x + place.lane[0]
        still.append(text("near-name", at, place.token.y - 5, "over NVLink", "secondary", "small"))
    rows = _rows(r, place)
    same = dict(
        takeaway=_takeaway(r),
        table=table(
            (
                "sent",
                Column("rows over the network", show=units.count),
                Column("rows over NVLink", show=units.count),
                Column("rows that stay on rank 0", show=units.count),
                Column("network", "s", units.seconds),
                Column("NVLink", "s", units.seconds),
            ),
            [
                (
                    words,
                    *(
                        getattr(getattr(r, name), f)
                        for f in ("network_rows", "nvlink_rows", "own_rows", "network_s", "nvlink_s")
                    ),
                )
                for name, words in WAYS.items()
            ],
        ),
        height=place.height,
        width=width,
        legend=(
            ("network", "network, 50 GB/s a GPU"),
            ("secondary line", "NVLink, 450 GB/s"),
            *((TOKEN_ROLES[token], f"a row of token {token}") for token in range(r.tokens)),
            *((("idle", "only passed on"),) * (r.way == "node")),
        ),
        formula=(
            (
                "time on the network = {rows:rows} · 7168 bytes / 50 GB/s",
                f"{{rows:{now.network_rows}}} · 7168 / 50 GB/s = {units.seconds(now.network_s)}",
            ),
        ),
    )
    scenes = []
    network = (0, now.network_rows, now.network_rows)
    for step, caption in enumerate(_captions(r)):
        across = figure(f"{_noun(network[step])} over the network", network[step], units.count, best, "rows")
        within = figure(
            f"{_noun(now.nvlink_rows)} over NVLink in the end", now.nvlink_rows, units.count, "secondary"
        )
        stays = figure(f"{_noun(now.own_rows)} for rank 0 itself", now.own_rows, units.count)
        scenes.append(
            Scene(
                summary=f"Sent {WAYS[r.way]}, {units.counted(r.tokens, 'token')} of {units.counted(r.top_k, 'expert')} each: "
                f"{units.counted(across.value, 'row')} over the network so far and {within.text} over NVLink in the end, and "
                f"{stays.text} for rank 0 itself; once per node it is {least.text}.",
                figures=(across, least, within, stays),
                marks=still + _travelling(rows, step),
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
