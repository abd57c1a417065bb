"""Which k-bit kernel runs at which M, and how many users it takes until the win is gone: measured numbers."""

import math
from itertools import pairwise

from kernels.quantization_layouts import cost
from kernels.quantization_layouts.cost import kbit_tables as tables
from widgets import units
from widgets.charts import Box, axis_x, axis_y, limit_across, linear, log, text_width
from widgets.controls import log_slider, powers_of_two, select, slider
from widgets.declare import Declaration, Prediction
from widgets.quantization_layouts.kbit_lane import counted, ruled
from widgets.quantization_layouts.kbit_model import (
    MOST_USERS,
    OURS,
    ROWS,
    SOURCE,
    TABLES,
    Result,
    Session,
    run,
)
from widgets.scene import (
    WIDE,
    Column,
    Scene,
    about,
    circle,
    drag,
    figure,
    handle,
    line,
    path,
    rect,
    table,
    text,
)

K = slider("k", "Bits of a weight (k)", 4, 2, 5)
USERS_AT_ONCE = log_slider(
    "users",
    "Users at once",
    1,
    1,
    64,
    per_decade=12,
    help="Each decodes one token a step: M is their number.",
)
# (times as fast by users, the block, the lane of kernels, height)
PLACES = {
    True: (Box(58, 44, 300, 152), Box(452, 44, 170, 160), Box(60, 322, 640, 32), 408),
    False: (Box(50, 44, 268, 140), Box(52, 286, 180, 150), Box(0, 538, 336, 32), 622),
}
MICRO = units.fixed(1)  # the tables give tenths


def _most_us(card: str) -> float:
    """The end of the bars' axis, the same in all states of a card; a k-bit bar has its knob and more words beside it."""
    return max(
        cost.block_us(bits, m, table) / (1 if bits == 16 else 0.7)
        for table in [TABLES[card]]
        for m in table
        for bits in (*tables.BITS, 16)
    )


def _speeds(card: str) -> tuple[float, float]:
    """The ends of the speeds' axis, in halves; at the top there is room for a knob."""
    if card == SOURCE:
        return 0.5, 2.5
    seen = [cost.block_speedup(k, m, TABLES[card]) for m in TABLES[card] for k in tables.BITS]
    return min(0.5, math.floor(2 * min(seen)) / 2), max(2.5, math.ceil(2 * (max(seen) + 0.25)) / 2)


def _bars(r: Result, at: Box) -> list[dict]:
    """The block's matmuls by k; the row that counts is chosen by its knob."""
    x, wide, pitch = linear(0, _most_us(r.card), at.x, at.right), at.x > 100, at.h / 5
    marks = [
        text(
            "bars-title", at.x - 52 if wide else 0, at.y - 26, f"One block at M = {r.m}, {r.card}", bold=True
        ),
        *_key(at.x, at.y - 10),
    ]
    for i, block in enumerate(r.blocks):
        top, chosen = at.y + i * pitch, block.bits == r.k
        name = "fp16" if block.bits == 16 else f"k = {block.bits}"
        roles = ("primary", "secondary")
        start = 0.0
        for (part, us), role in zip((("dense", block.dense_us), ("MoE", block.moe_us)), roles, strict=True):
            left, long = x(start), x(start + us) - x(start)
            tip = f"{name}, {part} layers: {units.number(us)} µs"
            bar = rect(f"bar{i}-{part}", left, top + 4, long, 20, role, tip)
            marks += about("k_time" if chosen else "fp16_time", bar) if chosen or block.bits == 16 else [bar]
            start += us
        ink = "primary" if chosen else "muted" if block.bits != 16 else "ink"
        marks.append(text(f"bar{i}-name", at.x - 10, top + 18, name, ink, anchor="end", bold=chosen))
        said = f"{MICRO(block.total_us)} µs" + (f", {units.times(block.speedup)}" if block.bits != 16 else "")
        marks.append(
            text(f"bar{i}-us", x(start) + (24 if chosen else 8), top + 18, said, ink, "small", bold=chosen)
        )
    rows = {b.bits: at.y + i * pitch + 14 for i, b in enumerate(r.blocks)}
    end = x(r.chosen.total_us)
    marks.append(handle("pull-k", end, rows[r.k], "primary", drag(K, "y", lambda k: rows[k])))
    return marks + _unmeasured(r, at)


def _key(x: float, y: float) -> list[dict]:
    """What the two parts of each bar are."""
    marks, at = [], x
    for role, name in (("primary", "dense"), ("secondary", "experts (MoE)")):
        marks += [
            rect(f"key-{role}", at, y - 9, 10, 10, role, name),
            text(f"key-{role}-name", at + 15, y, name, "muted", "small"),
        ]
        at += 30 + text_width(name, "small")
    return marks


def _unmeasured(r: Result, at: Box) -> list[dict]:
    """A block was measured at few M only: the panel says which, the session's own, and what else is in the times."""
    x = at.x - 52 if at.x > 100 else 0
    words = f"measured at M = {r.m}; the session decodes at {r.decode_m}"
    if r.counted_m != r.decode_m:
        words = f"at M = {r.m}; the session's M = {r.decode_m} counts as {r.counted_m}"
    marks = [text("bars-m", x, at.bottom + 14, words, "muted", "small")]
    if r.card != SOURCE:
        alone = "k bits alone: no 16-bit copy is kept"
        marks.append(text("bars-alone", x, at.bottom + 29, alone, "muted", "small"))
    return marks


def _stairs(r: Result, x, y) -> list[tuple]:
    """Between two measured M's a step is counted as the larger: the speed falls right after the smaller."""
    first, *rest = r.between
    points = [(x(first.users), y(first.speedup))]
    for before, here in zip(r.between, rest, strict=False):
        points += [(x(before.users), y(here.speedup)), (x(here.users), y(here.speedup))]
    return points


def _won_and_lost(r: Result, x, y) -> list[dict]:
    """What lies between the curve of a computed session and its line, one piece for each measured M."""
    marks, known = [], {s.users: s for s in (*r.known, r.between[-1])}
    for (left, _), (right, s) in pairwise(sorted(known.items())):
        corners = [(x(left), y(1)), (x(left), y(s.speedup)), (x(right), y(s.speedup)), (x(right), y(1))]
        marks.append(path(f"stair{right}", corners, "useful" if s.speedup > 1 else "hot", closed=True))
    return marks


def _users_title(r: Result, wide: bool) -> str:
    if r.card != SOURCE:
        return f"A session at k = {r.k}, computed, {r.card}" if wide else f"k = {r.k}, from measured kernels"
    if r.k == 4:
        return "A session at k = 4: as reported"
    return f"A session at k = {r.k}, estimated; dots: k = 4" if wide else f"k = {r.k}, estimated; dots: k = 4"


def _mix(r: Result) -> str:
    """Which steps a computed session is made of."""
    if not r.prompt_share:
        return "every step decodes, none reads a prompt"
    return f"a prompt fills {r.prompt_share:.0%} of steps to M = {r.prefill_m}"


def _estimated(r: Result, x, y, at: Box) -> list[dict]:
    curve = [(x(s.users), y(s.speedup)) for s in r.between]
    won, lost = [p for p in curve if p[1] <= y(1)], [p for p in curve if p[1] >= y(1)]
    edge = won[-1][0] if won else x(1)
    return [
        path("won", [(x(1), y(1)), *won, (edge, y(1))], "useful", closed=True),
        path("lost", [(edge, y(1)), *lost, (at.right, y(1))], "hot", closed=True),
        # the crowd goes on to the right: no frame ends it there
        path("lost-open", [(at.right, lost[-1][1] if lost else y(1)), (at.right, y(1))], "ground"),
        *about("k", path("curve", curve, "primary")),
    ]


def _computed(r: Result, x, y, at: Box) -> list[dict]:
    left, wide = 0 if at.w < 280 else at.x - 58, at.w > 280
    note = f"from measured kernels; {_mix(r)}" if wide else f"computed: {_mix(r)}"
    return [
        *_won_and_lost(r, x, y),
        *about("k", path("curve", _stairs(r, x, y), "primary")),
        *about("prompts", text("users-mix", left, at.bottom + 50, note, "muted", "small")),
    ]


def _named(place: float, x, y) -> list[dict]:
    below = x(9) if x(1) < place < x(1) + 60 else x(1) + 6
    return [
        text("won-name", x(1) + 6, y(1) - 5, "faster", "useful"),
        text("lost-name", below, y(1) + 17, "slower", "hot"),
    ]


def _beside(x: float, y) -> list[dict]:
    """A computed curve may run anywhere about its line, so the two words stand beside the picture."""
    return [
        text("won-name", x, y(1) - 13, "faster", "useful", "small", "end"),
        text("lost-name", x, y(1) + 21, "slower", "hot", "small", "end"),
    ]


def _users(r: Result, at: Box) -> list[dict]:
    """Sessions, times as fast as fp16: above its line the k-bit kernels are faster. The point is pulled."""
    x, y, wide = (
        log(1, MOST_USERS, at.x + 26, at.right),
        linear(*_speeds(r.card), at.bottom, at.y),
        at.w > 280,
    )
    marks = [text("users-title", 0, at.y - 26, _users_title(r, wide), bold=True)]
    halves = [n / 2 for n in range(round(2 * y.lo), round(2 * y.hi) + 1)]
    halves = [v for v in halves if abs(y(v) - y(1)) > 28]  # fp16 stands there, and two words beside it
    marks += axis_y("speed", y, at.x, "", lambda v: units.times(v), right=at.right, ticks=halves)
    marks += axis_x("users", x, at.bottom, "users at once", ticks=[s.users for s in r.known])
    marks += limit_across("fp16", at, y(1), "")
    marks.append(text("fp16-is", at.x - 6, y(1) + 4, "fp16", "ink", "small", "end"))
    marks += _estimated(r, x, y, at) if r.card == SOURCE else _computed(r, x, y, at)
    k = 4 if r.card == SOURCE else r.k
    role = "primary" if r.k == k else "idle"
    marks += [
        circle(f"u{s.users}", x(s.users), y(s.speedup), 3.5, role, f"k = {k}, {_session_tip(s)}")
        for s in r.known
    ]
    place, up = x(r.users), y(r.session_speedup)
    anchor = "start" if place < at.x + 60 else "end" if place > at.right - 60 else "middle"
    return marks + [
        line("at", place, at.bottom, place, at.y, "now"),
        *(_named(place, x, y) if r.card == SOURCE else _beside(at.x - 6, y)),
        text(
            "at-name",
            place,
            at.y - 6,
            f"{_users_named(r)}: {units.times(r.session_speedup)}",
            "now",
            "small",
            anchor,
            bold=True,
        ),
        handle(
            "pull-users",
            place,
            up,
            "now",
            drag(USERS_AT_ONCE, "x", x),
            tip=_session_tip(Session(r.users, r.time_ratio, r.session_speedup)),
        ),
    ]


def _session_tip(s: Session) -> str:
    who = "1 user" if s.users == 1 else f"{s.users} users"
    return f"{who}: {units.times(s.speedup)} as fast, {units.number(s.ratio)} of the fp16 time"


def _users_named(r: Result) -> str:
    return "1 user" if r.users == 1 else f"{r.users} users"


def _billion(r: Result) -> str:
    return f"{units.number(r.parameters / 1e9)} billion"


def _takeaway(r: Result) -> str:
    if r.card != SOURCE:
        return _computed_takeaway(r)
    if r.break_even_users - r.users in range(1, 4) or abs(r.time_ratio - 1) < 0.02:
        return "Here is the edge: one size of M more and the weights are unpacked first, whatever k is."
    if r.time_ratio < 1 and r.k < 4:
        return "Fewer bits widen the win for few users, and hardly move the point where a crowd ends it."
    if r.time_ratio < 1 and r.k > 4:
        return "A fifth bit is more to read: the win narrows for few users, and a crowd still ends it."
    if r.time_ratio < 1:
        return "Few users keep M small: reading the weights is the time, and fewer bits are less to read."
    return "Many users make M large: weights are unpacked to 16 bits first, and that is more than was saved."


def _computed_takeaway(r: Result) -> str:
    if r.time_ratio >= 1:
        return "Without a 16-bit copy the memory is saved and time is paid: here 16 bits are read sooner than k bits are unpacked."
    if r.break_even_users is None:
        return f"With these steps, k bits win at every number of users up to {r.most_users}."
    where = "a larger" if r.break_even_users > r.users else "another"
    return f"Few rows: fewer bits are less to read. At {where} M, unpacking costs more time than that saves."


def _warning(r: Result) -> str:
    if r.time_ratio < 1:
        return ""
    users = units.counted(r.users, "user")
    if r.card == SOURCE:
        return f"The win is gone at {users}: {r.dominant} take most of the time. The memory is still saved."
    return f"No win at {users}: with these steps 16 bits are faster. The memory is still saved."


def _even(r: Result):
    if r.break_even_users is None:
        return figure("users, and the win lasts", r.most_users, units.count)
    return figure(
        "users break even" if r.break_even_users > 1 else "user, and no win", r.break_even_users, units.count
    )


def _even_said(r: Result) -> str:
    if r.break_even_users is None:
        return f"{r.most_users} users still win"
    return (
        f"{r.break_even_users} users break even" if r.break_even_users > 1 else "1 user already wins nothing"
    )


def _held(r: Result) -> str:
    """How many cards hold the weights."""
    other = f"not {r.fp16_cards}" if r.fp16_cards != r.cards else "as with 16 bits"
    return f"{r.cards} {r.card}, {other}"


def _table(r: Result):
    columns = (
        "shape",
        "M",
        "kernel",
        Column("k-bit", "µs", MICRO),
        Column("fp16", "µs", MICRO),
        Column("as fast", show=units.times),
    )
    rows = [(s.name, s.m, s.family, s.kbit_us, s.fp16_us, s.speedup) for s in r.shapes]
    blocks = [
        ("the block", r.m, "the best of each", b.total_us, r.fp16.total_us, b.speedup) for b in r.blocks
    ]
    return table(columns, [*rows, *blocks])


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    users_at, bars_at, lane_at, height = PLACES[width == WIDE]
    speedup = figure(f"as fast, a block at M = {r.m}", r.chosen.speedup, units.times, "primary")
    session = figure(
        f"as fast, a session of {_users_named(r)}",
        r.session_speedup,
        units.times,
        "hot" if r.time_ratio >= 1 else "useful",
    )
    even = _even(r)
    size = figure(f"for {_billion(r)} weights", r.model_bytes, units.si_bytes)
    return Scene(
        summary=f"At k = {r.k} and M = {r.m} the matmuls of a block are {speedup.text} as fast as fp16"
        f"{f' on {r.card}' if r.card != SOURCE else ''}; "
        f"a session of {_users_named(r)} is {session.text} as fast, and {_even_said(r)}; "
        f"{_billion(r)} weights take {size.text}.",
        takeaway=_takeaway(r),
        marks=_users(r, users_at) + _bars(r, bars_at) + (ruled if r.card == SOURCE else counted)(r, lane_at),
        figures=(session, even, speedup, size),
        table=_table(r),
        height=height,
        width=width,
        formula=(
            (
                "memory = {parameters_b:weights} · {k} / 8",
                f"{{parameters_b:{_billion(r)}}} · {{k:{r.k}}} / 8 = {units.si_bytes(r.model_bytes)}: {_held(r)}",
            ),
            (
                "speed = {fp16_time:fp16 time} / {k_time:k-bit time}",
                f"{{fp16_time:{MICRO(r.fp16.total_us)}}} / {{k_time:{MICRO(r.chosen.total_us)}}} µs = {speedup.text}",
            ),
        ),
        warning=_warning(r),
    )


SIMULATOR = Declaration(
    title="k-bit dispatch",
    question="For how many users is a k-bit model faster than fp16?",
    controls=(
        select(
            "card",
            "Measured on",
            SOURCE,
            {card: f"{card}, {'the source' if card == SOURCE else 'this course'}'s" for card in TABLES},
        ),
        USERS_AT_ONCE,
        K,
        select(
            "m",
            "Rows of the measured block",
            1,
            {m: f"M = {m}" for m in ROWS},
            help="; ".join(f"{card}: {', '.join(map(str, table))}" for card, table in TABLES.items()),
        ),
        powers_of_two(
            "chunk",
            "Prefill chunk",
            512,
            64,
            1024,
            unit="tokens",
            help=f"Runs in the same step as the decoding users of the {SOURCE}: moves its mark below, and no measured time.",
            more=True,
        ),
        slider(
            "prompts",
            "Steps filled up by a prompt",
            0,
            0,
            50,
            step=5,
            unit="%",
            help=f"On the {OURS}: up to the largest M that was measured. Sessions on the {SOURCE} stay as reported.",
            more=True,
        ),
        slider("parameters_b", "Weights of the model", 70, 1, 400, unit="billion", more=True),
    ),
    presets={
        "One user": {},
        "Break-even, 16 users": {"users": 16},
        "A crowd of 64": {"users": 64},
        "Two bits": {"k": 2},
        **({"Eight users on an H200": {"card": OURS, "users": 8}} if OURS in TABLES else {}),
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "On one RTX 4090, 4-bit kernels read a quarter of the bytes. A session of one user is 1.75 times as fast "
        "as with fp16. At how many users at once is the win gone?",
        "break_even_users",
        "users",
        0.3,
        units.count,
    ),
    source="k-bit deployment",
)
