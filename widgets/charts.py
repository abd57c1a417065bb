"""Draw scales, axes, bars, and lines with their names at the end. Each helper returns a list of marks."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from widgets import units
from widgets.scene import circle, line, path, rect, text, text_width


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    w: float
    h: float

    @property
    def right(self) -> float:
        return self.x + self.w

    @property
    def bottom(self) -> float:
        return self.y + self.h


@dataclass(frozen=True)
class Scale:
    """Map values to positions in the picture. Fix lo and hi over the sliders' range, so that the eye can compare."""

    lo: float
    hi: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the position, clamped to the ends, so a mark never leaves its box."""
        if self.log:
            share = math.log(max(value, self.lo) / self.lo) / math.log(self.hi / self.lo)
        else:
            share = (value - self.lo) / (self.hi - self.lo)
        share = 0.0 if share < 0 else 1.0 if share > 1 else share
        return self.start + share * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        return _log_ticks(self.lo, self.hi, about) if self.log else _linear_ticks(self.lo, self.hi, about)


_ENDS: ContextVar[dict[str, float] | None] = ContextVar("ends", default=None)


@contextmanager
def holding(ends: dict[str, float]) -> Iterator[None]:
    """Hold axes to the ends in `ends`. An axis that is new there writes its own."""
    token = _ENDS.set(ends)
    try:
        yield
    finally:
        _ENDS.reset(token)


def steady(axis: str, end: float) -> float:
    """Return the end of an axis that depends on the state. During a drag, it stays as it was at the start."""
    ends = _ENDS.get()
    return end if ends is None else ends.setdefault(axis, end)


def linear(lo: float, hi: float, start: float, end: float) -> Scale:
    return Scale(lo, hi, start, end)


def log(lo: float, hi: float, start: float, end: float) -> Scale:
    if lo <= 0:
        raise ValueError(f"lo must be positive on a log scale, got {lo}")
    return Scale(lo, hi, start, end, True)


def _linear_ticks(lo: float, hi: float, about: int) -> list[float]:
    rough = (hi - lo) / about
    power = 10 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * 0.999)
    first = math.ceil(lo / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(hi / step + 1e-9) + 1)]


def _log_ticks(lo: float, hi: float, about: int) -> list[float]:
    first, last = math.ceil(math.log10(lo) - 1e-9), math.floor(math.log10(hi) + 1e-9)
    stride = max(1, math.ceil((last - first + 1) / (about + 1)))
    return [10.0**k for k in range(first, last + 1, stride)]


def axis_x(
    id: str,
    scale: Scale,
    y: float,
    label: str = "",
    show: Callable = units.number,
    top: float | None = None,
    ticks: Sequence[float] | None = None,
) -> list[dict]:
    """Draw a horizontal axis at y. With `top`, grid lines reach up to top. It needs 36 units below y."""
    marks = [line(f"{id}-line", scale.start, y, scale.end, y, "axis")]
    for i, value in enumerate(ticks if ticks is not None else scale.ticks()):
        x = scale(value)
        if top is not None:
            marks.append(line(f"{id}-grid{i}", x, y, x, top, "grid"))
        marks.append(text(f"{id}-tick{i}", x, y + 16, show(value), "muted", "small", "middle"))
    if label:
        middle = (scale.start + scale.end) / 2
        marks.append(text(f"{id}-label", middle, y + 33, label, "muted", "small", "middle"))
    return marks


def axis_y(
    id: str,
    scale: Scale,
    x: float,
    label: str = "",
    show: Callable = units.number,
    right: float | None = None,
    ticks: Sequence[float] | None = None,
) -> list[dict]:
    """Draw a vertical axis at x, with its name above. With `right`, grid lines run from the axis to right."""
    marks = []
    for i, value in enumerate(ticks if ticks is not None else scale.ticks()):
        y = scale(value)
        if right is not None:
            marks.append(line(f"{id}-grid{i}", x, y, right, y, "grid"))
        marks.append(text(f"{id}-tick{i}", x - 6, y + 4, show(value), "muted", "small", "end"))
    if label:
        marks.append(text(f"{id}-label", x, min(scale.start, scale.end) - 10, label, "muted", "small"))
    return marks


def words_within(
    id: str, left: float, right: float, y: float, words: tuple[str, ...], role: str
) -> list[dict]:
    """Write the first of the words that fits into a bar of 24 units height."""
    for one in words:
        if right - left > text_width(one, "small") + 8:
            return [
                text(f"{id}-name", (left + right) / 2, y + 16, one, "inverse", "small", "middle", on=role)
            ]
    return []


@dataclass(frozen=True)
class Part:
    """Hold one piece of a bar, with its size in the scale's unit, its meaning, and its words on hover."""

    size: float
    role: str
    tip: str = ""


def bars_across(
    id: str, rows: Sequence[tuple[str, Sequence[Part], str]], box: Box, scale: Scale, gap: float = 0.3
) -> list[dict]:
    """Draw horizontal stacked bars. A row is (name, parts, text at the bar's end), with names left of box.x."""
    pitch = box.h / len(rows)
    thick = pitch * (1 - gap)
    marks = []
    for r, (name, parts, end) in enumerate(rows):
        y, at = box.y + r * pitch + (pitch - thick) / 2, 0.0
        middle = y + thick / 2 + 4
        marks.append(text(f"{id}-name{r}", box.x - 8, middle, name, "ink", "body", "end"))
        for p, part in enumerate(parts):
            x, x2 = scale(at), scale(at + part.size)
            marks.append(rect(f"{id}-{r}-{p}", x, y, x2 - x, thick, part.role, part.tip))
            at += part.size
        if end:
            marks.append(text(f"{id}-end{r}", scale(at) + 6, middle, end, "ink", "body"))
    return marks


def bars_up(
    id: str,
    columns: Sequence[tuple[str, Sequence[Part]]],
    box: Box,
    scale: Scale,
    gap: float = 0.25,
    every: int = 1,
    below: float = 16,
) -> list[dict]:
    """Draw vertical stacked bars on box.bottom, with their names `below`. The scale runs upwards (start=box.bottom,
    end=box.y).
    """
    pitch = box.w / len(columns)
    wide = pitch * (1 - gap)
    marks = []
    for c, (name, parts) in enumerate(columns):
        x, at = box.x + c * pitch + (pitch - wide) / 2, 0.0
        for p, part in enumerate(parts):
            y, y2 = scale(at), scale(at + part.size)
            marks.append(rect(f"{id}-{c}-{p}", x, y2, wide, y - y2, part.role, part.tip))
            at += part.size
        if name and c % every == 0:
            marks.append(
                text(f"{id}-name{c}", x + wide / 2, box.bottom + below, name, "muted", "small", "middle")
            )
    return marks


@dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[tuple[float, float]]
    role: str
    dots: bool = False


def _point(name: str, a: float, b: float) -> str:
    return f"{name}, {units.number(a)}: {units.number(b)}"


def lines(
    id: str, series: Sequence[Series], x: Scale, y: Scale, tip: Callable[[str, float, float], str] = _point
) -> list[dict]:
    """Draw one line for each series, named at its right end (leave room there). Names push apart and never overlap."""
    marks = []
    for s, one in enumerate(series):
        marks.append(path(f"{id}-{s}", [(x(a), y(b)) for a, b in one.points], one.role))
        if one.dots:
            marks += [
                circle(f"{id}-{s}-dot{i}", x(a), y(b), 3, one.role, tip(one.name, a, b))
                for i, (a, b) in enumerate(one.points)
            ]
    ends = spread([y(one.points[-1][1]) for one in series])
    for s, (one, at) in enumerate(zip(series, ends, strict=True)):
        where = x(one.points[-1][0]) + 8
        marks.append(text(f"{id}-{s}-name", where, at + 4, one.name, one.role, "body", bold=True))
    return marks


def spread(places: Sequence[float], apart: float = 16) -> list[float]:
    """Return the same positions in the same order, moved just enough that neighbours are `apart`."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    blocks: list[list] = []  # [centre of the block, members]
    for i in order:
        blocks.append([places[i], [i]])
        while len(blocks) > 1 and _bottom(blocks[-2], apart) + apart > _top(blocks[-1], apart):
            (c2, m2), (c1, m1) = blocks.pop(), blocks.pop()
            blocks.append([(c1 * len(m1) + c2 * len(m2)) / (len(m1) + len(m2)), m1 + m2])
    out = [0.0] * len(places)
    for block in blocks:
        for k, i in enumerate(block[1]):
            out[i] = _top(block, apart) + k * apart
    return out


def _top(block: list, apart: float) -> float:
    return block[0] - apart * (len(block[1]) - 1) / 2


def _bottom(block: list, apart: float) -> float:
    return block[0] + apart * (len(block[1]) - 1) / 2


def limit_across(id: str, box: Box, y: float, name: str) -> list[dict]:
    """Draw a ceiling, a dashed horizontal line, with its name above its right end."""
    return [
        line(f"{id}-line", box.x, y, box.right, y, "limit", name),
        text(f"{id}-name", box.right, y - 6, name, "muted", "small", "end"),
    ]


def limit_up(id: str, box: Box, x: float, name: str, anchor: str = "start") -> list[dict]:
    """Draw a threshold, a dashed vertical line over the box with its name next to its top."""
    shift = {"start": 6, "end": -6, "middle": 0}[anchor]
    return [
        line(f"{id}-line", x, box.bottom, x, box.y, "limit", name),
        text(f"{id}-name", x + shift, box.y + 10, name, "muted", "small", anchor),
    ]


def wrap(s: str, room: float, size: str = "small") -> list[str]:
    """Return a sentence in lines that fit into `room` units."""
    lines = [""]
    for word in s.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def won_and_lost(points: list[tuple[float, float]], level: float) -> list[dict]:
    """Fill between a curve of drawn points and a level, as a win above the level and a loss below."""
    met = points[:1]
    for (a, b), (c, d) in zip(points, points[1:], strict=False):
        if (b - level) * (d - level) < 0:
            met.append((a + (c - a) * (level - b) / (d - b), level))
        met.append((c, d))
    marks = []
    for role, inside in (("useful", lambda b: b <= level), ("hot", lambda b: b >= level)):
        edge = [(a, b) for a, b in met if inside(b)] or [(points[0][0], level)]
        corners = [(edge[0][0], level), *edge, (edge[-1][0], level)]
        marks.append(path(f"area-{role}", corners, role, closed=True))
    return marks


def over(points: list[tuple[float, float]], left: float, right: float) -> float:
    """Return the top of a curve of drawn points between two x positions, so that words can go above the curve."""
    inside = [b for a, b in points if left <= a <= right]
    before, after = (
        [b for a, b in points if a < left][-1:],
        [b for a, b in points if a > right][:1],
    )
    return min([*before, *inside, *after])
