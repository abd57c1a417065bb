"""Show the recorded trace of a decode step, with host, launching calls and streams, to zoom and to pan."""

import math
from dataclasses import dataclass
from itertools import zip_longest

from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, Scale, axis_x, linear, text_width
from widgets.controls import select, slider, steps
from widgets.declare import Declaration, Prediction
from widgets.scene import WIDE, Column, Scene, about, drag, figure, grid, handle, path, rect, table, text

ROLES = {
    "attention": "memory",
    "qkv": "primary",
    "out": "primary",
    "head": "primary",
    "experts": "useful",
}  # the other slots are small, such as norms, rotary, routing and sampling
KINDS = (("memory", "attention"), ("primary", "linear layers and head"), ("useful", "experts"))
SLOTS = tuple(dict.fromkeys(one.slot for one in cost.trace("graph").launches))
WAYS = {"eager": "eagerly", "graph": "as one graph"}  # in this order, on one clock
ALL = "all"
ZOOM = steps("zoom", "Zoom", 8, (2, 4, 8, 16, 32, 64), lambda value: f"1/{value} of the step")
MIDDLE = slider("middle", "Middle of the window", 50, 0, 100, unit="%")
# (the whole step, the window, from row to row, a bar's height, is a row's name above it)
PLACES = {
    True: (Box(104, 88, 590, 26), Box(104, 162, 590, 0), 46, 32, False),
    False: (Box(14, 112, 312, 26), Box(14, 202, 312, 0), 62, 32, True),
}
AXIS = 40  # below the last row
CELLS = 400  # of the whole step


@dataclass(frozen=True)
class Launch:
    number: int  # in the step, from 1
    slot: str
    kernel: str
    start_s: float
    took_s: float
    gap_s: float  # before it, with nothing running
    stream: int


@dataclass(frozen=True)
class Way:
    """Hold one way to run the step, without the profiler."""

    run: str
    step_s: float
    kernels_s: float


@dataclass(frozen=True)
class Result:
    run: str
    zoom: int
    slot: str
    measured: bool
    where: str
    case: str
    step_s: float  # from the host's first call to the end of the last kernel, under the profiler
    alone_s: float  # without the profiler
    begin_s: float
    window_s: float
    busy_s: float  # of the window
    works_share: float
    step_percent: float  # the same of the whole step
    kernels_s: float  # of the whole step, in which the GPU works
    alone_percent: float  # the same without the profiler, if its kernels take as long
    launches: tuple[Launch, ...]  # in the window
    count: int
    gap_s: float  # the longest in the window
    slot_s: float  # of the chosen slot's kernels, in the whole step
    slot_share: float  # of all kernels' time
    host: tuple[cost.Bar, ...]
    calls: tuple[cost.Bar, ...]
    whole: tuple[cost.Bar, ...]
    rows: int
    ways: tuple[Way, ...]  # both, to compare on one clock
    graph_speedup: float


def _launches(trace: cost.Trace) -> list[Launch]:
    found, until = [], trace.launches[0].start_s
    for number, one in enumerate(trace.launches, 1):
        gap = max(0.0, one.start_s - until)
        found.append(Launch(number, one.slot, one.name, one.start_s, one.took_s, gap, one.stream))
        until = max(until, one.end_s)
    return found


def run(run, zoom, middle, slot) -> Result:
    trace, both = cost.trace(run), [cost.trace(name) for name in WAYS]
    whole = trace.end_s
    window = whole / zoom
    begin = min(max(0.0, whole * middle / 100 - window / 2), whole - window)
    end = begin + window

    def seen(bars):
        return tuple(one for one in bars if one.start_s < end and one.start_s + one.took_s > begin)

    busy, met = cost.busy_s(trace.launches, begin, end), seen(_launches(trace))
    step_busy = cost.busy_s(trace.launches)
    own = cost.own_s(trace.launches).get(slot, 0.0)
    return Result(
        run,
        zoom,
        slot,
        trace.measured,
        trace.where,
        trace.case,
        whole,
        trace.alone_s,
        begin,
        window,
        busy,
        busy / window,
        100 * step_busy / whole,
        step_busy,
        100 * step_busy / trace.alone_s,
        met,
        len(met),
        max((one.gap_s for one in met), default=0.0),
        own,
        own / step_busy,
        seen(trace.host),
        seen(trace.calls),
        trace.launches,
        2 + max(len(_streams(cost.trace(name).launches)) for name in WAYS),
        tuple(Way(name, one.alone_s, one.busy_s) for name, one in zip(WAYS, both, strict=True)),
        both[0].alone_s / both[1].alone_s,
    )


def _streams(launches) -> list[int]:
    return sorted({one.stream for one in launches})


def _role(slot: str, chosen: str) -> str:
    """Return a slot's own role. Where one is lit up, the others step back and it keeps its colour."""
    if chosen == ALL:
        return ROLES.get(slot, "overhead")
    return ROLES.get(slot, "primary") if slot == chosen else "overhead"


def _bar(
    id: str, x: Scale, y: float, high: float, bar, name: str, role: str, tip: str, until_s: float = math.inf
) -> list[dict]:
    """Draw a bar, with its name where there is room before the next bar, which may begin over this one."""
    left, right = x(bar.start_s), x(bar.start_s + bar.took_s)
    wide = right - left
    marks = [rect(id, left, y, max(0.8, wide - (0.8 if wide > 3 else 0)), high, role, tip)]
    seen = min(right, x(until_s) if until_s < math.inf else right) - left
    if seen > text_width(name, "small") + 10:
        marks.append(
            text(f"{id}-name", left + seen / 2, y + high / 2 + 4, name, "inverse", "small", "middle", on=role)
        )
    return marks


def _tip(bar) -> str:
    return f"{units.seconds(bar.took_s)} from {units.seconds(bar.start_s)}"


def _cells(r: Result) -> list[str]:
    """Return the role that fills the most of each equal part of the step, or idle below a fifth."""
    each = r.step_s / CELLS
    filled = [{"idle": 0.2 * each} for _ in range(CELLS)]
    for one in r.whole:
        role = _role(one.slot, r.slot)
        for i in range(int(one.start_s / each), min(CELLS, int(one.end_s / each) + 1)):
            part = min(one.end_s, (i + 1) * each) - max(one.start_s, i * each)
            filled[i][role] = filled[i].get(role, 0.0) + part
    return [max(parts, key=parts.get) for parts in filled]


def _exact(seconds: float) -> str:
    """Return a time with enough digits for a quotient of two to give the percentage that is shown."""
    return units.seconds(seconds, 4)


def _ways(r: Result, at: Box, above: bool) -> list[dict]:
    """Draw both ways to run the step on one clock, without the profiler, as the GPU's work and all else."""
    x = linear(0, max(way.step_s for way in r.ways), at.x, at.right)
    marks = []
    for i, way in enumerate(r.ways):
        high = 10 if above else 18
        y = 18 + 32 * i if above else 4 + 26 * i
        chosen, name, done = way.run == r.run, WAYS[way.run], x(way.step_s)
        said = f"{units.seconds(way.step_s)}, GPU at work {_percent(100 * way.kernels_s / way.step_s)}"
        if above:
            said = f"{units.seconds(way.step_s)}, at work {_percent(100 * way.kernels_s / way.step_s)}"
        elif way.run == "graph":
            said += f": {units.times(r.graph_speedup)} as fast"
        tip = f"one step {name}, without the profiler: {_exact(way.step_s)}"
        work = rect(
            f"{way.run}-work",
            at.x,
            y,
            x(way.kernels_s) - at.x,
            high,
            "ink",
            f"{_exact(way.kernels_s)} at work",
        )
        marks.append(rect(f"{way.run}-alone", at.x, y, done - at.x, high, "idle", tip))
        marks += about("works", work) if chosen else [work]
        if above:
            marks.append(text(f"{way.run}-said", at.x, y - 5, f"{name}: {said}", "ink", "small", bold=chosen))
            continue
        inside = done - x(way.kernels_s) > text_width(said, "small", True) + 16
        left = x(way.kernels_s) + 8 if inside else done + 8
        marks += [
            text(f"{way.run}-name", at.x - 8, y + 13, name, "ink", "small", "end", bold=chosen),
            text(
                f"{way.run}-said",
                left,
                y + 13,
                said,
                "ink",
                "small",
                bold=chosen,
                on="idle" if inside else "",
            ),
        ]
    return marks


def _overview(r: Result, at: Box, panel: Box) -> list[dict]:
    """Draw the whole step's launches, the window over them, and its two knobs."""
    x = linear(0, r.step_s, at.x, at.right)

    def middle_of(percent: float) -> float:
        half = r.window_s / 2
        return x(min(max(r.step_s * percent / 100, half), r.step_s - half))

    def edge_of(zoom: float) -> float:
        half = r.step_s / zoom / 2
        centre = min(max(r.begin_s + r.window_s / 2, half), r.step_s - half)
        return x(centre + half)

    above = at.x < 50
    alone = "" if above else f", {units.seconds(r.alone_s)} without it"
    where = (at.x, at.y - 30, "start") if above else (at.x - 8, at.y + 17, "end")
    marks = [
        *_ways(r, at, above),
        text("whole-name", *where[:2], "recorded step", "ink", "small", where[2]),
        text(
            "whole-time",
            at.right,
            at.y - 30,
            f"{units.seconds(r.step_s)} under the profiler{alone}" if r.measured else units.seconds(r.step_s),
            "muted",
            "small",
            "end",
        ),
    ]
    roles = ("idle", "memory", "primary", "useful", "overhead")
    names = (
        "idle for four fifths or more",
        "attention",
        "linear layers and head",
        "experts",
        "other operations",
    )
    cells = [roles.index(role) for role in _cells(r)]
    marks.append(
        grid("all", at.x, at.y, at.w, at.h, CELLS, cells, roles, names, "at {column} of " + str(CELLS))
    )
    left, right = x(r.begin_s), x(r.begin_s + r.window_s)
    start = "the host starts" if r.run == "eager" else "one launch, slowed by the profiler"
    first = x(r.whole[0].start_s)
    if r.run == "graph":  # what the profiler adds is none of the step's own idle time
        tip = f"the profiler makes the step {units.seconds(r.step_s - r.alone_s)} longer"
        marks.append(rect("host-slowed", at.x, at.y, first - at.x, at.h, "waste", tip))
    if text_width(start, "small") + 12 < min(first, left) - at.x:
        marks.append(
            text(
                "host-first",
                (at.x + min(first, left)) / 2,
                at.y + 17,
                start,
                "ink",
                "small",
                "middle",
                on="waste" if r.run == "graph" else "idle",
            )
        )
    marks += about(
        "zoom",
        path(
            "window",
            [
                (left, at.y - 3),
                (right, at.y - 3),
                (right, at.bottom + 3),
                (left, at.bottom + 3),
                (left, at.y - 3),
            ],
            "now",
        ),
    )
    low, high = at.bottom + 3, panel.y - 22
    marks += [
        path("from-left", [(left, low), (panel.x, high)], "axis"),
        path("from-right", [(right, low), (panel.right, high)], "axis"),
        # off the window, which a knob on it would hide
        path("stem-middle", [((left + right) / 2, low), ((left + right) / 2, low + 12)], "now"),
        path("stem-zoom", [(right, at.y - 3), (right, at.y - 15)], "now"),
        handle("pull-middle", (left + right) / 2, low + 12, "now", drag(MIDDLE, "x", middle_of)),
        handle("pull-zoom", right, at.y - 15, "now", drag(ZOOM, "x", edge_of)),
    ]
    return marks


def _rows(r: Result, at: Box, pitch: float, high: float, above: bool) -> list[dict]:
    """Draw the window's bars, with slots on the host, calls that launch, and a row for each stream."""
    x = linear(r.begin_s, r.begin_s + r.window_s, at.x, at.right)
    streams = _streams(r.whole)
    graph = r.run == "graph"
    hosts = ["host"] if graph else ["host: operation", "host: launches"]
    gpus = [f"GPU: stream {one}" if len(streams) > 1 else "GPU" for one in streams]
    taller = pitch * (2 - len(hosts))  # a graph's host has one row, and its kernels the room
    tops = [at.y + row * pitch + (taller if row >= len(gpus) else 0) for row in range(len(gpus) + len(hosts))]
    host_y, tall = tops[len(gpus)], high + (taller if len(gpus) == 1 else 0)
    marks = []
    for row, (name, y) in enumerate(zip([*gpus, *hosts], tops, strict=True)):
        gpu = row < len(gpus)
        room = tall if gpu else high
        where = (at.x, y - 8, "start") if above else (at.x - 8, y + room / 2 + 4, "end")
        marks.append(text(f"row{row}", *where[:2], name, "ink", "small", where[2], gpu))
        tip = "nothing runs" if gpu else "the host waits, or does something else"
        ground = rect(f"row{row}-ground", at.x, y, at.w, room, "idle", tip)
        marks += about("works", ground) if row == 0 else [ground]
    for i, bar in enumerate(r.host):
        marks += _bar(
            f"host{i}", x, host_y, high, bar, bar.slot, _role(bar.slot, r.slot), f"{bar.slot}: {_tip(bar)}"
        )
    for i, bar in enumerate(r.calls):
        y = host_y + pitch * (len(hosts) - 1)
        marks += _bar(f"call{i}", x, y, high, bar, bar.name, "network", f"{bar.name}: {_tip(bar)}")
    if graph and not r.calls:
        words = "one call has launched it all, before this window"
        marks.append(
            text(
                "row0-none",
                at.x + at.w / 2,
                host_y + high / 2 + 4,
                words,
                "ink",
                "small",
                "middle",
                on="idle",
            )
        )
    for one, then in zip_longest(r.launches, r.launches[1:]):
        until_s = then.start_s if then and then.stream == one.stream else math.inf
        y = tops[streams.index(one.stream)]
        tip = f"launch {one.number}, {one.slot}: {one.kernel}, {_tip(one)}"
        marks += _bar(f"launch{one.number}", x, y, tall, one, one.slot, _role(one.slot, r.slot), tip, until_s)
    marks += _empty(r, x, tops[0] + tall / 2 + 4)
    room = at.right + at.x / 2 if above else at.right + 24  # a time at the very end has no cell
    half = {t: text_width(units.seconds(t), "small") / 2 for t in x.ticks(3 if above else 5)}
    ticks = [t for t, wide in half.items() if x(t) - wide >= 0 and x(t) + wide < room]
    # a lens, whose marks are those of this window, while the axis under the knobs holds still
    lens = f"time-{r.zoom}-{1e9 * r.begin_s:.0f}"
    return [
        *marks,
        *axis_x(lens, x, at.y + r.rows * pitch, show=units.seconds, ticks=ticks),
    ]


def _empty(r: Result, x: Scale, y: float) -> list[dict]:
    """Say in the longest empty part of the GPU's row whom it waits for, if the words fit."""
    ends = [r.begin_s, *(one.start_s + one.took_s for one in r.launches)]
    starts = [*(one.start_s for one in r.launches), r.begin_s + r.window_s]
    gaps = [(x(b) - x(a), (x(a) + x(b)) / 2) for a, b in zip(ends, starts, strict=True)]
    wide, middle = max(gaps)
    for words in ("empty: waits for the host", "waits for the host"):
        if r.run == "eager" and text_width(words, "small") + 12 < wide:
            return [text("empty", middle, y, words, "muted", "small", "middle", on="idle")]
    return []


def _percent(percent: float) -> str:
    return f"{units.number(percent)}%"


def _takeaway(r: Result) -> str:
    if r.slot != ALL:
        return f"{r.slot.capitalize()} takes {units.percent(r.slot_share)} of the kernels' time. A faster one saves no more."
    if r.run == "graph" and r.zoom < 4:
        return f"The profiler stretches this step to {units.seconds(r.step_s)}. Without it the kernels fill {_percent(r.alone_percent)}."
    if r.run == "graph" and r.begin_s < r.whole[0].start_s:
        return "The GPU waits for the one call that launches the graph. Then kernels fill the row."
    if r.run == "graph" and r.works_share < 0.6:
        return "The host is gone, and short kernels still leave gaps. Fewer, longer kernels would fill them."
    if r.run == "graph":
        return "One call launches the whole graph. Kernels fill the row, and the longest decide."
    if r.works_share > 0.8:
        return "Here one long kernel keeps the GPU busy while the host runs ahead."
    return "An empty GPU row waits for its host. Faster kernels would leave it emptier still."


def _summary(r: Result) -> str:
    what = f"recorded on an {r.where}" if r.measured else f"by a {r.where}, not recorded"
    way = "eagerly" if r.run == "eager" else "as one graph"
    chosen = "" if r.slot == ALL else f" Kernels of {r.slot} take {units.seconds(r.slot_s)} of the step."
    return (
        f"A decode step of {r.case}, {way}, {what}: {units.seconds(r.alone_s)} without the profiler (the GPU works "
        f"{_percent(r.alone_percent)} of this time) and {units.seconds(r.step_s)} with the profiler. The "
        f"graph is {units.times(r.graph_speedup)} as fast as the eager step. In the window of {units.seconds(r.window_s)} the GPU works "
        f"{units.percent(r.works_share)} of the time, in {units.counted(r.count, 'kernel', 'kernels')}.{chosen}"
    )


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    overview, panel, pitch, high, above = PLACES[width == WIDE]
    rows = _rows(r, panel, pitch, high, above)
    kernels = [(one.number, one.slot, one.kernel, one.start_s, one.took_s, one.gap_s) for one in r.launches]
    kernels = kernels or [(0, "none", "no kernel in this window", r.begin_s, 0.0, r.window_s)]
    seconds = [Column(name, "s", units.seconds) for name in ("start", "took", "gap before")]
    return Scene(
        summary=_summary(r),
        takeaway=_takeaway(r),
        marks=_overview(r, overview, panel) + rows,
        figures=(
            figure("GPU at work, no profiler", r.alone_percent, _percent, "ink", "works"),
            figure("one step, no profiler", r.alone_s, units.seconds),
            figure("speed of the graph against eager", r.graph_speedup, units.times),
            figure(
                "kernel in this window" if r.count == 1 else "kernels in this window", r.count, units.count
            ),
        ),
        table=table(("launch", "slot", "kernel", *seconds), kernels),
        height=panel.y + r.rows * pitch + AXIS,
        formula=(
            (
                "{works:GPU at work} = time with a kernel / one step",
                f"{_exact(r.kernels_s)} / {_exact(r.alone_s)} = {{works:{_percent(r.alone_percent)}}}",
            ),
        ),
        warning=""
        if r.measured
        else "No trace is kept yet. These bars are a model's, from bytes and a launch's usual cost.",
        legend=(
            *(KINDS if r.slot == ALL else ((_role(r.slot, r.slot), r.slot),)),
            ("overhead", "other operations" if r.slot == ALL else "all other operations"),
            *((("waste", "added by the profiler"),) if r.run == "graph" else ()),
            *((("network", "launching calls"),) if r.calls else ()),
        ),
        width=width,
    )


SIMULATOR = Declaration(
    title="Recorded trace",
    question="How much of a decode step does the GPU work, launch by launch?",
    controls=(
        select("run", "The step runs", "eager", WAYS),
        ZOOM,
        MIDDLE,
        select(
            "slot",
            "Light up",
            ALL,
            {ALL: "nothing", **{slot: slot for slot in SLOTS}},
            help="One operation of the step, such as the experts or attention.",
        ),
    ),
    presets={
        "About one layer, eagerly": {},
        "About one layer of the graph": {"run": "graph", "zoom": 32, "middle": 60},
        "The graph's end": {"run": "graph", "zoom": 2, "middle": 75},
        "Where attention is": {"run": "graph", "zoom": 4, "middle": 66, "slot": "attention"},
        "A few launches": {"zoom": 32},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "Eight layers of a 30B mixture of experts decode one token, eagerly: some ninety kernels, launched from Python one by "
        "one, 6 ms in all. During what percentage of these 6 ms does the GPU work?",
        "alone_percent",
        "%",
        0.25,
    ),
    source="a trace of this course's own decode step",
)
