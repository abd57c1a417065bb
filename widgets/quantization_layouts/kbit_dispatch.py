"""Which k-bit kernel runs at which M, and how many users it takes until the win is gone: measured numbers."""

import math
import re
from dataclasses import dataclass
from itertools import pairwise

from kernels.machines import machine
from kernels.quantization_layouts import cost
from kernels.quantization_layouts.cost import kbit_tables as tables
from widgets import units
from widgets.charts import Box, axis_x, axis_y, limit_across, linear, log, text_width
from widgets.controls import log_slider, powers_of_two, select, slider
from widgets.declare import Declaration, Prediction
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

CARD = tables.MACHINE
SCALAR, MMA, LIBRARY = "scalar GEMV", "MMA", "dequant + library"
SAID = {SCALAR: "scalar GEMV", MMA: "tensor cores", LIBRARY: "dequantize, then a library GEMM"}
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
    True: (Box(58, 44, 300, 152), Box(452, 44, 170, 160), Box(60, 314, 640, 32), 400),
    False: (Box(46, 44, 272, 140), Box(52, 286, 180, 150), Box(0, 528, 336, 32), 612),
}
MOST_M = 1088
MICRO = units.fixed(1)  # the tables give tenths


@dataclass(frozen=True)
class Block:
    """The seven matmuls of one block, each with its best kernel."""

    bits: int
    dense_us: float
    moe_us: float
    total_us: float
    speedup: float


@dataclass(frozen=True)
class Shape:
    name: str
    m: int
    family: str
    kbit_us: float
    fp16_us: float
    speedup: float


@dataclass(frozen=True)
class Session:
    users: float
    ratio: float  # of the fp16 time; reported at k = 4, estimated at another
    speedup: float


@dataclass(frozen=True)
class Result:
    k: int
    m: int
    blocks: tuple[Block, ...]  # of 2, 3, 4, 5 and 16 bits
    chosen: Block
    fp16: Block
    users: int
    chunk: int
    time_ratio: float  # of the session's fp16 time, as reported
    session_speedup: float  # the same, as everything here is said: times as fast as fp16
    dominant: str
    break_even_users: int
    reported: tuple[Session, ...]  # at k = 4
    between: tuple[Session, ...]  # at k
    decode_m: int
    decode_family: str
    prefill_m: int
    prefill_family: str
    parameters: float
    model_bytes: float
    fp16_bytes: float
    cards: int
    fp16_cards: int
    shapes: tuple[Shape, ...]


def _block(bits: int, m: int) -> Block:
    moe_us, total_us = cost.block_us(bits, m, shapes=tables.MOE), cost.block_us(bits, m)
    return Block(bits, total_us - moe_us, moe_us, total_us, cost.block_speedup(bits, m))


def _shapes(k: int, m: int) -> tuple[Shape, ...]:
    rows = [
        Shape(name, m, cost.best_kernel(name, m)[0], us[k], us[16], us[16] / us[k])
        for name, us in tables.BEST_US[m].items()
    ]
    for (name, wide), us in tables.LARGE_M_US.items():
        family, best_us, speedup = cost.best_kernel(name, wide)
        rows.append(Shape(name, wide, family, best_us, us["fp16"], speedup))
    return tuple(rows)


def _small_share(users: float) -> float:
    """Share of a session's time in kernels that read k-bit weights; the rest unpacks them to 16 bits first."""

    def share(said: str) -> float:
        percent = float(re.search(r"(\d+)%", said)[1]) / 100
        return 1 - percent if said.startswith("dequant") else percent

    known = [(u, share(said)) for u, (_, said) in tables.USERS.items()]
    for (u0, s0), (u1, s1) in pairwise(known):
        if users <= u1:
            return s0 + (s1 - s0) * math.log(users / u0) / math.log(u1 / u0)
    return known[-1][1]


def _session(users: float, k: int = 4) -> Session:
    """At another k than the reported one, the share that reads k-bit weights scales as the block's kernels do."""
    share, ratio = _small_share(users), cost.user_ratio(users)
    if k != 4:
        ratio *= share * cost.block_us(k, 1) / cost.block_us(4, 1) + 1 - share
    return Session(users, ratio, 1 / ratio)


def _break_even(k: int) -> int:
    """The first number of users at which k bits no longer win."""
    return (
        cost.break_even_users()
        if k == 4
        else next((u for u in range(1, 65) if _session(u, k).ratio >= 1), 64)
    )


def run(k, users, chunk, m, parameters_b):
    blocks = tuple(_block(bits, m) for bits in (*tables.BITS, 16))
    sessions, memory = tables.USERS, machine(CARD).memory_bytes
    here, (decode_m, prefill_m) = _session(users, k), cost.session_m(users, chunk)
    stored = cost.memory_by_bits(parameters_b * 1e9)
    small, wide = stored[k], stored[16]
    return Result(
        k,
        m,
        blocks,
        next(b for b in blocks if b.bits == k),
        blocks[-1],
        users,
        chunk,
        here.ratio,
        here.speedup,
        sessions[max(u for u in sessions if u <= users)][1],
        _break_even(k),
        tuple(_session(u) for u in sessions),
        tuple(_session(64 ** (i / 30), k) for i in range(31)),
        decode_m,
        cost.dense_family(decode_m),
        prefill_m,
        cost.dense_family(prefill_m),
        parameters_b * 1e9,
        small,
        wide,
        cost.devices_needed(small, memory),
        cost.devices_needed(wide, memory),
        _shapes(k, m),
    )


def _bars(r: Result, at: Box) -> list[dict]:
    """The block's matmuls by k; the row that counts is chosen by its knob."""
    x, wide, pitch = linear(0, 126, at.x, at.right), at.x > 100, at.h / 5
    marks = [
        text("bars-title", at.x - 52 if wide else 0, at.y - 26, f"One block at M = {r.m}, {CARD}", bold=True),
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
    """A block was measured at few M only: the panel says which, and the session's own."""
    words = f"measured at M = {r.m}; the session decodes at {r.decode_m}"
    return [text("bars-m", at.x - 52 if at.x > 100 else 0, at.bottom + 14, words, "muted", "small")]


def _users(r: Result, at: Box) -> list[dict]:
    """Sessions, times as fast as fp16: above its line the k-bit kernels are faster. The point is pulled."""
    x, y, wide = log(1, 64, at.x + 26, at.right), linear(0.5, 2.5, at.bottom, at.y), at.w > 280
    title = (
        f"A session at k = {r.k}, estimated; dots: k = 4" if wide else f"k = {r.k}, estimated; dots: k = 4"
    )
    marks = [
        text(
            "users-title",
            0,
            at.y - 26,
            title if r.k != 4 else "A session at k = 4: as reported",
            bold=True,
        )
    ]
    marks += axis_y("speed", y, at.x, "", lambda v: units.times(v), right=at.right, ticks=[0.5, 1.5, 2, 2.5])
    marks += axis_x("users", x, at.bottom, "users at once", ticks=[s.users for s in r.reported])
    marks += limit_across("fp16", at, y(1), "")
    marks.append(text("fp16-is", at.x - 6, y(1) + 4, "fp16", "ink", "small", "end"))
    curve = [(x(s.users), y(s.speedup)) for s in r.between]
    won, lost = [p for p in curve if p[1] <= y(1)], [p for p in curve if p[1] >= y(1)]
    edge = won[-1][0] if won else x(1)
    marks += [
        path("won", [(x(1), y(1)), *won, (edge, y(1))], "useful", closed=True),
        path("lost", [(edge, y(1)), *lost, (at.right, y(1))], "hot", closed=True),
        # the crowd goes on to the right: no frame ends it there
        path("lost-open", [(at.right, lost[-1][1] if lost else y(1)), (at.right, y(1))], "ground"),
        *about("k", path("curve", curve, "primary")),
    ]
    role = "primary" if r.k == 4 else "idle"
    marks += [
        circle(f"u{s.users}", x(s.users), y(s.speedup), 3.5, role, f"k = 4, {_session_tip(s)}")
        for s in r.reported
    ]
    place, up = x(r.users), y(r.session_speedup)
    below = x(9) if x(1) < place < x(1) + 60 else x(1) + 6
    anchor = "start" if place < at.x + 60 else "end" if place > at.right - 60 else "middle"
    return marks + [
        line("at", place, at.bottom, place, at.y, "now"),
        text("won-name", x(1) + 6, y(1) - 5, "faster", "useful"),
        text("lost-name", below, y(1) + 17, "slower", "hot"),
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


def _lane(r: Result, at: Box) -> list[dict]:
    """The dispatch rule of dense layers as a map over M, with the two sizes a session sees."""
    x, wide = log(1, MOST_M, at.x, at.right), at.w > 400
    said = SAID if wide else {SCALAR: "GEMV", MMA: "MMA", LIBRARY: "dequant + library"}
    marks = [text("lane-title", 0, at.y - 48, "Which kernel a dense layer takes at M rows", bold=True)]
    # the two sizes lie under the map: they are read above and below it, and strike no name out
    for id, name, m, rise in (
        ("decode", f"decode: M = {r.decode_m}", r.decode_m, 10),
        ("prefill", f"with prefill: M = {r.prefill_m}", r.prefill_m, 26),
    ):
        place = x(m)
        left = place - 6 - text_width(name, "small", True) > 0
        marks += [
            line(f"{id}-at", place, at.y - rise - 8, place, at.bottom + 6, "now", name),
            text(
                f"{id}-name",
                place + (-6 if left else 6),
                at.y - rise,
                name,
                "now",
                "small",
                "end" if left else "start",
                bold=True,
            ),
        ]
    for i, (family, first, last) in enumerate(((SCALAR, 1, 4), (MMA, 5, 16), (LIBRARY, 17, MOST_M))):
        left, right = x(first - 0.5) if i else at.x, x(last + 0.5)
        used = family in (r.decode_family, r.prefill_family)
        tip = f"{SAID[family]}: M from {first}" + ("" if last == MOST_M else f" to {last}")
        marks += [
            rect(f"lane{i}", left + 1, at.y, right - left - 2, at.h, "primary" if used else "idle", tip),
            text(
                f"lane{i}-name",
                (left + right) / 2,
                at.y + 21,
                said[family],
                "inverse" if used else "ink",
                "body" if wide else "small",
                "middle",
                on="" if used else "idle",
            ),
        ]
    ticks = (1, 4, 16, 64, 256, 1024) if wide else (4, 16, 64, 256)
    return marks + axis_x("m", x, at.bottom + 6, "rows of the matmul (M)", ticks=ticks)


def _session_tip(s: Session) -> str:
    who = "1 user" if s.users == 1 else f"{s.users} users"
    return f"{who}: {units.times(s.speedup)} as fast, {units.number(s.ratio)} of the fp16 time"


def _users_named(r: Result) -> str:
    return "1 user" if r.users == 1 else f"{r.users} users"


def _billion(r: Result) -> str:
    return f"{units.number(r.parameters / 1e9)} billion"


def _takeaway(r: Result) -> str:
    if r.break_even_users - r.users in range(1, 4) or abs(r.time_ratio - 1) < 0.02:
        return "Here is the edge: one size of M more and the weights are unpacked first, whatever k is."
    if r.time_ratio < 1 and r.k < 4:
        return "Fewer bits widen the win for few users, and hardly move the point where a crowd ends it."
    if r.time_ratio < 1 and r.k > 4:
        return "A fifth bit is more to read: the win narrows for few users, and a crowd still ends it."
    if r.time_ratio < 1:
        return "Few users keep M small: reading the weights is the time, and fewer bits are less to read."
    return "Many users make M large: weights are unpacked to 16 bits first, and that is more than was saved."


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
    even = figure("users break even", r.break_even_users, units.count)
    size = figure(f"for {_billion(r)} weights", r.model_bytes, units.si_bytes)
    gone = r.time_ratio >= 1
    return Scene(
        summary=f"At k = {r.k} and M = {r.m} the matmuls of a block are {speedup.text} as fast as fp16; "
        f"a session of {_users_named(r)} is {session.text} as fast, and {even.text} users break even; "
        f"{_billion(r)} weights take {size.text}.",
        takeaway=_takeaway(r),
        marks=_users(r, users_at) + _bars(r, bars_at) + _lane(r, lane_at),
        figures=(session, even, speedup, size),
        table=_table(r),
        height=height,
        width=width,
        formula=(
            (
                "memory = {parameters_b:weights} · {k} / 8",
                f"{{parameters_b:{_billion(r)}}} · {{k:{r.k}}} / 8 = {units.si_bytes(r.model_bytes)}: {r.cards} {CARD}, "
                f"not {r.fp16_cards}",
            ),
            (
                "speed = {fp16_time:fp16 time} / {k_time:k-bit time}",
                f"{{fp16_time:{MICRO(r.fp16.total_us)}}} / {{k_time:{MICRO(r.chosen.total_us)}}} µs = {speedup.text}",
            ),
        ),
        warning=f"The win is gone at {r.users} users: {r.dominant} take most of the time. The memory is still saved."
        if gone
        else "",
    )


SIMULATOR = Declaration(
    title="k-bit dispatch",
    question="For how many users is a k-bit model faster than fp16?",
    controls=(
        K,
        USERS_AT_ONCE,
        powers_of_two(
            "chunk",
            "Prefill chunk",
            512,
            64,
            1024,
            unit="tokens",
            help="Runs in the same step as the decoding users: moves its mark below, and no measured time.",
        ),
        select("m", "Rows of the measured block", 1, {1: "M = 1", 4: "M = 4"}),
        slider("parameters_b", "Weights of the model", 70, 1, 400, unit="billion", more=True),
    ),
    presets={
        "One user": {},
        "Eight users": {"users": 8},
        "Break-even, 16 users": {"users": 16},
        "A crowd of 64": {"users": 64},
        "Two bits": {"k": 2},
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
