"""Draw the same scene without a view, as an inline SVG with its table, for saved and exported notebooks."""

import re
from functools import cache
from html import escape
from itertools import islice
from pathlib import Path

from widgets.declare import Declaration
from widgets.scene import TEXT_SIZES, Scene, plain

# Roles whose fill has a texture, which tells them apart without colour where two fills meet.
TEXTURES = ("waste", "dropped", "memory", "secondary", "network", "overhead", "hot")
VIEW = Path(__file__).parents[1] / "view"  # the drawing code for a browser, which tilescope ships too


@cache
def defs() -> str:
    """Return the textures of the roles. {uid} keeps two pictures on a page apart."""
    return (VIEW / "defs.svg").read_text(encoding="utf-8").replace("\n", "")


def css() -> str:
    return (VIEW / "scene.css").read_text(encoding="utf-8")


def javascript() -> str:
    """Return the parts of the view, one idea each. As one file they need a single request."""
    return "\n".join(part.read_text(encoding="utf-8") for part in sorted(VIEW.glob("*.js")))


def palette() -> dict[str, tuple[str, str]]:
    """Return role -> (light, dark), from scene.css."""
    rows = re.findall(r"--tbt-([a-z]+): (?:var\([^,]+, )?light-dark\((#\w+), (#\w+)\)", css())
    return {name: (light, dark) for name, light, dark in rows}


def svg(scene: Scene, uid: str = "tbt", kind: str = "tbt-scene") -> str:
    """Return the picture as SVG. Colours are there twice, as classes for scene.css and as light fills for pages that
    don't have scene.css."""
    colours = {role: light for role, (light, _) in palette().items()} | {"fade": "none"}
    style = ";".join(
        f"--tbt-fill-{role}:url(#{uid}-{role})" for role in (*TEXTURES, "useful", "fade")
    )  # useful: in forced colours
    head = f'<svg class="{kind}" viewBox="0 0 {scene.width} {scene.height}" role="img" style="{style}" '
    head += f'aria-label="{escape(scene.summary)}" xmlns="http://www.w3.org/2000/svg">'
    return head + defs().replace("{uid}", uid) + "".join(_element(m, colours) for m in scene.marks) + "</svg>"


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
    if kind == "handle":
        return f'<circle cx="{mark["x"]}" cy="{mark["y"]}" r="6" {paint}>{tip}</circle>'
    more = (mark["size"], "bold" if mark.get("b") else "", f"on-{mark['on']}" if mark.get("on") else "")
    classes = " ".join(filter(None, (role, *more)))
    font = f'font-size="{TEXT_SIZES[mark["size"]]}" text-anchor="{mark["a"]}" fill="{colours[role]}"'
    return f'<text x="{mark["x"]}" y="{mark["y"]}" class="{classes}" {font}>{escape(mark["s"])}</text>'


def _grid(mark: dict, colours: dict[str, str]) -> str:
    out = []
    for role, outline in mark["fills"]:
        faint = ' fill-opacity="0.16"' if role in ("idle", "hot") else ""
        out.append(f'<path d="{outline}" class="cells {role}" fill="{colours[role]}"{faint}/>')
    thin = " thin" if mark["thin"] else ""
    out.append(f'<path d="{mark["rules"]}" class="hairlines{thin}" stroke="{colours["ground"]}"/>')
    box = f'x="{mark["x"]}" y="{mark["y"]}" width="{mark["w"]}" height="{mark["h"]}"'
    out.append(f'<rect {box} class="frame" fill="none" stroke="{colours["idle"]}"/>')
    return f"<g><title>{escape(mark['tip'])}</title>{''.join(out)}</g>"


def _pictures(scene: Scene, narrow: Scene | None, uid: str) -> str:
    if narrow is None or narrow.width == scene.width:
        return svg(scene, uid)
    return svg(scene, uid, "tbt-scene tbt-wide") + svg(narrow, f"{uid}-narrow", "tbt-scene tbt-narrow")


def _formula(scene: Scene) -> str:
    rows = "".join(f"<dt>{escape(plain(a))}</dt><dd>{escape(plain(b))}</dd>" for a, b in scene.formula)
    return f'<dl class="tbt-formula">{rows}</dl>' if rows else ""


def table(scene: Scene) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in scene.table.header())
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in scene.table.shown()
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def page(
    declaration: Declaration,
    scene: Scene | None,
    uid: str = "tbt",
    stands_in: bool = False,
    narrow: Scene | None = None,
) -> str:
    """Return a scene as text/html, or the question alone if the scene waits for a prediction.

    `narrow` is the same for a phone, and the style sheet shows the one that fits.

    A picture that replaces a live view for a moment stays invisible until the view is up.
    """
    head = f'<h3 class="tbt-question">{escape(declaration.question)}</h3>'
    if scene is None:
        body = f"<p>{escape(declaration.prediction.question)}</p>"
    else:
        figures = "".join(
            f'<div><dt>{escape(f.label)}</dt><dd class="{f.role}">{escape(f.text)}</dd></div>'
            for f in scene.figures
        )
        body = f'<dl class="tbt-figures">{figures}</dl>{_pictures(scene, narrow, uid)}'
        body += f'<p class="tbt-caption">{escape(scene.summary)}</p>'
        body += f'<p class="tbt-takeaway">{escape(scene.takeaway)}</p>{_formula(scene)}'
        body += f'<details class="tbt-data"><summary>Show as data</summary>{table(scene)}</details>'
    foot = "A saved picture. Run its cell to move the controls." if stands_in else "A still picture"
    body += f'<p class="tbt-source">{escape(declaration.title)}. {foot}.</p>'
    name, kind = escape(declaration.title), "tbt tbt-saved" if stands_in else "tbt"
    return f'<style>{css()}</style><div class="{kind}" id="{uid}" role="group" aria-label="{name}">{head}{body}</div>'
