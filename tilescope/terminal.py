"""Step through a recording in a terminal, or write it as a page."""

import sys
import webbrowser
from pathlib import Path

from . import scenes
from .page import page, title
from .recorder import Recording
from .scenes import Drawn, Look, lane_name, opening, scene
from .steps import Steps

KEYS = """n or Enter: the next step        b: the step before       o: out of this loop
a number: the next step of that line   f: the first step        e: the last step
l 3,5: one lane, and the lines behind its value      v: the variables   h: this help   q: the end"""
SHOWN = 8  # lanes
AROUND = 3  # lines of the source above and below the one at work


def show(recording: Recording, html: str | None, browse: bool, given=None, out=None) -> None:
    """Write the page on request. Then answer keys, or print the opening step without a keyboard."""
    out = out or sys.stdout
    steps = Steps(recording)
    if html:
        Path(html).write_text(page(recording), encoding="utf-8")
        print(f"tilescope: the steps of {title(recording)} are in {html}", file=out)
        if browse:
            webbrowser.open(Path(html).absolute().as_uri())
    if not len(steps):
        print(f"{title(recording)}, performs no line", file=out)
        return
    at = opening(steps)
    print(said(steps, at), file=out)
    typed = given if given is not None else sys.stdin if sys.stdin.isatty() else None
    if typed is None:
        return
    print(KEYS, file=out)
    while True:
        print("step> ", end="", file=out, flush=True)
        line = typed.readline()
        if not line or line.strip() == "q":
            return
        at, words = answered(steps, at, line.strip())
        print(words, file=out)


def answered(steps: Steps, at: int, key: str) -> tuple[int, str]:
    """The step that a key leads to, and what to print."""
    moves = {"": steps.forward, "n": steps.forward, "b": steps.back, "o": steps.over}
    moves |= {"f": lambda _: 0, "e": lambda _: len(steps) - 1}
    if key in moves:
        at = moves[key](at)
        return at, said(steps, at)
    if key.isdigit():
        found = steps.next_of(int(key), at)
        if found is None:
            return at, f"no step after this one is at line {key}"
        return found, said(steps, found)
    if key == "v":
        rows = scene(steps, at)["formula"]
        return at, "\n".join(f"  {name:32} {words}" for name, words in rows) or "  no variables yet"
    if key.startswith("l "):
        return at, lane_said(steps, at, key[2:])
    return at, KEYS


def said(steps: Steps, at: int) -> str:
    """Return one step as text, with its lines, its figures and its lanes in view."""
    step, recording = steps[at], steps.recording
    drawn = Drawn(steps, step, Look())
    shown = drawn.scene()
    lines = [f"{title(recording)}: step {at + 1} of {len(steps)}, {shown['caption'].partition(':')[0]}", ""]
    for number, text in recording.listing:
        if abs(number - step.line) <= AROUND:
            lines.append(f"{'>' if number == step.line else ' '} {number:4}  {text}")
    lines += ["", shown["summary"].partition(": ")[2]]
    lines += [f"  {text} {label}" for label, text, _ in shown["figures"]]
    rows, hot = shown["table"]["rows"], {lane_name(lane) for lane in drawn.marked}
    first = next((at for at, row in enumerate(rows) if row[0] in hot), 0)  # what a finding names is in view
    table = [shown["table"]["header"], *rows[first : first + SHOWN]]
    wide = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        mark = "> " if row[0] in hot else "  "
        lines.append(mark + "  ".join(cell.rjust(w) for cell, w in zip(row, wide, strict=True)))
    if len(rows) >= len(table):
        lines.append(f"  and {len(rows) + 1 - len(table)} more lanes in view")
    return "\n".join([*lines, *filter(None, [shown["warning"]])])


def lane_said(steps: Steps, at: int, typed: str) -> str:
    """Describe one lane's value, its target, and the lines that led to the value."""
    main = steps.main(steps[at])
    if main is None:
        return "this line makes no value"
    number, access = main
    shape = access.shape if access else steps.recording.values[number].shape
    try:
        lane = tuple(int(part) for part in typed.replace("(", "").replace(")", "").split(",") if part.strip())
    except ValueError:
        return f"a lane must be numbers such as 3,5, got {typed!r}"
    lane = lane if shape else ()
    if len(lane) != len(shape) or not all(0 <= i < side for i, side in zip(lane, shape, strict=True)):
        return f"a lane must be inside {' × '.join(map(str, shape)) or 'a scalar'}, got {typed!r}"
    (_, head), *rest = scenes.lane_said(steps, at, lane)
    return "\n".join(
        [head, *(f"  {f'line {line}' if line else 'argument':>9}  {words}" for line, words in rest)]
    )
