"""Show that a tensor core takes each weight from a certain lane and register. Packed in another order, other weights
multiply."""

import math
from dataclasses import dataclass

from kernels.quantization_layouts import cost_fragments as fragments
from widgets import units
from widgets.charts import text_width
from widgets.controls import select, slider, toggle
from widgets.declare import Declaration, Prediction
from widgets.scene import (
    WIDE,
    Column,
    Scene,
    about,
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
DETAILS = toggle("details", "The lane of a cell", help="Its four pairs in the tile, and its word.")
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
PULLED = 8  # the word whose large weight carries the knob
# (the tile's left, top and cell; the words' left, top, height and right column; the lane's top; the height)
PLACES = {
    True: (2, 24, 22, 382, 24, 22, 602, 388, 426),
    False: (2, 404, 17, 2, 24, 22, 222, 688, 752),
}


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
    details: bool
    slots: tuple[Slot, ...]
    rows_of_lane: int
    in_place: int  # of the tile's 256 weights
    misplaced: int
    error_share: float
    same_codes: bool
    words_in_place: int
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


def run(lane, nibble, order, details=False):
    right, moved = codes(), seen_by_the_kernel(order)
    wrong = [[right[row][column] for row, column in line] for line in moved]
    there = sum(moved[row][column] == (row, column) for row in range(SIDE) for column in range(SIDE))
    flat = [[code - 8 for line in one for code in line] for one in (right, wrong)]
    off, size = (sum(d * d for d in v) for v in ([a - b for a, b in zip(*flat, strict=True)], flat[0]))
    said, meant = speak(wrong), speak(right)
    slots = []
    for at in range(fragments.PER_LANE):
        element = next(i for i in range(8) if fragments.nibble_of(i) == at)
        wanted, held = fragments.fragment_element(lane, element), held_in(order, lane, at)
        slots.append(Slot(at, element, wanted, held, wanted == held))
    return Result(
        lane,
        nibble,
        order,
        details,
        tuple(slots),
        len({slot.wanted[0] for slot in slots}),
        there,
        SIDE * SIDE - there,
        (off / size) ** 0.5,
        sorted(flat[0]) == sorted(flat[1]),
        sum(one == other for one, other in zip(said, meant, strict=True)),
        said,
        meant,
    )


def _places(order: str) -> dict[int, tuple[int, int]]:
    """Return where the large weight that leads to each word is multiplied, as (row, column)."""
    moved, right = seen_by_the_kernel(order), codes()
    cells = {moved[row][column]: (row, column) for row in range(SIDE) for column in range(SIDE)}
    return {row: cells[row, column] for row, column in cells if right[row][column] == LARGE}


def _tile(r: Result, left: float, top: float, cell: float) -> list[dict]:
    """Draw the tile as it is multiplied: where another weight came, and its large weights on or off their homes."""
    moved, size = seen_by_the_kernel(r.order), SIDE * cell
    cells = [int(moved[row][column] != (row, column)) for row in range(SIDE) for column in range(SIDE)]
    names = ("multiplied by its own number of X", "another weight is multiplied here")
    owners = [_owner(row, column) for row in range(SIDE) for column in range(SIDE)]
    to = {
        "lane": [lane for lane, _ in owners],
        "nibble": [nibble for _, nibble in owners],
        "details": [True] * len(owners),
    }
    marks = [
        text("tile-title", left, top - 8, "A tile of W: large weights name the next word", bold=True),
        *about(
            "order", *sets(to, grid("tile", left, top, size, size, SIDE, cells, ("ground", "hot"), names))
        ),
    ]
    for word, (row, column) in _places(r.order).items():
        stays = (row, column) == (word, word - 1)
        says = f"after “{WORDS[column]}” it says “{WORDS[row]}”"
        lane, nibble = _owner(row, column)
        if not stays:
            x, y = left + (word - 1) * cell, top + word * cell
            around = [(x, y), (x + cell, y), (x + cell, y + cell), (x, y + cell), (x, y)]
            marks.append(path(f"home-{word}", around, "limit"))
        box = left + column * cell + 1, top + row * cell + 1, cell - 2, cell - 2
        large = rect(f"large-{word}", *box, "useful" if stays else "hot", says)
        marks += about("order", *sets({"lane": lane, "nibble": nibble, "details": True}, large))
    return marks


def _pull(order: str, left: float, top: float, cell: float) -> dict:
    """Return the knob on one large weight. Where it is pulled along its row chooses the order that puts it there."""
    stops = sorted(
        (left + (_places(one)[PULLED][1] + 0.5) * cell, one) for one in ORDERS
    )  # no two orders put it into the same column
    row, column = _places(order)[PULLED]
    way = {"input": "order", "axis": "x", "at": [x for x, _ in stops], "to": [one for _, one in stops]}
    role = "useful" if order == "fragment" else "now"
    return handle("pull-home", left + (column + 0.5) * cell, top + (row + 0.5) * cell, role, way)


def _owner(row: int, column: int) -> tuple[int, int]:
    """Return the lane that multiplies the weight of this place, and its nibble."""
    lane, i = fragments.fragment_owner(row, column)
    return lane, fragments.nibble_of(i)


def _place(at: tuple[int, int]) -> str:
    return f"{at[0]}, {at[1]}"


def _sentence(r: Result, left: float, top: float, pitch: float, right: float) -> list[dict]:
    """Draw the words in the right order, those that come out, and a line from each word to its new place."""
    marks = [
        text("meant-title", left, top - 8, "meant", "muted", bold=True),
        text("said-title", right, top - 8, "said", "hot" if r.misplaced else "useful", bold=True),
    ]
    widest = max(text_width(word, "big", True) for word in WORDS)
    for n, word in enumerate(r.meant):
        at = r.said.index(word)
        y, low = (top + (i + 0.5) * pitch for i in (n, at))
        role = "useful" if at == n else "hot"
        tip = f"“{word}”: word {n + 1} is said as {at + 1}"
        way = line(f"way-{n}", left + widest + 4, y, right - 6, low, role, tip)
        marks += [
            *about("order", way),
            text(f"meant-{n}", left, y + 6, word, "muted", "big"),
            text(f"said-{n}", right, low + 6, word, role, "big", bold=True),
        ]
    return marks


def _lane(r: Result, left: float, top: float, cell: float, low: float, wide: bool) -> list[dict]:
    """Draw what one lane multiplies: its four pairs in the tile, and its word below. Without it, say how to see it."""
    if not r.details:
        rows = f"The eight weights of a lane lie in {units.count(r.rows_of_lane)} rows."
        pull = "Pull the knob home, or click a cell" if r.misplaced else "Click a cell"
        hint = (f"{pull} to see its lane.", rows)
        return [text(f"hint-{n}", left, low + 14 + 18 * n, one, "muted") for n, one in enumerate(hint)]
    slot, each = r.slots[r.nibble], 39
    marks = []
    for n, (row, pair) in enumerate(sorted({(one.wanted[0], one.wanted[1] // 2) for one in r.slots})):
        x, y, w = left + pair * 2 * cell, top + row * cell, 2 * cell
        around = [(x, y), (x + w, y), (x + w, y + cell), (x, y + cell), (x, y)]
        marks += about("lane", path(f"own-{n}", around, "ink", f"lane {r.lane} multiplies this pair"))
    halves = {slot.wanted: ("asked", "primary", "multiplied as this nibble")}
    if not slot.right:
        halves[slot.held] = ("stored", "now", "where the weight in this nibble belongs")
    for (row, column), (id, role, tip) in halves.items():
        place = left + column * cell, top + row * cell
        marks += about("nibble", rect(id, *place, cell, cell, role, f"row {row}, column {column}: {tip}"))
    if not slot.right:
        marks += _way(slot, left, top, cell)
    for one in r.slots:
        x, chosen = left + (7 - one.nibble) * each, one.nibble == r.nibble
        role = "primary" if chosen else "secondary" if one.right else "hot"
        tip = (
            f"nibble {one.nibble}: the kernel multiplies it as a{one.element}, row and column {_place(one.wanted)}; "
            f"it holds the weight of row and column {_place(one.held)}"
        )
        marks += about(
            "nibble",
            *sets(
                {"nibble": one.nibble},
                rect(f"nibble-{one.nibble}", x, low, each - 2, 24, role, tip),
                text(f"element-{one.nibble}", x + each / 2 - 1, low + 16, f"a{one.element}", "inverse", "small", "middle", True, on=role),
            ),
        )  # fmt: skip
    wanted, held = (f"row {row}, column {column}" for row, column in (slot.wanted, slot.held))
    holds = "It holds that weight." if slot.right else f"It holds the weight of {held}."
    said = (f"Nibble {r.nibble} is multiplied as {wanted}.", holds)
    x, y = (left + 8 * each + 8, low + 6) if wide else (left, low + 42)
    return marks + about(
        "nibble",
        text("chosen-wanted", x, y, said[0], "primary", bold=True),
        text("chosen-held", x, y + 18, said[1], "primary" if slot.right else "now", bold=True),
    )


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


def _takeaway(r: Result) -> str:
    if r.order == "fragment":
        return "Each lane's word holds the eight weights its own registers need, so none has to travel."
    if r.order == "rows":
        return "Only 2 of 256 weights are in place, and to move the others between lanes would cost time."
    if r.order == "columns":
        return "Sorted columns are right only if X is sorted in the same way. No shape tells you."
    return "Same codes, same shapes, and no error message. Nothing but the output tells."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    left, top, cell, words, high, pitch, right, low, height = PLACES[width == WIDE]
    role = "hot" if r.misplaced else "useful"
    heard = figure("words in their place", r.words_in_place, lambda v: f"{units.count(v)} of {SIDE}", role)
    there = figure("weights in their place", r.in_place, lambda v: f"{units.count(v)} of 256", role)
    error = figure("error, of the outputs' own size", r.error_share, lambda v: units.percent(v, 0))
    slot = r.slots[r.nibble]
    return Scene(
        summary=f"Packed {ORDERS[r.order]}, {there.text} weights of the tile arrive where the kernel multiplies them, "
        f"{heard.text} words are said in their place, and the outputs err by {error.text}. Lane {r.lane} needs weights of "
        f"{units.count(r.rows_of_lane)} rows of W. Its nibble {r.nibble} is multiplied as row and column "
        f"{_place(slot.wanted)}, and holds the weight of {_place(slot.held)}.",
        takeaway=_takeaway(r),
        marks=_sentence(r, words, high, pitch, right)
        + _tile(r, left, top, cell)
        + _lane(r, left, top, cell, low, width == WIDE)
        + [_pull(r.order, left, top, cell)],
        figures=(heard, there, error),
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
            *((("useful", "in its place"),) * (r.in_place > 0)),
            *((("hot", "moved"), ("limit line", "home of a large weight")) if r.misplaced else ()),
            *((("primary", "the chosen nibble, as multiplied"),) * r.details),
            *((("now", "its weight's own place"),) * (r.details and not slot.right)),
            *((("secondary", "a nibble with its own weight"),) * (r.details and any(one.right for one in r.slots))),
        ),
        formula=(
            (
                "aᵢ of {lane:lane L}: row = ⌊L / 4⌋ + 8 · bit 1 of i, column = 2 (L mod 4) + bit 0 + 8 · bit 2",
                f"{{nibble:nibble {r.nibble}}} is a{slot.element} of lane {r.lane}: row {slot.wanted[0]}, column {slot.wanted[1]}",
            ),
        ),
    )  # fmt: skip


SIMULATOR = Declaration(
    title="Fragment map",
    question="What if weights are packed in another order than the kernel reads?",
    controls=(select("order", "The packer's order", "neighbours", ORDERS), DETAILS, LANE, NIBBLE),
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
