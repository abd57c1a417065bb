"""The same scene without a view: an inline SVG and its table, for saved and exported notebooks."""

import re
from html import escape
from importlib.resources import files
from itertools import islice

from widgets.declare import Declaration
from widgets.scene import TEXT_SIZES, WIDTH, Scene

# Where two fills meet, a hatch tells them apart without colour; {uid} keeps two pictures on a page apart.
_HATCH = (
    '<pattern id="{{uid}}-{role}" width="{size}" height="{size}" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect class="ground" width="{size}" height="{size}"/>'
    '<path class="{role}" d="{lines}"/></pattern>'
)
DEFS = (
    "<defs>"
    + _HATCH.format(role="waste", size=6, lines="M1.5 0V6")
    + _HATCH.format(role="dropped", size=7, lines="M3.5 0V7M0 3.5H7")
    + "</defs>"
)


def css() -> str:
    return files("widgets").joinpath("scene.css").read_text(encoding="utf-8")


def javascript() -> str:
    return files("widgets").joinpath("scene.js").read_text(encoding="utf-8")


def palette() -> dict[str, tuple[str, str]]:
    """role -> (light, dark), as scene.css has them."""
    rows = re.findall(r"--tbt-([a-z]+): (?:var\([^,]+, )?light-dark\((#\w+), (#\w+)\)", css())
    return {name: (light, dark) for name, light, dark in rows}


def svg(scene: Scene, uid: str = "tbt") -> str:
    """Colours stand twice: as classes for scene.css, and as light fills where a page drops style sheets."""
    colours = {role: light for role, (light, _) in palette().items()}
    style = f"--tbt-hatch-waste:url(#{uid}-waste);--tbt-hatch-dropped:url(#{uid}-dropped)"
    head = f'<svg class="tbt-scene" viewBox="0 0 {WIDTH} {scene.height}" role="img" style="{style}" '
    head += f'aria-label="{escape(scene.summary)}" xmlns="http://www.w3.org/2000/svg">'
    return head + DEFS.replace("{uid}", uid) + "".join(_element(m, colours) for m in scene.marks) + "</svg>"


def _element(mark: dict, colours: dict[str, str]) -> str:
    kind, role = mark["t"], mark["role"]
    tip = f"<title>{escape(mark['tip'])}</title>" if mark.get("tip") else ""
    paint = f'class="{role}" fill="{colours[role]}"'
    if kind == "rect":
        box = f'x="{mark["x"]}" y="{mark["y"]}" width="{mark["w"]}" height="{mark["h"]}"'
        return f"<rect {box} {paint}>{tip}</rect>"
    if kind == "circle":
        return f'<circle cx="{mark["x"]}" cy="{mark["y"]}" r="{mark["r"]}" {paint}>{tip}</circle>'
    stroke = f'class="{role}" stroke="{colours[role]}"'
    if kind == "line":
        ends = f'x1="{mark["x"]}" y1="{mark["y"]}" x2="{mark["x2"]}" y2="{mark["y2"]}"'
        return f"<line {ends} {stroke}>{tip}</line>"
    if kind == "path":
        pairs = zip(islice(mark["p"], 0, None, 2), islice(mark["p"], 1, None, 2), strict=True)
        shape = "M" + " ".join(f"{x},{y}" for x, y in pairs) + ("Z" if mark.get("closed") else "")
        inside = paint.replace(role, f"{role} closed", 1) if mark.get("closed") else f'{stroke} fill="none"'
        return f'<path d="{shape}" {inside}>{tip}</path>'
    if kind == "grid":
        return _grid(mark, colours)
    classes = f"{role} {mark['size']}{' bold' if mark.get('b') else ''}"
    font = f'font-size="{TEXT_SIZES[mark["size"]]}" text-anchor="{mark["a"]}" fill="{colours[role]}"'
    return f'<text x="{mark["x"]}" y="{mark["y"]}" class="{classes}" {font}>{escape(mark["s"])}</text>'


def _grid(mark: dict, colours: dict[str, str]) -> str:
    out = []
    for role, outline in mark["fills"]:
        faint = ' fill-opacity="0.16"' if role == "idle" else ""
        out.append(f'<path d="{outline}" class="cells {role}" fill="{colours[role]}"{faint}/>')
    thin = " thin" if mark["thin"] else ""
    out.append(f'<path d="{mark["rules"]}" class="hairlines{thin}" stroke="{colours["ground"]}"/>')
    box = f'x="{mark["x"]}" y="{mark["y"]}" width="{mark["w"]}" height="{mark["h"]}"'
    out.append(f'<rect {box} class="frame" fill="none" stroke="{colours["idle"]}"/>')
    return f"<g><title>{escape(mark['tip'])}</title>{''.join(out)}</g>"


def table(scene: Scene) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in scene.table.header())
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in scene.table.shown()
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def page(declaration: Declaration, scene: Scene | None, uid: str = "tbt", stands_in: bool = False) -> str:
    """A scene as text/html. With no scene (a prediction not yet made) only the question.

    One that stands in for a live view keeps out of sight for the moment that the view needs to come up.
    """
    head = f'<p class="tbt-title">{escape(declaration.title)}</p>'
    head += f'<h3 class="tbt-question">{escape(declaration.question)}</h3>'
    if scene is None:
        body = f"<p>{escape(declaration.prediction.question)}</p>"
    else:
        figures = "".join(
            f'<div><dt>{escape(f.label)}</dt><dd class="{f.role}">{escape(f.text)}</dd></div>'
            for f in scene.figures
        )
        body = f'<dl class="tbt-figures">{figures}</dl>{svg(scene, uid)}'
        body += f'<p class="tbt-caption">{escape(scene.summary)}</p>'
        body += f'<p class="tbt-takeaway">{escape(scene.takeaway)}</p>'
        body += f'<details class="tbt-data"><summary>Show as data</summary>{table(scene)}</details>'
    if stands_in:
        body += '<p class="tbt-source">A saved picture: run its cell to move the controls.</p>'
    name, kind = escape(declaration.title), "tbt tbt-saved" if stands_in else "tbt"
    return f'<style>{css()}</style><div class="{kind}" id="{uid}" role="group" aria-label="{name}">{head}{body}</div>'
