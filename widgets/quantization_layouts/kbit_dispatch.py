"""Show for how many users k-bit weights are faster than 16 bits, one curve over the zones of the kernels that run."""

import math

from kernels.quantization_layouts import cost
from kernels.quantization_layouts.cost import kbit_tables as tables
from widgets import units
from widgets.charts import Box, axis_x, axis_y, linear, log, over, text_width, won_and_lost, wrap
from widgets.controls import log_slider, select, slider
from widgets.declare import Declaration, Prediction
from widgets.quantization_layouts.kbit_model import (
    CHUNK,
    MOST_USERS,
    OURS,
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

K = slider("k", "Bits per weight (k)", 4, 2, 5)
USERS_AT_ONCE = log_slider("users", "Users at once", 1, 1, 64, per_decade=12)
# (the plot, height)
PLACES = {True: (Box(54, 58, 654, 226), 410), False: (Box(44, 58, 290, 240), 442)}
LONGEST = 1.4  # of fp16's time, that the bars of time have room for
STRIP = 22  # under the lowest speed, for the words of the win's end
SAID = {  # family -> its name, and a short one
    "scalar GEMV": ("scalar kernel", "scalar"),
    "MMA": ("tensor cores", "MMA"),
    "dequant + library": ("unpack all, then 16-bit GEMM", "unpack all"),
    "dequantize + library": ("unpack all, then 16-bit GEMM", "unpack all"),
}


def _speeds(card: str) -> tuple[float, float]:
    """Return the ends of the speeds' axis, in halves, with room for a knob at the top."""
    if card == SOURCE:
        return 0.5, 2.5
    table = TABLES[card]
    seen = [cost.block_speedup(k, m, table) for m in table for k in tables.BITS]
    return min(0.5, math.floor(2 * min(seen)) / 2), max(2.5, math.ceil(2 * (max(seen) + 0.25)) / 2)


def _points(r: Result, x, y) -> list[tuple]:
    """Return the points. A reported session is a line. A computed session has stairs, because rows between two measured
    M count as the larger."""
    places = [(x(one.users), y(one.speedup)) for one in r.curve]
    if r.card == SOURCE:
        return places
    points = places[:1]
    for one, (_, high), (_, low) in zip(r.curve, places, places[1:], strict=False):
        if high != low:
            between = x(one.users + 0.5)
            points += [(between, high), (between, low)]
    return [*points, places[-1]]


def _zones(r: Result, x, at: Box) -> list[dict]:
    """Name over the plot which kernel a step takes, and light up the kernel for this number of users."""
    marks = []
    for i, zone in enumerate(r.zones):
        left = at.x if i == 0 else x(zone.first - 0.5)
        right = at.right if zone is r.zones[-1] else x(zone.last + 0.5)
        here = zone.first <= r.users <= zone.last
        to = f" to {zone.last}" if zone.last > zone.first else ""
        name = SAID[zone.family][0]
        most = "" if r.card == SOURCE else ", at most of the seven shapes"
        tip = f"M = {zone.first}{to}: {name}{most}"
        marks.append(
            rect(f"zone{i}", left + 1, at.y - 24, right - left - 2, 24, "primary" if here else "idle", tip)
        )
        if right < at.right:
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


def _picture(r: Result, at: Box, wide: bool) -> list[dict]:
    """Draw speed over users at k bits, and where the win ends. A knob pulls the number of users."""
    x = log(1, MOST_USERS, at.x + 22, at.right - 16)
    y = linear(*_speeds(r.card), at.bottom - STRIP, at.y)
    halves = [n / 2 for n in range(round(2 * y.lo), round(2 * y.hi) + 1)]
    level, points = y(1), _points(r, x, y)
    marks = [
        *_zones(r, x, at),
        *axis_y("speed", y, at.x, "", units.times, ticks=[v for v in halves if v != 1]),
        *axis_x("users", x, at.bottom, "users at once", ticks=[1, 4, 16, 64]),
        text("fp16-is", at.x - 6, level + 4, "fp16", "ink", "small", "end", bold=True),
        *won_and_lost(points, level),
        line("fp16-line", at.x, level, at.right, level, "limit", "as fast as fp16"),
        *about("k", path("curve", points, "primary", f"speed at k = {r.k}, over the number of users")),
    ]
    if r.card != SOURCE or r.k == 4:
        what = "reported" if r.card == SOURCE else "computed"
        marks += [
            circle(f"u{s.users}", x(s.users), y(s.speedup), 3.5, "primary", f"{what}: {_session_tip(s)}")
            for s in r.known
        ]
    return marks + _end_of_win(r, x, level, at) + _knob(r, points, x, y, at) + _times(r, at, wide)


def _times(r: Result, at: Box, wide: bool) -> list[dict]:
    """Draw why the win fades: the time of these users in fp16 and at k bits, of which ever more unpacks all weights."""
    x, y, high = linear(0, LONGEST, at.x, at.right), at.bottom + 44, 17
    unpacks = (r.unpacking_share or 0.0) * min(r.time_ratio, LONGEST)
    works = min(r.time_ratio, LONGEST) - unpacks
    share = units.percent(r.unpacking_share or 0.0, 0)
    of = f"time of {_users(r.users)} in fp16" if wide else "time in fp16"
    marks = [
        rect("time-fp16", x(0), y, x(1) - x(0), high, "idle", f"time of {_users(r.users)} in fp16"),
        text("time-fp16-name", x(0) + 8, y + 13, of, "ink", "small", on="idle"),
        rect(
            "time-works",
            x(0),
            y + 21,
            x(works) - x(0),
            high,
            "primary",
            f"at {r.k} bits: {units.percent(1 - (r.unpacking_share or 0), 0)} of the time in steps that read packed weights",
        ),
        text("time-k", x(0) - 6, y + 34, f"{r.k} bits", "ink", "small", "end", bold=True),
        text("time-16", x(0) - 6, y + 13, "fp16", "ink", "small", "end", bold=True),
    ]
    if unpacks:
        tip = f"at {r.k} bits: {share} of the time in steps that unpack all weights"
        marks.append(rect("time-unpacks", x(works), y + 21, x(unpacks) - x(0), high, "waste", tip))
    said = f"{units.times(r.time_ratio)} fp16's time"
    if unpacks:
        said += f", {share} of it in steps that unpack all" if wide else f", {share} unpacks all"
    return [*marks, text("time-said", x(0), y + 53, said, _role(r), "small", bold=True)]


def _end_of_win(r: Result, x, level: float, at: Box) -> list[dict]:
    """Mark the first number of users without a win, under fp16's line."""
    if r.break_even_users is None:
        return []
    place = x(r.break_even_users)
    words = f"no win from {_users(r.break_even_users)}"
    size = "big" if at.w > 400 else "small"
    start = place - 8 - text_width(words, size, True) < at.x + 4
    low = at.bottom - 7
    marks = [line("even", place, level, place, at.bottom, "hot", words)]
    side = (place + 8, "start") if start else (place - 8, "end")
    return [*marks, text("even-name", side[0], low, words, "hot", size, side[1], bold=True)]


def _role(r: Result) -> str:
    """Return the colour of the speed. A draw is neither a win nor a loss."""
    return "ink" if units.times(r.session_speedup) == "1×" else "useful" if r.session_speedup > 1 else "hot"


def _knob(r: Result, points: list[tuple], x, y, at: Box) -> list[dict]:
    place, up = x(r.users), y(r.session_speedup)
    role = _role(r)
    words = f"{_users(r.users)}: {units.times(r.session_speedup)}"
    reach = text_width(words, "body", True) + 14
    side = (place - 14, "end") if place + reach > at.right else (place + 14, "start")
    high = min(up, y(1)) - 20  # the curve falls, so there is room above it and to its right
    if side[1] == "end":
        high = min(high, over(points, place - reach, place) - 12)
    tip = _session_tip(Session(r.users, r.time_ratio, r.session_speedup))
    return [
        line("at", place, up, place, at.y, "now"),
        text("at-name", side[0], max(high, at.y + 16), words, role, "body", side[1], True),
        handle("pull-users", place, up, "now", drag(USERS_AT_ONCE, "x", x), tip=tip),
    ]  # fmt: skip


def _title(r: Result) -> str:
    if r.card != SOURCE:
        return f"Speed of a session at {r.k} bits, computed from kernels measured on {r.card}"
    how = "as reported" if r.k == 4 else "estimated from k = 4"
    return f"Speed of a session at {r.k} bits on RTX 4090, {how}"


def _note(r: Result) -> str:
    """Say which steps a session has besides decoding."""
    if r.card == SOURCE:
        return f"The zones are of steps that only decode. One that reads a prompt has {CHUNK} rows more and unpacks all."
    if not r.prompt_share:
        counted = ""
        if r.counted_m != r.users:
            counted = f"{_users(r.users)} count as {r.counted_m} rows, the next number that was measured. "
        return f"{counted}A step here reads no prompt."
    return f"A prompt fills {r.prompt_share:.0%} of the steps to {r.prefill_m} rows."


def _session_tip(s: Session) -> str:
    return f"{_users(s.users)}: {units.times(s.speedup)} as fast, {units.number(s.ratio)} of the fp16 time"


def _users(many: int) -> str:
    return units.counted(many, "user")


def _whole(share: float) -> str:
    return units.percent(share, 0)


def _takeaway(r: Result) -> str:
    if r.card != SOURCE:
        return _computed_takeaway(r)
    if r.break_even_users - r.users in range(1, 4) or abs(r.time_ratio - 1) < 0.02:
        return "This is the edge. With more users most steps unpack whole matrices, and the win is gone."
    if r.time_ratio < 1 and r.k < 4:
        return "Fewer bits widen the win for few users, but a crowd ends it at about the same number."
    if r.time_ratio < 1 and r.k > 4:
        return "A fifth bit narrows the win, because there is more to read."
    if r.time_ratio < 1:
        return f"With few users a step mostly reads weights, so 4 bits win. From {r.break_even_users} on, fp16 wins."
    return "With many users, steps unpack all weights to 16 bits first. That costs more than it saves."


def _computed_takeaway(r: Result) -> str:
    if r.time_ratio >= 1:
        return "Unpacking takes longer here than reading 16 bits would. You only save the memory."
    if r.break_even_users is None:
        return f"With these steps, {r.k} bits win for every number of users up to {r.most_users}."
    here, last = _users(r.users), next(zone for zone in r.zones if r.break_even_users <= zone.last)
    if "dequant" in last.family:
        return f"At {here} {r.k} bits still win. At {r.break_even_users}, unpacking costs more than it saves."
    kernel = SAID[last.family][0]
    return f"At {here} {r.k} bits still win. At {r.break_even_users}, the kernel on {kernel} is slower than 16 bits."


def _warning(r: Result) -> str:
    if r.time_ratio < 1:
        return ""
    if r.card == SOURCE:
        return f"The win is gone at {_users(r.users)}. The memory is still saved."
    return f"At {_users(r.users)} and with these steps, 16 bits are faster. The memory is still saved."


def _even(r: Result):
    if r.break_even_users is None:
        return figure("most users measured, and still a win", r.most_users, units.count)
    return figure("users at most, and still a win", r.last_win_users, units.count, "useful")


def _even_said(r: Result) -> str:
    if r.break_even_users is None:
        return f"{r.most_users} users still win"
    if not r.last_win_users:
        return "0 users still win"
    return f"{units.counted(r.last_win_users, 'user')} still {'wins' if r.last_win_users == 1 else 'win'}"


def _table(r: Result):
    """List the points of the curve, with the knob's among them."""
    here = Session(r.users, r.time_ratio, r.session_speedup)
    rows = sorted({one.users: one for one in (*r.known, here)}.items())
    return table(
        (
            "users at once",
            "kernel of a decoding step",
            Column(f"speed at k = {r.k}, of fp16's", show=units.times),
            Column("time, of fp16's", show=units.number),
        ),
        [
            (users, next(zone.family for zone in r.zones if users <= zone.last), one.speedup, one.ratio)
            for users, one in rows
        ],
    )


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    (at, height), wide = PLACES[width == WIDE], width == WIDE
    label = f"speed against fp16, with {_users(r.users)}"
    session = figure(label, r.session_speedup, units.times, _role(r), "speed")
    unpacks = (
        [figure("of the time in steps that unpack all", r.unpacking_share, _whole)]
        if r.card == SOURCE
        else []
    )
    title, note = _title(r), _note(r)
    marks = [text("title", 0, 14, title if wide else title.split(",")[0], bold=True), *_picture(r, at, wide)]
    said = wrap(note, width)
    marks += [
        text(f"note{i}", 0, height - 4 - 16 * (len(said) - 1 - i), words, "muted", "small")
        for i, words in enumerate(said)
    ]
    return Scene(
        summary=f"A session of {_users(r.users)} at k = {r.k}{f' on {r.card}' if r.card != SOURCE else ''} runs at "
        f"{session.text} of fp16's speed, and {_even_said(r)}"
        + (f". Steps that unpack all weights take {unpacks[0].text} of the time." if unpacks else "."),
        takeaway=_takeaway(r),
        marks=marks,
        figures=(session, _even(r)),
        table=_table(r),
        height=height,
        width=width,
        formula=(
            (
                "{speed} = fp16's time / time at {k} bits",
                f"1 / {units.number(r.time_ratio)} = {{speed:{session.text}}}, with {{k:{r.k}}} bits",
            ),
        ),
        warning=_warning(r),
    )


SIMULATOR = Declaration(
    title="k-bit dispatch",
    question="Up to how many users is a k‑bit model faster than fp16?",
    controls=(
        select(
            "card",
            "Measured on",
            SOURCE,
            {card: f"{card}, {'reported' if card == SOURCE else 'measured here'}" for card in TABLES},
        ),
        USERS_AT_ONCE,
        K,
        slider(
            "prompts",
            "Steps that read a prompt too",
            0,
            0,
            50,
            step=5,
            unit="%",
            help=f"On the {OURS}, up to the largest M that was measured. Sessions on the {SOURCE} stay as reported.",
            more=True,
        ),
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
