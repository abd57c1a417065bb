"""What of a fleet's GPUs works as well as one node's, and who pays the difference."""

import math
from dataclasses import dataclass

from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, axis_x, axis_y, linear, log, spread, text_width
from widgets.controls import slider, steps
from widgets.declare import Declaration, Prediction
from widgets.scene import Column, Scene, circle, figure, line, path, rect, table, text

NODE, MEASURED_AT, MOST = 8, 128, 16384
SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 10000, 16384)
PLOT = Box(48, 34, 500, 170)
PAID = Box(0, 286, 720, 34)
NODES = Box(0, 372, 560, 72)
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


def _curve(r: Result) -> list[dict]:
    x, y = log(NODE, MOST, PLOT.x, PLOT.right), linear(0, 0.8, PLOT.bottom, PLOT.y)
    marks = axis_y(
        "mfu",
        y,
        PLOT.x,
        "MFU: useful FLOP/s over the peak",
        lambda v: units.percent(v, 0),
        PLOT.right,
        (0, 0.2, 0.4, 0.6, 0.8),
    )
    marks += axis_x("gpus", x, PLOT.bottom, "GPUs", units.count, ticks=(8, 128, 1024, 8192))
    marks.append(
        line("local", PLOT.x, y(r.local_mfu), PLOT.right, y(r.local_mfu), "limit", "MFU of one node")
    )
    marks.append(path("fleet", [(x(one.gpus), y(one.mfu)) for one in r.curve], "primary"))
    named = [("local", r.local_mfu, f"one node: {units.percent(r.local_mfu, 0)}", "muted"),
             ("fleet", r.curve[-1].mfu, "fleet", "primary")]  # fmt: skip
    if r.mfu < r.fleet_mfu:
        kept = r.mfu / r.fleet_mfu
        marks.append(path("real", [(x(one.gpus), y(one.mfu * kept)) for one in r.curve], "hot"))
        named.append(("real", r.curve[-1].mfu * kept, "as it runs", "hot"))
    places = spread([y(value) for _, value, _, _ in named])
    for (id, _, words, role), at in zip(named, places, strict=True):
        marks.append(text(f"{id}-name", PLOT.right + 10, at + 4, words, role, bold=role != "muted"))
    tip = f"Measured on {MEASURED_AT} GPUs: {units.percent(r.measured_mfu)}"
    marks.append(circle("measured-at", x(MEASURED_AT), y(r.measured_mfu), 4, "secondary", tip))
    at, shown = x(r.gpus), units.percent(r.mfu)
    marks.append(
        line(
            "gap", at, y(r.local_mfu), at, y(r.mfu), "hot", f"lost: {units.percent(1 - r.mfu / r.local_mfu)}"
        )
    )
    marks.append(circle("here", at, y(r.mfu), 6, "hot", f"{units.count(r.gpus)} GPUs: {shown}"))
    side, shift = ("end", -11) if at > PLOT.x + 120 else ("start", 11)
    return [*marks, text("here-name", at + shift, y(r.mfu) + 19, shown, "hot", "body", side, True)]


def _paid(r: Result) -> list[dict]:
    """All GPUs that are paid for, by what they do."""
    x = linear(0, r.gpus, PAID.x, PAID.right)
    parts = (
        ("useful", r.useful_gpus, "useful", "work as one node's would"),
        ("tax", r.tax_gpus, "network", "tax"),
        ("waiting", r.waiting_gpus, "idle", "wait"),
        ("operating", r.operating_gpus, "overhead", "operate"),
    )
    title = f"{units.count(r.gpus)} GPUs paid for"
    marks, at = [text("paid-title", 0, PAID.y - 10, title, "muted", "small")], 0.0
    for id, size, role, words in parts:
        left, wide = x(at), x(at + size) - x(at)
        shown = units.number(size)
        marks.append(
            rect(f"paid-{id}", left, PAID.y, max(0, wide - 1.5), PAID.h, role, f"{shown} GPUs: {words}")
        )
        name = next(
            (
                n
                for n in (f"{shown} {words}", f"{shown} {words.split()[0]}", shown)
                if text_width(n, bold=True) < wide - 8
            ),
            "",
        )
        if name:
            ink = "ink" if role == "idle" else "inverse"
            marks.append(
                text(f"paid-{id}-name", left + wide / 2, PAID.y + 22, name, ink, anchor="middle", bold=True)
            )
        at += size
    return marks


def _nodes(r: Result) -> list[dict]:
    """One synchronous step: every node waits for the slowest."""
    nodes = max(1, r.gpus // NODE)
    drawn = min(DRAWN, nodes)
    pitch = NODES.h / DRAWN
    x = linear(0, 2, NODES.x, NODES.right)
    slow_s = 1 / (1 - r.slow_share)
    of = (
        f"{drawn} of {units.count(nodes)} nodes"
        if drawn < nodes
        else f"{nodes} nodes"
        if nodes > 1
        else "one node"
    )
    marks = [
        text("nodes-title", 0, NODES.y - 10, f"one step of {of}: all wait for the slowest", "muted", "small")
    ]
    for i in range(drawn):
        y, slow = NODES.y + i * pitch, i == drawn // 2 and r.slow_share > 0
        takes = slow_s if slow else 1.0
        tip = f"Node {i}: {units.number(takes)} of a healthy step"
        marks.append(
            rect(f"node{i}", x(0), y, x(takes) - x(0), pitch - 1.2, "hot" if slow else "useful", tip)
        )
        if not slow and r.slow_share:
            marks.append(
                rect(f"node{i}-wait", x(1), y, x(slow_s) - x(1), pitch - 1.2, "idle", f"Node {i} waits")
            )
    end = x(slow_s if r.slow_share else 1)
    marks.append(text("nodes-end", end + 10, NODES.y + 40, f"step {units.seconds(r.step_s)}", bold=True))
    return marks


def _takeaway(r: Result) -> str:
    if r.slow_share and r.gpus > NODE:
        return "One slow node is everyone's step: nothing in the other nodes' traces shows why."
    if r.operating_share:
        return "A hero run's MFU is a ceiling: plan with what observing, saving and heat take away."
    if r.gpus <= NODE:
        return "Within a node there is no tax yet: this is the MFU to compare a fleet with."
    return "A stable tax is the price of scale; a tax that jumps is a regression to look for."


def scene(r: Result, measured: dict | None = None) -> Scene:
    mfu = figure("MFU of the fleet", r.mfu, units.percent, "hot")
    lost = figure(f"of {units.count(r.gpus)} GPUs lost", r.lost_gpus, units.number, "hot")
    tax = figure("scaling tax", r.tax, units.percent, "network")
    worth = figure("GPUs that 1% better is worth", r.one_percent_gpus, units.number, "useful")
    doublings = max(0.0, math.log2(r.gpus / NODE))
    days = f"{units.number(r.benchmark_days)} days / (1 − {r.operating_share}) = {units.number(r.production_days)} days"
    return Scene(
        summary=f"One node reaches {units.percent(r.local_mfu)} MFU, {units.count(r.gpus)} GPUs {mfu.text}: a scaling "
        f"tax of {tax.text}, and {lost.text} GPUs in all work for nothing; one percent better is worth {worth.text} GPUs.",
        takeaway=_takeaway(r),
        marks=_curve(r) + _paid(r) + _nodes(r),
        figures=(mfu, tax, lost, worth),
        table=table(
            ("GPUs", Column("MFU", show=units.percent), Column("step", "s", units.seconds), Column("5 s of traces", "B", units.si_bytes)),
            [(units.count(one.gpus), one.mfu, one.step_s, one.trace_bytes) for one in r.curve],
        ),
        height=450,
        formula=(
            ("tax = 1 − fleet MFU / node MFU", f"1 − {units.number(r.fleet_mfu)} / {r.local_mfu} = {tax.text}"),
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
        steps("gpus", "GPUs", 128, SIZES, units.count),
        slider("local_mfu", "MFU of one node", 65, 30, 75, unit="%"),
        slider("measured_mfu", "MFU measured on 128 GPUs", 48, 15, 65, unit="%",
               help="Each doubling beyond a node adds the same to the step."),
        slider("slow", "One node is slower by", 0, 0, 50, unit="%"),
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
