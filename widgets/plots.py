"""Two pictures of measurements: points under a roofline, and values between what must and what may be."""

from collections.abc import Sequence
from dataclasses import dataclass

from widgets import units
from widgets.charts import Box, axis_x, axis_y, log
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


def _powers(rate: float) -> str:
    return units.si(rate, "FLOP/s")


def roofline(
    bandwidth: float, roofs: Sequence[tuple[str, float]], points: Sequence[Point], beside=False
) -> list[dict]:
    """Points under the slope of a bandwidth and one flat roof a dtype; names below the points, or beside them."""
    x = log(LEAST, MOST, ROOF.x, ROOF.right)
    y = log(bandwidth * LEAST / 1.5, 2.2 * max(rate for _, rate in roofs), ROOF.bottom, ROOF.y)
    marks = axis_y("rate", y, ROOF.x, "", _powers, right=ROOF.right)
    marks += axis_x("intensity", x, ROOF.bottom, "FLOP per byte", top=ROOF.y, ticks=(1, 10, 100, 1000, 10000))
    for i, (name, rate) in enumerate(roofs):
        ridge = rate / bandwidth
        marks.append(
            path(
                f"roof{i}",
                [(x(LEAST), y(bandwidth * LEAST)), (x(ridge), y(rate)), (x(MOST), y(rate))],
                "limit",
                name,
            )
        )
        marks.append(text(f"roof{i}-name", ROOF.right, y(rate) - 6, name, "muted", "small", "end"))
    slope = 2.0
    marks.append(
        text(
            "slope-name",
            x(slope) - 8,
            y(bandwidth * slope) - 8,
            units.si(bandwidth, "B/s"),
            "muted",
            "small",
            "end",
        )
    )
    return marks + (_numbered(points, x, y) if beside else _named(points, x, y))


def _tip(p: Point) -> str:
    return f"{p.tip or p.name}: {units.number(p.intensity)} FLOP per byte, {_powers(p.rate)}"


def _named(points, x, y) -> list[dict]:
    """Names on lines of their own below the lowest point, so that near points do not cover each other."""
    marks, at = [], max(y(p.rate) for p in points) + 26
    for i, p in enumerate(sorted(points, key=lambda p: -p.intensity)):
        left, down = x(p.intensity), at + 20 * i
        marks += [
            line(f"point{i}-stem", left, y(p.rate), left, down - 4, p.role),
            circle(f"point{i}", left, y(p.rate), 6, p.role, _tip(p)),
            text(f"point{i}-name", left + 6, down, p.name, p.role, "small", bold=True),
        ]
    return marks


def _numbered(points, x, y) -> list[dict]:
    """Numbers above their points; where two would touch, the later one goes below."""
    marks, taken = [], []
    for i, p in enumerate(points):
        left, top = x(p.intensity), y(p.rate)
        spots = [(left, top - 9), (left, top + 18), (left + 14, top + 5), (left - 14, top + 5)]
        free = next(
            (s for s in spots if all(abs(s[0] - a) > 16 or abs(s[1] - b) > 13 for a, b in taken)), None
        )
        marks.append(circle(f"point{i}", left, top, 5, p.role, _tip(p)))
        if free:
            taken.append(free)
            marks.append(
                text(f"point{i}-name", free[0], free[1], p.name, p.role, "small", "middle", bold=True)
            )
    return marks


def ranges(id: str, rows: Sequence[tuple[str, float, float, float]], box: Box) -> list[dict]:
    """(name, at least, moved, at most) a row: a dot between the bytes that must move and those that may."""
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
