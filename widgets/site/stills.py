"""Place a simulator, asleep until its script wakes it, and a card that leads to one."""

import json
import re
from dataclasses import replace
from html import escape

from widgets import static
from widgets.answer import answer, spec
from widgets.declare import Declaration
from widgets.scene import Scene
from widgets.site.lessons import Shown

ASLEEP = "A still picture. With JavaScript, and from a web server instead of a file, its controls come alive."


def opening(declaration: Declaration, inputs: dict | None = None) -> Scene:
    """Return the scene that a simulator opens with."""
    result = declaration.run(**declaration.inputs(inputs))
    first = declaration.stepper.start(result) if declaration.stepper else 0
    return declaration.scenes(result)[first]


def _still(declaration: Declaration, shown: Shown, uid: str) -> str:
    """Return the picture that needs no script. Before a prediction it is folded away."""
    style = f"<style>{static.css()}</style>"
    picture = static.page(declaration, opening(declaration, shown.inputs), uid).removeprefix(style)
    if not shown.predict:
        return picture
    asked = static.page(declaration, None, f"{uid}-asked").removeprefix(style)
    return f"{asked}<details><summary>Open the picture</summary>{picture}</details>"


def simulator(declaration: Declaration, shown: Shown, uid: str, first: bool = True) -> str:
    """Return a still picture with all data that live.js needs to wake the simulator."""
    given = {"start": declaration.inputs(shown.inputs), "locked": shown.predict}
    told = {
        "name": declaration.id,
        "given": given,
        "spec": spec(declaration, given["start"], shown.predict),
        "answer": answer(declaration, **given),
    }
    data = json.dumps(told, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    role = ' role="status"' if first else ""
    return (
        f'<div class="simulator" id="{uid}"><div class="still">{_still(declaration, shown, f"{uid}-still")}</div>'
        f'<p class="status"{role}>{ASLEEP}</p><script type="application/json">{data}</script></div>\n'
    )


def _outline(mark: dict) -> tuple[float, float, float, float]:
    """Return (left, top, right, bottom)."""
    if mark["t"] == "path":
        across, down = mark["p"][::2], mark["p"][1::2]
        return min(across), min(down), max(across), max(down)
    x, y, r = mark.get("x"), mark.get("y"), mark.get("r", 0)
    right, bottom = mark.get("x2", x + mark.get("w", 0)), mark.get("y2", y + mark.get("h", 0))
    return min(x, right) - r, min(y, bottom) - r, max(x, right) + r, max(y, bottom) + r


def card(declaration: Declaration, root: str = "") -> str:
    """Draw a small picture without words, and the question that it answers."""
    scene = opening(declaration)
    marks = [{**mark, "tip": ""} for mark in scene.marks if mark["t"] != "text"]
    picture = static.svg(replace(scene, marks=marks), f"card-{declaration.name}")
    sides = list(zip(*map(_outline, marks), strict=True))
    left, top, right, bottom = min(sides[0]), min(sides[1]), max(sides[2]), max(sides[3])
    near = f'viewBox="{left - 4:g} {top - 4:g} {right - left + 8:g} {bottom - top + 8:g}" aria-hidden="true"'
    picture = re.sub(r'viewBox="[^"]*" role="img"', near, picture, count=1)
    link = f'<a href="{root}simulators/{declaration.name}.html">{escape(declaration.title)}</a>'
    return (
        f'<li><div class="card"><div class="tbt">{picture}</div>'
        f"<h3>{link}</h3><p>{escape(declaration.question)}</p></div></li>"
    )
