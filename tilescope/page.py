"""Show a recording in the simulators' view.
Makes its data, a page of its own, and a still picture for saved notebooks."""

import json
from functools import cache
from html import escape
from pathlib import Path

from .machine.bounds import ids
from .recorder import Recording
from .scenes import MOST_STEPS, NARROW, WIDE, Look, chosen_steps, opening, scene
from .steps import Steps

HERE = Path(__file__).parent
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{css}
:root {{ color-scheme: light dark; background: light-dark(#ffffff, #161616); }}
body {{ max-width: 1220px; margin: 16px auto; padding: 0 12px; }}
h1 {{ margin: 0 0 8px; font: 600 16px system-ui, sans-serif; }}</style></head>
<body><h1>tilescope</h1><main></main><noscript>{still}</noscript><script type="module">{javascript}
const given = {data}, hearing = new Set();
mount(document.querySelector('main'), {{
  spec: given.spec,
  answer: given.wide,
  ask: request => {{
    const told = {{ ...(request.narrow ? given.narrow : given.wide), view: request.view, revision: request.revision }};
    setTimeout(() => hearing.forEach(callback => callback(told)));
  }},
  listen: callback => {{ hearing.add(callback); return () => hearing.delete(callback); }},
}});
document.documentElement.dataset.mounted = 'true';
</script></body></html>
"""


@cache
def view(*kinds: str) -> str:
    """Return the view's files of some kinds, one after the other,
    from the package or from the surrounding checkout."""
    folder = next((f for f in (HERE / "view", HERE.parent / "view") if (f / "defs.svg").exists()), None)
    if folder is None:
        raise FileNotFoundError("tilescope must have its view folder, got none. Install it from its checkout")
    return "\n".join(
        path.read_text(encoding="utf-8") for kind in kinds for path in sorted(folder.glob(f"*.{kind}"))
    )


def title(recording: Recording) -> str:
    return f"{recording.kernel}, program {ids(recording.ids, recording.grid)}"


def spec(recording: Recording, controls: list | None = None, start: dict | None = None) -> dict:
    """Return what the view needs once, before any picture."""
    x, y, z = recording.grid
    return {
        "id": "tilescope.step",
        "title": f"{title(recording)} of a grid {x} × {y} × {z}",
        "question": f"What does program {ids(recording.ids, recording.grid)} of {recording.kernel} do?",
        "controls": controls or [],
        "presets": [],
        "start": start or {},
        "noun": "line",
        "prediction": None,
        "source": "",
        "defs": view("svg").replace("\n", ""),
        "code": code(recording),
    }


def code(recording: Recording) -> list[dict]:
    """The kernel's source, and what it became, each line with the line of the source that it comes from."""
    file = Path(recording.file)
    label = "This cell" if file.parent.name.startswith("ipykernel") else file.name
    numbers, lines = zip(*recording.listing, strict=True) if recording.listing else ((), ())
    return [
        {"label": label, "lines": list(lines), "of": list(numbers)},
        *recording.texts,
    ]


def answer(steps: Steps, look: Look, values: dict | None = None) -> dict:
    """Return all steps in the form that the view takes, the first as a whole, and each other step as its changes."""
    numbers = chosen_steps(steps)
    frames = [scene(steps, number, look) for number in numbers]
    tallest = max((frame["h"] for frame in frames), default=0)
    frames = [frame | {"h": tallest} for frame in frames]  # one height, so that nothing jumps
    if len(numbers) < len(steps):
        left = (
            f" Steps {MOST_STEPS // 2 + 1} to {len(steps) - MOST_STEPS // 2} of {len(steps):,} are left out."
        )
        frames[MOST_STEPS // 2 - 1]["caption"] += left
    if steps.recording.cut and frames:
        frames[-1]["caption"] += f" The recording ends here, since {steps.recording.cut}."
    at = numbers.index(opening(steps)) if frames else 0
    more = {"values": values or {}, "first": at, "verdict": None, "held": False}
    return {"view": "", "revision": 0, "frames": deltas(frames), **more}


def deltas(frames: list[dict]) -> list[dict]:
    """Return the first frame whole, then the changes of each.
    A mark is sent when it is new or differs, its order always."""
    found, before, marks = [], {}, {}
    for frame in frames:
        now = {mark["id"]: mark for mark in frame["marks"]}
        told = {
            key: value for key, value in frame.items() if key != "marks" and before.get(key, now) != value
        }
        told["marks"] = [changed(marks.get(id), mark) for id, mark in now.items() if marks.get(id) != mark]
        told["gone"] = [id for id in marks if id not in now]
        if list(now) != list(marks):
            told["order"] = list(now)
        found.append(told)
        before, marks = frame, now
    return found


def changed(old: dict | None, new: dict) -> dict:
    if old is None or old["t"] != new["t"]:
        return new
    return {"id": new["id"], **{key: new.get(key) for key in {*old, *new} if old.get(key) != new.get(key)}}


def page(recording: Recording) -> str:
    """Return a page that needs no network and no Python, with the same steps."""
    steps = Steps(recording)
    wide, narrow = (answer(steps, Look(width=width)) for width in (WIDE, NARROW))
    data = json.dumps({"spec": spec(recording), "wide": wide, "narrow": narrow}, allow_nan=False)
    words = {"title": escape(title(recording)), "css": view("css"), "still": still(steps)}
    return PAGE.format(**words, javascript=view("js"), data=data.replace("</", "<\\/"))


SAVED = "A saved step of {many}. Run its cell to step through them."


def still(steps: Steps, uid: str = "tilescope", source: str = SAVED) -> str:
    """Return a still view of a recording's opening step, for readers who can't run the notebook.
    It has the step's words, picture and data. `source` says where all steps are."""
    recording = steps.recording
    if not len(steps):
        return "<p>The program performs no line.</p>"
    shown = scene(steps, opening(steps))
    figures = "".join(
        f'<div><dt>{escape(a)}</dt><dd class="{c}">{escape(b)}</dd></div>' for a, b, c in shown["figures"]
    )
    lines = "".join(
        f'<li data-line="{number}"{" aria-current=step" * (number == shown["line"])}>'
        f'<span class="tbt-number">{number}</span><code>{escape(line)}</code></li>'
        for number, line in recording.listing
    )
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in shown["table"]["header"])
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in shown["table"]["rows"]
    )
    warning = f'<p class="tbt-warning">{escape(shown["warning"])}</p>' if shown["warning"] else ""
    return (
        f'<div class="tbt tbt-saved" id="{uid}" role="group" aria-label="{escape(title(recording))}">'
        f'<h3 class="tbt-question">{escape(title(recording))}</h3>'
        f'<div class="tbt-code"><section class="tbt-listing"><ol>{lines}</ol></section></div>'
        f'<dl class="tbt-figures">{figures}</dl>{drawn(shown, uid)}<p class="tbt-caption">{escape(shown["summary"])}</p>'
        f"{warning}"
        f'<details class="tbt-data"><summary>Show as data</summary><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></details>"
        f'<p class="tbt-source">{source.format(many=len(steps))}</p></div>'
    )


def drawn(shown: dict, uid: str) -> str:
    """A scene's marks as SVG."""
    defs = view("svg").replace("\n", "").replace("{uid}", uid)
    roles = ("waste", "dropped", "memory", "secondary", "network", "overhead", "hot")
    fills = ";".join(f"--tbt-fill-{role}:url(#{uid}-{role})" for role in roles)
    head = f'<svg class="tbt-scene" viewBox="0 0 {shown["w"]} {shown["h"]}" role="img" style="{fills}" '
    return (
        head + f'aria-label="{escape(shown["summary"])}">{defs}{"".join(map(element, shown["marks"]))}</svg>'
    )


def element(mark: dict) -> str:
    role, tip = mark["role"], f"<title>{escape(mark['tip'])}</title>" if mark.get("tip") else ""
    if mark["t"] == "rect":
        box = f'x="{mark["x"]}" y="{mark["y"]}" width="{mark["w"]}" height="{mark["h"]}"'
        return f'<rect {box} class="{role}">{tip}</rect>'
    if mark["t"] == "line":
        ends = f'x1="{mark["x"]}" y1="{mark["y"]}" x2="{mark["x2"]}" y2="{mark["y2"]}"'
        return f'<line {ends} class="{role}">{tip}</line>'
    if mark["t"] == "path":
        points = " ".join(f"{x},{y}" for x, y in zip(mark["p"][::2], mark["p"][1::2], strict=True))
        return f'<path d="M{points}Z" class="{role} closed"/>'
    words = " ".join(filter(None, (role, mark["size"], "bold" if mark.get("b") else "")))
    place = f'x="{mark["x"]}" y="{mark["y"]}" text-anchor="{mark["a"]}"'
    return f'<text {place} class="{words}">{escape(mark["s"])}</text>'
