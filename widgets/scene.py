"""Define a scene, the view of a simulator as plain data. No colours, no callbacks, nothing of the browser.

Marks are dicts with a stable id, by which the view patches them, and a role, the meaning of the mark.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby, takewhile

from widgets import units

# Every scene can be laid out for a column and for a phone, each with a width in units, which the view then scales.
WIDE, NARROW = 720, 340

# A role is a meaning. scene.css gives each one a colour in light, dark and forced colours.
TEXT_ROLES = {"ink", "muted", "inverse"}  # inverse is for a solid fill
RULE_ROLES = {"axis", "grid"}
GROUND_ROLES = {
    "ground",  # the page's own, a plate under words
    "fade",  # the same, solid at the top and gone at the foot, over scenery above the picture
}
MARK_ROLES = {
    "primary",  # the thing this simulator is about
    "secondary",  # what it is compared with
    "useful",  # work or bytes that serve the answer
    "waste",  # paid for and thrown away, such as padding or masked work (hatched)
    "hot",  # the one that decides, such as the straggler, the bottleneck, the error
    "dropped",  # lost, such as dropped tokens and rejected drafts (cross-hatched)
    "idle",  # there but unused, such as an empty slot or a waiting device
    "limit",  # a ceiling or a threshold (dashed line)
    "measured",  # what the learner measured
    "now",  # the current step
    "compute",  # time or energy of arithmetic
    "memory",  # time, bytes or energy of memory traffic
    "network",  # time or bytes between devices
    "overhead",  # launches, gaps, bookkeeping
}
ROLES = TEXT_ROLES | RULE_ROLES | GROUND_ROLES | MARK_ROLES
HATCHED = {"waste", "dropped"}  # no halo separates words from these, so they get a plate
PLATED = HATCHED | {"ground"}  # ground: where a line of the picture passes under the words
TEXT_SIZES = {"small": 12, "body": 13, "big": 17, "huge": 28}  # huge: the picture's one answer


def _num(value: float) -> float:
    if type(value) is int:
        return value
    rounded = round(value, 2)
    try:
        whole = int(rounded)
    except (ValueError, OverflowError):
        raise ValueError(
            f"a mark's number must be finite, got {value}; guard the division in scene()"
        ) from None
    return whole if whole == rounded else rounded


def _mark(mark: dict, tip: str = "") -> dict:
    if mark["role"] not in ROLES:
        known = ", ".join(sorted(ROLES))
        raise ValueError(f"role must be one of {known}, got {mark['role']!r}; pick the meaning")
    if tip:
        mark["tip"] = tip
    return mark


def rect(id: str, x: float, y: float, w: float, h: float, role: str, tip: str = "") -> dict:
    w, h = max(0, _num(w)), max(0, _num(h))
    return _mark({"t": "rect", "id": id, "role": role, "x": _num(x), "y": _num(y), "w": w, "h": h}, tip)


def circle(id: str, x: float, y: float, r: float, role: str, tip: str = "") -> dict:
    return _mark({"t": "circle", "id": id, "role": role, "x": _num(x), "y": _num(y), "r": _num(r)}, tip)


def line(id: str, x1: float, y1: float, x2: float, y2: float, role: str = "axis", tip: str = "") -> dict:
    ends = {"x": _num(x1), "y": _num(y1), "x2": _num(x2), "y2": _num(y2)}
    return _mark({"t": "line", "id": id, "role": role, **ends}, tip)


def path(id: str, points: Iterable[tuple], role: str, tip: str = "", closed: bool = False) -> dict:
    """Return a line through the points, or, when closed, a filled outline."""
    flat = [_num(value) for point in points for value in point]
    mark = {"t": "path", "id": id, "role": role, "p": flat}
    if closed:
        mark["closed"] = True
    return _mark(mark, tip)


def text(
    id: str,
    x: float,
    y: float,
    s: str,
    role: str = "ink",
    size: str = "body",
    anchor: str = "start",
    bold: bool = False,
    on: str = "",
) -> dict:
    """Draw text with its baseline at y. A text in a mark role takes that role's colour, so a label names its line.

    `on` is the role of the fill under the text, which sets the text's halo. A hatched fill gets a plate, and so do
    words over a line, with "ground".
    """
    if size not in TEXT_SIZES:
        raise ValueError(f"size must be one of {', '.join(TEXT_SIZES)}, got {size!r}")
    if anchor not in ("start", "middle", "end"):
        raise ValueError(f"anchor must be start, middle or end, got {anchor!r}")
    mark = {
        "t": "text",
        "id": id,
        "role": role,
        "x": _num(x),
        "y": _num(y),
        "s": str(s),
        "size": size,
        "a": anchor,
    }
    if bold:
        mark["b"] = True
    if on:
        mark["on"] = on
    return _mark(mark)


def extent(mark: dict) -> tuple[float, float, float, float]:
    """Return the room that a mark takes as (left, top, right, bottom). A handle takes its point alone."""
    kind = mark["t"]
    if kind in ("rect", "grid"):
        return mark["x"], mark["y"], mark["x"] + mark["w"], mark["y"] + mark["h"]
    if kind == "handle":
        return mark["x"], mark["y"], mark["x"], mark["y"]
    if kind == "circle":
        return mark["x"] - mark["r"], mark["y"] - mark["r"], mark["x"] + mark["r"], mark["y"] + mark["r"]
    if kind == "line":
        xs, ys = (mark["x"], mark["x2"]), (mark["y"], mark["y2"])
        return min(xs), min(ys), max(xs), max(ys)
    if kind == "path":
        xs, ys = mark["p"][::2], mark["p"][1::2]
        return min(xs), min(ys), max(xs), max(ys)
    wide, high = text_width(mark["s"], mark["size"], mark.get("b", False)), TEXT_SIZES[mark["size"]]
    left = mark["x"] - wide * {"start": 0, "middle": 0.5, "end": 1}[mark["a"]]
    return left, mark["y"] - 0.75 * high, left + wide, mark["y"] + 0.2 * high


_WIDTHS = {0.33: " .,:;|'ilItfj()[]!\u202f", 0.9: "MWmw%", 0.68: "ABCDEGHKNOPQRUVXYZ0123456789+×"}
_EM = {letter: em for em, letters in _WIDTHS.items() for letter in letters}


@lru_cache(maxsize=8192)  # steps say much the same words
def text_width(s: str, size: str = "body", bold: bool = False) -> float:
    """Return the width of a text in a wide sans-serif, near enough to keep labels apart."""
    ems = sum(_EM.get(letter, 0.6) for letter in s)
    return TEXT_SIZES[size] * ems * (1.12 if bold else 1)


def plated(marks: Sequence[dict]) -> list[dict]:
    """Return the same marks, with one plate under each run of texts on a hatched fill, and under each text on a line."""
    out, before = [], None
    for at, mark in enumerate(marks):
        on = mark.get("on")
        if on in PLATED and at and marks[at - 1]["id"] == f"{mark['id']}-plate":
            pass  # what many steps share is plated once
        elif on == "ground":
            out.append(_plate([mark], 2, 1))
        elif on in HATCHED and on != before:
            out.append(_plate(_run(marks[at:], on), 5, 4))
        out.append(mark)
        before = on
    return out


def _run(marks: Sequence[dict], on: str) -> list[dict]:
    return list(takewhile(lambda mark: mark.get("on") == on, marks))


def _plate(words: list[dict], beside: float, above: float) -> dict:
    boxes = [extent(mark) for mark in words]
    left, top = min(box[0] for box in boxes) - beside, min(box[1] for box in boxes) - above
    right, low = max(box[2] for box in boxes) + beside, max(box[3] for box in boxes) + above
    plate = rect(f"{words[0]['id']}-plate", left, top, right - left, low - top, "ground")
    return {**plate, **{key: words[0][key] for key in ("by", "clock") if key in words[0]}}


def drag(control, axis: str, place: Callable[[float], float]) -> dict:
    """Return a handle that pulls `control` along "x" or "y". place(value) is its position at a value."""
    if axis not in ("x", "y"):
        raise ValueError(f"axis must be x or y, got {axis!r}; a handle moves along one of the two")
    values = control.values()
    return {"input": control.name, "axis": axis, "at": [_num(place(v)) for v in values], "to": values}


def handle(
    id: str,
    x: float,
    y: float,
    role: str,
    *drags: dict,
    tip: str = "",
    late: bool = False,
    named: bool = False,
) -> dict:
    """A knob to drag and to key, bound to the input of each of its drags (at most one for x, one for y).

    A late one sets its input when the hand lets go, because each stop on the way would be judged as an answer. Beside a
    named one its name stands in the picture, so the view doesn't write it too.
    What no pull moves in this state is a dot, because a knob that stays where it is would change what nobody sees.
    """
    axes = [one["axis"] for one in drags]
    if not drags or len(set(axes)) != len(axes):
        raise ValueError(f"drags must be one for x, one for y, or both, got {axes}; see drag()")
    moves = [one for one in drags if max(one["at"]) - min(one["at"]) > 2]
    if not moves:
        return circle(id, max(x, 6), y, 6, role, tip)
    kind = {
        "t": "handle",
        "id": id,
        "role": role,
        **({"late": True} if late else {}),
        **({"named": True} if named else {}),
    }
    return _mark({**kind, "x": _num(x), "y": _num(y), "drag": moves}, tip)


def about(term: str, *marks: dict | Iterable[dict]) -> list[dict]:
    """Let these marks belong to a term of the formula, so that both light up together. Several terms are written "bm
    tile"."""
    flat = [mark for some in marks for mark in ([some] if isinstance(some, dict) else some)]
    return [{**mark, "k": f"{mark['k']} {term}" if "k" in mark else term} for mark in flat]


def sets(to: dict, *marks: dict) -> list[dict]:
    """Let a click on any of these marks set inputs, such as {"group_m": 8}. A grid gives each name a list with a value
    per cell. A slider or a knob sets the same inputs for the keyboard."""
    return [{**mark, "set": to} for mark in marks]


def together(first: dict, *rest: dict) -> list[dict]:
    """Let these marks travel as one. A mark that appears in the step in which `first` moves comes along."""
    return [first, *({**mark, "by": first["id"]} for mark in rest)]


def timed(clock: str, *marks: dict) -> list[dict]:
    """Hide the parts of these marks to the right of the line `clock` while the line glides to its next moment."""
    return [{**mark, "clock": clock} for mark in marks]


TERM = re.compile(r"\{([a-z0-9_]+)(?::([^{}]*))?\}")


def only(terms: Iterable[str], words: str) -> str:
    """Return a formula in which the terms that light nothing in this state are plain words."""
    kept = set(terms)
    return TERM.sub(lambda found: found[0] if found[1] in kept else plain(found[0]), words)


def plain(words: str) -> str:
    """Return a formula without its marks for terms, such as "128 · 2" for "{bm:128} · 2"."""
    return TERM.sub(lambda found: found[2] if found[2] is not None else found[1], words)


def grid(
    id: str,
    x: float,
    y: float,
    w: float,
    h: float,
    columns: int,
    cells: Sequence[int],
    roles: Sequence[str],
    names: Sequence[str],
    unit: str = "row {row}, column {column}",
) -> dict:
    """Draw a map of many cells as one mark. cells[i] chooses a role and, on hover, its name after `unit`."""
    if not cells or len(cells) % columns:
        raise ValueError(f"cells must fill whole rows of {columns}, got {len(cells)}; pad the last row")
    if unknown := set(roles) - ROLES:
        raise ValueError(f"roles must be known, got {sorted(unknown)}; pick the meaning")
    if len(roles) != len(names) or not set(cells) <= set(range(len(roles))):
        raise ValueError("cells must index roles, and roles and names must pair up")
    box = {"x": _num(x), "y": _num(y), "w": _num(w), "h": _num(h)}
    counted = Counter(cells)
    tip = "; ".join(f"{units.count(counted[i])} {name}" for i, name in enumerate(names))
    runs = [(cell, len(list(run))) for cell, run in groupby(cells)]
    wide, high = w / columns, h * columns / len(cells)
    outlines = _outlines(runs, columns, lambda column: x + column * wide, lambda row: y + row * high)
    more = {
        "n": columns,
        "runs": [number for run in runs for number in run],
        "names": list(names),
        "unit": unit,
        "fills": [[role, outlines.get(i, "")] for i, role in enumerate(roles)],
        "rules": _hairlines(box, columns, len(cells) // columns),
        "thin": min(wide, high) < 7,
    }
    return _mark({"t": "grid", "id": id, "role": "primary", **box, **more}, tip)


def _outlines(runs: Sequence[tuple[int, int]], columns: int, x_of: Callable, y_of: Callable) -> dict:
    """Return cell -> one path around all of its kind. Neighbours in a row are one rectangle, equal rows too."""
    parts, at = defaultdict(list), 0
    for cell, length in runs:
        end = at + length
        while at < end:
            row, column = divmod(at, columns)
            whole = column == 0 and end - at >= columns
            rows, some = ((end - at) // columns, columns) if whole else (1, min(end - at, columns - column))
            left, top, right, low = x_of(column), y_of(row), x_of(column + some), y_of(row + rows)
            parts[cell].append(f"M{_num(left)},{_num(top)}H{_num(right)}V{_num(low)}H{_num(left)}Z")
            at += rows * some
    return {cell: "".join(some) for cell, some in parts.items()}


def _hairlines(box: dict, columns: int, rows: int) -> str:
    """Part cells by lines while they are large enough."""
    x, y, w, h = box["x"], box["y"], box["w"], box["h"]
    if min(w / columns, h / rows) < 3:
        return ""
    down = (f"M{_num(x + w * c / columns)},{y}v{h}" for c in range(1, columns))
    across = (f"M{x},{_num(y + h * r / rows)}h{w}" for r in range(1, rows))
    return "".join((*down, *across))


@dataclass(frozen=True)
class Figure:
    """Hold one key number, as its raw value for the result and its text for the summary."""

    label: str
    value: float
    text: str
    role: str = "ink"
    term: str = ""  # the term of the formula that it is


def figure(
    label: str, value: float, show: Callable = units.number, role: str = "ink", term: str = ""
) -> Figure:
    return Figure(label, value, show(value), role, term)


@dataclass(frozen=True)
class Column:
    label: str
    unit: str = ""  # of the raw values, shown in the header when `show` leaves it out
    show: Callable | None = None


@dataclass(frozen=True)
class Table:
    """Hold the picture's data as the result's raw values, formatted only for reading."""

    columns: tuple[Column, ...]
    rows: tuple[tuple, ...]

    def header(self) -> list[str]:
        return [f"{c.label} ({c.unit})" if c.unit and not c.show else c.label for c in self.columns]

    def copied(self) -> str:
        """Return tab-separated raw values, units in the header."""
        heads = [f"{c.label} [{c.unit}]" if c.unit else c.label for c in self.columns]
        return "\n".join("\t".join(map(str, row)) for row in (heads, *self.rows))

    def shown(self) -> list[list[str]]:
        return [[_cell(c, v) for c, v in zip(self.columns, row, strict=True)] for row in self.rows]


def _cell(column: Column, value) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return (column.show or units.number)(value)


def table(columns: Iterable[Column | str], rows: Iterable[Sequence]) -> Table:
    return Table(
        tuple(Column(c) if isinstance(c, str) else c for c in columns),
        tuple(tuple(row) for row in rows),
    )


def _few_colours(figures: Sequence[Figure]) -> tuple[Figure, ...]:
    """Allow at most three colours, including ink, because with a colour for each figure no colour has a meaning."""
    roles = list(dict.fromkeys(one.role for one in figures))
    kept = roles if len(roles) <= 3 else [role for role in roles if role != "ink"][:2]
    return tuple(one if one.role in kept else replace(one, role="ink") for one in figures)


@dataclass(frozen=True)
class Scene:
    summary: str  # one sentence with the key figures, which a screen reader hears
    takeaway: str  # the one sentence to keep
    marks: list[dict]
    figures: tuple[Figure, ...]  # two to four
    table: Table
    height: int = 320
    formula: tuple[
        tuple[str, str], ...
    ] = ()  # (with symbols, with numbers), where {bm} and {bm:128} name a term
    warning: str = ""  # when the state is one to stay away from
    beside: tuple[str, ...] = ()  # sentences from beside_model()
    legend: tuple[tuple[str, str], ...] = ()  # (role or "role line", meaning), where no label fits
    caption: str = ""  # the step's own sentence, in a stepper
    width: int = WIDE  # WIDE or NARROW, the width its marks were laid out for

    def __post_init__(self):
        object.__setattr__(self, "marks", plated(self.marks))
        object.__setattr__(self, "figures", _few_colours(self.figures))


def beside_model(name: str, measured: float, modelled: float, show: Callable = units.number) -> str:
    """Return a sentence that compares a learner's measurement with the model and names the difference."""
    if modelled <= 0 or measured <= 0:
        raise ValueError(f"{name} must be positive to compare, got {measured} beside {modelled}")
    ratio = measured / modelled
    gap = "as the model says" if abs(ratio - 1) < 0.005 else f"{units.times(ratio)} the model"
    return f"{name}: measured {show(measured)}, model {show(modelled)} ({gap})."
