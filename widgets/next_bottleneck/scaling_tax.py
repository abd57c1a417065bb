"""Show which part of a fleet's GPUs works as well as one node's, and where the rest goes."""

import math
from dataclasses import dataclass

from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, Scale, axis_x, axis_y, linear, log, spread, text_width
from widgets.controls import slider, steps
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

NODE, MEASURED_AT, MOST = 8, 128, 16384
SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 10000, 16384)
GPUS = steps("gpus", "GPUs", 128, SIZES, units.count)
REFERENCE_MFU = 65  # the node as it was measured, in percent
LOCAL = slider("local_mfu", "MFU of one node", REFERENCE_MFU, 30, 75, unit="%",
               help="The same work at a larger share of the peak: a shorter step.")  # fmt: skip


def _added_ms(measured_mfu: int) -> float:
    """Return the ms that 128 GPUs added to 181 ms where this MFU was measured."""
    return round(cost.added_step_s(181, REFERENCE_MFU / 100, measured_mfu / 100), 1)


ADDED = steps("added_ms", "128 GPUs add to a step", _added_ms(48), [_added_ms(mfu) for mfu in range(65, 14, -1)],
              lambda ms: units.seconds(ms * 1e-3),
              help="Held while the node changes: each doubling beyond a node adds as many ms. Its knob pulls the whole curve.")  # fmt: skip
SLOW = slider("slow", "One node is slower by", 0, 0, 50, unit="%")
FIELD = 128  # cells at most, each for as many GPUs as needed
AXIS_S = 0.5  # of a step, the same in every state, so that the eye can compare
# (the fleet, the curve, one step, height)
PLACES = {
    True: (Box(0, 34, 320, 160), Box(402, 34, 216, 150), Box(0, 290, 600, 88), 416),
    False: (Box(0, 34, 336, 168), Box(40, 286, 196, 150), Box(0, 562, 254, 88), 688),
}
DRAWN = 8  # nodes
BUSY_IS_NOT_USEFUL = 1 / 3  # of the time that the counter calls busy


@dataclass(frozen=True)
class AtSize:
    gpus: int
    mfu: float
    step_s: float
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
    one_percent_gpus: float
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
        return AtSize(size, local * step.shares[0], step.step_s, cost.trace_bytes(size, 5))

    now = at(gpus)
    kept = 1 - cost.straggler_loss(1 - slow_share)
    with_slow, mfu = now.mfu * kept, now.mfu * kept * (1 - operating_share)
    tax, seen = cost.scaling_tax(local, now.mfu), cost.scaling_tax(local, with_slow)
    step = parts(gpus, 1 - slow_share, operating_share)
    useful, taxed, waiting, operate = (gpus * share for share in step.shares)
    return Result(
        gpus, local, at(MEASURED_AT).mfu, added_s, reference_s, tuple(at(size) for size in SIZES), now.mfu, tax, slow_share, kept,
        mfu, seen, cost.is_regression(seen, tax), useful, taxed, waiting, operate,
        gpus - useful, cost.gpus_saved(gpus, 0.01), step, step.step_s, step.mean_s, days,
        cost.production_days(days, operating_share), operating_share, busy / 100,
    )  # fmt: skip


def _kinds(r: Result) -> tuple[tuple[str, float, float, str, str], ...]:
    """List the kinds of paid time: word, GPUs, seconds of a step, role, work. Both pictures share it."""
    waits = (
        ("wait", "wait for the slow node") if r.gpus > NODE else ("slower", "are lost to the node's slowness")
    )
    return (
        ("work", r.useful_gpus, r.parts.work_s, "useful", "work as one node's would"),
        ("tax", r.tax_gpus, r.parts.tax_s, "network", "are the tax of scale"),
        (waits[0], r.waiting_gpus, r.parts.wait_s, "idle", waits[1]),
        ("operate", r.operating_gpus, r.parts.operating_s, "overhead", "are lost to operating the fleet"),
    )


def _ink(role: str) -> str:
    return "muted" if role == "idle" else role


def _field(r: Result, at: Box) -> list[dict]:
    """Draw every paid GPU by its work. A cell is one GPU, or the smallest number with which all fit."""
    cells = min(FIELD, r.gpus)
    columns = 2 ** math.ceil((math.log2(cells) + 1) / 2)
    kinds = _kinds(r)
    side = min(at.w / columns, at.h / math.ceil(cells / columns))
    of = "" if cells == r.gpus else f", {units.number(r.gpus / cells)} a square"
    marks = [text("field-title", 0, at.y - 16, f"{units.count(r.gpus)} GPUs paid for{of}", bold=True)]
    ends = [0.0]
    for _, size, _, _, _ in kinds:
        ends.append(ends[-1] + size / r.gpus * cells)
    for cell in range(cells):
        kind = next((k for k in range(4) if cell + 0.5 < ends[k + 1]), 0)
        x, y = at.x + cell % columns * side, at.y + cell // columns * side
        _, size, _, role, words = kinds[kind]
        tip = f"{units.number(size)} GPUs {words}"
        marks += about(
            "useful" if kind == 0 else "tax", rect(f"gpu{cell}", x, y, side - 2, side - 2, role, tip)
        )
    named = [(f"{units.number(size)} {word}", role) for word, size, _, role, _ in kinds if size > 1e-9]
    left = at.x
    for k, (words, role) in enumerate(named):
        left += text_width(named[k - 1][0], "small", True) + 12 if k else 0
        marks.append(text(f"field-{k}", left, at.bottom + 18, words, _ink(role), "small", bold=True))
    return marks


def _curve(r: Result, at: Box) -> list[dict]:
    """Draw MFU by size under the GPUs' own counter, with knobs on the fleet's size and on the measurement."""
    x, y = log(NODE, MOST, at.x, at.right), linear(0, 1, at.bottom, at.y)
    marks = axis_y("mfu", y, at.x, "MFU: useful FLOP/s over the peak", lambda v: units.percent(v, 0), at.right,
                   (0, 0.2, 0.4, 0.6, 0.8, 1))  # fmt: skip
    marks = [{**mark, "x": mark["x"] - 14} if mark["id"] == "mfu-tick0" else mark for mark in marks]
    below = axis_x("gpus", x, at.bottom, "GPUs", units.count, ticks=(8, 128, 1024, 8192))
    # the knob on this axis is between its line and its numbers
    marks += [{**mark, "y": mark["y"] + 10} if mark["t"] == "text" else mark for mark in below]
    counter, node = units.percent(r.busy_share, 0), units.percent(r.local_mfu, 0)
    marks += about(
        "busy",
        line("busy", at.x, y(r.busy_share), at.right, y(r.busy_share), "secondary",
             f"The GPUs' counter: some kernel runs {counter} of the time, at any size"),
    )  # fmt: skip
    marks += about(
        "local_mfu", line("local", at.x, y(r.local_mfu), at.right, y(r.local_mfu), "limit", "MFU of one node")
    )
    marks += about("added_ms", path("fleet", [(x(one.gpus), y(one.mfu)) for one in r.curve], "primary"))
    named = [
        ("busy", r.busy_share, f"{counter} busy", "secondary"),
        ("local", r.local_mfu, f"{node} one node", "muted"),
        ("fleet", r.curve[-1].mfu, _undisturbed(r) or "fleet", "primary"),
    ]
    kept = r.mfu / r.fleet_mfu
    if kept < 1:
        marks.append(path("real", [(x(one.gpus), y(one.mfu * kept)) for one in r.curve], "hot"))
        named.append(("real", r.curve[-1].mfu * kept, "as run", "hot"))
    for (id, _, words, role), place in zip(
        named, spread([min(y(value), at.bottom - 24) for _, value, _, _ in named]), strict=True
    ):
        marks.append(text(f"{id}-name", at.right + 6, place + 4, words, role, "small", bold=role != "muted"))
    here, low, shown = x(r.gpus), y(r.mfu), units.percent(r.mfu)
    lost = f"lost: {units.percent(1 - r.mfu / r.local_mfu)}"
    marks += about("tax", line("gap", here, y(r.local_mfu), here, low, "hot", lost))
    marks += about("mfu", circle("here", here, low, 5, "hot", f"{units.count(r.gpus)} GPUs: {shown}"))
    pulled = _pulled_at(r.gpus)
    doublings = math.log2(pulled / NODE) / math.log2(MEASURED_AT / NODE)
    knob = next(y(one.mfu) for one in r.curve if one.gpus == pulled)
    curve = drag(ADDED, "y", lambda ms: y(r.local_mfu * r.parts.work_s / (r.parts.work_s + doublings * ms * 1e-3)))  # fmt: skip
    added = units.seconds(doublings * r.added_measured_s)
    there = "" if pulled == MEASURED_AT else f", as {MEASURED_AT} add {units.seconds(r.added_measured_s)}"
    tip = f"{units.count(pulled)} GPUs add {added} to a step{there}"
    marks.append(handle("pull-measured", x(pulled), knob, "primary", curve, tip=tip))
    tip = f"{units.count(r.gpus)} GPUs: {shown}"
    marks.append(handle("pull-gpus", here, at.bottom, "hot", drag(GPUS, "x", x), tip=tip))
    side, shift = ("end", -12) if here > at.x + 120 else ("start", 12)
    under = min(at.bottom - 16, low + 26)
    reaches = here < x(pulled) < here + shift + text_width(shown, "body", True) + 12
    if side == "start" and reaches and abs(under - 4 - knob) < 26:
        under, shift = (
            y(r.local_mfu) - 8,
            -5,
        )  # above its point; next to the knob it would seem the knob's
    return [*marks, text("here-name", here + shift, under, shown, "hot", "body", side, True, on="ground")]


def _pulled_at(gpus: int) -> int:
    """Return where the whole curve has its knob, never near the fleet's own point, which the knob would hide."""
    return 1024 if gpus < 512 else MEASURED_AT


def _nodes(r: Result, at: Box) -> list[dict]:
    """Draw one synchronous step on a fixed axis: one node's time, the tax, and the wait for the slowest."""
    nodes, wide = max(1, r.gpus // NODE), at.w > 400
    drawn = min(DRAWN, nodes)
    pitch, x = at.h / DRAWN, linear(0, AXIS_S, at.x, at.right)
    of = f"{drawn} of {units.count(nodes)} nodes" if drawn < nodes else f"{nodes} nodes"
    title = f"One step of {of if nodes > 1 else 'one node'}"
    if wide and r.slow_share and nodes > 1:
        title += ": all wait for the slowest"
    elif wide and nodes > 1:
        title += ": a node's own, and what the fleet adds"
    marks = [text("nodes-title", 0, at.y - 32, title, bold=True)]
    if r.operating_share:
        before, after = units.number(r.benchmark_days), units.number(r.production_days)
        days = f"{before} days become {after}" if wide else f"{before} → {after} days"
        marks.append(
            text("nodes-days", 720 if wide else 340, at.y - 32, days, "overhead", "small", "end", True)
        )
    time = axis_x(
        "time",
        x,
        at.bottom,
        "",
        lambda s: units.seconds(s) if s else "0",
        at.y,
        (0, 0.1, 0.2, 0.3, 0.4, 0.5) if wide else (0, 0.2, 0.4),
    )
    marks += [{**mark, "x": 0, "a": "start"} if mark["id"] == "time-tick0" else mark for mark in time]
    for i in range(drawn):
        slow, start = i == drawn // 2 and r.slow_share > 0, 0.0
        for word, _, takes, role, _ in _kinds(r):
            if takes < 1e-9:
                continue
            late = slow and role == "idle"
            tip = f"Node {i}, {'slower' if late else word}: {units.seconds(takes)}"
            left, right = x(start), x(start + takes)
            bar = rect(
                f"node{i}-{role}",
                left,
                at.y + i * pitch,
                right - left,
                pitch - 1.2,
                "hot" if late else role,
                tip,
            )
            marks += about("slow" if role == "idle" else "step", bar)
            start += takes
    node = x(r.parts.work_s)
    tip = f"One node alone: {units.seconds(r.parts.work_s)}"
    marks += about("work", line("node-step", node, at.y - 20, node, at.bottom, "limit", tip))
    marks += _named(r, at, x, wide)
    if r.mean_step_s > AXIS_S:
        marks += _break(at, drawn * pitch)
    end, middle = x(r.step_s), at.y + (drawn // 2 + 0.5) * pitch
    well = r.parts.work_s + r.parts.tax_s
    pull = drag(SLOW, "x", lambda percent: x(well * 100 / (100 - percent)))
    # next to the node's knob or above it, and always off the slow node's own bar, which is the middle one
    knob = at.bottom - 12 if end - node > 36 else at.y + 16 if drawn > 4 else at.bottom - 44
    marks.append(line("step-end", end, at.y, end, knob, "axis"))
    marks.append(handle("pull-slow", end, knob, "hot", pull))
    own = r.parts.work_s * r.local_mfu * 100
    marks.append(
        handle(
            "pull-node", node, at.bottom - 12, "useful", drag(LOCAL, "x", lambda percent: x(own / percent))
        )
    )
    words = units.seconds(r.mean_step_s)
    after = max(end, x(r.mean_step_s)) + 8
    return [*marks, *about("step", text("nodes-end", after, middle + 5, words, bold=True))]


def _named(r: Result, at: Box, x: Scale, wide: bool) -> list[dict]:
    """The parts of a step, named above where each begins, pushed apart where they are short."""
    node = units.seconds(r.parts.work_s)
    words = f"one node {node}" if wide else node
    ends = max(x(r.parts.work_s) - 6, text_width(words, "small", True))
    marks = [text("part-work", ends, at.y - 8, words, "useful", "small", "end", True, on="ground")]
    start, named, left, right = r.parts.work_s, [], ends + 12, 720 if wide else 340
    for word, _, takes, role, _ in _kinds(r)[1:]:
        if takes > 1e-9:
            longer = units.seconds(takes) if wide else units.number(takes * 1e3)
            named.append((start, word, f"+{longer}", role))
        start += takes
    if left + sum(text_width(f"{word} {longer}", "small", True) + 12 for _, word, longer, _ in named) > right:
        named = [(begins, "", longer, role) for begins, _, longer, role in named]  # the colour says which
    named = [(begins, f"{word} {longer}".strip(), role) for begins, word, longer, role in named]
    widths = [text_width(words, "small", True) + 12 for _, words, _ in named]
    for k, (begins, words, role) in enumerate(named):
        left = max(left, min(x(begins) + 6, right - sum(widths[k:])))
        marks.append(text(f"part-{role}", left, at.y - 8, words, _ink(role), "small", bold=True))
        left += widths[k]
    return marks


def _break(at: Box, high: float) -> list[dict]:
    """Draw a torn end, because the bars go on beyond the axis."""
    teeth = [(at.right - 14 + 6 * (k % 2), at.y - 2 + k * high / 8) for k in range(9)]
    return [path(f"torn{i}", [(a + 6 * i, b) for a, b in teeth], "inverse") for i in range(2)]


def _undisturbed(r: Result) -> str:
    """Name the blue curve where the fleet as it runs has a curve of its own."""
    if r.slow_share:
        return "all alike" if not r.operating_share else "all well"
    return "training" if r.operating_share else ""


def _tax_figure(r: Result):
    """Use the colour of the tax only if the squares of that colour are its whole count."""
    if r.slow_share:
        return figure("lost to tax and waiting", r.seen_tax, units.percent, term="tax")
    if r.operating_share:
        return figure("scaling tax while it trains", r.seen_tax, units.percent, term="tax")
    return figure("scaling tax measured", r.seen_tax, units.percent, term="tax")


def _takeaway(r: Result) -> str:
    if r.slow_share and r.gpus > NODE:
        return "One slow node sets everyone's step, and the other nodes' traces don't show why."
    if r.operating_share:
        return "A benchmark's MFU is the ceiling. Plan for what monitoring, checkpoints and heat take off it."
    if r.gpus > NODE and r.added_measured_s and r.local_mfu * 100 > REFERENCE_MFU:
        return "A better node shortens every step alike. What the fleet adds stays, and is a larger share."
    if r.gpus > NODE and r.added_measured_s and r.local_mfu * 100 < REFERENCE_MFU:
        return "A worse node lengthens every step, so the tax only looks smaller."
    if r.mfu < r.busy_share * BUSY_IS_NOT_USEFUL:
        busy, work = units.percent(r.busy_share, 0), units.percent(r.mfu, 0)
        return f"Busy is not useful: the counter says {busy}, but only {work} of the peak is work."
    if r.gpus <= NODE:
        return "Within one node there is no tax yet. Compare a fleet with this MFU."
    if r.seen_tax < 0.005:
        return "Here the fleet adds next to nothing to a step, so scale costs nothing."
    lost = units.percent(r.seen_tax, 0)
    return f"At {units.count(r.gpus)} GPUs, {lost} of the work is lost. If that share jumps, something broke."


def _formula(r: Result, tax: str) -> tuple[tuple[str, str], ...]:
    doublings = max(0.0, math.log2(r.gpus / NODE))
    fleet = f"fleet MFU, {_undisturbed(r)}" if _undisturbed(r) else "fleet MFU"
    lost = "{tax:lost}" if r.slow_share else "{tax}"
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
    return (
        (
            f"{lost} = 1 − {{added_ms:{fleet}}}{slow} / {{local_mfu:node MFU}}",
            f"1 − {units.number(r.fleet_mfu)}{slowed} / {{local_mfu:{r.local_mfu}}} = {{tax:{tax}}}",
        ),
        (
            f"{{work:node's step}} = {own} · {REFERENCE_MFU} / {{local_mfu:node MFU}}",
            f"{owned} · {REFERENCE_MFU} / {{local_mfu:{units.number(r.local_mfu * 100)}}} = {{work:{node}}}",
        ),
        (
            f"{{step}} = ({{work:node's step}} + {{added_ms:added on {MEASURED_AT}}} · doublings / 4){over}{run}",
            f"({{work:{node}}} + {{added_ms:{added}}} · {units.number(doublings)} / 4){overed}{ran} = "
            f"{{step:{units.seconds(r.mean_step_s)}}}",
        ),
        *(((f"days = benchmark{run}", days),) if r.operating_share else ()),
    )


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    field_at, curve_at, nodes_at, height = PLACES[width == WIDE]
    useful = figure(
        f"GPUs' worth of work from {units.count(r.gpus)}",
        r.useful_gpus,
        units.number,
        "useful",
        "useful",
    )
    mfu = figure("MFU of the fleet", r.mfu, units.percent, "hot", "mfu")
    tax = _tax_figure(r)
    worth = figure("GPUs that a 1% gain saves", r.one_percent_gpus, units.number)
    return Scene(
        summary=f"One node reaches {units.percent(r.local_mfu)} MFU, {units.count(r.gpus)} GPUs {mfu.text}: "
        f"{'a loss' if r.slow_share else 'a scaling tax'} of {tax.text}. They do the work of {useful.text}, {units.number(r.lost_gpus)} work for nothing, and a step "
        f"of {units.seconds(r.parts.work_s)} takes {units.seconds(r.mean_step_s)}; one percent better is worth "
        f"{worth.text} GPUs. The GPUs' counter says {units.percent(r.busy_share, 0)} busy.",
        takeaway=_takeaway(r),
        marks=_field(r, field_at) + _curve(r, curve_at) + _nodes(r, nodes_at),
        figures=(useful, mfu, tax, worth),
        table=table(
            (
                "GPUs",
                Column("MFU", show=units.percent),
                Column("step", "s", units.seconds),
                Column("5 s of traces", "B", units.si_bytes),
            ),
            [(units.count(one.gpus), one.mfu, one.step_s, one.trace_bytes) for one in r.curve],
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
    question="How many GPUs' worth of work does a fleet do?",
    controls=(
        GPUS,
        LOCAL,
        ADDED,
        SLOW,
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
        "92% busy, 30% useful": {"added_ms": _added_ms(30)},
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
