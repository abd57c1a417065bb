"""Show for how many users k-bit weights are faster than 16 bits, one curve over the zones of the kernels that run."""

import math

from kernels.quantization_layouts import cost
from kernels.quantization_layouts.cost import kbit_tables as tables
from widgets import units
from widgets.charts import Box, axis_x, axis_y, linear, log, spread, text_width
from widgets.controls import log_slider, select, slider
from widgets.declare import Declaration, Prediction
from widgets.quantization_layouts.kbit_model import (
    MOST_USERS,
    OURS,
    ROWS,
    SOURCE,
    TABLES,
    Curve,
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

K = slider("k", "Bits per weight (k)", 4, 2, 5)
USERS_AT_ONCE = log_slider(
    "users", "Users at once", 1, 1, 64, per_decade=12, help="Each decodes one token per step, so M = users."
)  # fmt: skip
# (the plot, height)
PLACES = {True: (Box(54, 62, 654, 256), 396), False: (Box(44, 58, 290, 300), 442)}
SAID = {  # family -> its name, and a short one
    "scalar GEMV": ("scalar kernel", "scalar"),
    "MMA": ("tensor cores", "MMA"),
    "dequant + library": ("unpack all, then 16-bit GEMM", "unpack all"),
    "dequantize + library": ("unpack all, then 16-bit GEMM", "unpack all"),
}
START = 88  # from the axis to one user, for the knob of k and the names of the curves
SHAPES = {"gateup": "gate and up", "moe_gu": "experts, gate and up", "moe_dn": "experts, down"}
MICRO = units.fixed(1)  # the tables give tenths


def _speeds(card: str) -> tuple[float, float]:
    """Return the ends of the speeds' axis, in halves, with room for a knob at the top."""
    if card == SOURCE:
        return 0.5, 2.5
    table = TABLES[card]
    seen = [cost.block_speedup(k, m, table) for m in table for k in tables.BITS]
    return min(0.5, math.floor(2 * min(seen)) / 2), max(2.5, math.ceil(2 * (max(seen) + 0.25)) / 2)


def _points(card: str, curve: Curve, x, y) -> list[tuple]:
    """Return the points. A reported session is a line. A computed one has stairs, because rows between two measured M
    count as the larger."""
    places = [(x(one.users), y(one.speedup)) for one in curve.points]
    if card == SOURCE:
        return places
    points = places[:1]
    for (before, high), (_, low) in zip(places, places[1:], strict=False):
        if high != low:
            points += [(before, high), (before, low)]
    return [*points, places[-1]]


def _zones(r: Result, x, at: Box, wide: bool) -> list[dict]:
    """Shade where each kernel family runs, with its name on top. The zone of these users is lit."""
    marks = []
    for i, zone in enumerate(r.zones):
        left = at.x + START - 14 if i == 0 else x(zone.first - 0.5)
        right = at.right if zone is r.zones[-1] else x(zone.last + 0.5)
        here = zone.first <= r.users <= zone.last
        to = f" to {zone.last}" if zone.last > zone.first else ""
        name = SAID[zone.family][0]
        most = "" if r.card == SOURCE else ", at most of the seven shapes"
        tip = f"M = {zone.first}{to}: {name}{most}"
        marks += [
            rect(f"zone{i}", left + 1, at.y - 24, right - left - 2, 24, "primary" if here else "idle", tip),
        ]
        if here:
            corners = [(left + 1, at.y), (right - 1, at.y), (right - 1, at.bottom), (left + 1, at.bottom)]
            marks.append(path("zone-here", corners, "primary", closed=True))
        elif right < at.right:
            marks.append(line(f"zone{i}-edge", right, at.y, right, at.bottom, "grid"))
        said = next(
            (one for one in SAID[zone.family] if text_width(one, "small", here) < right - left - 8), ""
        )
        if said:
            ink, on = ("inverse", "") if here else ("ink", "idle")
            marks.append(
                text(f"zone{i}-name", (left + right) / 2, at.y - 8, said, ink, "small", "middle", here, on)
            )
    return marks


def _won_and_lost(r: Result, points: list[tuple], level: float) -> list[dict]:
    """Fill between the chosen curve and fp16's line: won above it, lost below."""
    marks, crossed = [], _crossed(points, level)
    for role, inside in (("useful", lambda b: b <= level), ("hot", lambda b: b >= level)):
        edge = [(a, b) for a, b in crossed if inside(b)] or [(points[0][0], level)]
        marks.append(
            path(f"area-{role}", [(edge[0][0], level), *edge, (edge[-1][0], level)], role, closed=True)
        )
    return marks


def _crossed(points: list[tuple], level: float) -> list[tuple]:
    """The same points, with one more where the line meets the level."""
    out = points[:1]
    for (a, b), (c, d) in zip(points, points[1:], strict=False):
        if (b - level) * (d - level) < 0:
            out.append((a + (c - a) * (level - b) / (d - b), level))
        out.append((c, d))
    return out


def _curves(r: Result, at: Box, wide: bool) -> list[dict]:
    """Draw speed over users for each k. Knobs pull the number of users and k."""
    x = log(1, MOST_USERS, at.x + START, at.right - 12)
    y = linear(*_speeds(r.card), at.bottom, at.y)
    halves = [n / 2 for n in range(round(2 * y.lo), round(2 * y.hi) + 1)]
    marks = _zones(r, x, at, wide)
    marks += axis_y("speed", y, at.x, "", units.times, ticks=[v for v in halves if v != 1])
    marks += axis_x(
        "users",
        x,
        at.bottom,
        "users at once = rows M of a decoding step" if wide else "users at once = M",
        ticks=[1, 4, 16, 64],
    )
    marks.append(text("fp16-is", at.x - 6, y(1) + 4, "fp16", "ink", "small", "end", bold=True))
    starts = [y(one.points[0].speedup) for one in r.curves]
    names = dict(zip((one.k for one in r.curves), spread(starts, 20), strict=True))
    drawn = {one.k: _points(r.card, one, x, y) for one in r.curves}
    marks += _won_and_lost(r, drawn[r.k], y(1))
    marks.append(line("fp16-line", at.x, y(1), at.right, y(1), "limit", "as fast as fp16"))
    for one in sorted(r.curves, key=lambda one: one.k == r.k):
        chosen = one.k == r.k
        tip = f"k = {one.k}: {units.times(one.points[0].speedup)} with 1 user"
        curve = path(f"curve{one.k}", drawn[one.k], "primary" if chosen else "axis", tip)
        marks += about("k", curve) if chosen else [curve]
    for one in r.curves:
        ink, chosen = ("primary", True) if one.k == r.k else ("muted", False)
        words = f"k={one.k}" if chosen else str(one.k)
        marks.append(
            text(
                f"curve{one.k}-name",
                at.x + START - 32,
                names[one.k] + 4,
                words,
                ink,
                "small",
                "end",
                chosen,
                "ground",
            )
        )
    k = 4 if r.card == SOURCE else r.k
    if r.k == k:
        what = "reported" if r.card == SOURCE else "computed"
        marks += [
            circle(f"u{s.users}", x(s.users), y(s.speedup), 3.5, "primary", f"{what}: {_session_tip(s)}")
            for s in r.known
        ]
    return marks + _knobs(r, at, x, y, names)


def _knobs(r: Result, at: Box, x, y, names: dict) -> list[dict]:
    place, up = x(r.users), y(r.session_speedup)
    faster = r.session_speedup > 1
    words = f"{_users_named(r)}: {units.times(r.session_speedup)}"
    tip = _session_tip(Session(r.users, r.time_ratio, r.session_speedup))
    wide = text_width(words, "body", True)
    left = min(max(place + 20, at.x + START - 8), at.right - wide - 4)  # over the knob, between names and end
    below = up - 36 < at.y or (not faster and up + 38 < at.bottom)
    at_y = up + 32 if below else up - 22
    return [
        line("at", place, at.bottom, place, at.y, "now"),
        text("at-name", left, at_y, words, "useful" if faster else "hot", bold=True, on="ground"),
        handle("pull-users", place, up, "now", drag(USERS_AT_ONCE, "x", x), tip=tip),
        handle("pull-k", at.x + 13, names[r.k], "primary", drag(K, "y", lambda k: names[k])),
    ]  # fmt: skip


def _title(r: Result) -> str:
    if r.card != SOURCE:
        return f"A session's speed, computed from kernels measured on {r.card}"
    return "A session's speed on RTX 4090, " + ("as reported" if r.k == 4 else "estimated from k = 4")


def _note(r: Result) -> str:
    """Say which steps a session has besides decoding."""
    if r.card == SOURCE:
        return f"Steps that also read a prompt have M = {r.prefill_m} and unpack all weights."
    if not r.prompt_share:
        return f"Each step counts as the table's M = {r.counted_m} and reads no prompt."
    return f"A prompt fills {r.prompt_share:.0%} of the steps to M = {r.prefill_m}."


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
        return "This is the edge. With more users the kernel unpacks whole matrices, and the win is gone."
    if r.time_ratio < 1 and r.k < 4:
        return "Fewer bits widen the win for few users, but a crowd ends it at about the same number."
    if r.time_ratio < 1 and r.k > 4:
        return "A fifth bit narrows the win, because there is more to read."
    if r.time_ratio < 1:
        return "With few users a step mostly reads weights, so 4 bits are faster than 16."
    return "With many users, steps unpack all weights to 16 bits first. That costs more than it saves."


def _computed_takeaway(r: Result) -> str:
    if r.time_ratio >= 1:
        return "Unpacking takes longer here than reading 16 bits would. You only save the memory."
    if r.break_even_users is None:
        return f"With these steps, {r.k} bits win for every number of users up to {r.most_users}."
    here, last = _users_named(r), next(zone for zone in r.zones if r.break_even_users <= zone.last)
    if "dequant" in last.family:
        return f"At {here} {r.k} bits still win. At {r.break_even_users}, unpacking costs more than it saves."
    kernel = SAID[last.family][0]
    return f"At {here} {r.k} bits still win. At {r.break_even_users}, the kernel on {kernel} is slower than 16 bits."


def _warning(r: Result) -> str:
    if r.time_ratio < 1:
        return ""
    users = units.counted(r.users, "user")
    if r.card == SOURCE:
        return f"The win is gone at {users}. The memory is still saved."
    return f"No win at {users}: with these steps 16 bits are faster. The memory is still saved."


def _even(r: Result):
    if r.break_even_users is None:
        return figure("most users measured, and still a win", r.most_users, units.count)
    return figure("smallest number of users without a win", r.break_even_users, units.count)


def _even_said(r: Result) -> str:
    if r.break_even_users is None:
        return f"{r.most_users} users still win"
    return (
        f"{r.break_even_users} users no longer win"
        if r.break_even_users > 1
        else "1 user already wins nothing"
    )


def _held(r: Result) -> str:
    """Say how many cards hold the weights."""
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
    rows = [(SHAPES.get(s.name, s.name), s.m, s.family, s.kbit_us, s.fp16_us, s.speedup) for s in r.shapes]
    blocks = [
        ("the block", r.m, "the best of each", b.total_us, r.fp16.total_us, b.speedup) for b in r.blocks
    ]
    return table(columns, [*rows, *blocks])


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    (at, height), wide = PLACES[width == WIDE], width == WIDE
    lost = r.time_ratio >= 1
    label = f"speed against fp16, with {_users_named(r)}"
    session = figure(label, r.session_speedup, units.times, "hot" if lost else "useful", "speed")
    even = _even(r)
    size = figure(f"memory of {_billion(r)} weights", r.model_bytes, units.si_bytes)
    marks = [text("title", 0, 14, _title(r) if wide else _title(r).split(",")[0], bold=True)]
    marks += _curves(r, at, wide)
    marks.append(
        text("note", 0, height - 8, _note(r) if wide else _note(r).split(" and ")[0], "muted", "small")
    )
    return Scene(
        summary=f"A session of {_users_named(r)} at k = {r.k}{f' on {r.card}' if r.card != SOURCE else ''} runs at "
        f"{session.text} of fp16's speed, and {_even_said(r)}; {_billion(r)} weights take {size.text}.",
        takeaway=_takeaway(r),
        marks=marks,
        figures=(session, even, size),
        table=_table(r),
        height=height,
        width=width,
        formula=(
            (
                "memory = {parameters_b:weights} · {k} / 8",
                f"{{parameters_b:{_billion(r)}}} · {{k:{r.k}}} / 8 = {units.si_bytes(r.model_bytes)}: {_held(r)}",
            ),
            (
                "{speed} = fp16's time / k-bit time",
                f"1 / {units.number(r.time_ratio)} = {{speed:{session.text}}}",
            ),
        ),
        warning=_warning(r),
    )


SIMULATOR = Declaration(
    title="k-bit dispatch",
    question="Up to how many users is a k-bit model faster than fp16?",
    controls=(
        select(
            "card",
            "Measured on",
            SOURCE,
            {card: f"{card}, by {'the source' if card == SOURCE else 'this course'}" for card in TABLES},
        ),
        USERS_AT_ONCE,
        K,
        select(
            "m",
            "Rows of the measured kernels",
            1,
            {m: f"M = {m}" for m in ROWS},
            help="Of the table of single kernels. "
            + "; ".join(f"{card}: {', '.join(map(str, table))}" for card, table in TABLES.items()),
            more=True,
        ),
        slider(
            "prompts",
            "Steps that read a prompt too",
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
