"""What is true of every scene, as functions that say what is wrong: for the tests of all simulators."""

import math
from collections.abc import Iterator

from widgets.declare import Declaration
from widgets.scene import ROLES, TERM, Scene, extent

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
    """Pairs of texts that stand on one another."""
    texts = [(m["id"], extent(m)) for m in scene.marks if m["t"] == "text" and m["s"]]
    return [
        f"{one} on {other}"
        for i, (one, a) in enumerate(texts)
        for other, b in texts[:i]
        if min(a[2], b[2]) - max(a[0], b[0]) > SLACK and min(a[3], b[3]) - max(a[1], b[1]) > SLACK
    ]


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
    wrong = [f"id twice: {id}" for id in sorted({id for id in ids if ids.count(id) > 1})]
    wrong += [f"unknown role: {m['id']} {m['role']}" for m in scene.marks if m["role"] not in ROLES]
    wrong += [f"outside the box: {name}" for name in outside(scene)]
    wrong += [f"texts overlap: {pair}" for pair in overlaps(scene)]
    wrong += [f"a knob covers: {pair}" for pair in covered(scene)]
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
