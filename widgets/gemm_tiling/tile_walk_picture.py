"""The walk drawn: one tile to pull at, C twice with its waves, the bytes read so far, arithmetic per byte."""

from collections.abc import Callable
from functools import cache, lru_cache

from widgets import units
from widgets.charts import Box, axis_x, limit_up, log, text_width
from widgets.controls import powers_of_two
from widgets.gemm_tiling.tile_walk_model import Piece, Result, Stand, Wave
from widgets.scene import WIDE, about, circle, drag, handle, line, path, rect, text

BM = powers_of_two("bm", "Tile rows (bm)", 128, 16, 256)
BN = powers_of_two("bn", "Tile columns (bn)", 128, 16, 256)
GROUP = powers_of_two("group_m", "Rows of tiles in a group", 8, 1, 32, help="1 walks C row by row.")
MEASURED = {"tile_flop_per_byte": "your loads", "wave_flop_per_byte": "your waves"}
RUNG = 24


# What a colour says: TILE one tile and the wave of them, READ what the wave reads, WALKED the waves before; the row
# walk is "hot" and the walk in groups "primary", in panels, bars and rungs alike.
TILE, READ, WALKED = "now", "secondary", "muted"


def tile(r: Result, at: Box) -> list[dict]:
    """Draw one tile of C at its true shape. A hand pulls its right edge above it and its lower edge at its side."""
    unit = at.w / 256
    wide, high = max(4, unit * r.bn), max(4, unit * r.bm)
    shape = rect("tile", at.x, at.y, wide, high, TILE, f"tile: {r.bm} × {r.bn} of C")
    marks = [
        text("tile-title", at.x - 14, at.y - 48, f"One tile: {r.bm} × {r.bn}", bold=True),
        rect("tile-room", at.x, at.y, at.w, at.h, "idle", "256 × 256, the largest tile here"),
        *about("tile bm bn", shape),
    ]
    right, low = at.x + unit * r.bn_asked, at.y + unit * r.bm_asked
    if (r.bm, r.bn) != (r.bm_asked, r.bn_asked):  # C is smaller than the tile that was asked for
        corners = [(right, at.y + high), (right, low), (at.x, low), (at.x, at.y + high)]
        asked = f"{r.bm_asked} × {r.bn_asked}"
        marks.append(path("tile-asked", corners, "limit", f"asked for: {asked}"))
        x, y = (at.x - 14, at.bottom + 30) if at.w > 90 else (at.right + 44, at.y + 30)
        marks.append(text("tile-asked-name", x, y, f"dashed: asked for {asked}", "muted", "small"))
    return [
        *marks,
        line("bm-rule", at.x + wide, low, at.right + 10, low, "axis"),
        handle("pull-bn", right, at.y - 15, TILE, drag(BN, "x", lambda v: at.x + unit * v)),
        handle("pull-bm", at.right + 22, low, TILE, drag(BM, "y", lambda v: at.y + unit * v)),
    ]


def _box(at: Box, r: Result) -> Box:
    scale = min(at.w / r.n, at.h / r.m)
    return Box(at.x, at.y, max(10, r.n * scale), max(10, r.m * scale))


def _hairlines(id: str, box: Box, r: Result) -> list[dict]:
    marks = []
    for axis, count, room in (("r", r.tiles_m, box.h), ("c", r.tiles_n, box.w)):
        if count > 1 and room / count >= 3:
            places = [room * i / count for i in range(1, count)]
            marks += [
                line(f"{id}-{axis}{i}", box.x, box.y + at, box.right, box.y + at, "grid")
                if axis == "r"
                else line(f"{id}-{axis}{i}", box.x + at, box.y, box.x + at, box.bottom, "grid")
                for i, at in enumerate(places)
            ]
    return marks if len(marks) <= 40 else []


def still(id: str, at: Box, title: str, r: Result) -> list[dict]:
    """Draw the part of a panel that stays the same through all waves."""
    box = _box(at, r)
    return [
        text(f"{id}-title", at.x - 30, at.y - 48, title, bold=True),
        rect(f"{id}-c", box.x, box.y, box.w, box.h, "idle", f"C: {r.tiles_m} × {r.tiles_n} tiles"),
        rect(f"{id}-b", box.x, box.y - 16, box.w, 11, "idle"),
        rect(f"{id}-a", box.x - 16, box.y, 11, box.h, "idle"),
        *_hairlines(id, box, r),
    ]


def _tiles(id: str, box: Box, r: Result, some: tuple[Piece, ...], role: str, tip: str) -> list[dict]:
    w, h = box.w / r.tiles_n, box.h / r.tiles_m
    return [
        rect(f"{id}{i}", box.x + left * w, box.y + top * h, (right - left) * w, (low - top) * h, role, tip)
        for i, (top, low, left, right) in enumerate(some)
    ]


@lru_cache(maxsize=256)
def _runs(bands: tuple[int, ...]) -> list[tuple[int, int]]:
    """(0, 1, 2, 5) -> [(0, 2), (5, 5)]"""
    runs: list[tuple[int, int]] = []
    for band in bands:
        if runs and band == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], band)
        else:
            runs.append((band, band))
    return runs


def _read(some: int, of: int, matrix: str) -> str:
    return f"{units.count(some)} of {units.counted(of, 'band')} of {matrix}"


def done(r: Result, number: int) -> bool:
    """Return whether a walk has nothing left of C. An only wave or row of tiles shows its bands."""
    return number == r.wave_count - 1 > 0 and r.tiles_m > 1


def panel(id: str, name: str, role: str, at: Box, wave: Wave, number: int, r: Result) -> list[dict]:
    """One wave on C, and the bands it reads: of A to the left, of B above. A walk that is done fills C with its colour."""
    box = _box(at, r)
    if done(r, number):
        middle = (box.x + box.right) / 2, (box.y + box.bottom) / 2 + 6
        return [
            rect(f"{id}-done0", box.x, box.y, box.w, box.h, role, f"{name}: all of C"),
            text(f"{id}-end", *middle, "done", "inverse", "big", "middle", bold=True, on=role),
        ]
    tip = f"{name}, wave {number + 1}: {{}}"
    low = box.bottom + 16
    marks = [
        text(f"{id}-b-name", box.x - 16, box.y - 22, _read(wave.b_band_count, r.tiles_n, "B"), READ, "small"),
        text(f"{id}-a-name", box.x - 16, low, _read(wave.a_band_count, r.tiles_m, "A"), READ, "small"),
    ]
    marks += _tiles(f"{id}-done", box, r, wave.walked, WALKED, tip.format("walked by the waves before"))
    marks += about(
        "wave", _tiles(f"{id}-now", box, r, wave.pieces, TILE, tip.format(f"{r.programs} programs"))
    )
    for i, (first, last) in enumerate(_runs(wave.b_bands)):
        left, right = (box.x + box.w * band / r.tiles_n for band in (first, last + 1))
        band = rect(
            f"{id}-b{i}",
            left,
            box.y - 16,
            right - left,
            11,
            READ,
            tip.format(f"bands {first} to {last} of B"),
        )
        marks += about(f"b_{id}", band)
    for i, (first, last) in enumerate(_runs(wave.a_bands)):
        top, low = (box.y + box.h * band / r.tiles_m for band in (first, last + 1))
        band = rect(
            f"{id}-a{i}", box.x - 16, top, 11, low - top, READ, tip.format(f"bands {first} to {last} of A")
        )
        marks += about(f"a_{id}", band)
    return marks


def group_edge(at: Box, r: Result) -> list[dict]:
    """The lower edge of a group of rows, on C's right side. One row of tiles has no groups to choose from."""
    if r.tiles_m == 1:
        return []
    box = _box(at, r)

    def place(group: float) -> float:
        return box.y + box.h * min(group, r.tiles_m) / r.tiles_m

    x, y = box.right + 8, place(r.group_m)
    bracket = path(
        "group",
        [(x - 5, box.y), (x, box.y), (x, y), (x - 5, y)],
        "primary",
        f"a group: {units.counted(r.group_m, 'row')} of tiles",
    )
    return [*about("group_m", bracket), handle("pull-group", x, y, "primary", drag(GROUP, "y", place))]


def read(r: Result, at: Box) -> Callable[[Stand], list[dict]]:
    """Draw the bytes read so far, as two bars that grow at one speed in tracks as long as all that each walk reads."""
    most = max(r.row_walk.read_so_far[-1], r.grouped_walk.read_so_far[-1])
    title = text("read-title", at.x, at.y - 12, "The race: each reads as many bytes at a step", bold=True)
    rows = []
    for i, (id, name, walk, role) in enumerate(
        (
            ("row", "row by row", r.row_walk, "hot"),
            ("grouped", f"groups of {r.group_m}", r.grouped_walk, "primary"),
        )
    ):
        y, total = at.y + 14 + 46 * i, walk.read_so_far[-1]
        wide, tip = at.w * total / most, f"{name}, after the last wave: {units.si_bytes(total)}"
        whole = [rect(f"read-{id}-all", at.x, y + 4, wide, 22, "idle", tip)]
        words = f"{units.times(most / total)} fewer in all"
        if total < most and wide + 8 + text_width(words, bold=True) < at.w:
            whole.append(text(f"read-{id}-total", at.x + wide + 8, y + 20, words, role, bold=True))
        rows.append(
            (y, id, name, walk, role, *whole, text(f"read-{id}-name", at.x, y - 2, name, role, "small"))
        )

    def after(stand: Stand) -> list[dict]:
        marks = [title]
        for y, id, name, walk, role, *still in rows:
            so_far = walk.read_so_far[getattr(stand, id)]
            shown = units.si_bytes(so_far)
            bar = rect(f"read-{id}", at.x, y + 4, at.w * so_far / most, 22, role, f"{name}: {shown}")
            value = text(f"read-{id}-value", at.right, y - 2, shown, role, "big", "end", bold=True)
            marks += [*still, value, *about(f"read_{id}", bar)]
        return marks

    return after


def ladder(r: Result, measured: dict, at: Box) -> Callable[[Stand], list[dict]]:
    """Draw arithmetic per byte read: one tile alone, then the walks with their waves as big tiles, next to the ridge of the GPU."""
    known = [(MEASURED[key], measured[key], "measured") for key in MEASURED if key in measured]
    pitch = RUNG if not known else 90 / (3 + len(known))
    x = log(0.5, 5000, at.x + 84, at.right - 34)
    low = at.y + 90
    still = axis_x("ladder", x, low, "FLOP per byte read so far", top=at.y, ticks=(1, 10, 100, 1000))
    need = f"{r.machine} needs {units.number(r.ridge_flop_per_byte)}"
    still += limit_up(
        "ridge", Box(x.start, at.y - 20, x.end - x.start, 110), x(r.ridge_flop_per_byte), need, "end"
    )

    @cache  # many waves stand on the same rung
    def rung(i: int, name: str, value: float, role: str) -> list[dict]:
        y, shown = at.y + 16 + pitch * i, units.number(value)
        return [
            text(f"rung{i}-name", x.start - 8, y + 4, name, size="small", anchor="end"),
            line(f"rung{i}-line", x.start, y, x(value), y, role),
            circle(f"rung{i}", x(value), y, 5, role, f"{name}: {shown} FLOP per byte"),
            text(f"rung{i}-value", x(value) + 9, y + 4, shown, role, "small", bold=True, on="ground"),
        ]

    def of(stand: Stand) -> list[dict]:
        row = r.row_walk.flop_per_byte_so_far[stand.row]
        grouped = r.grouped_walk.flop_per_byte_so_far[stand.grouped]
        rungs = [
            ("one tile", r.tile_flop_per_byte, TILE),
            ("row by row", row, "hot"),
            ("in groups", grouped, "primary"),
            *known,
        ]
        return [*still, *(mark for i, one in enumerate(rungs) for mark in rung(i, *one))]

    return of


# (where the tile stands, C walked row by row, C in groups, bytes, FLOP per byte, height)
PLACES = {
    True: (
        Box(16, 66, 96, 96),
        Box(200, 66, 199, 199),
        Box(478, 66, 199, 199),
        Box(0, 306, 340, 100),
        Box(376, 306, 344, 90),
        430,
    ),
    False: (
        Box(16, 62, 84, 84),
        Box(46, 220, 116, 116),
        Box(208, 220, 116, 116),
        Box(0, 388, 330, 90),
        Box(0, 520, 340, 90),
        654,
    ),
}


def places(width: int):
    return PLACES[width == WIDE]
