"""Show that a tensor core takes each weight from a certain lane and register. Packed in another order, other weights
multiply."""

import math
from dataclasses import dataclass

from kernels.quantization_layouts import cost_fragments as fragments
from widgets import units
from widgets.charts import text_width
from widgets.controls import select, slider
from widgets.declare import Declaration, Prediction
from widgets.scene import (
    WIDE,
    Column,
    Scene,
    about,
    drag,
    figure,
    grid,
    handle,
    line,
    path,
    rect,
    sets,
    table,
    text,
)

SIDE = 16
LARGE = 15  # the code that leads from one word to the next
LANE = slider("lane", "Lane", 5, 0, 31, help="One of the 32 threads of a warp.")
NIBBLE = slider("nibble", "Nibble of its word", 1, 0, 7, help="Nibble 0 is the lowest four bits.")
ORDERS = {
    "fragment": "as the kernel reads it",
    "plain": "a0 to a7 in a row",
    "neighbours": "neighbours swapped",
    "rows": "eight neighbours of a row",
    "columns": "columns sorted, X not",
}
# Sixteen words. The tile's large codes lead from each to the next, so that the right tile says them in order.
WORDS = "each lane unpacks its own weights in registers before the tensor core multiplies them by x".split()
SORTED = (0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15)  # two groups whose columns alternate
# ((the tile's left, top and cell), (the word's left, top and nibble's width), the height)
PLACES = {True: (20, 60, 20, 362, 60, 44, 384), False: (18, 60, 20, 2, 446, 42, 706)}


@dataclass(frozen=True)
class Slot:
    """Hold one nibble of the lane's word, with the element that the kernel takes and the weight that the packer stored."""

    nibble: int
    element: int  # i of aᵢ, by which the kernel multiplies it
    wanted: tuple[int, int]  # row, column
    held: tuple[int, int]
    right: bool


@dataclass(frozen=True)
class Result:
    lane: int
    nibble: int
    order: str
    slots: tuple[Slot, ...]
    rows_of_lane: int
    in_place: int  # of the tile's 256 weights
    misplaced: int
    error_share: float
    same_codes: bool
    said: tuple[str, ...]
    meant: tuple[str, ...]


def held_in(order: str, lane: int, nibble: int) -> tuple[int, int]:
    """Return the (row, column) of the weight that a packer of this order puts into a lane's nibble."""
    element = next(i for i in range(8) if fragments.nibble_of(i) == nibble)
    if order == "plain":
        return fragments.fragment_element(lane, nibble)
    if order == "neighbours":
        return fragments.fragment_element(lane, element ^ 1)
    if order == "rows":
        return lane // 2, 8 * (lane % 2) + nibble
    row, column = fragments.fragment_element(lane, element)
    return (row, SORTED[column]) if order == "columns" else (row, column)


def codes() -> list[list[int]]:
    """Return the tile's 4-bit codes, row by row, 15 where a word follows another and below 9 elsewhere."""
    state, rows = 7, []
    for row in range(SIDE):
        rows.append([])
        for column in range(SIDE):
            state = (state * 1103515245 + 12345) % 2**31
            rows[-1].append(LARGE if row == column + 1 else state // 65536 % 9)
    return rows


def seen_by_the_kernel(order: str) -> list[list[tuple[int, int]]]:
    """Return, for each element of the tile, the (row, column) of the weight by which the kernel multiplies."""
    tile = [[(0, 0)] * SIDE for _ in range(SIDE)]
    for lane in range(fragments.LANES):
        for i in range(fragments.PER_LANE):
            row, column = fragments.fragment_element(lane, i)
            tile[row][column] = held_in(order, lane, fragments.nibble_of(i))
    return tile


def speak(tile: list[list[int]], count: int = SIDE) -> tuple[str, ...]:
    """Say words, each time the one with the largest weight that hasn't been said."""
    said = [0]
    while len(said) < count:
        left = [row for row in range(SIDE) if row not in said]
        said.append(max(left, key=lambda row: (tile[row][said[-1]], -row)))
    return tuple(WORDS[word] for word in said)


def run(lane, nibble, order):
    right, moved = codes(), seen_by_the_kernel(order)
    wrong = [[right[row][column] for row, column in line] for line in moved]
    there = sum(moved[row][column] == (row, column) for row in range(SIDE) for column in range(SIDE))
    flat = [[code - 8 for line in one for code in line] for one in (right, wrong)]
    off, size = (sum(d * d for d in v) for v in ([a - b for a, b in zip(*flat, strict=True)], flat[0]))
    slots = []
    for at in range(fragments.PER_LANE):
        element = next(i for i in range(8) if fragments.nibble_of(i) == at)
        wanted, held = fragments.fragment_element(lane, element), held_in(order, lane, at)
        slots.append(Slot(at, element, wanted, held, wanted == held))
    return Result(
        lane,
        nibble,
        order,
        tuple(slots),
        len({slot.wanted[0] for slot in slots}),
        there,
        SIDE * SIDE - there,
        (off / size) ** 0.5,
        sorted(flat[0]) == sorted(flat[1]),
        speak(wrong),
        speak(right),
    )


def _tile(r: Result, left: float, top: float, cell: float) -> list[dict]:
    """Draw the tile as the kernel multiplies it, with the cells of a wrong weight, its large weights, the chosen lane's four
    pairs, and the way of its nibble's weight. A click on a cell chooses its lane and nibble."""
    slot, size = r.slots[r.nibble], SIDE * cell
    moved, right = seen_by_the_kernel(r.order), codes()
    cells = [int(moved[row][column] != (row, column)) for row in range(SIDE) for column in range(SIDE)]
    names = ("multiplied by its own number of X", "another weight is multiplied here")
    owners = [_owner(row, column) for row in range(SIDE) for column in range(SIDE)]
    to = {"lane": [lane for lane, _ in owners], "nibble": [nibble for _, nibble in owners]}
    chosen = f"grey: moved; outlined: lane {r.lane}'s four pairs"
    marks = [
        text("tile-title", 0, top - 46, "A 16 × 16 tile of W, as it is multiplied", bold=True),
        text("tile-sub", 0, top - 30, f"{chosen}; click a cell", "muted", "small"),
        *about(
            "order", *sets(to, grid("tile", left, top, size, size, SIDE, cells, ("ground", "idle"), names))
        ),
        line("tile-half-down", left + size / 2, top, left + size / 2, top + size, "axis"),
        line("tile-half-across", left, top + size / 2, left + size, top + size / 2, "axis"),
    ]
    if r.misplaced:
        ends = [at + (n + 0.5) * cell for n in (1, 15) for at in (left - cell, top)]
        marks.append(line("homes", *ends, "limit", "where the large weights belong"))
    for row in range(SIDE):
        for column in range(SIDE):
            home = moved[row][column]
            if right[home[0]][home[1]] == LARGE:
                at, stays = (left + column * cell + 1, top + row * cell + 1), home == (row, column)
                role, tip = (
                    ("useful", "in its place") if stays else ("hot", f"from row and column {_place(home)}")
                )
                lane, nibble = _owner(row, column)
                said = f"row {row}, column {column}: a large weight, {tip}"
                large = rect(f"large-{home[0]}", *at, cell - 2, cell - 2, role, said)
                marks += about("order", *sets({"lane": lane, "nibble": nibble}, large))
    pairs = sorted({(one.wanted[0], one.wanted[1] // 2) for one in r.slots})
    for n, (row, pair) in enumerate(pairs):
        x, y, w = left + pair * 2 * cell, top + row * cell, 2 * cell
        around = [(x, y), (x + w, y), (x + w, y + cell), (x, y + cell), (x, y)]
        marks += about("lane", path(f"own-{n}", around, "secondary", f"lane {r.lane} multiplies this pair"))
    marks += _numbers(slot, left, top, cell)
    halves = {slot.wanted: ("asked", "primary", "multiplied as this nibble")}
    if not slot.right:
        halves[slot.held] = ("stored", "now", "where the weight in this nibble belongs")
    for (row, column), (id, role, tip) in halves.items():
        place = left + column * cell, top + row * cell
        marks += about("nibble", rect(id, *place, cell, cell, role, f"row {row}, column {column}: {tip}"))
    if not slot.right:
        marks += _way(slot, left, top, cell)
    return marks


def _owner(row: int, column: int) -> tuple[int, int]:
    """Return the lane that multiplies the weight of this cell, and its nibble."""
    lane, i = fragments.fragment_owner(row, column)
    return lane, fragments.nibble_of(i)


def _way(slot: Slot, left: float, top: float, cell: float) -> list[dict]:
    """Draw an arrow from the cell of the nibble's weight to the cell where it is multiplied."""
    (x, y), (to_x, to_y) = (
        (left + (column + 0.5) * cell, top + (row + 0.5) * cell) for row, column in (slot.held, slot.wanted)
    )
    far = math.hypot(to_x - x, to_y - y)
    u, v, head = (to_x - x) / far, (to_y - y) / far, 6
    barbs = [(to_x - head * (u + side * v), to_y - head * (v - side * u)) for side in (1, -1)]
    points = [(x, y), (to_x, to_y), barbs[0], (to_x, to_y), barbs[1]]
    return about("nibble", path("way", points, "inverse" if far < 1.5 * cell else "now"))


def _numbers(slot: Slot, left: float, top: float, cell: float) -> list[dict]:
    """Number rows and columns, and set off those where the chosen nibble is multiplied and those of the weight it holds."""

    def drawn(id: str, n: int, axis: int, x: float, y: float) -> dict:
        role = "primary" if n == slot.wanted[axis] else "now" if n == slot.held[axis] else "muted"
        return text(f"{id}{n}", x, y, str(n), role, "small", "middle", role != "muted")

    rows = [drawn("row", n, 0, left - 11, top + (n + 0.5) * cell + 4) for n in range(SIDE)]
    return rows + [drawn("column", n, 1, left + (n + 0.5) * cell, top - 6) for n in range(SIDE)]


def _place(at: tuple[int, int]) -> str:
    return f"{at[0]}, {at[1]}"


def _word(r: Result, left: float, top: float, wide: float) -> list[dict]:
    """Draw the lane's word, highest nibble first, with the element that the kernel takes and the stored weight."""

    def x_of(nibble: float) -> float:
        return left + (7 - nibble) * wide

    marks = [
        text("word-title", left, top - 46, f"The word of lane {r.lane}, highest nibble first", bold=True),
        text(
            "word-sub",
            left,
            top - 30,
            "each element, and row and column of its weight",
            "muted",
            "small",
        ),
    ]
    for slot in r.slots:
        x, chosen = x_of(slot.nibble), slot.nibble == r.nibble
        role = (
            "now"
            if chosen and not slot.right
            else "hot"
            if not slot.right
            else "primary"
            if chosen
            else "secondary"
        )
        tip = (
            f"nibble {slot.nibble}: the kernel multiplies it as a{slot.element}, row and column {_place(slot.wanted)}; "
            f"it holds the weight of row and column {_place(slot.held)}"
        )
        marks += about("nibble", rect(f"nibble-{slot.nibble}", x, top - 14, wide - 2, 44, role, tip))
        middle = x + (wide - 2) / 2
        marks += [
            text(
                f"element-{slot.nibble}",
                middle,
                top + 4,
                f"a{slot.element}",
                "inverse",
                "small",
                "middle",
                True,
                on=role,
            ),
            text(
                f"held-{slot.nibble}",
                middle,
                top + 22,
                _place(slot.held),
                "inverse",
                "small",
                "middle",
                on=role,
            ),
        ]
    at = x_of(r.nibble) + (wide - 2) / 2
    marks.append(
        handle("pull-nibble", at, top + 48, "primary", drag(NIBBLE, "x", lambda n: x_of(n) + (wide - 2) / 2))
    )
    return marks


def _chosen(r: Result, left: float, top: float) -> list[dict]:
    """Say in words what happens to the chosen nibble."""
    slot = r.slots[r.nibble]
    wanted, held = (f"row {row}, column {column}" for row, column in (slot.wanted, slot.held))
    multiplied = f"Nibble {r.nibble} is multiplied as {wanted}."
    holds = "It holds that weight." if slot.right else f"It holds the weight of {held}."
    return about(
        "nibble",
        text("chosen-wanted", left, top, multiplied, "primary", bold=True),
        text("chosen-held", left, top + 18, holds, "primary" if slot.right else "now", bold=True),
    )


def _lines(words: tuple[str, ...], wide: float) -> list[str]:
    lines = [""]
    for word in words:
        longer = f"{lines[-1]} {word}".strip()
        if text_width(longer, "body") > wide and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _sentence(r: Result, left: float, top: float, wide: float) -> list[dict]:
    marks = [text("said-title", left, top, "The large weights point to the next word", bold=True)]
    role = "ink" if r.said == r.meant else "hot"
    for n, words in enumerate(_lines(r.said, wide)):
        marks += about("order", text(f"said-{n}", left, top + 22 + 18 * n, words, role))
    last = top + 22 + 18 * len(_lines(r.said, wide))
    if r.said != r.meant:
        marks.append(text("meant-title", left, last + 12, "In the right order it says", "muted", "small"))
        for n, words in enumerate(_lines(r.meant, wide)):
            marks.append(text(f"meant-{n}", left, last + 30 + 17 * n, words, "muted", "small"))
    return marks


def _takeaway(r: Result) -> str:
    if r.order == "fragment":
        return "Each lane's word holds the eight weights its own registers need, so none has to travel."
    if r.order == "rows":
        return "Rows in memory order give lanes each other's weights: they must travel, which costs time."
    if r.order == "columns":
        return "Sorted columns are right only if X is sorted in the same way. No shape tells you."
    return "Same codes, same shapes, and no error message. Nothing but the output tells."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    left, top, cell, at, below, wide, height = PLACES[width == WIDE]
    room = 8 * wide + 6
    there = figure(
        "weights where they belong",
        r.in_place,
        lambda v: f"{units.count(v)} of 256",
        "hot" if r.misplaced else "useful",
    )
    error = figure(
        "error of the outputs", r.error_share, lambda v: units.percent(v, 0), "hot" if r.misplaced else "ink"
    )
    slot, tile = r.slots[r.nibble], _tile(r, left, top, cell)
    at_home = any(mark["id"].startswith("large-") and mark["role"] == "useful" for mark in tile)
    return Scene(
        summary=f"Packed {ORDERS[r.order]}, {there.text} weights of the tile arrive where the kernel multiplies them, and "
        f"the outputs err by {error.text}. Lane {r.lane} needs weights of {units.count(r.rows_of_lane)} rows of W. Its nibble {r.nibble} is multiplied as row and column "
        f"{_place(slot.wanted)}, and holds the weight of {_place(slot.held)}.",
        takeaway=_takeaway(r),
        marks=tile
        + _word(r, at, below, wide)
        + _chosen(r, at, below + 90)
        + _sentence(r, at, below + 152, room),
        figures=(there, error),
        table=table(
            (
                Column("nibble", show=units.count),
                "multiplied as",
                "at row, column",
                "holds the weight of",
                "right",
            ),
            [(s.nibble, f"a{s.element}", _place(s.wanted), _place(s.held), s.right) for s in r.slots],
        ),
        height=height,
        width=width,
        legend=(
            *((("useful", "a large weight in its place"),) * at_home),
            *((("hot", "moved off its dashed line"),) * bool(r.misplaced)),
            ("primary", "the chosen nibble, as multiplied"),
            *((("now", "its weight's own place"),) * (not slot.right)),
            *((("secondary", "a nibble with its own weight"),) * any(one.right for one in r.slots)),
        ),
        formula=(
            (
                "aᵢ of {lane:lane L}: row = ⌊L / 4⌋ + 8 · bit 1 of i, column = 2 (L mod 4) + bit 0 + 8 · bit 2",
                f"{{nibble:nibble {r.nibble}}} is a{slot.element} of lane {r.lane}: row {slot.wanted[0]}, column {slot.wanted[1]}",
            ),
        ),
    )


SIMULATOR = Declaration(
    title="Fragment map",
    question="What if weights are packed in another order than the kernel reads?",
    controls=(select("order", "The packer's order", "neighbours", ORDERS), LANE, NIBBLE),
    presets={
        "Neighbours swapped": {},
        "As the kernel reads it": {"order": "fragment"},
        "Plain nibbles": {"order": "plain"},
        "Rows in memory order": {"order": "rows", "nibble": 5},
        "Act-order, X forgotten": {"order": "columns", "nibble": 4},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "A warp's 32 lanes hold a 16 × 16 tile of W, eight weights each. In how many rows of W are the eight of one lane?",
        "rows_of_lane",
        "rows",
        0.0,
        units.count,
    ),
    source="PTX ISA, matrix fragments of mma.m16n8k16",
)
