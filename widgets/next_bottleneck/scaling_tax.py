"""What of a fleet's GPUs works as well as one node's, and who pays the difference."""

import math
from dataclasses import dataclass

from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, axis_x, axis_y, linear, log, spread, text_width
from widgets.controls import slider, steps
from widgets.declare import Declaration, Prediction
from widgets.scene import WIDE, Column, Scene, about, drag, figure, handle, line, path, rect, table, text

NODE, MEASURED_AT, MOST = 8, 128, 16384
SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 10000, 16384)
GPUS = steps("gpus", "GPUs", 128, SIZES, units.count)
REACHED = slider("measured_mfu", "MFU measured on 128 GPUs", 48, 15, 65, unit="%",
                 help="Each doubling beyond a node adds the same to the step.")  # fmt: skip
SLOW = slider("slow", "One node is slower by", 0, 0, 50, unit="%")
FIELD = 128  # cells at most: each is as many GPUs as it must be
# (the fleet, the curve, one step, height)
PLACES = {True: (Box(0, 34, 300, 150), Box(398, 34, 236, 150), Box(0, 308, 500, 72), 392),
          False: (Box(0, 34, 336, 168), Box(40, 290, 226, 150), Box(0, 534, 250, 72), 616)}  # fmt: skip
DRAWN = 8  # nodes


@dataclass(frozen=True)
class AtSize:
    gpus: int
    mfu: float
    step_s: float
    trace_bytes: float  # five seconds of all of them


@dataclass(frozen=True)
class Result:
    gpus: int
    local_mfu: float
    measured_mfu: float
    growth_per_doubling: float  # of the step, in steps of one node
    curve: tuple[AtSize, ...]
    fleet_mfu: float
    tax: float
    slow_share: float
    straggler_efficiency: float  # useful time of all nodes over what they spend
    mfu: float  # with the slow node and what operating costs
    seen_tax: float  # of it, what a fleet's own measurement shows
    regression: bool
    useful_gpus: float  # as many would do, if each worked as in one node
    tax_gpus: float
    waiting_gpus: float
    operating_gpus: float
    lost_gpus: float
    one_percent_gpus: float
    node_step_s: float
    step_s: float
    benchmark_days: float
    production_days: float
    operating_share: float


def run(gpus, local_mfu, measured_mfu, slow, operating, days, step_ms) -> Result:
    if measured_mfu > local_mfu:
        raise ValueError(
            f"MFU measured on {MEASURED_AT} GPUs must be at most one node's {local_mfu}%, got {measured_mfu}%; "
            "a fleet does not beat its node"
        )
    local, measured, slow_share = local_mfu / 100, measured_mfu / 100, slow / 100
    growth = cost.growth_per_doubling(local, measured, MEASURED_AT, NODE)
    node_step_s = cost.local_step_s(step_ms * 1e-3, local, measured)

    def at(size: int) -> AtSize:
        mfu = cost.fleet_mfu(local, size, growth, NODE)
        return AtSize(size, mfu, node_step_s * local / mfu, cost.trace_bytes(size, 5))

    now = at(gpus)
    kept = 1 - cost.straggler_loss(1 - slow_share)
    operating_share = operating / 100
    with_slow, mfu = now.mfu * kept, now.mfu * kept * (1 - operating_share)
    useful, fleet, waiting = (gpus * one / local for one in (mfu, now.mfu, with_slow))
    tax, seen = cost.scaling_tax(local, now.mfu), cost.scaling_tax(local, with_slow)
    return Result(
        gpus, local, measured, growth, tuple(at(size) for size in SIZES), now.mfu, tax, slow_share, kept,
        mfu, seen, cost.is_regression(seen, tax), useful, gpus - fleet, fleet - waiting, waiting - useful,
        gpus - useful, cost.gpus_saved(gpus, 0.01), node_step_s, now.step_s / kept, days,
        cost.production_days(days, operating_share), operating_share,
    )  # fmt: skip


def _field(r: Result, at: Box) -> list[dict]:
    """Every GPU that is paid for, by what it does: a cell is one GPU, or as many as fit in none less."""
    cells = min(FIELD, r.gpus)
    columns = min(16, cells)
    parts = ((r.useful_gpus, "useful", "work as one node's would"), (r.tax_gpus, "network", "tax"),
             (r.waiting_gpus, "idle", "wait for the slow node"), (r.operating_gpus, "overhead", "operate"))  # fmt: skip
    side = min(at.w / columns, at.h / math.ceil(cells / columns))
    of = "" if cells == r.gpus else f", {units.number(r.gpus / cells)} a square"
    marks = [text("field-title", 0, at.y - 16, f"{units.count(r.gpus)} GPUs paid for{of}", bold=True)]
    ends = [0.0]
    for size, _, _ in parts:
        ends.append(ends[-1] + size / r.gpus * cells)
    for cell in range(cells):
        kind = next((k for k in range(4) if cell + 0.5 < ends[k + 1]), 0)
        x, y = at.x + cell % columns * side, at.y + cell // columns * side
        _, role, words = parts[kind]
        tip = f"{units.number(parts[kind][0])} GPUs {words}"
        marks += about("mfu" if kind == 0 else "tax", rect(f"gpu{cell}", x, y, side - 2, side - 2, role, tip))
    y = at.y + side * math.ceil(cells / columns) + 16
    named = [
        (f"{units.number(size, 3)} {words.split()[0]}", role) for size, role, words in parts if size > 1e-9
    ]
    left = at.x
    for k, (words, role) in enumerate(named):
        left += text_width(named[k - 1][0], "small", True) + 12 if k else 0
        marks.append(
            text(f"field-{k}", left, y, words, "muted" if role == "idle" else role, "small", bold=True)
        )
    return marks


def _curve(r: Result, at: Box) -> list[dict]:
    """MFU by size: the fleet's size and what was measured are pulled."""
    x, y = log(NODE, MOST, at.x, at.right), linear(0, 0.8, at.bottom, at.y)
    marks = axis_y("mfu", y, at.x, "MFU: useful FLOP/s over the peak", lambda v: units.percent(v, 0), at.right,
                   (0, 0.2, 0.4, 0.6, 0.8))  # fmt: skip
    marks += axis_x("gpus", x, at.bottom, "GPUs", units.count, ticks=(8, 128, 1024, 8192))
    marks += about(
        "local_mfu", line("local", at.x, y(r.local_mfu), at.right, y(r.local_mfu), "limit", "MFU of one node")
    )
    marks += about("measured_mfu", path("fleet", [(x(one.gpus), y(one.mfu)) for one in r.curve], "primary"))
    named = [
        ("local", r.local_mfu, f"node {units.percent(r.local_mfu, 0)}", "muted"),
        ("fleet", r.curve[-1].mfu, "fleet", "primary"),
    ]
    if r.mfu < r.fleet_mfu:
        kept = r.mfu / r.fleet_mfu
        marks.append(path("real", [(x(one.gpus), y(one.mfu * kept)) for one in r.curve], "hot"))
        named.append(("real", r.curve[-1].mfu * kept, "as run", "hot"))
    for (id, _, words, role), place in zip(
        named, spread([y(value) for _, value, _, _ in named]), strict=True
    ):
        marks.append(text(f"{id}-name", at.right + 10, place + 4, words, role, "small", bold=role != "muted"))
    here, shown = x(r.gpus), units.percent(r.mfu)
    lost = f"lost: {units.percent(1 - r.mfu / r.local_mfu)}"
    marks += about("tax", line("gap", here, y(r.local_mfu), here, y(r.mfu), "hot", lost))
    marks.append(handle("pull-measured", x(MEASURED_AT), y(r.measured_mfu), "primary",
                        drag(REACHED, "y", lambda percent: y(percent / 100))))  # fmt: skip
    marks.append(
        handle(
            "pull-gpus",
            here,
            at.bottom,
            "hot",
            drag(GPUS, "x", x),
            tip=f"{units.count(r.gpus)} GPUs: {shown}",
        )
    )
    side, shift = ("end", -11) if here > at.x + 120 else ("start", 11)
    return [
        *marks,
        text("here-name", here + shift, min(at.bottom - 16, y(r.mfu) + 24), shown, "hot", "body", side, True),
    ]


def _nodes(r: Result, at: Box) -> list[dict]:
    """One synchronous step: every node waits for the slowest, whose bar's end is pulled."""
    nodes = max(1, r.gpus // NODE)
    drawn = min(DRAWN, nodes)
    pitch, x, slow_s = at.h / DRAWN, linear(0, 2, at.x, at.right), 1 / (1 - r.slow_share)
    of = (
        f"{drawn} of {units.count(nodes)} nodes"
        if drawn < nodes
        else f"{nodes} nodes"
        if nodes > 1
        else "one node"
    )
    marks = [
        text(
            "nodes-title",
            0,
            at.y - 12,
            f"One step of {of}" + (": all wait for the slowest" if at.w > 400 else ""),
            bold=True,
        )
    ]
    for i in range(drawn):
        y, slow = at.y + i * pitch, i == drawn // 2 and r.slow_share > 0
        takes = slow_s if slow else 1.0
        tip = f"Node {i}: {units.number(takes)} of a healthy step"
        marks.append(
            rect(f"node{i}", x(0), y, x(takes) - x(0), pitch - 1.2, "hot" if slow else "useful", tip)
        )
        if not slow and r.slow_share:
            marks.append(
                rect(f"node{i}-wait", x(1), y, x(slow_s) - x(1), pitch - 1.2, "idle", f"Node {i} waits")
            )
    end, middle = x(slow_s if r.slow_share else 1), at.y + (drawn // 2 + 0.5) * pitch
    marks.append(
        handle("pull-slow", end, middle, "hot", drag(SLOW, "x", lambda percent: x(100 / (100 - percent))))
    )
    words = f"step {units.seconds(r.step_s)}"
    if at.w > 400:
        return [*marks, text("nodes-end", end + 24, middle + 4, words, bold=True)]
    return [*marks, text("nodes-end", 340, at.y - 12, words, anchor="end", bold=True)]


def _takeaway(r: Result) -> str:
    if r.slow_share and r.gpus > NODE:
        return "One slow node is everyone's step: nothing in the other nodes' traces shows why."
    if r.operating_share:
        return "A hero run's MFU is a ceiling: plan with what observing, saving and heat take away."
    if r.gpus <= NODE:
        return "Within a node there is no tax yet: this is the MFU to compare a fleet with."
    return "A stable tax is the price of scale; a tax that jumps is a regression to look for."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    field_at, curve_at, nodes_at, height = PLACES[width == WIDE]
    mfu = figure("MFU of the fleet", r.mfu, units.percent, "hot")
    lost = figure(f"of {units.count(r.gpus)} GPUs lost", r.lost_gpus, units.number, "hot")
    tax = figure("scaling tax", r.tax, units.percent, "network", "tax")
    worth = figure("GPUs that 1% better is worth", r.one_percent_gpus, units.number, "useful")
    doublings = max(0.0, math.log2(r.gpus / NODE))
    days = f"{units.number(r.benchmark_days)} days / (1 − {r.operating_share}) = {units.number(r.production_days)} days"
    return Scene(
        summary=f"One node reaches {units.percent(r.local_mfu)} MFU, {units.count(r.gpus)} GPUs {mfu.text}: a scaling "
        f"tax of {tax.text}, and {lost.text} GPUs in all work for nothing; one percent better is worth {worth.text} GPUs.",
        takeaway=_takeaway(r),
        marks=_field(r, field_at) + _curve(r, curve_at) + _nodes(r, nodes_at),
        figures=(mfu, tax, lost, worth),
        table=table(
            ("GPUs", Column("MFU", show=units.percent), Column("step", "s", units.seconds), Column("5 s of traces", "B", units.si_bytes)),
            [(units.count(one.gpus), one.mfu, one.step_s, one.trace_bytes) for one in r.curve],
        ),
        height=height,
        width=width,
        formula=(
            ("{tax} = 1 − {measured_mfu:fleet MFU} / {local_mfu:node MFU}", f"1 − {units.number(r.fleet_mfu)} / {{local_mfu:{r.local_mfu}}} = {{tax:{tax.text}}}"),
            (
                "step = node's step · (1 + growth a doubling · doublings)",
                f"{units.seconds(r.node_step_s)} · (1 + {units.number(r.growth_per_doubling)} · {units.number(doublings)}) "
                f"= {units.seconds(r.node_step_s * (1 + r.growth_per_doubling * doublings))}",
            ),
            *((("days = benchmark / (1 − operating)", days),) if r.operating_share else ()),
        ),
        warning=f"The tax rose from {tax.text} to {units.percent(r.seen_tax)}: a regression. Compare the nodes' step times."
        if r.regression
        else "",
    )  # fmt: skip


SIMULATOR = Declaration(
    title="Scaling tax",
    question="How many of a fleet's GPUs work as well as those of one node?",
    controls=(
        GPUS,
        slider("local_mfu", "MFU of one node", 65, 30, 75, unit="%"),
        REACHED,
        SLOW,
        slider("operating", "Operating takes", 0, 0, 30, unit="%", more=True,
               help="Logs, checkpoints, heat, noise: 10 to 20% under a hero run."),
        slider("days", "Days that a benchmark projects", 30, 1, 120, more=True),
        slider("step_ms", "Step on 128 GPUs", 245, 50, 1000, step=5, unit="ms", more=True),
    ),
    presets={
        "128 GPUs": {},
        "One slow node": {"slow": 10},
        "92% busy, 30% useful": {"measured_mfu": 30},
        "10,000 GPUs": {"gpus": 10000},
        "Benchmark and production": {"operating": 20},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "One node of 8 GPUs reaches 65% MFU; 128 GPUs reach 48%. Measured by one node's pace, how many of the 128 GPUs "
        "work for nothing?",
        "lost_gpus",
        "GPUs",
    ),
    source="Performance Engineering",
)  # fmt: skip
