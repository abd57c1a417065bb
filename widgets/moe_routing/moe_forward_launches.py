"""Draw the launches of a layer, one square each, with every step by itself and, below, fused."""

from kernels.moe_routing import cost
from widgets import units
from widgets.charts import text_width
from widgets.scene import WIDE, line, rect, text

NAMES = tuple(f"{i + 1} {name}" for i, name in enumerate(cost.STEPS))


def launch_strip(by_step: tuple[int, ...], step: int, width: int) -> list[dict]:
    """Draw two rows of squares under the steps' names. Squares of the steps so far are solid."""
    wide = width == WIDE
    start, pitch, side, apart = (96, 13, 10, 12) if wide else (0, 9, 7, 9)
    above, below = (20, 36) if wide else (42, 72)  # the tops of the two rows
    named = [text_width(name, "small", True) if wide else 0 for name in NAMES]
    places, at = [], start
    for count, name in zip(by_step, named, strict=True):
        places.append((at, at + count * pitch - (pitch - side)))
        at += max(count * pitch, name) + apart
    marks = _heads(places, step, sum(by_step), width)
    for i, (count, (left, _)) in enumerate(zip(by_step, places, strict=True)):
        tip = f"{cost.STEPS[i]} by itself: {units.count(count)} of {units.count(sum(by_step))} launches"
        role = "overhead" if i <= step else "idle"
        marks += [
            rect(f"launch-{i}-{n}", left + n * pitch, above, side, side, role, tip) for n in range(count)
        ]
    return marks + _fused(places, step, below, pitch, side)


def _fused(places: list[tuple], step: int, y: float, pitch: float, side: float) -> list[dict]:
    """Draw one square a launch, and a line over the steps that it runs."""
    marks, taken = [], {}
    for f, (name, (first, last)) in enumerate(cost.FUSED_LAUNCHES.items()):
        before = taken.setdefault(first, 0)
        taken[first] += 1
        left, role = places[first][0] + before * pitch, "useful" if first <= step else "idle"
        if last > first:
            marks.append(line(f"fused-{f}-over", left, y + side / 2, places[last][1], y + side / 2, role))
        tip = f"{name}: one of {len(cost.FUSED_LAUNCHES)} launches, fused"
        marks.append(rect(f"fused-{f}", left, y, side, side, role, tip))
    return marks


def _heads(places: list[tuple], step: int, separate: int, width: int) -> list[dict]:
    """Return the steps by name, this one's position among them, and how many squares each row has."""
    counted = ((separate, "overhead"), (len(cost.FUSED_LAUNCHES), "useful"))
    rows, places_y = (("launches", "fused"), (31, 46))
    if width != WIDE:
        rows, places_y = (("launches, each step by itself", "launches, fused"), (36, 66))
    marks = [
        text(f"launches-{role}", 0, y, f"{name}: {units.count(total)}", role, "small", bold=True)
        for (total, role), name, y in zip(counted, rows, places_y, strict=True)
    ]
    if width != WIDE:
        return [text("step", 0, 14, NAMES[step], "now", bold=True), *marks]
    return marks + [
        text(f"step-{i}", x, 13, name, "now" if i == step else "muted", "small", bold=i == step)
        for i, (name, (x, _)) in enumerate(zip(NAMES, places, strict=True))
    ]
