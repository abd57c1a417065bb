"""Draw two pictures of measurements, points under a roofline and values between their lower and upper limits."""

from collections.abc import Sequence
from dataclasses import dataclass

from widgets import units
from widgets.charts import Box, axis_x, axis_y, log, spread, text_width
from widgets.scene import circle, line, path, text

ROOF = Box(86, 20, 600, 216)
ROOF_HEIGHT = 284  # axis included
LEAST, MOST = 0.25, 16384.0  # FLOP per byte


@dataclass(frozen=True)
class Point:
    name: str
    intensity: float  # FLOP per byte
    rate: float  # FLOP per second
    role: str
    tip: str = ""
    label: str = ""  # written next to the point if not every point is named


def _rate(rate: float) -> str:
    return units.si(rate, "FLOP/s")


def roofline(
    bandwidth: float, roofs: Sequence[tuple[str, float]], points: Sequence[Point], crowd: bool = False
) -> list[dict]:
    """Draw points under the slope of a bandwidth and a flat roof for each dtype.

    Names hang below the points. In a crowd only those with a label are named.
    """
    x = log(LEAST, MOST, ROOF.x, ROOF.right)
    points = [
        p for p in points if p.rate > 0
    ]  # an operation without arithmetic has no position under this roof
    slowest = min((p.rate for p in points), default=bandwidth)
    low = min(bandwidth * LEAST / 1.5, slowest / 20)  # room for a label below the lowest point
    y = log(low, 2.2 * max(rate for _, rate in roofs), ROOF.bottom, ROOF.y)
    marks = axis_y("rate", y, ROOF.x, "", _rate, right=ROOF.right)
    marks += axis_x("intensity", x, ROOF.bottom, "FLOP per byte", top=ROOF.y, ticks=(1, 10, 100, 1000, 10000))
    heights = spread([y(rate) for _, rate in roofs])
    sunk = max(heights) - max(y(rate) for _, rate in roofs)  # below its roof a name would cover the slope
    heights = [height - sunk for height in heights]
    left = x(min(rate for _, rate in roofs) / bandwidth) - 12
    longest = max(text_width(name, "small") for name, _ in roofs)
    beside = [y(p.rate) for p in points if left - longest - 6 < x(p.intensity) < left + 6]
    lifted = (
        max(0.0, max(heights) + 14 - min(beside)) if beside else 0.0
    )  # above the dots at the ends of names
    heights = [height - lifted for height in heights]
    for i, (name, rate) in enumerate(roofs):
        corners = [(LEAST, bandwidth * LEAST), (rate / bandwidth, rate), (MOST, rate)]
        marks.append(path(f"roof{i}", [(x(a), y(b)) for a, b in corners], "limit", name))
        marks.append(text(f"roof{i}-name", left, heights[i] + 4, name, "muted", "small", "end"))
    slope = units.si(bandwidth, "B/s")
    marks.append(text("slope-name", x(2) - 8, y(2 * bandwidth) - 8, slope, "muted", "small", "end"))
    return marks + (_crowd(points, x, y) if crowd else _named(points, x, y))


def _tip(p: Point) -> str:
    return f"{p.tip or p.name}: {units.number(p.intensity)} FLOP per byte, {_rate(p.rate)}"


def _named(points, x, y) -> list[dict]:
    """Write names on lines of their own below the lowest point, so that near points do not cover each other."""
    marks, at = [], max(y(p.rate) for p in points) + 26
    for i, p in enumerate(sorted(points, key=lambda p: -p.intensity)):
        left, down = x(p.intensity), at + 20 * i
        marks += [
            line(f"point{i}-stem", left, y(p.rate), left, down - 4, p.role),
            circle(f"point{i}", left, y(p.rate), 6, p.role, _tip(p)),
            text(f"point{i}-name", left + 6, down, p.name, p.role, "small", bold=True),
        ]
    return marks


def _crowd(points, x, y) -> list[dict]:
    """Draw dots, the labelled ones on top of the others. A label hangs below all dots, at the end of a stem."""
    last = len(points) - 1
    order = sorted(range(last + 1), key=lambda i: bool(points[i].label))
    marks = [
        circle(f"point{i}", x(points[i].intensity), y(points[i].rate), 5, points[i].role, _tip(points[i]))
        for i in order
    ]
    low, middle = max((y(p.rate) for p in points), default=0.0), ROOF.x + ROOF.w / 2

    def outward(p: Point) -> tuple:
        """Point labels to the middle. On either side the nearest one is highest, so that no stem meets its words."""
        right = x(p.intensity) > middle
        return right, p.intensity if right else -p.intensity

    for k, p in enumerate(sorted((p for p in points if p.label), key=outward)):
        left, down = x(p.intensity), min(low + 24, ROOF.bottom - 26) + 18 * k
        anchor, shift = ("end", -6) if left > middle else ("start", 6)
        marks += [
            line(f"label{k}-stem", left, y(p.rate), left, down, p.role),
            text(f"label{k}", left + shift, down, p.label, p.role, "small", anchor, bold=True),
        ]
    return marks


def ranges(id: str, rows: Sequence[tuple[str, float, float, float]], box: Box) -> list[dict]:
    """Draw rows of (name, at least, moved, at most), each a dot between the bytes that must move and those that may."""
    values = [v for row in rows for v in row[1:] if v > 0]
    x = log(min(values) / 1.3, 1.3 * max(values), box.x, box.right)
    pitch, marks = box.h / len(rows), []
    for i, (name, least, moved, most) in enumerate(rows):
        y = box.y + (i + 0.5) * pitch
        left = x(least) if least else box.x
        fits = least <= moved <= most
        tip = f"{name}: at least {units.si_bytes(least)}, at most {units.si_bytes(most)}"
        marks += [
            text(f"{id}{i}-name", box.x - 12, y + 4, name, "ink", "small", "end"),
            line(f"{id}{i}-range", left, y, x(most), y, "axis", tip),
            line(f"{id}{i}-most", x(most), y - 7, x(most), y + 7, "axis"),
            circle(
                f"{id}{i}", x(moved), y, 6, "measured" if fits else "hot", f"{name}: {units.si_bytes(moved)}"
            ),
            text(
                f"{id}{i}-moved",
                box.right + 14,
                y + 4,
                units.si_bytes(moved),
                "measured" if fits else "hot",
                "small",
                bold=True,
            ),
        ]
        if least:
            marks.append(line(f"{id}{i}-least", left, y - 7, left, y + 7, "axis"))
    return marks + axis_x(id, x, box.bottom + 4, "bytes: from what must move to what may", units.si_bytes)
