"""Show kernels whose host waits, runs ahead, or captured them in a graph, and what a compiler saves."""

from dataclasses import dataclass

from kernels.roofline import cost
from widgets import units
from widgets.charts import Box, linear, steady
from widgets.controls import log_slider, slider, toggle
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import (
    WIDE,
    Column,
    Scene,
    about,
    beside_model,
    drag,
    figure,
    handle,
    line,
    path,
    rect,
    table,
    text,
    timed,
)

GEMM, ELEMENTWISE, LAUNCHES = "GEMM", "element-wise", "launches"
ROLES = {GEMM: "compute", ELEMENTWISE: "memory", LAUNCHES: "waste"}
SHOWN = 8  # kernels of the timeline
CLOCK = "now0"  # the line that its lanes wait for
LAUNCH = slider("launch_us", "Time of a launch", 10.0, 1.0, 20.0, step=0.5, unit="µs")
# (the timeline, the whole pass, height)
PLACES = {
    True: (Box(84, 26, 624, 0), Box(150, 212, 390, 165), 380),
    False: (Box(0, 50, 336, 0), Box(0, 262, 336, 230), 498),
}


@dataclass(frozen=True)
class Pass:
    """A pass over all layers, in seconds a part."""

    name: str
    gemm_s: float
    elementwise_s: float
    launches_s: float
    total_s: float
    per_s: float  # tokens, when a pass makes one
    speedup: float

    @property
    def waits(self) -> float:
        return self.launches_s / self.total_s

    @property
    def parts(self) -> dict[str, float]:
        return {GEMM: self.gemm_s, ELEMENTWISE: self.elementwise_s, LAUNCHES: self.launches_s}


@dataclass(frozen=True)
class Result:
    kernels: int
    layers: int
    launch_s: float
    graph_s: float
    layer_overhead_s: float
    overhead_s: float
    work_s: float
    overhead_share: float  # if the host waits for each kernel
    overhead_percent: float
    ahead_share: float  # if it runs ahead, as it does unless something makes it wait
    try_graphs_first: bool  # even then
    graph_over_ahead: float
    eager: Pass  # the host waits for each kernel before it launches the next
    ahead: Pass  # the host runs ahead
    graph: Pass
    compiled: Pass
    both: Pass
    gemm_share_compiled: float
    shown: tuple[Pass, ...]  # without the compiled ones unless they were asked for


def run(
    kernels, launch_us, work_ms, layers, elementwise_percent, graph_us, compiling, elementwise_cut, launch_cut
) -> Result:  # fmt: skip
    launch_s, work_s = launch_us / 1e6, work_ms / 1e3 * layers
    overhead_s = cost.launch_overhead_s(kernels, launch_s, layers)
    told = cost.launch_share(kernels * layers, launch_s, work_s)
    graph_s = cost.graph_pass_s(graph_us / 1e6)
    ahead_s = cost.ahead_gaps_s(kernels * layers, launch_s, work_s)
    ahead_total_s = ahead_s + work_s
    narrow_s = work_s * elementwise_percent / 100
    before = {GEMM: work_s * (1 - elementwise_percent / 100), ELEMENTWISE: narrow_s, LAUNCHES: overhead_s}
    shares = {part: s / told.total_s for part, s in before.items()}
    cuts = {ELEMENTWISE: elementwise_cut / 100, LAUNCHES: launch_cut / 100}
    after = cost.compile_dividend(1 / told.total_s, shares, cuts).after_s

    def one(name: str, parts: dict[str, float]) -> Pass:
        total_s = sum(parts.values())
        return Pass(name, *parts.values(), total_s, 1 / total_s, told.total_s / total_s)

    compiled = one("compiled, host waits", after)
    eager, ahead = one("the host waits", before), one("the host runs ahead", {**before, LAUNCHES: ahead_s})
    graph, both = (
        one(name, {**parts, LAUNCHES: graph_s})
        for name, parts in (("in a graph", before), ("compiled, in a graph", after))
    )
    return Result(
        kernels,
        layers,
        launch_s,
        graph_s,
        cost.launch_overhead_s(kernels, launch_s),
        overhead_s,
        work_s,
        told.share,
        100 * told.share,
        ahead_s / ahead_total_s,
        cost.graphs_first(ahead_s, ahead_total_s),
        ahead_total_s / (graph_s + work_s),
        eager,
        ahead,
        graph,
        compiled,
        both,
        compiled.gemm_s / compiled.total_s,
        (eager, ahead, graph, *((compiled, both) if compiling else ())),
    )


def _kinds(r: Result, kernel: int) -> tuple[tuple[str, float], ...]:
    """Sort the kernels by kind. All are drawn equally long, so the share of element-wise ones equals their share of
    the work, spread over the layer. A layer's only kernel has both kinds."""
    share = r.eager.elementwise_s / r.work_s
    if r.kernels == 1:
        return tuple((kind, part) for kind, part in ((GEMM, 1 - share), (ELEMENTWISE, share)) if part > 0)
    return ((ELEMENTWISE if int((kernel + 1) * share + 1e-9) > int(kernel * share + 1e-9) else GEMM, 1.0),)


def _work(r: Result, id: str, kernel: int, left: float, right: float, top: float) -> list[dict]:
    """A kernel's time from `left` to `right`."""
    marks, at, wide = [], left, max(1, right - left - 1)
    for part, (kind, share) in enumerate(_kinds(r, kernel)):
        tip = f"kernel {kernel + 1}, {kind}: {units.seconds(share * r.work_s / r.layers / r.kernels)}"
        marks.append(rect(f"{id}{kernel}" + "-rest" * part, at, top, share * wide, 30, ROLES[kind], tip))
        at += share * wide
    return about("work", marks)


LANES = ("host waits", "runs ahead", "in a graph")


def _ahead(r: Result, shown: int, work_s: float) -> list[tuple[float, float]]:
    """Return when each kernel starts and ends where the host runs ahead. It starts once launched and the GPU is free."""
    times, done = [], 0.0
    for i in range(shown):
        start = max(done, (i + 1) * r.launch_s)
        done = start + work_s
        times.append((start, done))
    return times


def _timeline(r: Result, upto: int, at: Box) -> list[dict]:
    """Draw the first kernels of a layer three ways on one clock, with the GPU's waits and its work."""
    shown, wide = min(SHOWN, r.kernels), at.x > 0
    work_s = r.work_s / r.layers / r.kernels
    pair_s = r.launch_s + work_s
    graph_s = r.graph_s  # the one launch, whole
    x = linear(0, steady("kernels", max(shown * pair_s, graph_s + shown * work_s)), at.x, at.right)
    now = upto * pair_s
    if r.kernels == 1:
        title = "The one kernel of a layer"
    else:
        title = f"{'First' if shown < r.kernels else 'All'} {shown} kernels of a layer"
        title += ", on one clock" if wide else " on one clock"
    tops = [at.y + (42 if wide else 54) * i for i in range(3)]
    waits, ahead, top = tops
    marks = [
        text("time-title", 0, 16, title, bold=True),
    ]
    marks += [line(f"lane{i}-line", at.x, y + 32, at.right, y + 32, "axis") for i, y in enumerate(tops)]
    launch_tip, whole_tip = (
        f"launch: {units.seconds(r.launch_s)}",
        f"one launch for the pass: {units.seconds(r.graph_s)}",
    )
    gap = x(min(now, graph_s)) - at.x
    marks += timed(CLOCK, *about("graph_us", rect("graph-gap", at.x, top, gap, 30, "waste", whole_tip)))
    free = 0.0
    for i, (first, last) in enumerate(_ahead(r, shown, work_s)):
        gap, start, end = x(i * pair_s), x(i * pair_s + r.launch_s), x((i + 1) * pair_s)
        if i < upto:
            tip = f"kernel {i + 1}, {launch_tip}"
            launch = rect(f"gap{i}", gap, waits, start - gap, 30, "waste", tip)
            marks += timed(CLOCK, *about("launches", launch), *_work(r, "work", i, start, end, waits))
        if min(now, first) > free:
            tip = f"the GPU waits for kernel {i + 1}: {units.seconds(first - free)}"
            wide_s = x(min(now, first)) - x(free)
            marks += timed(CLOCK, rect(f"late{i}", x(free), ahead, wide_s, 30, "waste", tip))
        if now > first:
            marks += timed(CLOCK, *_work(r, "ahead", i, x(first), x(min(now, last)), ahead))
        free = last
        start, end = graph_s + i * work_s, min(now, graph_s + (i + 1) * work_s)
        if end > start:
            marks += timed(CLOCK, *_work(r, "replay", i, x(start), x(end), top))
    done_s = graph_s + shown * work_s
    if upto == shown and now - done_s > 1e-9:
        marks += timed(CLOCK, *_gained(x(done_s), x(now), top, now - done_s))
    # on a phone a lane's name is between the lanes, so the line doesn't cross it
    ends = ((at.y - 2, top + 36),) if wide else tuple((y - 2, y + 36) for y in tops)
    marks += [line(f"now{i}", x(now), a, x(now), b, "now") for i, (a, b) in enumerate(ends)]
    for i, (name, y) in enumerate(zip(LANES, tops, strict=True)):
        place = (at.x - 10, y + 21, "end") if wide else (0, y - 6, "start")
        marks.append(text(f"lane{i}-name", *place[:2], name, anchor=place[2]))
    return marks


def _gained(left: float, right: float, top: float, gained_s: float) -> list[dict]:
    """Measure off, under the graph's lane, from its end to the end of the kernels that are awaited one by one."""
    y = top + 42
    return [
        path("gain", [(left, y - 5), (left, y), (right, y), (right, y - 5)], "useful"),
        text(
            "gained",
            right,
            y + 17,
            f"{units.seconds(gained_s)} less than waiting",
            "useful",
            anchor="end",
            bold=True,
        ),
    ]


def _top(r: Result, at: Box, i: int) -> float:
    """Return the top of a pass's bar."""
    return at.y + i * at.h / len(r.shown) + (4 if at.x else 18)


def _bars(r: Result, at: Box) -> list[dict]:
    """Draw the whole pass each way, with a knob where the launches end."""
    passes, wide = r.shown, at.x > 0
    longest_s = r.work_s + r.kernels * r.layers * LAUNCH.max * 1e-6  # the axis holds the slider's whole range
    x, high = linear(0, longest_s, at.x, at.right), 34 if len(passes) < 4 else 22
    layers = "one layer" if r.layers == 1 else f"{r.layers} layers"
    title = f"The whole pass of {layers}"
    if wide:
        title = f"The whole pass of {layers}, all the waiting put together at the end"
    marks = [text("bars-title", 0, at.y - (14 if wide else 24), title, bold=True)]
    fewest = min(p.total_s for p in passes)
    for i, p in enumerate(passes):
        top, start, best = _top(r, at, i), 0.0, p.total_s == fewest
        for k, (name, s) in enumerate(p.parts.items()):
            tip = f"{p.name}, {name}: {units.seconds(s)}"
            bar = rect(f"pass-{i}-{k}", x(start), top, x(start + s) - x(start), high, ROLES[name], tip)
            marks += about("launches" if name == LAUNCHES else "work", bar)
            start += s
        waits, size = f"waits {_small(p.waits)}", "big" if len(passes) < 4 else "body"
        ink = _alarm(p.waits)
        if wide:
            middle = top + high / 2 + 5
            marks.append(text(f"pass-name{i}", at.x - 10, middle, p.name, anchor="end"))
            marks.append(
                text(f"pass-time{i}", 622, middle, units.seconds(p.total_s), "ink", anchor="end", bold=best)
            )
            marks.append(
                text(f"pass-waits{i}", WIDE, middle, waits.removeprefix("waits "), ink, size, "end", True)
            )
        else:
            marks.append(
                text(
                    f"pass-name{i}",
                    0,
                    top - 5,
                    f"{p.name}: {units.seconds(p.total_s)}",
                    "ink",
                    "small",
                    bold=best,
                )
            )
            marks.append(text(f"pass-waits{i}", 336, top - 5, waits, ink, "body", "end", True))
    if wide:
        marks.append(text("waits-head", WIDE, at.y - 14, "waits", "muted", "small", "end"))
    work, each = r.work_s, r.kernels * r.layers * 1e-6
    marks.append(
        handle(
            "pull-launch",
            x(r.eager.total_s),
            _top(r, at, 0) + high / 2,
            "now",
            drag(LAUNCH, "x", lambda us: x(work + us * each)),
        )
    )
    return marks


def _small(share: float) -> str:
    """Return a share, with two decimals where a single decimal would round it to nothing."""
    return units.percent(share, 1 if share >= 1e-3 else 2)


def _faster(times: float) -> str:
    return f"{units.times(times)} as fast"


def _alarm(share: float) -> str:
    return "hot" if share > cost.GRAPH_FIRST_SHARE else "useful"


def _warning(r: Result) -> str:
    if not r.try_graphs_first:
        return ""
    return f"Even if the host runs ahead, the GPU waits {units.percent(r.ahead_share)} of the pass. Above 10%, capture a graph first."


def _takeaway(r: Result) -> str:
    if r.eager.launches_s > r.work_s:
        return "The GPU waits for the CPU here, so a faster GPU would change almost nothing."
    share = units.percent(r.overhead_share, 0 if r.overhead_share >= 0.01 else 1)
    if len(r.shown) > 3:
        return f"Compiled as well, a graph takes {units.seconds(r.shown[-1].total_s)} instead of {units.seconds(r.shown[2].total_s)}."
    if r.launch_s <= r.work_s / r.kernels / r.layers and r.kernels > 1:
        return f"Launches take {share} if the host waits. If it runs ahead, kernels hide all but the first."
    if r.try_graphs_first:
        return f"One graph makes this pass {units.times(r.graph_over_ahead)} as fast as a host that runs ahead can."
    return f"Launches take only {share} of the pass. Look at bytes and arithmetic first."


def _table(r: Result):
    parts = [Column(name, "s", units.seconds) for name in ("GEMM", "element-wise", "launches", "total")]
    columns = ("pass", *parts, "passes a second", Column("as fast", show=units.times))
    rows = [(p.name, p.gemm_s, p.elementwise_s, p.launches_s, p.total_s, p.per_s, p.speedup) for p in r.shown]
    return table(columns, rows)


def _caption(r: Result, upto: int) -> str:
    shown = min(SHOWN, r.kernels)
    work_s = r.work_s / r.layers / r.kernels
    now, graph_s = upto * (r.launch_s + work_s), r.graph_s + shown * work_s
    if upto == shown and shown > 1:
        when = f"in a graph after {units.seconds(graph_s)}"
        return f"Awaited one by one, {shown} kernels are done after {units.seconds(now)}, {when}."
    ahead = min(shown, int((now - r.graph_s) / work_s + 1e-9))
    done = "1 kernel is" if upto == 1 else f"{upto} kernels are"
    return (
        f"After {units.seconds(now)}: {done} done where the host waits, and {max(0, ahead)} of the "
        f"{shown} in the graph."
    )


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    """Return one scene for each kernel of the timeline. The last shows all done."""
    measured = measured or {}
    time_at, bars_at, height = PLACES[width == WIDE]
    share = figure(
        "of the pass, if the host waits for each kernel",
        r.overhead_share,
        units.percent,
        _alarm(r.overhead_share),
        "share",
    )
    ahead = figure("of it, if the host runs ahead", r.ahead_share, _small, _alarm(r.ahead_share))
    graph = figure("in a graph, against running ahead", r.graph_over_ahead, _faster)
    adds = r.graph_over_ahead >= 1.05
    launches = units.seconds(r.overhead_s)
    beside, mine = (), []
    if "launch_s" in measured:
        beside = (beside_model("one launch", measured["launch_s"], r.launch_s, units.seconds),)
        words = f"yours: {units.seconds(measured['launch_s'])} a launch"
        mine = [
            text(
                "yours",
                400 if width == WIDE else 0,
                16 if width == WIDE else 34,
                words,
                "measured",
                "small",
                bold=True,
            )
        ]
    same = {
        "summary": f"{units.counted(r.kernels, 'launch', 'launches')} of {units.seconds(r.launch_s)} "
        f"{'in one layer' if r.layers == 1 else f'in each of {r.layers} layers'} cost "
        f"{launches}; the GPU waits {share.text} of the pass if the host waits for each kernel and {ahead.text} if it runs "
        f"ahead; {f'a graph is {graph.text} as that' if adds else 'a graph adds nothing to that'}.",
        "takeaway": _takeaway(r),
        "figures": (share, ahead, *((graph,) if adds else ())),
        "table": _table(r),
        "height": height,
        "width": width,
        "formula": (
            (
                "{launches} = {kernels} · {launch_us:time of one} · {layers}",
                f"{{kernels:{r.kernels}}} · {{launch_us:{units.seconds(r.launch_s)}}} · {{layers:{r.layers}}} = {{launches:{launches}}}",
            ),
            (
                "{share:waiting for each} = {launches} / ({launches} + {work})",
                f"{{launches:{launches}}} / ({launches} + {{work:{units.seconds(r.work_s)}}}) = {{share:{share.text}}}",
            ),
        ),
        "legend": (("compute", "GEMM"), ("memory", "element-wise"), ("waste", "the GPU waits for a launch")),
        "warning": _warning(r),
        "beside": beside,
    }
    bars = _bars(r, bars_at)
    return [
        Scene(marks=_timeline(r, upto, time_at) + bars + mine, caption=_caption(r, upto), **same)
        for upto in range(0 if r.kernels == 1 else 1, min(SHOWN, r.kernels) + 1)
    ]


SIMULATOR = Declaration(
    title="Launch overhead",
    question="How much of a pass does the GPU spend waiting for its next kernel?",
    controls=(
        slider("kernels", "Kernels a layer", 50, 1, 200),
        LAUNCH,
        log_slider("work_ms", "Work of a layer", 2.0, 0.05, 20.0, unit="ms"),
        slider("layers", "Layers", 1, 1, 128),
        slider(
            "elementwise_percent",
            "Element-wise share of the work",
            40.0,
            0.0,
            100.0,
            step=5.0,
            unit="%",
            more=True,
        ),
        slider(
            "graph_us",
            "Replay of a graph",
            10.0,
            1.0,
            100.0,
            unit="µs",
            more=True,
            help="One launch, however many kernels it holds.",
        ),
        toggle("compiling", "With a compiler, too", more=True, help="Two more passes, compiled."),
        slider(
            "elementwise_cut",
            "Element-wise time that compiling removes",
            70,
            0,
            100,
            step=5,
            unit="%",
            more=True,
        ),
        slider("launch_cut", "Launches that compiling removes", 80, 0, 100, step=5, unit="%", more=True),
    ),
    presets={
        "50 kernels, one layer": {},
        "70 layers of 30": {"kernels": 30, "layers": 70, "launch_us": 7.5, "work_ms": 0.3},
        "Tiny kernels": {"work_ms": 0.2},
        "Six fused kernels": {"kernels": 6},
        "With a compiler": {"compiling": True},
    },
    run=run,
    stepper=Stepper("kernel", frames, lambda r: min(SHOWN, r.kernels) - (r.kernels > 1)),
    prediction=Prediction(
        "A layer launches 50 kernels, each launch costs 10 µs that nothing hides, and all the work takes 2 ms. "
        "What share of the time, in percent, are launches?",
        "overhead_percent",
        "%",
        0.15,
    ),
    measures={"launch_s": "time of one launch on your machine"},
    source="Performance Engineering",
)
