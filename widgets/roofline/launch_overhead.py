"""Launches that nothing hides: what they take of a pass, what a graph gives back, and what a compiler does."""

from dataclasses import dataclass

from kernels.roofline import cost
from widgets import units
from widgets.charts import Box, Part, bars_across, linear
from widgets.controls import log_slider, slider
from widgets.declare import Declaration, Prediction
from widgets.scene import WIDE, Column, Scene, beside_model, figure, line, rect, table, text

GEMM, ELEMENTWISE, LAUNCHES = "GEMM", "element-wise", "launches"
ROLES = {GEMM: "compute", ELEMENTWISE: "memory", LAUNCHES: "overhead"}
SHOWN = 10  # kernels of the timeline
TIME = Box(76, 40, 632, 96)
BARS = Box(176, 204, 380, 136)


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
    overhead_share: float
    overhead_percent: float
    try_graphs_first: bool
    eager: Pass
    graph: Pass
    compiled: Pass
    both: Pass
    gemm_share_compiled: float


def run(kernels, launch_us, work_ms, layers, elementwise_percent, graph_us, elementwise_cut, launch_cut):
    launch_s, work_s = launch_us / 1e6, work_ms / 1e3 * layers
    overhead_s = cost.launch_overhead_s(kernels, launch_s, layers)
    told = cost.launch_share(kernels * layers, launch_s, work_s)
    graph_s = cost.graph_pass_s(graph_us / 1e6)
    narrow_s = work_s * elementwise_percent / 100
    before = {GEMM: work_s * (1 - elementwise_percent / 100), ELEMENTWISE: narrow_s, LAUNCHES: overhead_s}
    shares = {part: s / told.total_s for part, s in before.items()}
    cuts = {ELEMENTWISE: elementwise_cut / 100, LAUNCHES: launch_cut / 100}
    after = cost.compile_dividend(1 / told.total_s, shares, cuts).after_s

    def one(name: str, parts: dict[str, float]) -> Pass:
        total_s = sum(parts.values())
        return Pass(name, *parts.values(), total_s, 1 / total_s, told.total_s / total_s)

    compiled = one("compiled", after)
    return Result(
        kernels, layers, launch_s, graph_s, cost.launch_overhead_s(kernels, launch_s), overhead_s, work_s,
        told.share, 100 * told.share, cost.graphs_first(overhead_s, told.total_s),
        one("as written", before), one("in a graph", {**before, LAUNCHES: graph_s}),
        compiled, one("compiled, in a graph", {**after, LAUNCHES: graph_s}),
        compiled.gemm_s / compiled.total_s,
    )  # fmt: skip


def _lane(id: str, top: float, name: str) -> list[dict]:
    return [
        text(f"{id}-name", TIME.x - 10, top + 21, name, anchor="end"),
        line(f"{id}-line", TIME.x, top + 32, TIME.right, top + 32, "axis"),
    ]


def _timeline(r: Result) -> list[dict]:
    """The first kernels of a layer: a launch before each, then one launch before all of them."""
    shown = min(SHOWN, r.kernels)
    work_s = r.work_s / r.layers / r.kernels
    x = linear(0, shown * (r.launch_s + work_s), TIME.x, TIME.right)
    graph_s = r.graph_s / (r.layers * r.kernels) * shown  # its share of the one launch
    first = "the first" if shown < r.kernels else "all"
    marks = [
        text("time-title", 0, 16, f"{first.capitalize()} {shown} kernels of a layer, in time", bold=True),
        text("time-all", TIME.right, 16, units.seconds(x.hi), "muted", "small", "end"),
        *_lane("eager", TIME.y, "launched"),
        *_lane("graph", TIME.y + 52, "in a graph"),
    ]
    at = 0.0
    launch_tip, work_tip = f"launch: {units.seconds(r.launch_s)}", f"its work: {units.seconds(work_s)}"
    for i in range(shown):
        gap, start, end = x(at), x(at + r.launch_s), x(at + r.launch_s + work_s)
        marks += [
            rect(f"gap{i}", gap, TIME.y + 12, start - gap, 18, "overhead", f"kernel {i + 1}, {launch_tip}"),
            rect(
                f"work{i}",
                start,
                TIME.y,
                max(1, end - start - 1),
                30,
                "compute",
                f"kernel {i + 1}, {work_tip}",
            ),
        ]
        at += r.launch_s + work_s
    top = TIME.y + 52
    marks.append(rect("graph-gap", TIME.x, top + 12, max(1.5, x(graph_s) - TIME.x), 18, "overhead",
                      f"one launch for the pass: {units.seconds(r.graph_s)}"))  # fmt: skip
    for i in range(shown):
        start, end = x(graph_s + i * work_s), x(graph_s + (i + 1) * work_s)
        marks.append(
            rect(
                f"replay{i}",
                start,
                top,
                max(1, end - start - 1),
                30,
                "compute",
                f"kernel {i + 1}, {work_tip}",
            )
        )
    done = x(graph_s + shown * work_s)
    if TIME.right - done > 80:
        marks.append(text("gained", done + 12, top + 21, "time gained", "useful", bold=True))
    return marks


def _bars(r: Result) -> list[dict]:
    passes = (r.eager, r.graph, r.compiled, r.both)
    x = linear(0, r.eager.total_s, BARS.x, BARS.right)
    rows = []
    for p in passes:
        parts = [Part(s, ROLES[name], f"{p.name}, {name}: {units.seconds(s)}") for name, s in p.parts.items()]
        rows.append((p.name, parts, ""))
    layers = "one layer" if r.layers == 1 else f"{r.layers} layers"
    marks = [text("bars-title", 0, BARS.y - 32, f"The whole pass: {layers}", bold=True)]
    marks += bars_across("pass", rows, BARS, x, 0.24)
    marks += _legend(r, x)
    pitch = BARS.h / len(passes)
    for i, p in enumerate(passes):
        y, best = BARS.y + (i + 0.5) * pitch + 5, p.total_s == min(q.total_s for q in passes)
        marks += [
            text(f"pass-time{i}", 648, y, units.seconds(p.total_s), "ink", anchor="end"),
            text(
                f"pass-faster{i}",
                WIDE,
                y,
                units.times(p.speedup),
                "useful" if best else "ink",
                anchor="end",
                bold=best,
            ),
        ]
    return marks


def _legend(r: Result, x) -> list[dict]:
    """The parts' names, above their places in the first bar; a narrow one is named at the bar's end."""
    marks, at, last = [], 0.0, 0.0
    for name, s in r.eager.parts.items():
        left, right = x(at), x(at + s)
        place = max((left + right) / 2, last + 44)
        if s:
            marks.append(
                text(f"part-{name}", place, BARS.y - 6, name, ROLES[name], "small", "middle", bold=True)
            )
            last = place + 40
        at += s
    return marks


def _warning(r: Result) -> str:
    if not r.try_graphs_first:
        return ""
    return f"Launches take {units.percent(r.overhead_share)} of the pass: above 10%, try a CUDA graph before all else."


def _takeaway(r: Result) -> str:
    if r.eager.launches_s > r.work_s:
        return "The GPU waits for the CPU: a GPU that computes twice as fast would change almost nothing."
    if r.try_graphs_first:
        return "A launch costs the same whatever it starts: fewer launches, or one graph, not a faster GPU."
    return "Launches are a small part here: look at bytes and arithmetic first."


def _table(r: Result):
    parts = [Column(name, "s", units.seconds) for name in ("GEMM", "element-wise", "launches", "total")]
    columns = ("pass", *parts, "passes a second", Column("as fast", show=units.times))
    rows = [
        (p.name, p.gemm_s, p.elementwise_s, p.launches_s, p.total_s, p.per_s, p.speedup)
        for p in (r.eager, r.graph, r.compiled, r.both)
    ]
    return table(columns, rows)


def scene(r: Result, measured: dict | None = None) -> Scene:
    measured = measured or {}
    launches = figure("on launches", r.overhead_s, units.seconds, "overhead")
    share = figure("of the pass", r.overhead_share, units.percent, "hot" if r.try_graphs_first else "ink")
    graph = figure("as fast in a graph", r.graph.speedup, units.times, "primary")
    compiled = figure("as fast compiled", r.compiled.speedup, units.times, "useful")
    beside, mine = (), []
    if "launch_s" in measured:
        beside = (beside_model("one launch", measured["launch_s"], r.launch_s, units.seconds),)
        words = f"yours: {units.seconds(measured['launch_s'])} a launch"
        mine = [text("yours", 400, 16, words, "measured", "small", bold=True)]
    return Scene(
        summary=f"{units.count(r.kernels)} launches of {units.seconds(r.launch_s)} in each of {r.layers} layers cost "
        f"{launches.text}, {share.text} of the pass; in a graph it is {graph.text} as fast, compiled {compiled.text}.",
        takeaway=_takeaway(r),
        marks=_timeline(r) + _bars(r) + mine,
        figures=(launches, share, graph, compiled),
        table=_table(r),
        height=BARS.bottom + 6,
        formula=(
            ("launches = kernels · time of one · layers",
             f"{r.kernels} · {units.seconds(r.launch_s)} · {r.layers} = {launches.text}"),
            ("share = launches / (launches + work)",
             f"{launches.text} / ({launches.text} + {units.seconds(r.work_s)}) = {share.text}"),
        ),
        warning=_warning(r),
        beside=beside,
    )  # fmt: skip


SIMULATOR = Declaration(
    title="Launch overhead",
    question="How much of a pass does the GPU spend waiting for its next kernel?",
    controls=(
        slider("kernels", "Kernels a layer", 50, 1, 200),
        slider("launch_us", "Time of a launch", 10.0, 1.0, 20.0, step=0.5, unit="µs"),
        log_slider("work_ms", "Work of a layer", 2.0, 0.05, 20.0, unit="ms"),
        slider("layers", "Layers", 1, 1, 128),
        slider("elementwise_percent", "Element-wise share of the work", 40.0, 0.0, 100.0, step=5.0, unit="%", more=True),
        slider("graph_us", "Replay of a graph", 10.0, 1.0, 100.0, unit="µs", more=True,
               help="One launch, however many kernels it holds."),
        slider("elementwise_cut", "Element-wise time that compiling removes", 70, 0, 100, step=5, unit="%", more=True),
        slider("launch_cut", "Launches that compiling removes", 80, 0, 100, step=5, unit="%", more=True),
    ),
    presets={
        "50 kernels, one layer": {},
        "70 layers of 30": {"kernels": 30, "layers": 70, "launch_us": 7.5, "work_ms": 0.3},
        "Tiny kernels": {"work_ms": 0.2},
        "Six fused kernels": {"kernels": 6},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "A layer launches 50 kernels, each launch costs 10 µs that nothing hides, and all the work takes 2 ms. "
        "What share of the time, in percent, are launches?",
        "overhead_percent",
        "%",
        0.15,
    ),
    measures={"launch_s": "time of one launch on your machine"},
    source="Performance Engineering",
)  # fmt: skip
