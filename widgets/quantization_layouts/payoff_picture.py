"""Draw the accountant's picture, the ledger of one step and its speed over the batch."""

from typing import NamedTuple

from widgets import units
from widgets.charts import Box, Scale, axis_x, axis_y, linear, log, over, steady, text_width, won_and_lost
from widgets.controls import log_slider, slider
from widgets.quantization_layouts.payoff_model import MOST_BATCH, Result
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
    True: Places(Box(176, 26, 400, 4 * 39), 39, Box(66, 236, 640, 150), 424, True),
    False: Places(Box(0, 26, 336, 4 * 52), 52, Box(48, 296, 284, 150), 486, False),
}
HOW = {
    "exposed": "nothing hides it",
    "fused": "before each multiply",
    "asynchronous": "during the multiply",
    "separate": "16 bits written, then read",
}


def bits(r: Result) -> str:
    return f"{units.number(r.bits_per_weight, 4)} bits"


def ledger(r: Result, pl: Places) -> list[dict]:
    """Draw the four lines of an account, dense time, saving of fewer bytes, cost of unpacking, and result."""
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
         "hot" if r.added_s else "muted", f"+ {units.seconds(r.added_s)}"),
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
    size = "big" if end + 10 + text_width(faster, "big", True) < x(r.dense_s) else "body"
    return [text("ratio", end + 10, y + (size == "big"), faster, role, size, bold=True, on="ground")]


def _top(r: Result) -> int:
    """Return the end of the speeds' axis, with room for a knob above the curve."""
    most = max(one.dense_s / one.quant_s for one in r.curve)
    return next(top for top in (2, 3, 4, 5, 6, 8, 10) if top >= 1.15 * most)


def chart(r: Result, pl: Places) -> list[dict]:
    """Draw the quantized step's speed over the batch. Above the dense step's it is won, below it lost."""
    box, top = pl.chart, steady("speed", _top(r))
    x, y = log(1, MOST_BATCH, box.x + 20, box.right - 16), linear(0, top, box.bottom, box.y)
    points, level = [(x(one.batch), y(one.dense_s / one.quant_s)) for one in r.curve], y(1)
    name = "batch: requests that share one reading of the weights" if pl.wide else "batch"
    if r.dequant_s and r.placement != "separate" and r.tile_rows < MOST_BATCH:
        name += f", unpacked again every {r.tile_rows}"
    return [
        *axis_y("speed", y, box.x, "", units.times, ticks=[n for n in range(top + 1) if n != 1]),
        *axis_x("batch", x, box.bottom, name, ticks=(1, 4, 16, 64, 256)),
        text("dense-is", box.x - 6, level + 4, "dense", "ink", "small", "end", bold=True),
        *won_and_lost(points, level),
        line("dense-line", box.x, level, box.right, level, "limit", "as fast as the dense step"),
        path("speed-line", points, "primary", "times as fast as the dense step, over the batch"),
        *_end_of_win(r, pl, x, level),
        *_knob(r, pl, points, x, y),
    ]


def _end_of_win(r: Result, pl: Places, x: Scale, level: float) -> list[dict]:
    """Mark the first batch that is no longer faster, under the dense step's line."""
    if r.break_even_batch < 2:
        return []
    at, words = x(r.break_even_batch), f"not faster from {'batch ' if pl.wide else ''}{r.break_even_batch}"
    left = at - 8 - text_width(words, "small", True) > pl.chart.x + 4
    side = (at - 8, "end") if left else (at + 8, "start")
    mark = line("even-batch", at, level, at, pl.chart.bottom, "hot", words)
    return [
        mark,
        text("tips-name", side[0], pl.chart.bottom - 8, words, "hot", "small", side[1], True, "ground"),
    ]


def _knob(r: Result, pl: Places, points: list[tuple], x: Scale, y: Scale) -> list[dict]:
    """Put the knob on the curve, at this batch, with its speed at the side where no line runs."""
    at, up, words = x(r.batch), y(r.speedup), f"batch {r.batch}: {units.times(r.speedup)}"
    reach = text_width(words, "body", True) + 14
    right = at + reach < pl.chart.right
    span = (at, at + reach) if right else (at - reach, at)
    high = min(up - 16, y(1) - 16, over(points, *span) - 10)
    tip = f"{words} as fast: {units.seconds(r.quant_s)} instead of {units.seconds(r.dense_s)}"
    role = "primary" if r.speedup > 1 else "hot"
    side = (at + 14, "start") if right else (at - 14, "end")
    return [
        text("at-name", side[0], max(high, pl.chart.y + 2), words, role, "body", side[1], True),
        handle("pull-batch", at, up, "now", drag(BATCH, "x", x), tip=tip),
    ]


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
