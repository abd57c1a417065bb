"""What is true of every scene, as functions that say what is wrong: for the tests of all simulators."""

import math
import re
from collections import Counter
from collections.abc import Iterator

from widgets.declare import Declaration
from widgets.scene import HATCHED, ROLES, TERM, Scene, extent

SLACK = 2  # units; text widths are estimates


def states(declaration: Declaration) -> Iterator[tuple[str, dict]]:
    """The states worth looking at: every preset, and each control alone at each of its ends."""
    yield from declaration.presets.items()
    for control in declaration.controls:
        ends = (control.min, control.max) if control.min is not None else control.stops or (True, False)
        for value in ends:
            yield f"{control.name}={value}", {control.name: value}


def pulled(declaration: Declaration, halts: int = 5) -> Iterator[tuple[str, dict]]:
    """Each knob of the picture in each preset, at some of its halts from end to end."""
    scenes = declaration.scenes(declaration.run(**declaration.inputs()))
    knobs = {one["input"] for scene in scenes for mark in scene.marks for one in mark.get("drag", ())}
    for name, given in declaration.presets.items():
        for control in (one for one in declaration.controls if one.name in knobs):
            values = control.values()
            last = len(values) - 1
            for i in sorted({round(last * k / (halts - 1)) for k in range(halts)}):
                yield f"{name}, {control.name}={values[i]}", {**given, control.name: values[i]}


def outside(scene: Scene) -> list[str]:
    def out(box):
        return (
            box[0] < -SLACK
            or box[1] < -SLACK
            or box[2] > scene.width + SLACK
            or box[3] > scene.height + SLACK
        )

    return [f"{m['id']} {tuple(map(round, extent(m)))}" for m in scene.marks if out(extent(m))]


def overlaps(scene: Scene) -> list[str]:
    """Pairs of texts that stand on one another; from left to right, each is held against those that begin under it."""
    texts = sorted((extent(m), i, m["id"]) for i, m in enumerate(scene.marks) if m["t"] == "text" and m["s"])
    found = []
    for at, (a, i, one) in enumerate(texts):
        for b, j, other in texts[at + 1 :]:
            if b[0] >= a[2] - SLACK:
                break
            if b[2] - b[0] > SLACK and min(a[3], b[3]) - max(a[1], b[1]) > SLACK:
                found.append(f"{one} on {other}" if i > j else f"{other} on {one}")
    return found


def covered(scene: Scene) -> list[str]:
    """Texts under a knob: its circle reaches 9 units, its arrows 16 along each way that it is pulled."""
    found = []
    for knob in (mark for mark in scene.marks if mark["t"] == "handle"):
        ways = {one["axis"] for one in knob["drag"]}
        boxes = [(9, 9), *[(16, 4) for way in ways if way == "x"], *[(4, 16) for way in ways if way == "y"]]
        for one in (mark for mark in scene.marks if mark["t"] == "text" and mark["s"]):
            left, top, right, low = extent(one)
            reached = any(
                min(right, knob["x"] + w) - max(left, knob["x"] - w) > SLACK
                and min(low, knob["y"] + h) - max(top, knob["y"] - h) > SLACK
                for w, h in boxes
            )
            found += [f"{knob['id']} on {one['id']} {one['s']!r}"] * reached
    return found


def _segments(mark: dict) -> list[tuple]:
    """The straight pieces of a line or an open path."""
    if mark["t"] == "line":
        return [(mark["x"], mark["y"], mark["x2"], mark["y2"])]
    if mark["t"] != "path" or mark.get("closed"):
        return []
    points = list(zip(mark["p"][::2], mark["p"][1::2], strict=True))
    return [(*a, *b) for a, b in zip(points, points[1:], strict=False)]


def _meets(piece: tuple, box: tuple) -> bool:
    """Whether a straight piece runs through a box, its outermost SLACK left out, for more than SLACK."""
    x1, y1, x2, y2 = piece
    left, top, right, low = box[0] + SLACK, box[1] + SLACK, box[2] - SLACK, box[3] - SLACK
    start, end = 0.0, 1.0
    for way, room in ((x1 - x2, x1 - left), (x2 - x1, right - x1), (y1 - y2, y1 - top), (y2 - y1, low - y1)):
        if way == 0:
            if room < 0:
                return False
        elif way < 0:
            start = max(start, room / way)
        else:
            end = min(end, room / way)
    return (end - start) * math.hypot(x2 - x1, y2 - y1) > SLACK


def _drawn_through(scene: Scene) -> list[tuple]:
    """Every straight piece that may strike words: the place of its mark among all, its outline, itself."""
    return [
        (k, min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2), (x1, y1, x2, y2))
        for k, mark in enumerate(scene.marks)
        if mark["role"] != "grid"
        for x1, y1, x2, y2 in _segments(mark)
    ]


def struck(scene: Scene) -> list[str]:
    """Texts with a line through them: a line passes behind a plate (on="ground", or a fill under the words), or beside."""
    found, pieces = [], _drawn_through(scene)
    for i, one in _worded(scene):
        box = left, top, right, low = extent(one)
        near = [
            (k, piece)
            for k, x1, y1, x2, y2, piece in pieces
            if x1 <= right and x2 >= left and y1 <= low and y2 >= top
        ]
        for k in dict.fromkeys(k for k, piece in near if _meets(piece, box)):
            between = scene.marks[k + 1 : i] if k < i else ()
            if not any(mark["t"] == "rect" and _holds(extent(mark), box) for mark in between):
                found.append(f"{scene.marks[k]['id']} through {one['id']} {one['s']!r}")
    return found


def _worded(scene: Scene) -> list[tuple[int, dict]]:
    """Texts that say something, each with its place among all marks."""
    return [(i, mark) for i, mark in enumerate(scene.marks) if mark["t"] == "text" and mark["s"]]


def _holds(outer: tuple, box: tuple) -> bool:
    return (
        outer[0] - 1 <= box[0]
        and outer[1] - 3 <= box[1]
        and outer[2] + 1 >= box[2]
        and outer[3] + 3 >= box[3]
    )


def hidden(scene: Scene) -> list[str]:
    """Texts under a fill or a dot that is drawn after them."""
    found = []
    filled = [
        (k, *extent(mark), mark)
        for k, mark in enumerate(scene.marks)
        if mark["t"] in ("circle", "rect", "grid")
    ]
    for i, one in _worded(scene):
        left, top, right, low = extent(one)
        near = [
            (min(right, c) - max(left, a), min(low, d) - max(top, b), other)
            for k, a, b, c, d, other in filled
            if k > i and a < right and c > left and b < low and d > top
        ]
        for wide, high, other in near:
            if other["t"] == "circle":
                x, y = min(max(other["x"], left), right), min(max(other["y"], top), low)
                over = math.hypot(x - other["x"], y - other["y"]) < other["r"] - SLACK
            else:
                over = wide > SLACK and high > SLACK
            found += [f"{other['id']} over {one['id']} {one['s']!r}"] * over
    return found


def smothered(scene: Scene) -> list[str]:
    """Hatched boxes that the plate under a name leaves no more than a third of."""
    found = []
    for i, plate in enumerate(scene.marks):
        if not plate["id"].endswith("-plate"):
            continue
        left, top, right, low = extent(plate)
        for box in scene.marks[:i]:
            if box["t"] == "rect" and box["role"] in HATCHED and box["w"] * box["h"]:
                a, b, c, d = extent(box)
                wide, high = min(right, c) - max(left, a), min(low, d) - max(top, b)
                if wide > 0 and high > 0 and wide * high > 2 / 3 * box["w"] * box["h"]:
                    found.append(f"{plate['id']} on {box['id']}")
    return found


# "1 guesses"; a verb after the number is no plural, and neither is a number before a unit
ONE_OF_MANY = re.compile(
    r"(?<![\d.,×−-])\b1[ \u202f](?!(?:guess|class|pass|loss|is|as|its|has|was|this|takes|brings|draws|chooses|yields|pays"
    r"|saves|holds|runs|hides|costs|ms|µs|ns|s)\b)([a-z-]+s)\b"
)
NONE_OF_MANY = re.compile(r"(?<![\d.,])\b0 (?:homes|place)\b")


def _words(scene: Scene) -> Iterator[str]:
    for mark in scene.marks:
        yield mark.get("s", "")
        yield mark.get("tip", "")
    yield from (scene.summary, scene.takeaway, scene.caption, scene.warning)
    yield from (f"{one.text} {one.label}" for one in scene.figures)


def misnumbered(scene: Scene) -> list[str]:
    """Words that say one of a thing as if there were several."""
    return [words for words in _words(scene) if ONE_OF_MANY.search(words) or NONE_OF_MANY.search(words)]


def numbers(value) -> Iterator[float]:
    """Every number of a result, at any depth."""
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield float(value)
    elif isinstance(value, dict):
        for one in value.values():
            yield from numbers(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from numbers(one)


def not_in_result(scene: Scene, known: set[float]) -> list[str]:
    """Numbers that figures or table show and the result does not hold."""
    shown = [(f.label, f.value) for f in scene.figures]
    shown += [(f"table row {row[0]}", value) for row in scene.table.rows for value in numbers(row[1:])]
    return [
        f"{where}: {value}"
        for where, value in shown
        if float(value) not in known and not any(math.isclose(value, one, rel_tol=1e-9) for one in known)
    ]


def ungripped(scene: Scene, inputs: dict) -> list[str]:
    """Handles that do not stand where the value of their input is."""
    wrong = []
    for mark in scene.marks:
        for one in mark.get("drag", ()):
            value = inputs[one["input"]]
            nearest = min(
                range(len(one["to"])),
                key=lambda i: (
                    one["to"][i] != value,
                    abs(float(one["to"][i]) - float(value)) if not isinstance(value, str) else 0,
                ),
            )
            apart = [abs(b - a) for a, b in zip(one["at"], one["at"][1:], strict=False)]
            if abs(one["at"][nearest] - mark[one["axis"]]) > max(1, *apart):
                wrong.append(
                    f"{mark['id']}: {one['input']}={value} lies at {one['at'][nearest]}, not {mark[one['axis']]}"
                )
    return wrong


def loose_terms(scene: Scene, controls: set[str]) -> list[str]:
    """Terms of the formula that light nothing: no control, mark or figure has their name."""
    asked = {found[1] for pair in scene.formula for words in pair for found in TERM.finditer(words)}
    marked = {term for mark in scene.marks for term in mark.get("k", "").split()}
    return sorted(asked - controls - marked - {f.term for f in scene.figures})


def problems(scene: Scene, known: set[float]) -> list[str]:
    """All that is wrong with a scene, in words."""
    ids = [mark["id"] for mark in scene.marks]
    wrong = [f"id twice: {id}" for id, many in sorted(Counter(ids).items()) if many > 1]
    wrong += [f"unknown role: {m['id']} {m['role']}" for m in scene.marks if m["role"] not in ROLES]
    wrong += [f"outside the box: {name}" for name in outside(scene)]
    wrong += [f"texts overlap: {pair}" for pair in overlaps(scene)]
    wrong += [f"a knob covers: {pair}" for pair in covered(scene)]
    wrong += [f"a line runs through words: {pair}" for pair in struck(scene)]
    wrong += [f"a fill lies on words: {pair}" for pair in hidden(scene)]
    wrong += [f"a plate hides what it stands on: {pair}" for pair in smothered(scene)]
    wrong += [f"one is said as several: {words!r}" for words in misnumbered(scene)]
    wrong += [f"not in the summary: {f.label} {f.text}" for f in scene.figures if f.text not in scene.summary]
    wrong += [f"not in the result: {entry}" for entry in not_in_result(scene, known)]
    if not 2 <= len(scene.figures) <= 4:
        wrong.append(f"two to four key figures, not {len(scene.figures)}")
    if any(not label.strip() for label in scene.table.header()):
        wrong.append("a column of the table has no label: every header is read aloud")
    if not scene.table.rows:
        wrong.append("an empty table")
    if not any(mark.get("tip") for mark in scene.marks):
        wrong.append("no mark tells its value on hover")
    for name, sentence in (("summary", scene.summary), ("takeaway", scene.takeaway)):
        if not sentence.endswith("."):
            wrong.append(f"the {name} is not a sentence: {sentence!r}")
    return wrong
