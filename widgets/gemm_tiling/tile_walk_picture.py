"""The walk drawn: C twice, with the wave that runs and the bands it reads, these bands counted below, and at the side a
race of all sizes of a group: a small C for each, and a bar of the bytes that it has read."""

from collections.abc import Callable
from functools import lru_cache

from widgets import units
from widgets.charts import Box, wrap
from widgets.controls import powers_of_two
from widgets.gemm_tiling.tile_walk_model import GROUPS, Piece, Result, Wave, best_groups
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
        text(f"{id}-title", at.x - BAND - 5, at.y - BAND - 14, title, role, bold=True),
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
    marks = _tiles(f"{id}-done", box, r, wave.walked, WALKED, tip.format("done by the waves before"))
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


def race(r: Result, at: Box) -> tuple[list[dict], Callable[[int], list[dict]]]:
    """Draw each size of a group as a small C that is walked, with what it has read so far, on one scale. A click on one
    chooses it. What stays the same comes first, then a function of the wave."""
    if r.tiles_m == 1:
        words = wrap("One row of tiles: all of B is read, whatever the order.", 0.82 * at.w, "body")
        said = [text(f"one-row-{i}", at.x, at.y + 30 + 20 * i, one, bold=True) for i, one in enumerate(words)]
        return said, lambda wave: []
    pitch = at.h / len(GROUPS)
    side = pitch - 10
    left, scale = at.x + side + 10, (at.right - at.x - side - 10) / max(r.read_by_group)
    still = [
        text("sizes-title", at.x, at.y - 30, "read so far", bold=True),
        text("sizes-sub", at.x, at.y - 14, "rows in a group (click)", "muted", "small"),
    ]
    boxes = [_small(Box(at.x, at.y + i * pitch, side, side), r) for i in range(len(GROUPS))]
    best = [group in best_groups(r) for group in GROUPS]
    for i, (group, box) in enumerate(zip(GROUPS, boxes, strict=True)):
        y, rows = at.y + i * pitch, f"groups of {units.counted(group, 'row')}"
        corners = [
            (box.x, box.y),
            (box.right, box.y),
            (box.right, box.bottom),
            (box.x, box.bottom),
            (box.x, box.y),
        ]
        named = text(f"size-{group}", left, y + 15, str(group), "ink", bold=group == r.group_m)
        marks = [rect(f"size-{group}-c", box.x, box.y, box.w, box.h, "ground", rows), named]
        marks.append(path(f"size-{group}-edge", corners, "useful" if best[i] else "axis"))
        if best[i]:
            right = left + scale * r.read_by_group[i] + 6
            marks.append(text(f"size-{group}-least", right, y + pitch / 2 + 9, "least", "useful", bold=True))
        still += sets({"group_m": group}, *marks)

    def after(wave: int) -> list[dict]:
        marks = []
        for i, (group, walk, box) in enumerate(zip(GROUPS, r.walks, boxes, strict=True)):
            y, shown = at.y + i * pitch, units.si_bytes(walk.read_so_far[wave])
            role = "primary" if group == r.group_m else "hot" if group == 1 else "idle"
            ink = "useful" if best[i] else "ink" if group == r.group_m else "muted"
            wide, tip = scale * walk.read_so_far[wave], f"read so far in groups of {group}"
            marks += sets(
                {"group_m": group},
                *_tiles(f"w{group}-", box, r, walk.waves[wave].pieces, TILE, ""),
                text(f"size-{group}-read", at.right, y + 15, shown, ink, "body", "end", ink != "muted"),
                rect(f"size-{group}-bar", left, y + 22, wide, pitch - 34, role, tip),
            )
        return marks

    return still, after


def _small(at: Box, r: Result) -> Box:
    """Return a C no thinner than it is drawn large, in the middle of its place."""
    box = _box(at, r)
    return Box(at.x, at.y + (at.h - box.h) / 2, box.w, box.h)


def bands(id: str, at: Box, wave: Wave, r: Result) -> list[dict]:
    """Draw how many bands a wave reads, of A and then of B, to one scale for both walks: what a square has fewest of."""
    most = max(
        walk.waves[i].a_band_count + walk.waves[i].b_band_count
        for walk in (r.row_walk, r.grouped_walk)
        for i in range(len(walk.waves))
    )
    a, b = wave.a_band_count, wave.b_band_count
    scale, role = (at.w - 4) / most, "hot" if id == "row" else "primary"
    wide = max(2, a * scale)
    return [
        *about(f"a_{id}", rect(f"{id}-count-a", at.x, at.y, wide, 16, READ, f"{_band(a)} of A")),
        *about(
            f"b_{id}", rect(f"{id}-count-b", at.x + wide + 4, at.y, b * scale, 16, READ, f"{_band(b)} of B")
        ),
        text(
            f"{id}-count",
            at.x,
            at.y + 43,
            f"{a} + {b} = {a + b}",
            role,
            "huge" if at.w > 200 else "big",
            bold=True,
        ),
        text(
            f"{id}-count-name",
            at.x,
            at.y + 59,
            f"bands of A and B{', this wave' if at.w > 200 else ''}",
            role,
            "small",
        ),
    ]


def _band(count: int) -> str:
    return units.counted(count, "band")


# (C walked row by row, C in groups, the bands of each below, the race of all groups, height)
PLACES = {
    True: (Box(20, 56, 216, 216), Box(276, 56, 216, 216), 306, Box(560, 50, 160, 348), 398),
    False: (Box(20, 56, 126, 126), Box(186, 56, 126, 126), 214, Box(0, 322, 340, 288), 614),
}


def places(width: int):
    return PLACES[width == WIDE]
