"""Which k-bit kernel runs at which M, and how many users it takes until the win is gone: measured numbers."""

from dataclasses import dataclass

from kernels.machines import machine
from kernels.quantization_layouts import cost
from kernels.quantization_layouts.cost import kbit_tables as tables
from widgets import units
from widgets.charts import Box, axis_x, axis_y, limit_across, linear, log, text_width
from widgets.controls import log_slider, powers_of_two, select, slider
from widgets.declare import Declaration, Prediction
from widgets.scene import Column, Scene, circle, figure, line, path, rect, table, text

CARD = tables.MACHINE
SCALAR, MMA, LIBRARY = "scalar GEMV", "MMA", "dequant + library"
SAID = {SCALAR: "scalar GEMV", MMA: "tensor cores", LIBRARY: "dequantize, then a library GEMM"}
BARS, ROW = Box(52, 28, 220, 150), 30
USERS = Box(438, 40, 262, 132)
LANE = Box(60, 284, 640, 34)
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
    ratio: float  # of the fp16 time
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
    reported: tuple[Session, ...]
    between: tuple[Session, ...]
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
    moe_us = sum(tables.BEST_US[m][name][bits] for name in tables.MOE)
    total_us = cost.block_us(bits, m)
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


def _session(users: float) -> Session:
    ratio = cost.user_ratio(users)
    return Session(users, ratio, 1 / ratio)


def run(k, users, chunk, m, parameters_b):
    blocks = tuple(_block(bits, m) for bits in (*tables.BITS, 16))
    sessions, memory = tables.USERS, machine(CARD).memory_bytes
    here, (decode_m, prefill_m) = _session(users), cost.session_m(users, chunk)
    small, wide = (cost.model_bytes(parameters_b * 1e9, bits) for bits in (k, 16))
    return Result(
        k, m, blocks, next(b for b in blocks if b.bits == k), blocks[-1], users, chunk,
        here.ratio, here.speedup, sessions[max(u for u in sessions if u <= users)][1], cost.break_even_users(),
        tuple(_session(u) for u in sessions),
        tuple(_session(64 ** (i / 30)) for i in range(31)),
        decode_m, cost.dense_family(decode_m), prefill_m, cost.dense_family(prefill_m),
        parameters_b * 1e9, small, wide, cost.devices_needed(small, memory), cost.devices_needed(wide, memory),
        _shapes(k, m),
    )  # fmt: skip


def _bars(r: Result) -> list[dict]:
    x = linear(0, 130, BARS.x, BARS.right)
    marks = [text("bars-title", 0, 14, f"Weight matmuls of one block, M = {r.m}, {CARD}", bold=True)]
    for i, block in enumerate(r.blocks):
        top, chosen = BARS.y + i * ROW, block.bits == r.k
        name = "fp16" if block.bits == 16 else f"k = {block.bits}"
        roles = ("primary", "secondary") if chosen else ("idle", "idle")
        parts = (("dense", block.dense_us), ("MoE", block.moe_us))
        at = 0.0
        for (part, us), role in zip(parts, roles, strict=True):
            left, wide = x(at), x(at + us) - x(at)
            tip = f"{name}, {part} layers: {units.number(us)} µs"
            marks.append(rect(f"bar{i}-{part}", left, top + 4, wide, 22, role, tip))
            if text_width(part, "small") + 6 < wide and (chosen or block.bits == 16):
                ink = "inverse" if chosen else "muted"
                marks.append(
                    text(f"bar{i}-{part}-name", left + wide / 2, top + 19, part, ink, "small", "middle")
                )
            at += us
        ink = "primary" if chosen else "muted" if block.bits != 16 else "ink"
        marks += [
            text(f"bar{i}-name", BARS.x - 8, top + 19, name, ink, anchor="end", bold=chosen),
            text(f"bar{i}-us", x(at) + 6, top + 19, f"{MICRO(block.total_us)} µs", ink, bold=chosen),
        ]
        if block.bits != 16:
            faster = units.times(block.speedup)
            marks.append(text(f"bar{i}-faster", 370, top + 19, faster, ink, anchor="end", bold=chosen))
    return marks


def _users(r: Result) -> list[dict]:
    """The reported sessions at k = 4: above the dashed line the k-bit kernels are faster."""
    x, y = log(1, 64, USERS.x, USERS.right), linear(0.4, 2, USERS.bottom, USERS.y)
    marks = [text("users-title", 412, 14, "A session at k = 4, times as fast as fp16", bold=True)]
    marks += axis_y("speed", y, USERS.x, "", lambda v: units.times(v), right=USERS.right, ticks=[0.5, 1.5, 2])
    marks += axis_x("users", x, USERS.bottom, "users at once", ticks=[s.users for s in r.reported])
    marks += limit_across("fp16", USERS, y(1), "")
    marks.append(text("fp16-is", USERS.x - 6, y(1) + 4, "fp16", "ink", "small", "end"))
    even = x(r.break_even_users)
    curve = [(x(s.users), y(s.speedup)) for s in r.between]
    won, lost = [p for p in curve if p[0] <= even + 0.1], [p for p in curve if p[0] >= even - 0.1]
    marks += [
        path("won", [(USERS.x, y(1)), *won, (even, y(1))], "useful", closed=True),
        path("lost", [(even, y(1)), *lost, (USERS.right, y(1))], "hot", closed=True),
        path("curve", curve, "primary"),
        text("won-name", x(2.6), y(1.14), "faster", "useful", anchor="middle"),
        text("lost-name", x(20), y(0.62), "slower", "hot", anchor="end"),
    ]
    for s in r.reported:
        marks.append(circle(f"u{s.users}", x(s.users), y(s.speedup), 3.5, "primary", _session_tip(s)))
    at, up = x(r.users), y(r.session_speedup)
    tip = _session_tip(Session(r.users, r.time_ratio, r.session_speedup))
    anchor = "start" if at < USERS.x + 30 else "end" if at > USERS.right - 30 else "middle"
    return marks + [
        line("at", at, USERS.bottom, at, USERS.y, "now"),
        circle("at-dot", at, up, 6, "now", tip),
        text("at-name", at, USERS.y - 6, f"{_users_named(r)}: {units.times(r.session_speedup)}", "now", "small",
             anchor, bold=True),
    ]  # fmt: skip


def _lane(r: Result) -> list[dict]:
    """The dispatch rule of dense layers as a map over M, with the two sizes a session sees."""
    x = log(1, MOST_M, LANE.x, LANE.right)
    marks = [text("lane-title", 0, LANE.y - 52, "Which kernel a dense layer takes at M rows", bold=True)]
    edges = ((SCALAR, 1, 4), (MMA, 5, 16), (LIBRARY, 17, MOST_M))
    for i, (family, first, last) in enumerate(edges):
        left = x(first - 0.5) if i else LANE.x
        right = x(last + 0.5)
        used = family in (r.decode_family, r.prefill_family)
        tip = f"{SAID[family]}: M from {first}" + ("" if last == MOST_M else f" to {last}")
        marks += [
            rect(f"lane{i}", left + 1, LANE.y, right - left - 2, LANE.h, "primary" if used else "idle", tip),
            text(f"lane{i}-name", (left + right) / 2, LANE.y + 22, SAID[family], "inverse" if used else "ink",
                 "body", "middle"),
        ]  # fmt: skip
    marks += axis_x("m", x, LANE.bottom + 6, "rows of the matmul (M)", ticks=(1, 4, 16, 64, 256, 1024))
    both = (("decode", f"decode: M = {r.decode_m}", r.decode_m, 28),
            ("prefill", f"with prefill: M = {r.prefill_m}", r.prefill_m, 10))  # fmt: skip
    for id, name, m, rise in both:
        at = x(m)
        anchor, shift = ("start", 6) if id == "decode" else ("end", -6)
        marks += [
            line(f"{id}-at", at, LANE.y - rise - 8, at, LANE.bottom + 6, "now", name),
            text(f"{id}-name", at + shift, LANE.y - rise, name, "now", "small", anchor, bold=True),
        ]
    return marks


def _session_tip(s: Session) -> str:
    who = "1 user" if s.users == 1 else f"{s.users} users"
    return f"{who}: {units.times(s.speedup)} as fast, {units.number(s.ratio)} of the fp16 time"


def _users_named(r: Result) -> str:
    return "1 user" if r.users == 1 else f"{r.users} users"


def _billion(r: Result) -> str:
    return f"{units.number(r.parameters / 1e9)} billion"


def _takeaway(r: Result) -> str:
    if r.time_ratio < 1:
        return "Few users keep M small: reading the weights is the time, and fewer bits are less to read."
    return "Many users make M large: weights are unpacked to 16 bits first, and that is more than was saved."


def _table(r: Result):
    columns = ("shape", "M", "kernel", Column("k-bit", "µs", MICRO), Column("fp16", "µs", MICRO),
               Column("as fast", show=units.times))  # fmt: skip
    rows = [(s.name, s.m, s.family, s.kbit_us, s.fp16_us, s.speedup) for s in r.shapes]
    blocks = [
        ("the block", r.m, "the best of each", b.total_us, r.fp16.total_us, b.speedup) for b in r.blocks
    ]
    return table(columns, [*rows, *blocks])


def scene(r: Result, measured: dict | None = None) -> Scene:
    speedup = figure(f"as fast, a block at M = {r.m}", r.chosen.speedup, units.times, "primary")
    session = figure(f"as fast, a session of {_users_named(r)}", r.session_speedup, units.times,
                     "hot" if r.time_ratio >= 1 else "useful")  # fmt: skip
    even = figure("users break even", r.break_even_users, units.count)
    size = figure(f"for {_billion(r)} weights", r.model_bytes, units.si_bytes)
    gone = r.time_ratio >= 1
    return Scene(
        summary=f"At k = {r.k} and M = {r.m} the matmuls of a block are {speedup.text} as fast as fp16; "
        f"a session of {_users_named(r)} at k = 4 is {session.text} as fast, and {even.text} users break even; "
        f"{_billion(r)} weights take {size.text}.",
        takeaway=_takeaway(r),
        marks=_bars(r) + _users(r) + _lane(r),
        figures=(speedup, session, even, size),
        table=_table(r),
        height=LANE.bottom + 46,
        formula=(
            ("memory = weights · k / 8",
             f"{_billion(r)} · {r.k} / 8 = {units.si_bytes(r.model_bytes)}: {r.cards} {CARD}, "
             f"not {r.fp16_cards}"),
            ("speed = fp16 time / k-bit time",
             f"{MICRO(r.fp16.total_us)} / {MICRO(r.chosen.total_us)} µs = {speedup.text}"),
        ),
        warning=f"The win is gone at {r.users} users: {r.dominant} take most of the time. The memory is still saved."
        if gone
        else "",
    )  # fmt: skip


SIMULATOR = Declaration(
    title="k-bit dispatch",
    question="For how many users is a k-bit model faster than fp16?",
    controls=(
        slider("k", "Bits of a weight (k)", 4, 2, 5),
        log_slider("users", "Users at once", 1, 1, 64, per_decade=12,
                   help="Each decodes one token a step: M is their number."),
        powers_of_two("chunk", "Prefill chunk", 512, 64, 1024, unit="tokens",
                      help="Runs in the same step as the decoding users."),
        select("m", "Rows of the measured block", 1, {1: "M = 1", 4: "M = 4"}),
        slider("parameters_b", "Weights of the model", 70, 1, 400, unit="billion", more=True),
    ),
    presets={
        "One user": {},
        "Eight users": {"users": 8, "m": 4},
        "Break-even, 16 users": {"users": 16, "m": 4},
        "A crowd of 64": {"users": 64, "m": 4},
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
)  # fmt: skip
