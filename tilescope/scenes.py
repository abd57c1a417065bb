"""Turn steps into scenes.
A scene is plain data that the simulators' view draws, with marks, words and the same values as a table."""

from dataclasses import dataclass
from math import prod

import numpy as np

from .machine.bounds import ids
from .machine.storage import HALF, SPAN
from .recorder import Access, Value
from .steps import SECTOR, Step, Steps

WIDE, NARROW = 720, 340
ROWS = COLUMNS = 8  # lanes in view
MOST_SECTORS = 8
MOST_STEPS = 100  # in one album of scenes
DOES = {"load": "Load from", "store": "Store to", "atomic": "Atomic on"}
KEYS = ("useful", "asked for here"), ("idle", "fetched, or masked off"), ("hot", "what a finding names")


@dataclass(frozen=True)
class Look:
    """Holds the drawn part of a step: one of its blocks, and the window of lanes that begins at a row and a column."""

    block: int = 0
    row: int | None = None  # None for the step's finding
    column: int | None = None
    width: int = WIDE


@dataclass(frozen=True)
class Window:
    """Lanes in view, as (row, column) of a block seen as a matrix."""

    rows: range
    columns: range
    across: int  # columns of the whole matrix

    def lane(self, row: int, column: int, shape: tuple) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(row * self.across + column, shape)) if shape else ()


def matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return a block as rows and columns. A block of one axis is written in lines of eight."""
    if len(shape) < 2:
        count = prod(shape)
        across = min(count, COLUMNS)
        return -(-count // across), across
    return prod(shape[:-1]), shape[-1]


def rect(id: str, x, y, w, h, role: str, tip: str = "", term: str = "", pick=None) -> dict:
    mark = {"t": "rect", "id": id, "role": role, "x": x, "y": y, "w": w, "h": h, "tip": tip, "k": term}
    return {**mark, "pick": pick}


def text(id: str, x, y, s: str, role="ink", size="small", anchor="start", bold=False) -> dict:
    return {"t": "text", "id": id, "role": role, "x": x, "y": y, "s": s, "size": size, "a": anchor, "b": bold}


def arrow(id: str, x, y, x2, y2, tip: str) -> list[dict]:
    """A line with a head at its second end."""
    long = max(1.0, float(np.hypot(x2 - x, y2 - y)))
    along, side = ((x2 - x) / long, (y2 - y) / long), (-(y2 - y) / long, (x2 - x) / long)
    back = [(x2 - 9 * along[0] + w * side[0], y2 - 9 * along[1] + w * side[1]) for w in (5, -5)]
    head = [round(float(v), 1) for point in [(x2, y2), *back] for v in point]
    shaft = {"t": "line", "id": id, "role": "hot", "x": x, "y": y, "x2": x2, "y2": y2, "tip": tip}
    return [shaft, {"t": "path", "id": f"{id}-head", "role": "hot", "p": head, "closed": True}]


class Drawn:
    """One step as a scene."""

    def __init__(self, steps: Steps, step: Step, look: Look):
        self.steps, self.step, self.look, self.recording = steps, step, look, steps.recording
        self.failed = steps.failed(step)
        self.findings = [f for f in self.recording.findings if self.concerns(f)]
        number, self.access = self.chosen()
        self.number = number
        self.value: Value | None = self.recording.values[number] if number >= 0 else None
        self.shape = self.access.shape if self.access else self.value.shape if self.value else ()
        self.marked = self.hot_lanes()
        self.window = self.windowed()
        self.marks: list[dict] = []
        self.rows: list[list[str]] = []
        self.hot_at: dict[tuple[str, int], tuple[float, float]] = {}  # (tensor, byte) -> its cell

    def chosen(self) -> tuple[int, Access | None]:
        blocks = self.steps.blocks(self.step)
        main = self.steps.main(self.step)
        if main is None:
            return -1, None
        ordered = [main, *(p for p in blocks if p[0] != main[0] or p[1] is not main[1])]
        ordered.sort(key=lambda pair: not self.named(pair[1]).any())  # what a finding names comes first
        return ordered[min(self.look.block, len(ordered) - 1)]

    def concerns(self, finding: dict) -> bool:
        mine = self.recording.ids in finding["programs"] or not finding["programs"]
        return mine and self.step.line in (finding["line"], finding["other_line"])

    # ---- which lanes

    def hot_lanes(self) -> set[tuple[int, ...]]:
        """Lanes that a finding, or the error of this step, is about."""
        hot = np.array(np.zeros(self.shape, bool) | self.named(self.access))
        if self.born():
            for finding in self.findings:
                if len(finding["lane"]) == len(self.shape):
                    hot[tuple(finding["lane"])] = True
        return {tuple(map(int, lane)) for lane in np.argwhere(hot)}

    def named(self, access: Access | None) -> np.ndarray:
        """The lanes of an access that a finding names, or that leave their tensor where this step has a finding."""
        hot = np.zeros(access.shape if access else (), bool)
        if access is None or not (self.findings or self.failed):
            return hot
        for place, byte, on in self.reached(access):
            element = byte // place.itemsize
            named = [f["element"] for f in self.findings if f["tensor"] == place.name]
            outside = (element < 0) | (element >= place.extent)
            hot |= on & (outside | np.isin(element, [at for at in named if at is not None]))
        return hot

    def reached(self, access: Access):
        """Return each tensor that active lanes reach, with the byte of every lane in it,
        and which lanes those are."""
        address = access.address
        on = np.ones(access.shape, bool) if access.active is None else access.active
        number = ((address + HALF) >> SPAN) - 1
        for at, place in enumerate(self.recording.places):
            mine = on & (number == at)
            if mine.any():
                yield place, address - place.base, mine

    def born(self) -> bool:
        """Return whether a finding says that a NaN or an infinity was born in the block in view."""
        kinds = {f["kind"] for f in self.findings if f["operands"]}
        if (
            self.value is None
            or not self.value.type.startswith(("fp", "bf"))
            or self.value.shape != self.shape
        ):
            return False
        lanes = self.value.lanes.astype(np.float64)
        return bool(
            ("nan" in kinds and np.isnan(lanes).any()) or ("infinity" in kinds and np.isinf(lanes).any())
        )

    def windowed(self) -> Window:
        down, across = matrix(self.shape)
        first = min(self.marked, default=None)
        flat = int(np.ravel_multi_index(first, self.shape)) if first else 0
        row, column = self.look.row, self.look.column
        row = flat // across // ROWS * ROWS if row is None else row
        column = flat % across // COLUMNS * COLUMNS if column is None else column
        row, column = min(row, max(0, down - ROWS)), min(column, max(0, across - COLUMNS))
        rows, columns = range(row, min(down, row + ROWS)), range(column, min(across, column + COLUMNS))
        return Window(rows, columns, across)

    def shown_lanes(self):
        """(row and column on the screen, lane) of all in view."""
        count = prod(self.shape)
        for y, row in enumerate(self.window.rows):
            for x, column in enumerate(self.window.columns):
                if row * self.window.across + column < count:
                    yield y, x, self.window.lane(row, column, self.shape)

    # ---- the picture

    def scene(self) -> dict:
        if self.value is None and self.access is None:
            self.marks.append(text("nothing", 4, 40, "This line makes no value.", "muted", "body"))
            height = 80
        else:
            height = self.draw()
        title = self.title()
        return {
            "w": self.look.width,
            "h": height,
            "line": self.step.line,
            "summary": f"{self.where()}: {title}",
            "caption": f"{self.where()}: {self.source()}",
            "takeaway": "",
            "warning": " ".join(self.warnings()),
            "figures": self.figures(),
            "terms": [""] * len(self.figures()),
            "formula": self.variables(),
            "beside": [],
            "legend": [list(key) for key in KEYS] if self.access else [],
            "table": self.table(),
            "marks": self.marks,
        }

    def draw(self) -> int:
        narrow = self.look.width == NARROW
        wide, high, left, top = (36, 24, 30, 46) if narrow else (42, 30, 34, 46)
        self.marks.append(text("title", 0, 15, self.title(), "ink", "body", bold=True))
        for x, column in enumerate(self.window.columns):
            self.marks.append(
                text(f"c{x}", left + wide * (x + 0.5), top - 6, str(column), "muted", anchor="middle")
            )
        for y, row in enumerate(self.window.rows):
            first = row * self.window.across if len(self.shape) < 2 else row
            self.marks.append(
                text(f"r{y}", left - 5, top + high * (y + 0.5) + 4, str(first), "muted", anchor="end")
            )
        for y, x, lane in self.shown_lanes():
            self.lane(f"{y}-{x}", left + wide * x, top + high * y, wide, high, lane)
        height = top + high * len(self.window.rows) + 10
        beside = (0, height + 14) if narrow else (left + wide * COLUMNS + 28, top)
        draw_other = self.memory if self.access else self.made_from
        return int(max(height, draw_other(*beside)))

    def on(self, lane: tuple) -> bool:
        return self.access is None or self.access.active is None or bool(self.access.active[lane])

    def told(self, lane: tuple) -> tuple[str, str, list[str]]:
        """Describe one lane's value and its target
        in words, as the term of its sector, and as a row of the table."""
        shown, name = self.word(lane), f"lane {lane_name(lane)}" if lane else "the scalar"
        said, term, row = f"{name} = {shown}" if shown else name, "", [lane_name(lane), shown]
        if self.access is None:
            return said, term, row
        on = "yes" if self.on(lane) else "no"
        at = self.steps.element(self.access, int(self.access.address[lane]))
        if at is None:
            return f"{said}: an address in no tensor", term, [*row, "in no tensor", "", "", on]
        place, byte, element = at
        sector = byte // SECTOR
        said += f": {element} at byte {byte:,}, sector {sector:,}" + ", masked off" * (on == "no")
        return said, term_of(place.name, sector), [*row, element, str(byte), str(sector), on]

    def lane(self, id: str, x, y, wide, high, lane: tuple) -> None:
        said, term, row = self.told(lane)
        self.rows.append(row)
        hot, on = lane in self.marked, self.on(lane)
        role = "hot" if hot else "idle"
        self.marks.append(rect(f"l{id}", x, y, wide - 2, high - 2, role, said, term, self.pick(lane, said)))
        if on and not hot:
            self.marks.append(rect(f"m{id}", x, y, 3, high - 2, "primary", "", term))
        short = self.short(lane, row[1]) if on else "·"
        word = text(f"t{id}", x + wide / 2, y + high / 2 + 4, short, "ink", anchor="middle")
        self.marks.append(word | {"on": "ground" if hot else "idle", "k": term})

    def short(self, lane: tuple, shown: str) -> str:
        """Return a lane's value as short as its cell needs. A pointer is shown as its element."""
        if self.value is not None and self.value.type == "pointer":
            at = self.recording.place_of(int(self.value.lanes[lane]))
            return str(at[1] // at[0].itemsize) if at else "?"
        return shown if len(shown) <= 5 else shortened(shown)

    def pick(self, lane: tuple, said: str) -> list[list[str]]:
        """Return the words for a picked lane, first about the lane, then about the lines that made its value."""
        head = [["", said]]
        if self.number < 0:
            return head
        origins = self.steps.origins(self.number, lane)
        return head + [[str(o.line or ""), f"{o.name} = {o.shown}"] for o in origins]

    def word(self, lane: tuple) -> str:
        if self.value is None or (self.value.type != "descriptor" and self.value.shape != self.shape):
            if self.value is None or prod(self.value.shape) != 1:
                return ""
            lane = (0,) * len(self.value.shape)
        return self.steps.shown(self.value, lane)

    def memory(self, x: float, top: float) -> float:
        """The sectors that the lanes in view reach, each with its elements."""
        asked: dict[tuple, dict] = {}  # (tensor, sector) -> byte -> lanes
        places = {}
        for _, _, lane in self.shown_lanes():
            at = self.steps.element(self.access, int(self.access.address[lane]))
            if at is None or (self.access.active is not None and not self.access.active[lane]):
                continue
            place, byte, _ = at
            places[place.name] = place
            asked.setdefault((place.name, byte // SECTOR), {}).setdefault(byte, []).append(lane)
        hot = {
            k: v
            for k, v in asked.items()
            if any(lane in self.marked for lanes in v.values() for lane in lanes)
        }
        order = sorted(hot) + sorted(k for k in asked if k not in hot)
        shown, high = sorted(order[:MOST_SECTORS]), 30
        name = "Sectors of 32 bytes that the lanes in view reach"
        self.marks.append(text("memory", x, top - 6, name if asked else "No lane in view is on.", "muted"))
        for y, key in enumerate(shown):
            self.sector(places[key[0]], key[1], asked[key], x, top + high * y)
        height = top + high * len(shown) + 10
        if len(order) > len(shown):
            self.marks.append(
                text("more", x, height + 8, f"and {len(order) - len(shown)} more sectors", "muted")
            )
            height += 18
        return self.races(x, height)

    def sector(self, place, sector: int, asked: dict, x: float, y: float) -> None:
        label, high = 108, 28
        first, size = sector * SECTOR, min(place.itemsize, SECTOR)
        wide = (min(self.look.width - x, 320) - label) / (SECTOR // size)
        term = term_of(place.name, sector)
        element = self.steps.element(self.access, place.base + first)[2]
        self.marks.append(
            text(f"s{place.name}{sector}", x, y + 18, shortened_name(element), "ink") | {"k": term}
        )
        for place_in, byte in enumerate(range(first, first + SECTOR, size)):
            lanes = [
                lane
                for at, some in asked.items()
                if at <= byte < at + self.access.size or at == byte
                for lane in some
            ]
            hot = any(lane in self.marked for lane in lanes)
            inside = 0 <= byte // place.itemsize < place.extent
            role = "hot" if hot else "useful" if lanes else "idle" if inside else "grid"
            what = self.steps.element(self.access, place.base + byte)[2]
            who = (
                f"{counted(len(lanes), 'lane')}, first {lane_name(lanes[0])}" if lanes else "no lane in view"
            )
            self.marks.append(
                rect(
                    f"e{place.name}{byte}",
                    x + label + wide * place_in,
                    y,
                    wide - 1,
                    high - 2,
                    role,
                    f"{what}, byte {byte:,}: {who}",
                    term,
                )
            )
            if hot:
                self.hot_at[place.name, byte] = (x + label + wide * (place_in + 0.5), y + high / 2)

    def races(self, x: float, height: float) -> float:
        """A race as two arrows into the element that both programs reach."""
        races = [f for f in self.findings if f["kind"] == "race" and len(f["programs"]) > 1]
        for finding in races[:1]:
            place = next((p for p in self.recording.places if p.name == finding["tensor"]), None)
            key = (place.name, finding["element"] * place.itemsize) if place else None
            if key not in self.hot_at:
                continue
            one = (
                finding["programs"].index(self.recording.ids)
                if self.recording.ids in finding["programs"]
                else 0
            )
            other = finding["programs"][1 - one]
            line = finding["other_line"] if one == 0 else finding["line"]
            to, foot, half = self.hot_at[key], height + 34, min(self.look.width - x, 320) / 2
            for at, (program, where) in enumerate(((self.recording.ids, self.step.line), (other, line))):
                name = f"program {ids(program, self.recording.grid)}" + f", line {where}" * bool(where)
                left = x + half * at
                self.marks.append(rect(f"racer{at}", left, foot, half - 8, 26, "idle", finding["message"]))
                label = text(
                    f"raced{at}", left + half / 2 - 4, foot + 18, name, "ink", anchor="middle", bold=True
                )
                self.marks.append(label | {"on": "idle"})
                start = left + half / 2 - 4
                self.marks += arrow(
                    f"race{at}",
                    start,
                    foot,
                    to[0] + 8 * at - 4,
                    to[1] + 14,
                    f"{name} reaches {finding['tensor']}",
                )
            height = foot + 36
        return height

    def made_from(self, x: float, top: float) -> float:
        """The operands that a value was made of, in words."""
        made = self.value.made_by
        done = self.recording.done[made] if made is not None else None
        said = (
            f"Made by {done.name}" + ", from" * bool(done.operands) if done else "An argument of the kernel"
        )
        self.marks.append(text("from", x, top - 6, said, "muted"))
        for y, number in enumerate(done.operands[:8] if done else ()):
            if number < 0:
                continue
            value = self.recording.values[number]
            words = (
                f"{value.name or 'a value'} · {shape_name(value)} · {self.steps.words(value, value.lanes)}"
            )
            self.marks.append(text(f"o{y}", x, top + 18 + 24 * y, shortened_name(words, 46)))
        return top + 30 + 24 * (len(done.operands[:8]) if done else 0)

    # ---- the words

    def title(self) -> str:
        if self.value is None and self.access is None:
            return self.source()
        name = (self.value.name if self.value else "") or "a value"
        if self.access is None:
            return f"{name} · {shape_name(self.value)}"
        lanes, on = prod(self.shape), self.active_lanes()
        tensors = ", ".join(place.name for place, _, _ in self.reached(self.access)) or "no tensor"
        some = counted(on, "lane") if on == lanes else f"{on:,} of {counted(lanes, 'lane')}"
        named = self.value.name + " · " if self.value and self.value.name else ""
        block = named + shape_name(self.value) if self.value else "a block"
        return f"{DOES[self.access.kind]} {tensors}: {block}, {some}"

    def active_lanes(self) -> int:
        return prod(self.shape) if self.access.active is None else int(self.access.active.sum())

    def where(self) -> str:
        turns = [f"turn {turn + 1} of the loop at line {line}" for line, turn in self.step.turns]
        return ", ".join([f"Line {self.step.line}", *turns])

    def source(self) -> str:
        lines = dict(self.recording.listing)
        return lines.get(self.step.line, "a line of another function").strip()

    def warnings(self) -> list[str]:
        said = [f["message"] for f in self.findings]
        if self.failed is not None and self.failed.error not in said:
            said.append(self.failed.error)
        return [f"{one[:1].upper() if one.split()[0].isalpha() else one[:1]}{one[1:]}." for one in said]

    def figures(self) -> list[list[str]]:
        if self.access is not None:
            bytes_of = [byte[on] for _, byte, on in self.reached(self.access)]
            fetched = SECTOR * sum(len(np.unique(byte // SECTOR)) for byte in bytes_of)
            needed = self.access.size * sum(len(np.unique(byte)) for byte in bytes_of)
            return [
                ["bytes that lanes ask for", f"{self.active_lanes() * self.access.size:,}", "ink"],
                ["bytes of whole sectors", f"{fetched:,}", "memory"],
                ["useful share", f"{needed / fetched:.0%}" if fetched else "–", "useful"],
            ]
        if self.value is None or self.value.type == "descriptor":
            return []
        return [
            ["lanes", f"{prod(self.shape):,}", "ink"],
            ["least to most", self.steps.words(self.value, self.value.lanes), "primary"],
        ]

    def variables(self) -> list[list[str]]:
        found = self.steps.variables(self.step)
        rows = [[f"{name} · {shape_name(v)}", self.steps.words(v, v.lanes)] for name, v in found.items()]
        return rows[-14:]

    def table(self) -> dict:
        header = ["lane", "value", *(["element", "byte", "sector", "on"] if self.access else [])]
        raw = "\n".join("\t".join(row) for row in [header, *self.rows])
        return {"header": header, "rows": self.rows, "raw": raw}


def scene(steps: Steps, at: int, look: Look | None = None) -> dict:
    """One step as plain data."""
    return Drawn(steps, steps[at], look or Look()).scene()


def chosen_steps(steps: Steps) -> list[int]:
    """Return the steps that an album holds, all or, if there are too many, the first and the last."""
    if len(steps) <= MOST_STEPS:
        return list(range(len(steps)))
    half = MOST_STEPS // 2
    return [*range(half), *range(len(steps) - half, len(steps))]


def opening(steps: Steps) -> int:
    """Return the step to open at.
    This is the failed step, else the first that a finding names, else the first access."""
    numbers = chosen_steps(steps)
    failed = next((n for n in numbers if steps.failed(steps[n])), None)
    mine = [f for f in steps.recording.findings if steps.recording.ids in f["programs"]]
    lines = {f["line"] if f["programs"][0] == steps.recording.ids else f["other_line"] for f in mine}
    found = next((n for n in numbers if steps[n].line in lines), None)
    moves = next((n for n in numbers if steps.main(steps[n]) and steps.main(steps[n])[1]), None)
    return next((n for n in (failed, found, moves) if n is not None), 0)


def term_of(tensor: str, sector: int) -> str:
    return f"{tensor}-{sector}".replace(" ", "_")


def lane_said(steps: Steps, at: int, lane: tuple[int, ...]) -> list[list[str]]:
    """Return the words for one picked lane of a step's block as [line, words], itself first."""
    one = Drawn(steps, steps[at], Look())
    return one.pick(lane, one.told(lane)[0])


def lane_name(lane: tuple[int, ...]) -> str:
    return str(lane[0]) if len(lane) == 1 else f"({', '.join(map(str, lane))})" if lane else "scalar"


def shape_name(value: Value) -> str:
    return f"{' × '.join(map(str, value.shape))} {value.type}".strip()


def shortened(shown: str) -> str:
    """A number in five characters or so."""
    try:
        number = float(shown)
    except ValueError:
        return shown[:5]
    tries = (f"{number:.{digits}g}" for digits in (4, 3, 2, 1))
    return next(
        (one for one in tries if len(one) <= 5), f"{number:.0e}".replace("e+0", "e").replace("e-0", "e-")
    )


def shortened_name(name: str, most: int = 16) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def counted(count: int, one: str) -> str:
    return f"{count:,} {one}{'s' * (count != 1)}"
