"""Show every GPU that is paid for, both those that work as in one node and those lost to the fleet."""

import math
from dataclasses import dataclass

from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, text_width
from widgets.controls import slider, steps
from widgets.declare import Declaration, Prediction
from widgets.scene import WIDE, Column, Scene, about, drag, figure, handle, line, path, rect, table, text

NODE, MEASURED_AT, MOST = 8, 128, 16384
SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 10000, 16384)
GPUS = steps("gpus", "GPUs", 128, SIZES, units.count)
REFERENCE_MFU = 65  # the node as it was measured, in percent
LOCAL = slider("local_mfu", "MFU of one node", REFERENCE_MFU, 30, 75, unit="%", more=True,
               help="The same work at a larger share of the peak: a shorter step.")  # fmt: skip


def _added_ms(measured_mfu: int) -> float:
    """Return the ms that 128 GPUs added to 181 ms where this MFU was measured."""
    return round(cost.added_step_s(181, REFERENCE_MFU / 100, measured_mfu / 100), 1)


ADDED = steps("added_ms", "Scale adds", _added_ms(48), [_added_ms(mfu) for mfu in range(65, 14, -1)],
              lambda ms: units.seconds(ms * 1e-3),
              help="To a step at 128 GPUs. Each of the four doublings from 8 adds a quarter.")  # fmt: skip
SLOW = slider("slow", "Slow node", 0, 0, 50, unit="%")
FIELD = 128  # cells at most, each for as many GPUs as needed
# (the fleet, the columns of other sizes, height)
PLACES = {
    True: (Box(0, 48, 708, 132), Box(0, 322, 708, 62), 424),
    False: (Box(0, 66, 328, 150), Box(0, 384, 328, 70), 496),
}
BUSY_IS_NOT_USEFUL = 1 / 3  # of the time that the counter calls busy


@dataclass(frozen=True)
class AtSize:
    gpus: int
    mfu: float
    step_s: float
    work_share: float  # of its GPUs, as it runs
    shares: tuple[float, ...]  # of its GPUs: work, and what the tax, the slow node and operating take off it
    trace_bytes: float  # five seconds of all nodes


@dataclass(frozen=True)
class Result:
    gpus: int
    local_mfu: float
    measured_mfu: float
    added_measured_s: float  # to a step, on the measured number of GPUs
    reference_step_s: float  # one node's, at the reference's MFU
    curve: tuple[AtSize, ...]
    fleet_mfu: float
    tax: float
    slow_share: float
    straggler_efficiency: float  # useful time of all nodes over the time they spend
    mfu: float  # with the slow node and what operating costs
    seen_tax: float  # of the tax, the share in a fleet's own measurement
    regression: bool
    useful_gpus: float  # the GPUs that would suffice, if each worked as in one node
    tax_gpus: float
    waiting_gpus: float
    operating_gpus: float
    lost_gpus: float
    parts: cost.StepParts
    step_s: float
    mean_step_s: float  # operating included
    benchmark_days: float
    production_days: float
    operating_share: float
    busy_share: float  # what the GPUs' own counter says


def run(gpus, local_mfu, added_ms, slow, operating, busy, days, node_step_ms) -> Result:
    local, slow_share, operating_share = local_mfu / 100, slow / 100, operating / 100
    reference_s, added_s = node_step_ms * 1e-3, added_ms * 1e-3
    node_s = cost.step_at_mfu_s(reference_s, REFERENCE_MFU / 100, local)

    def parts(size: int, speed: float = 1.0, operates: float = 0.0) -> cost.StepParts:
        return cost.step_parts(
            node_s, cost.added_at_s(added_s, MEASURED_AT, size, NODE) / node_s, speed, operates
        )

    def at(size: int) -> AtSize:
        step = parts(size)
        well, slowed, runs = (
            one.shares[0]
            for one in (step, parts(size, 1 - slow_share), parts(size, 1 - slow_share, operating_share))
        )
        shares = (runs, 1 - well, well - slowed, slowed - runs)
        return AtSize(size, local * well, step.step_s, runs, shares, cost.trace_bytes(size, 5))

    now = at(gpus)
    kept = 1 - cost.straggler_loss(1 - slow_share)
    with_slow, mfu = now.mfu * kept, now.mfu * kept * (1 - operating_share)
    tax, seen = cost.scaling_tax(local, now.mfu), cost.scaling_tax(local, with_slow)
    step = parts(gpus, 1 - slow_share, operating_share)
    useful, taxed, waiting, operate = (gpus * share for share in now.shares)
    return Result(
        gpus, local, at(MEASURED_AT).mfu, added_s, reference_s, tuple(at(size) for size in SIZES), now.mfu, tax, slow_share, kept,
        mfu, seen, cost.is_regression(seen, tax), useful, taxed, waiting, operate,
        gpus - useful, step, step.step_s, step.mean_s, days,
        cost.production_days(days, operating_share), operating_share, busy / 100,
    )  # fmt: skip


def _kinds(r: Result) -> tuple[tuple[str, float, str, str], ...]:
    """List the kinds of paid GPUs as (word, number, role, meaning)."""
    waits = (
        "are lost to the slow node and the wait for it"
        if r.gpus > NODE
        else "are lost to the node's slowness"
    )
    return (
        ("work", r.useful_gpus, "useful", "work as one node's would"),
        ("are the tax of scale", r.tax_gpus, "network", "are the tax of scale"),
        ("lost to the slow node" if r.gpus > NODE else "slower", r.waiting_gpus, "idle", waits),
        ("lost to operating", r.operating_gpus, "overhead", "are lost to operating the fleet"),
    )


def _ink(role: str) -> str:
    return "muted" if role == "idle" else role


def _field(r: Result, at: Box) -> list[dict]:
    """Draw every paid GPU by its work, column by column, so that each kind ends at its share of the width."""
    cells, wide = min(FIELD, r.gpus), at.w > 400
    columns = 8 if cells < 64 else 16
    rows, kinds = cells // columns, _kinds(r)
    w, h = at.w / columns, at.h / rows
    of = "" if cells == r.gpus else f"; one box is {units.number(r.gpus / cells)} GPUs"
    marks = [text("field-title", 0, 16, f"{units.count(r.gpus)} GPUs paid for{of}", bold=True)]
    step = f"a step of {units.seconds(r.parts.work_s)} takes {units.seconds(r.mean_step_s)}"
    days = f"{units.number(r.benchmark_days)} days become {units.number(r.production_days)}"
    marks += about(
        "step",
        text(
            "step",
            at.right,
            16 if wide else 34,
            f"{step}, {days}" if r.operating_share else step,
            "muted",
            "small",
            "end",
        ),
    )
    ends = [0.0]
    for _, size, _, _ in kinds:
        ends.append(ends[-1] + size / r.gpus * cells)
    for cell in range(cells):
        kind = next((k for k in range(4) if cell + 0.5 < ends[k + 1]), 0)
        _, size, role, words = kinds[kind]
        square = rect(
            f"gpu{cell}",
            at.x + cell // rows * w,
            at.y + cell % rows * h,
            w - 2,
            h - 2,
            role,
            f"{units.number(size)} GPUs {words}",
        )
        marks += about("work" if kind == 0 else "tax", square)
    return marks + _slow_node(r, at, columns, rows) + _names(r, at) + _edges(r, at) + _counter(r, at)


def _slow_node(r: Result, at: Box, columns: int, rows: int) -> list[dict]:
    """Frame the boxes of the one slow node, where a box is a GPU."""
    if not r.slow_share or not NODE < r.gpus <= FIELD:
        return []
    wide = at.w / columns * NODE / rows - 2
    tip = f"one node of {NODE} is {units.percent(r.slow_share, 0)} slower, and all others wait for it"
    corners = [
        (at.x, at.y),
        (at.x + wide, at.y),
        (at.x + wide, at.bottom - 2),
        (at.x, at.bottom - 2),
        (at.x, at.y),
    ]
    return [
        path("slow-node", corners, "hot", tip),
        text("slow-node-name", at.x, at.y - 8, "slow node's size", "hot", "small", bold=True),
    ]


def _names(r: Result, at: Box) -> list[dict]:
    """Name each kind under its squares, pushed apart where they are few."""
    named, start = [], 0.0
    for word, size, role, _ in _kinds(r):
        if size > 1e-9:
            named.append((at.x + start * at.w, f"{units.number(size)} GPUs {word}", role))
        start += size / r.gpus
    # the answer first, as large as it fits beside the rest
    sizes = (("huge", "big"), ("huge", "body"), ("big", "body"), ("body", "body"))
    sizes = sizes if at.w > 400 else (("big", "small"), ("small", "small"))

    def wide(words: str, size: str) -> float:
        return text_width(words, size, True) + 14

    def room(first: str, rest: str) -> float:
        return sum(wide(words, rest if k else first) for k, (_, words, _) in enumerate(named))

    # where there is less room: fewer words, then no unit, then the colour alone says which
    for shorter in (
        lambda words: words.replace("are the tax of scale", "tax"),
        lambda words: words.replace("lost to the slow node", "slow node").replace("lost to ", ""),
        lambda words: words.replace(" GPUs", ""),
        lambda words: words.split()[0],
    ):
        if room(*sizes[-1]) > at.w:
            named = [(x, shorter(words), role) for x, words, role in named]
    first, rest = next((pair for pair in sizes if room(*pair) <= at.w), sizes[-1])
    marks, left = [], at.x
    for k, (x, words, role) in enumerate(named):
        size = rest if k else first
        after = sum(wide(later, rest) for _, later, _ in named[k:])
        left = max(left, min(x, at.right + 14 - after) if k else at.x)
        marks.append(text(f"field-{role}", left, at.bottom + 42, words, _ink(role), size, bold=True))
        left += wide(words, size)
    return marks


def _edges(r: Result, at: Box) -> list[dict]:
    """Let the end of the working GPUs and the end of the GPUs that don't wait be pulled."""
    work, well = r.parts.work_s, r.parts.work_s + r.parts.tax_s
    stretched = r.mean_step_s / well  # by the slow node and by operating
    taxed = r.tax_gpus / r.gpus
    doublings = math.log2(r.gpus / NODE) / math.log2(MEASURED_AT / NODE)
    edge = at.x + at.w * r.useful_gpus / r.gpus
    waits = at.x + at.w * (r.useful_gpus + r.tax_gpus) / r.gpus
    added = drag(ADDED, "x", lambda ms: at.x + at.w * work / (work + doublings * ms * 1e-3) / stretched)
    slow = drag(SLOW, "x", lambda percent: at.x + at.w
                * (taxed + (1 - taxed) * (1 - percent / 100) * (1 - r.operating_share)))  # fmt: skip
    tip = f"{units.count(r.gpus)} GPUs add {units.seconds(r.parts.tax_s)} to a step of {units.seconds(work)}"
    return [
        line("edge", edge, at.bottom - 2, edge, at.bottom + 12, "primary"),
        handle("pull-added", edge, at.bottom + 13, "primary", added, tip=tip),
        line("slow-edge", waits, at.y - 15, waits, at.y, "hot"),
        handle("pull-slow", waits, at.y - 15, "hot", slow),
    ]


def _counter(r: Result, at: Box) -> list[dict]:
    """Draw what the GPUs' own counter calls busy, on the width of all that are paid for."""
    y, end = at.bottom + 54, at.x + at.w * r.busy_share
    words = f"{units.percent(r.busy_share, 0)} busy, says the GPUs' own counter"
    return about(
        "busy",
        [
            line("busy", at.x, y, end, y, "secondary", f"{words}, at any size"),
            line("busy-end", end, y - 5, end, y + 5, "secondary"),
            text("busy-name", at.x, y + 17, words, "secondary", "small"),
        ],
    )


def _lost(id: str, one: AtSize, left: float, w: float, at: Box, tip: str) -> list[dict]:
    """Draw what a fleet loses above its work, in the colours of the large field."""
    marks, y = [], at.bottom - at.h * one.shares[0]
    for role, share in zip(("network", "idle", "overhead"), one.shares[1:], strict=True):
        y -= at.h * share
        marks.append(rect(f"{id}-{role}", left, y, w, at.h * share, role, tip))
    return marks


def _sizes(r: Result, at: Box) -> list[dict]:
    """Draw the share that works in a fleet of each size, and pull the fleet's size."""
    wide, pitch = at.w > 400, at.w / len(SIZES)
    x_of = {size: at.x + pitch * (i + 0.5) for i, size in enumerate(SIZES)}
    marks = [text("sizes-title", 0, at.y - 24, "Pull the fleet's size: the share that works", bold=True)]
    for one in r.curve:
        x, high, now = x_of[one.gpus], at.h * one.work_share, one.gpus == r.gpus
        left, w, shown = x - pitch * 0.35, pitch * 0.7, units.percent(one.work_share, 0)
        tip = f"{units.count(one.gpus)} GPUs: {shown} of them work"
        id = f"size{one.gpus}"
        marks += [
            *_lost(id, one, left, w, at, tip),
            rect(f"{id}-work", left, at.bottom - high, w, high, "useful", tip),
        ]
        end = one.gpus in (8, 16384) and abs(x - x_of[r.gpus]) > 50
        if wide or now or end:
            side, place = ("start", at.x) if x < 20 else ("middle", x)
            if one.gpus == 16384 and not wide:
                side, place = "end", at.right
            role = "useful" if now else "muted"
            marks.append(text(f"{id}-share", place, at.y - 5, shown, role, "small", side, now))
        if wide or now or end:
            anchor = (
                "middle" if wide else "start" if one.gpus == 8 else "end" if one.gpus > 8192 else "middle"
            )
            where = {"start": at.x, "middle": x, "end": at.right}[anchor]
            marks.append(
                text(
                    f"{id}-name",
                    where,
                    at.bottom + 38,
                    units.count(one.gpus),
                    "ink" if now else "muted",
                    "small",
                    anchor,
                    now,
                )
            )
    track = at.bottom + 13
    marks.append(line("sizes-track", x_of[SIZES[0]], track, x_of[SIZES[-1]], track, "axis"))
    return [*marks, handle("pull-gpus", x_of[r.gpus], track, "primary", drag(GPUS, "x", x_of.get))]


def _tax_figure(r: Result):
    words = (
        "lost to tax and waiting"
        if r.slow_share
        else "scaling tax while it trains"
        if r.operating_share
        else "scaling tax"
    )
    return figure(words, r.seen_tax, units.percent, term="tax")


def _takeaway(r: Result) -> str:
    if r.slow_share and r.gpus > NODE:
        slower, waits = units.percent(r.slow_share, 0), units.number(r.waiting_gpus)
        return f"One node of {NODE} GPUs is {slower} slower. With the wait for it that costs {waits} GPUs."
    if r.operating_share:
        return "A benchmark's MFU is the ceiling. Plan for what monitoring, checkpoints and heat take off it."
    if r.gpus > NODE and r.added_measured_s and r.local_mfu * 100 > REFERENCE_MFU:
        return "A better node shortens every step alike. What the fleet adds stays, and is a larger share."
    if r.gpus > NODE and r.added_measured_s and r.local_mfu * 100 < REFERENCE_MFU:
        return "A worse node lengthens every step, so the tax only looks smaller."
    if r.mfu < r.busy_share * BUSY_IS_NOT_USEFUL:
        busy, got = units.percent(r.busy_share, 0), units.number(r.useful_gpus)
        return f"Busy is not useful: the counter says {busy}, but {units.count(r.gpus)} GPUs do the work of {got}."
    if r.gpus <= NODE:
        return "Within one node there is no tax yet. Compare a fleet with this MFU."
    if r.seen_tax < 0.005:
        return "Here the fleet adds next to nothing to a step, so scale costs nothing."
    got = units.number(r.useful_gpus)
    return f"You pay for {units.count(r.gpus)} GPUs and get the work of {got}. The rest wait for each other."


def _formula(r: Result, tax: str) -> tuple[tuple[str, str], ...]:
    doublings = max(0.0, math.log2(r.gpus / NODE))
    lost = "{tax:lost}" if r.slow_share else "{tax}"
    fleet = "fleet MFU without the slow node" if r.slow_share else "fleet MFU"
    slow, slowed = ("", "") if not r.slow_share else (" · (1 − {slow})", f" · (1 − {{slow:{r.slow_share}}})")
    over, overed = ("", "") if not r.slow_share else (" / (1 − {slow})", f" / (1 − {{slow:{r.slow_share}}})")
    run, ran = (
        ("", "")
        if not r.operating_share
        else (" / (1 − {operating})", f" / (1 − {{operating:{r.operating_share}}})")
    )
    days = f"{units.number(r.benchmark_days)} days{ran} = {units.number(r.production_days)} days"
    own, owned = (
        f"{{node_step_ms:its step at {REFERENCE_MFU}%}}",
        f"{{node_step_ms:{units.seconds(r.reference_step_s)}}}",
    )
    node, added = units.seconds(r.parts.work_s), units.seconds(r.added_measured_s)
    node_s = (
        f"{{work:node's step}} = {own} · {REFERENCE_MFU} / {{local_mfu:node MFU}}",
        f"{owned} · {REFERENCE_MFU} / {{local_mfu:{units.number(r.local_mfu * 100)}}} = {{work:{node}}}",
    )
    return (
        (
            f"{lost} = 1 − {{added_ms:{fleet}}}{slow} / {{local_mfu:node MFU}}",
            f"1 − {units.number(r.fleet_mfu)}{slowed} / {{local_mfu:{r.local_mfu}}} = {{tax:{tax}}}",
        ),
        *((node_s,) if r.local_mfu * 100 != REFERENCE_MFU else ()),
        (
            f"{{step}} = ({{work:node's step}} + {{added_ms:added on {MEASURED_AT}}} · doublings / 4){over}{run}",
            f"({{work:{node}}} + {{added_ms:{added}}} · {units.number(doublings)} / 4){overed}{ran} = "
            f"{{step:{units.seconds(r.mean_step_s)}}}",
        ),
        *(((f"days = benchmark{run}", days),) if r.operating_share else ()),
    )


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    field_at, sizes_at, height = PLACES[width == WIDE]
    useful = figure(
        f"GPUs' worth of work from {units.count(r.gpus)}", r.useful_gpus, units.number, "useful", "work"
    )
    lost = figure("GPUs' worth lost", r.lost_gpus, units.number, "ink")
    mfu = figure("MFU of the fleet", r.mfu, units.percent)
    tax = _tax_figure(r)
    return Scene(
        summary=f"One node reaches {units.percent(r.local_mfu)} MFU, {units.count(r.gpus)} GPUs {mfu.text}: "
        f"{'a loss' if r.slow_share else 'a scaling tax'} of {tax.text}. They do the work of {useful.text}, {lost.text} work for nothing, and a step "
        f"of {units.seconds(r.parts.work_s)} takes {units.seconds(r.mean_step_s)}. "
        f"The GPUs' counter says {units.percent(r.busy_share, 0)} busy.",
        takeaway=_takeaway(r),
        marks=_field(r, field_at) + _sizes(r, sizes_at),
        figures=(useful, lost, tax, mfu),
        table=table(
            (
                "GPUs",
                Column("MFU", show=units.percent),
                Column("share that works", show=units.percent),
                Column("step", "s", units.seconds),
                Column("5 s of traces", "B", units.si_bytes),
            ),
            [
                (units.count(one.gpus), one.mfu, one.work_share, one.step_s, one.trace_bytes)
                for one in r.curve
            ],
        ),
        height=height,
        width=width,
        formula=_formula(r, tax.text),
        warning=f"What is lost rose from {units.percent(r.tax)} to {tax.text}: a regression that looks like a tax of scale. "
        "Compare the nodes' step times."
        if r.regression
        else "",
    )


SIMULATOR = Declaration(
    title="Scaling tax",
    question="You pay for a fleet. How many GPUs' worth of work do you get?",
    controls=(
        GPUS,
        ADDED,
        SLOW,
        LOCAL,
        slider(
            "operating",
            "Operating takes",
            0,
            0,
            30,
            unit="%",
            more=True,
            help="Logs, checkpoints, heat, noise: 10 to 20% under a hero run.",
        ),
        slider(
            "busy",
            "The counter says busy",
            92,
            75,
            100,
            unit="%",
            more=True,
            help="Time in which any kernel runs: waiting inside a collective counts too.",
        ),
        slider("days", "Days that a benchmark projects", 30, 1, 120, more=True),
        slider("node_step_ms", f"Step of one node at {REFERENCE_MFU}%", 181, 50, 300, unit="ms", more=True),
    ),
    presets={
        "128 GPUs": {},
        "One slow node": {"slow": 10},
        "92% busy, 30% MFU": {"added_ms": _added_ms(30)},
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
)
