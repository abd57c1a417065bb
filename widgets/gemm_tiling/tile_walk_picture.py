"""Draw the walk. C is drawn twice, with the running wave and the bands it reads. Then come a bar of bytes for each
size of a group and a counter of bytes for each walk."""

from collections.abc import Callable
from functools import lru_cache

from widgets import units
from widgets.charts import Box, text_width, wrap
from widgets.controls import powers_of_two
from widgets.gemm_tiling.tile_walk_model import GROUPS, Piece, Result, Wave
from widgets.scene import WIDE, about, drag, handle, line, path, rect, sets, text

GROUP = powers_of_two("group_m", "Rows of tiles in a group", 8, 1, 32, help="1 walks C row by row.")

# TILE colours the running wave, READ the bands it reads, WALKED the waves before. In titles and counters alike the row
# walk is "hot" and the walk in groups "primary".
TILE, READ, WALKED = "now", "secondary", "idle"
BAND = 14  # what a strip of bands takes at C's side


def _flat(r: Result) -> int:
    """Return the largest ratio of sides at which C is drawn. One row or column of tiles loses nothing by it."""
    return 2 if 1 in (r.tiles_m, r.tiles_n) else 4


def _box(at: Box, r: Result) -> Box:
    scale = min(at.w / r.n, at.h / r.m)
    return Box(at.x, at.y, max(at.w / _flat(r), r.n * scale), max(at.h / _flat(r), r.m * scale))


def thick(r: Result, at: Box) -> list[dict]:
    """Say where C is drawn thicker than it is."""
    if max(r.m, r.n) <= _flat(r) * min(r.m, r.n):
        return []
    words = f"C is {units.count(r.m)} × {units.count(r.n)}, drawn thicker than it is"
    return [text("thick", at.x - BAND - 5, _box(at, r).bottom + 22, words, "muted", "small")]


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


def still(id: str, at: Box, title: str, role: str, r: Result) -> list[dict]:
    """Draw the part of a panel that stays the same through all waves."""
    box = _box(at, r)
    corners = [
        (box.x, box.y),
        (box.right, box.y),
        (box.right, box.bottom),
        (box.x, box.bottom),
        (box.x, box.y),
    ]
    return [
        text(f"{id}-title", at.x - BAND - 5, at.y - 42, title, role, bold=True),
        rect(f"{id}-c", box.x, box.y, box.w, box.h, "ground", f"C: {r.tiles_m} × {r.tiles_n} tiles"),
        path(f"{id}-edge", corners, "axis"),
        rect(f"{id}-b", box.x, box.y - BAND - 5, box.w, BAND, "idle"),
        rect(f"{id}-a", box.x - BAND - 5, box.y, BAND, box.h, "idle"),
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


def panel(id: str, name: str, at: Box, wave: Wave, number: int, r: Result) -> list[dict]:
    """Draw one wave on C, and the bands it reads, of A to the left and of B above."""
    box = _box(at, r)
    tip = f"{name}, wave {number + 1}: {{}}"
    words = f"{units.counted(wave.a_band_count, 'band')} of A, {wave.b_band_count} of B"
    if at.w > 200:
        words = f"the wave reads {words}"
    marks = [text(f"{id}-reads", at.x - BAND - 5, box.y - BAND - 10, words, READ, "small")]
    marks += _tiles(f"{id}-done", box, r, wave.walked, WALKED, tip.format("done by the waves before"))
    done = [one for one in marks if one["id"] == f"{id}-done0" and one["h"] > 22 and one["w"] > 80]
    marks += [
        text(f"{id}-done", box.x + 8, box.y + 16, "done before", "muted", "small", on=WALKED) for _ in done
    ]
    marks += about(
        "wave", _tiles(f"{id}-now", box, r, wave.pieces, TILE, tip.format(f"{r.programs} programs"))
    )
    for i, (first, last) in enumerate(_runs(wave.b_bands)):
        left, right = (box.x + box.w * band / r.tiles_n for band in (first, last + 1))
        said = tip.format(f"bands {first} to {last} of B")
        band = rect(f"{id}-b{i}", left, box.y - BAND - 5, right - left, BAND, READ, said)
        marks += about(f"b_{id}", band)
    for i, (first, last) in enumerate(_runs(wave.a_bands)):
        top, low = (box.y + box.h * band / r.tiles_m for band in (first, last + 1))
        said = tip.format(f"bands {first} to {last} of A")
        band = rect(f"{id}-a{i}", box.x - BAND - 5, top, BAND, low - top, READ, said)
        marks += about(f"a_{id}", band)
    return marks


def group_edge(at: Box, r: Result) -> list[dict]:
    """Draw the lower edge of a group of rows, on C's right side. One row of tiles has no groups to choose from."""
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
    words = units.counted(r.group_m, "row") if at.w > 200 else str(r.group_m)
    rows = text("group-rows", x - 6, y + 30, words, "primary", "small", bold=True)
    return [*about("group_m", bracket), rows, handle("pull-group", x, y, "primary", drag(GROUP, "y", place))]


def sizes(r: Result, at: Box) -> list[dict]:
    """Draw the bytes that all waves read with each size of a group, on one scale. A click on a bar chooses the size."""
    if r.tiles_m == 1:
        words = wrap("One row of tiles: all of B is read, whatever the order.", 0.82 * at.w, "body")
        return [
            text(f"one-row-{i}", at.x, at.y + 30 + 20 * i, said, bold=True) for i, said in enumerate(words)
        ]
    named, valued = 24, text_width("44.4 GB", "small", True) + 6
    scale, pitch = (at.w - named - valued) / max(r.read_by_group), at.h / len(GROUPS)
    waves = f"{len(r.row_walk.waves)} waves" if len(r.row_walk.waves) < r.wave_count else "all waves"
    marks = [
        text("sizes-title", at.x, at.y - 42, f"read by {waves}", bold=True),
        text("sizes-sub", at.x, at.y - 24, "rows in a group (click)", "muted", "small"),
    ]
    for i, (group, read) in enumerate(zip(GROUPS, r.read_by_group, strict=True)):
        y, shown = at.y + i * pitch, units.si_bytes(read)
        role = "primary" if group == r.group_m else "hot" if group == 1 else "idle"
        middle, least = y + pitch / 2 + 2, read == min(r.read_by_group)
        tip = f"Groups of {units.counted(group, 'row')}: {shown} read{', the least' if least else ''}"
        ink = "useful" if least else "ink" if group == r.group_m else "muted"
        left, wide = at.x + named, read * scale
        marks += sets(
            {"group_m": group},
            text(f"size-{group}", left - 6, middle, str(group), "ink", "small", "end", group == r.group_m),
            rect(f"size-{group}-bar", left, y + 2, wide, pitch - 8, role, tip),
            text(f"size-{group}-read", left + wide + 5, middle, shown, ink, "small", bold=ink != "muted"),
        )
    return marks


def read(r: Result, at: Box) -> Callable[[int], list[dict]]:
    """Draw a counter per walk, the bytes that it has read after the same waves, on one scale."""
    most = max(r.row_walk.read_so_far[-1], r.grouped_walk.read_so_far[-1])
    wide, pitch = at.w > 400, at.h / 2
    walks = (
        ("row", "row by row", r.row_walk, "hot"),
        ("grouped", f"groups of {r.group_m}", r.grouped_walk, "primary"),
    )
    named = text_width("groups of 32", bold=True) + 10 if wide else 0
    scale = (at.w - named - max(text_width(units.si_bytes(most), "big", True), 84)) / most
    above, high = (2, pitch - 8) if wide else (18, pitch - 24)

    title = [text("read-title", at.x, at.y - 8, "read so far", "muted", "small")] * wide

    def after(wave: int) -> list[dict]:
        marks = [*title]
        for i, (id, name, walk, role) in enumerate(walks):
            y, long = at.y + i * pitch + above, scale * walk.read_so_far[wave]
            shown = units.si_bytes(walk.read_so_far[wave])
            said = f"{name}: {shown} so far"
            marks += about(f"read_{id}", rect(f"read-{id}", at.x + named, y, long, high, role, said))
            place = at.x + named + long + 8, y + high / 2 + 6
            marks.append(text(f"read-{id}-value", *place, shown, role, "big", bold=True))
            name_at = (at.x, y + high / 2 + 5) if wide else (at.x, y - 5)
            marks.append(
                text(f"read-{id}-name", *name_at, name if wide else f"{name}, so far", role, bold=True)
            )
        return marks

    return after


# (C walked row by row, C in groups, the counters, a bar for each size of a group, height)
PLACES = {
    True: (Box(20, 56, 216, 216), Box(276, 56, 216, 216), Box(0, 318, 716, 84), Box(548, 56, 172, 216), 404),
    False: (Box(20, 56, 126, 126), Box(186, 56, 126, 126), Box(0, 214, 340, 96), Box(0, 366, 340, 132), 500),
}


def places(width: int):
    return PLACES[width == WIDE]
