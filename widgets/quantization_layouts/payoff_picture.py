"""Draw the accountant's picture: the ledger of one step, and both steps over the batch."""

from typing import NamedTuple

from kernels.quantization_layouts import cost
from widgets import units
from widgets.charts import Box, Scale, axis_x, axis_y, limit_up, linear, log, steady, wrap
from widgets.controls import log_slider, slider
from widgets.quantization_layouts.payoff_model import MOST_BATCH, Result, Step
from widgets.scene import NARROW, WIDE, about, circle, drag, handle, line, path, rect, text

DEQUANT = slider(
    "dequant_ms",
    "Dequantization overhead",
    1.0,
    0.0,
    10.0,
    step=0.1,
    unit="ms",
    help="Unpacking all weights once.",
)
BATCH = log_slider(
    "batch",
    "Batch",
    1,
    1,
    MOST_BATCH,
    per_decade=12,
    help="More requests share one reading, and bring their own arithmetic.",
)


class Places(NamedTuple):
    """The ledger and its lines' pitch, the chart over the batch, and how high both are together."""

    bars: Box
    pitch: int
    chart: Box
    height: int
    wide: bool


PLACES = {
    True: Places(Box(176, 26, 400, 4 * 39), 39, Box(66, 254, 600, 116), 428, True),
    False: Places(Box(0, 26, 336, 4 * 52), 52, Box(58, 362, 272, 140), 564, False),
}
HOW = {
    "exposed": "nothing hides it",
    "fused": "before each multiply",
    "asynchronous": "beside the multiply",
    "separate": "16 bits written, then read",
}
FADE = 44  # how far below the chart's top an area begins to fade that goes on above it
NAMED = {8: "int8 W8A16", 4: "int4 W4A16", 2: "2-bit, mixed"}  # the formats that a kernel unpacks


def bits(r: Result) -> str:
    return f"{units.number(r.bits_per_weight, 4)} bits"


def ledger(r: Result, pl: Places) -> list[dict]:
    """Draw four lines of an account: the dense time, the saving of fewer bytes, the cost of unpacking, the rest."""
    x = linear(0, 1.55 * r.dense_s, pl.bars.x, pl.bars.right)
    lost, floor = r.verdict in ("eaten", "nothing to save"), r.dense_s - r.saved_s
    passes = "" if r.passes == 1 else f"{r.passes}×, "
    how = "hidden under the stream" if r.dequant_s and not r.added_s else HOW[r.placement]
    saving = units.si_bytes(r.bytes_saved) + " not read"
    rows = [
        ("dense", "Dense step", f"16 bits: {units.si_bytes(r.dense_bytes)} read", 0, r.dense_s, "secondary",
         "ink", units.seconds(r.dense_s)),
        ("saved", "Fewer bytes save", saving, floor, r.dense_s, "useful",
         "useful", f"− {units.seconds(r.saved_s)}"),
        ("added", "Unpacking adds", passes + how, floor, floor + r.added_s, "hot",
         "hot", f"+ {units.seconds(r.added_s)}"),
        ("quant", "Quantized step", f"{bits(r)}: {units.si_bytes(r.quant_bytes)} read", 0, r.quant_s,
         "hot" if lost else "primary", "hot" if lost else "primary", units.seconds(r.quant_s)),
    ]  # fmt: skip
    marks = []
    for i, (id, name, detail, start, end, role, ink, amount) in enumerate(rows):
        top = pl.bars.y + i * pl.pitch
        left, right = x(start), x(end)
        strong = id in ("dense", "quant")
        if pl.wide:
            marks += [
                text(f"{id}-name", pl.bars.x - 14, top + 13, name, "ink", "body", "end", bold=strong),
                text(f"{id}-detail", pl.bars.x - 14, top + 29, detail, "muted", "small", "end"),
                text(f"{id}-amount", WIDE, top + 22, amount, ink, "big", "end", bold=True),
            ]
        else:
            top += 16
            marks += [
                text(f"{id}-name", 0, top - 2, name, "ink", "small", bold=strong),
                text(f"{id}-amount", NARROW, top - 2, amount, ink, "small", "end", bold=True),
            ]
        bar = rect(
            f"{id}-bar", left, top + 3, max(right - left, 1.5), 26, role, f"{name}: {amount}, {detail}"
        )
        marks += about(id, bar)
        if id == "added" and r.placement == "exposed":
            marks.append(handle("pull-added", x(floor + r.added_s), top + 16, "hot",
                                drag(DEQUANT, "x", lambda ms: x(floor + r.passes * ms * 1e-3))))  # fmt: skip
        if end > x.hi:
            torn = right - (34 if marks[-1]["t"] == "handle" else 14)  # clear of the knob at the bar's end
            teeth = [(torn + 6 * (k % 2), top + 3 + k * 26 / 8) for k in range(9)]
            marks += [path(f"{id}-on{i}", [(a + 6 * i, b) for a, b in teeth], "inverse") for i in range(2)]
        if id in ("dense", "quant") and r.other_s:
            rest = f"the rest of the step: {units.seconds(r.other_s)}"
            marks.append(
                rect(f"{id}-rest", pl.bars.x, top + 3, x(r.other_s) - pl.bars.x, 26, "overhead", rest)
            )
    sum_at = pl.bars.y + 3 * pl.pitch - (4 if pl.wide else 1)
    marks.append(line("sum", pl.bars.x, sum_at, WIDE if pl.wide else NARROW, sum_at, "axis"))
    return marks + _threshold(r, pl, x) + _verdict(r, pl, x)


def _threshold(r: Result, pl: Places, x: Scale) -> list[dict]:
    """Draw where the dense step ends. A quantized step that reaches it has won nothing."""
    at, bottom = x(r.dense_s), pl.bars.y + 4 * pl.pitch - 4
    marks = [line("even", at, pl.bars.y + 31, at, bottom, "limit", f"break-even: {units.seconds(r.dense_s)}")]
    if r.verdict != "nothing to save":
        marks.append(
            text(
                "even-name",
                at + 6,
                pl.bars.y + pl.pitch + (20 if pl.wide else 38),
                "break-even",
                "muted",
                "small",
            )
        )
    return marks


def _verdict(r: Result, pl: Places, x: Scale) -> list[dict]:
    """The ratio at the end of the last bar, inside the bar where the bar is too long."""
    faster = f"{units.times(r.speedup)} as fast"
    y, end = pl.bars.y + 3 * pl.pitch + (21 if pl.wide else 37), x(r.quant_s)
    if end > pl.bars.right - 120:
        return [
            text(
                "ratio", max(pl.bars.x + 110, x(r.dense_s) - 8), y, faster, "inverse", anchor="end", bold=True
            )
        ]
    role = "hot" if r.speedup <= 1 else "primary"
    return [text("ratio", end + 10, y, faster, role, bold=True, on="ground")]


def kernel_families(r: Result, pl: Places) -> list[dict]:
    """Say which libraries run this format fast, because bytes alone don't make a kernel."""
    named = cost.FORMATS.get(NAMED.get(r.bits, ""))
    words = f"{r.bits} bits: kernels of their own, with a codebook, as in k-bit deployment"
    if named:
        sizes = f"weights {named.bits:g} bits, activations {named.activation_bits}"
        words = f"{named.name} ({sizes}) runs fast with {', '.join(named.kernels)}: {named.note}"
    lines = [words] if pl.wide else wrap(words, 330)
    return [
        text(f"kernels{i}", 0, pl.bars.bottom + 20 + 15 * i, line, "muted", "small")
        for i, line in enumerate(lines)
    ]


def _top(r: Result) -> float:
    """Return twice the dense step of batch 1, doubled until the current batch is in the chart."""
    top = 2 * (r.dense_stream_s + r.other_s)
    while max(r.dense_s, r.quant_s) > top:
        top *= 2
    return top


def _inside(points: list[tuple[float, float]], x: Scale, y: Scale) -> list[tuple[float, float]]:
    """The line as drawn, up to where it leaves the chart."""
    out, before = [], points[0]
    for batch, seconds in points:
        if seconds > y.hi:
            # nothing, where the axis is held and the line begins above it
            inside = max(0.0, y.hi - before[1])
            share = inside and inside / (seconds - before[1])
            left = x(before[0])
            return [*out, (left + share * (x(batch) - left), y(y.hi))]
        out.append((x(batch), y(seconds)))
        before = batch, seconds
    return out


def _edge(id: str, part: list[Step]) -> list[tuple[float, float]]:
    return [(s.batch, s.dense_s if id == "dense" else s.quant_s) for s in part]


def _between(id: str, part: list[Step], x: Scale, y: Scale, role: str) -> list[dict]:
    if len(part) < 2:
        return []
    end = x(part[-1].batch)
    there, back = (
        [*(line := _inside(_edge(one, part), x, y)), (end, line[-1][1])] for one in ("dense", "quant")
    )
    marks = [path(id, there + back[::-1], role, closed=True)]
    if min(there[-2][0], back[-2][0]) < end:  # it goes on above the chart, so no frame closes it there
        upper, lower = sorted((there, back), key=lambda line: line[-1][1])
        marks.append(path(f"{id}-open", [upper[-2], upper[-1], lower[-1]], "inverse"))
        left = min(there[-2][0], back[-2][0]) - FADE  # from there on the area may be in the fading strip
        marks.append(rect(f"{id}-fade", left, y(y.hi) - 1, end + 2 - left, FADE, "fade"))
    return marks


def _beyond(r: Result, pl: Places, y: Scale) -> list[dict]:
    """Say in words what is above the chart."""
    last = r.curve[-1]
    if max(last.dense_s, last.quant_s) <= y.hi:
        return []
    name, role, most = max(
        ("16 bits", "secondary", last.dense_s), (bits(r), "primary", last.quant_s), key=lambda e: e[2]
    )
    words = f"↑ above the chart: {name} take {units.seconds(most)} at batch {last.batch}"
    at = (pl.chart.right, pl.chart.y - 26, words) if pl.wide else (NARROW, pl.chart.y - 25, f"↑ {words[18:]}")
    return [text("beyond", *at, role, "small", "end")]


def chart(r: Result, pl: Places) -> list[dict]:
    """Draw both steps over the batch. The area between them is won or lost."""
    top_s = steady("step", _top(r))
    x, y = log(1, MOST_BATCH, pl.chart.x, pl.chart.right), linear(0, top_s, pl.chart.bottom, pl.chart.y)
    even = r.break_even_batch
    marks = axis_y(
        "step",
        y,
        pl.chart.x,
        "",
        units.seconds,
        right=pl.chart.right,
        ticks=[top_s * t / 4 for t in range(5)],
    )
    batches = (1, 4, 16, 64, 256)
    marks += axis_x(
        "batch",
        x,
        pl.chart.bottom,
        ticks=batches,
    )
    name = "batch: requests that share one reading of the weights" if pl.wide else "batch"
    if r.dequant_s and r.placement != "separate" and r.tile_rows < MOST_BATCH:
        name += (
            f"; each {r.tile_rows} more unpack them again"
            if pl.wide
            else f"; unpacked anew every {r.tile_rows}"
        )
    middle = (pl.chart.x + pl.chart.right) / 2
    marks.append(text("batch-label", middle, pl.chart.bottom + 55, name, "muted", "small", "middle"))
    at = x(r.batch)
    marks.append(line("at", at, pl.chart.bottom, at, pl.chart.y, "now", f"batch {r.batch}"))
    won = [s for s in r.curve if not even or s.batch <= even]
    lost = [s for s in r.curve if even and s.batch >= even - 1]
    marks += _between("won", won, x, y, "useful") + _between("lost", lost, x, y, "hot")
    for id, role in (("dense", "secondary"), ("quant", "primary")):
        marks.append(path(f"{id}-line", _inside(_edge(id, r.curve), x, y), role))
    marks += _beyond(r, pl, y)
    marks += (
        _names(r, pl, x, y)
        + _gap(pl, "won", "time won", won, x, y, "useful")
        + _gap(pl, "lost", "time lost", lost, x, y, "hot")
    )
    if even > 1:
        left = x(even) > pl.chart.x + (200 if pl.wide else 130)
        tips = limit_up("tips", pl.chart, x(even), f"no longer faster: {even}", "end" if left else "start")
        marks += [tips[0], {**tips[1], "on": "ground"}]
    marks.append(handle("pull-batch", at, pl.chart.bottom + 33, "now", drag(BATCH, "x", x)))
    for id, role, seconds in (("dense", "secondary", r.dense_s), ("quant", "primary", r.quant_s)):
        tip = f"batch {r.batch}, {id}: {units.seconds(seconds)}"
        marks.append(circle(f"{id}-dot", at, y(seconds), 5.5, role, tip))
    anchor = "start" if at < pl.chart.x + 60 else "end" if at > pl.chart.right - 60 else "middle"
    marks.append(text("at-name", at, pl.chart.y - 6, f"batch {r.batch}", "now", "small", anchor, bold=True))
    return marks


def _names(r: Result, pl: Places, x: Scale, y: Scale) -> list[dict]:
    """Name each line at its left end, above it. If two are close, one name goes below the lower line, or both above
    where that would be in the axis.
    """
    ends = [
        ("dense", y(r.curve[0].dense_s), "16 bits", "secondary"),
        ("quant", y(r.curve[0].quant_s), bits(r), "primary"),
    ]
    (upper, lower) = sorted(ends, key=lambda end: end[1])
    places = [max(upper[1] - 7, pl.chart.y + 14), lower[1] - 7 if lower[1] - upper[1] > 24 else lower[1] + 17]
    if places[1] > pl.chart.bottom - 4:
        places = [upper[1] - 24, upper[1] - 7]
    return [
        text(f"{id}-line-name", x(1) + 10, at, name, role, bold=True)
        for (id, _, name, role), at in zip((upper, lower), places, strict=True)
    ]


def _gap(pl: Places, id: str, name: str, part: list[Step], x: Scale, y: Scale, role: str) -> list[dict]:
    """Write the meaning of the area between the lines into it, where there is room."""
    middle = [s for s in part if x(part[0].batch) + 110 < x(s.batch) < pl.chart.right - 40]
    if not middle:
        return []
    most = max(abs(y(s.dense_s) - y(s.quant_s)) for s in middle)
    wide = [s for s in middle if abs(y(s.dense_s) - y(s.quant_s)) > most - 4]
    widest = wide[len(wide) // 2]
    top, bottom = sorted((y(widest.dense_s), y(widest.quant_s)))
    if bottom - top < 26:
        return []
    place = x(widest.batch), (top + bottom) / 2 + 4
    return [text(f"{id}-name", *place, name, role, "body", "middle", on="ground")]


def yours(r: Result, pl: Places, measured: dict) -> list[dict]:
    if "speedup" not in measured:
        return []
    x = linear(0, 1.55 * r.dense_s, pl.bars.x, pl.bars.right)
    at, y = x(r.dense_s / measured["speedup"]), pl.bars.y + 3 * pl.pitch + (16 if pl.wide else 32)
    name = f"yours: {units.times(measured['speedup'])}"
    anchor = "end" if at > pl.bars.right - 60 else "middle"
    return [
        circle("yours", at, y, 7, "measured", f"{name} as fast, measured"),
        text("yours-name", at, pl.bars.bottom + 6, name, "measured", "small", anchor, bold=True),
    ]
