"""What every page has: its frame, a simulator in its place, a card that leads to one."""

import json
import re
from dataclasses import replace
from html import escape

from widgets import static
from widgets.answer import answer, spec
from widgets.declare import Declaration
from widgets.scene import Scene
from widgets.site.lessons import Shown

COLOURS = ("b8450b", "d9762f", "0b7285", "2159c4", "1f7a3d", "8f1fb0", "5fa8d3", "d9a441", "626b79")
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" aria-hidden="true">'
    + "".join(
        f'<rect x="{1 + 8 * (i % 3)}" y="{1 + 8 * (i // 3)}" width="6.5" height="6.5" rx="1.4" fill="#{colour}"/>'
        for i, colour in enumerate(COLOURS)
    )
    + "</svg>"
)
# Nothing but the page's own folder, whatever a lesson might hold; 'data:' is a picture drawn in the page.
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'"
)
ASLEEP = "A still picture. With JavaScript, and from a web server instead of a file, its controls come alive."
FOOT = (
    "Everything here runs inside your browser: the simulators are the course’s own Python models, on the core of "
    "Pyodide (MPL 2.0). Nothing is fetched from anywhere else and nothing is sent. Code under the MIT licence, text "
    "and pictures under CC BY 4.0."
)


def page(title: str, description: str, body: str, root: str = "", live: bool = False) -> str:
    script = f'<script type="module" src="{root}assets/live.js"></script>' if live else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="{escape(description)}">
<title>{escape(title)}</title>
<link rel="icon" href="{root}assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{root}assets/scene.css">
<link rel="stylesheet" href="{root}assets/page.css">
{script}
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top"><a class="brand" href="{root}index.html">{ICON}Tile by Tile</a>
<a href="{root}index.html#topics">Topics</a><a href="{root}labs.html">Labs</a></header>
<main id="main">
{body}
</main>
<footer class="bottom"><p>{FOOT}</p></footer>
</body>
</html>
"""


def opening(declaration: Declaration, inputs: dict | None = None) -> Scene:
    """The scene that a simulator opens with."""
    result = declaration.run(**declaration.inputs(inputs))
    first = declaration.stepper.start(result) if declaration.stepper else 0
    return declaration.scenes(result)[first]


def _still(declaration: Declaration, shown: Shown, uid: str) -> str:
    """The picture that needs no script; before a prediction it is folded away."""
    style = f"<style>{static.css()}</style>"
    picture = static.page(declaration, opening(declaration, shown.inputs), uid).removeprefix(style)
    if not shown.predict:
        return picture
    asked = static.page(declaration, None, f"{uid}-asked").removeprefix(style)
    return f"{asked}<details><summary>Open the picture</summary>{picture}</details>"


def simulator(declaration: Declaration, shown: Shown, uid: str, first: bool = True) -> str:
    """A still picture, and everything that live.js needs to wake it."""
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
    """left, top, right, bottom"""
    if mark["t"] == "path":
        across, down = mark["p"][::2], mark["p"][1::2]
        return min(across), min(down), max(across), max(down)
    x, y, r = mark.get("x"), mark.get("y"), mark.get("r", 0)
    right, bottom = mark.get("x2", x + mark.get("w", 0)), mark.get("y2", y + mark.get("h", 0))
    return min(x, right) - r, min(y, bottom) - r, max(x, right) + r, max(y, bottom) + r


def card(declaration: Declaration, root: str = "") -> str:
    """A small picture without words, and the question that it answers."""
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
