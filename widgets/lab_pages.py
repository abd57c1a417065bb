"""python -m widgets.lab_pages [--check]: what of the course's notebooks follows from the simulators and the files there are:
each simulator's still picture, the text of its own small notebook, and the table of the start page."""

import argparse
import ast
import re
import sys
from functools import cache
from html import escape
from pathlib import Path
from textwrap import wrap

from kernels import from_sources, texts
from widgets import static
from widgets.declare import Declaration
from widgets.measured import recorded
from widgets.registry import every, find
from widgets.scene import Scene
from widgets.site.lessons import Shown, Text
from widgets.site.stills import opening
from widgets.site.topics import Topic, topics

ROOT = Path(__file__).parents[1]
PICTURES, TEXTS = "course/pictures", "course/simulators"
TEXT = """# {title}

This simulator belongs to topic {number} on [the start page](../start.ipynb). You see a still picture until you run the cell
(Shift+Enter). Then you can move the controls, press a preset, or open *Show as data*.
{guess}


```python
from widgets import show

show("{name}")
```
"""
GUESS = "Before you move a control, guess the change."
ASKED = 'If you want to guess first, `show("{name}", predict=True)` asks you for a number.'
RECORDED = re.compile(r"""^recorded\(((?:"[^"]*"(?:, )?)+)\)\s*\Z""", re.M)  # at the end of a cell
START, SOURCES = "course/start.md", f"course/{from_sources.PAGE}"
HEAD = """| | | lesson | the question it answers | simulators | your labs |
|---|---|---|---|---|---|
"""
THUMB = '<img src="{}" alt="" width="150">'
FONT = "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"


def file(words: list[str]) -> str:
    """Return a picture's file name, such as 'tile_walk.svg', 'tile_walk-m-1-asked.svg' or 'gemm_tiling.svg'.
    The build of the notebooks computes the same names.
    """
    return "-".join(words).replace(" ", "_").replace("/", "_") + ".svg"


@cache
def _style(huge: bool) -> str:
    """Return the part of scene.css that colours a scene's marks, because a separate file has no page to bring it."""
    css = re.sub(r"/\*.*?\*/", "", static.css(), flags=re.S)
    css = re.sub(r"@[^{;]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", css)
    kept = []
    for selector, body in re.findall(r"([^{}]+)\{([^{}]*)\}", css):
        if not re.search(r"\.tbt-scene|pattern", selector):
            body = ";".join(re.findall(r"--tbt-[\w-]+\s*:[^;]+", body))
        if body.strip() and not re.search(r":(focus|hover)|data-" + ("" if huge else "|huge"), selector):
            kept.append(f"{' '.join(selector.split())}{{{' '.join(body.split())}}}")
    return f"<style>svg{{color-scheme:only light}}{''.join(kept)}</style>"


def _card(title: str, question: str, size: tuple[float, float], inside: str) -> str:
    """Return a picture as a file of its own on a white card."""
    (width, height), lines = size, wrap(question, 72)
    above = 36 + 22 * len(lines)
    muted, ink = (static.palette()[role][0] for role in ("muted", "ink"))
    box = f'width="{width + 32:g}" height="{height + above + 12:g}"'
    words = "".join(
        f'<text y="{22 * i - 22 * len(lines) + 4}">{escape(t)}</text>' for i, t in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tbt" viewBox="-16 {-above} {width + 32:g} '
        f'{height + above + 12:g}" {box} role="img" font-family="{FONT}">{_style("huge" in inside)}'
        f'<rect x="-16" y="{-above}" {box} rx="12" fill="#ffffff"/>'
        f'<text y="{14 - above + 6}" font-size="13" fill="{muted}">{escape(title)}</text>'
        f'<g font-size="16" font-weight="600" fill="{ink}">{words}</g>{inside}</svg>\n'
    )


def drawn(title: str, question: str, scene: Scene, uid: str) -> str:
    svg = static.svg(scene, uid)
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', svg).groups())
    return _card(
        title,
        question,
        (width, height),
        svg.replace("<svg ", f'<svg width="{width:g}" height="{height:g}" ', 1),
    )


def prediction_asked(declaration: Declaration) -> str:
    """Draw the question of a prediction, without anything that gives the answer away."""
    lines = [*wrap(declaration.prediction.question, 88), "", "The picture opens with your prediction."]
    words = "".join(
        f'<text x="24" y="{44 + 26 * i}" font-size="15">{escape(t)}</text>' for i, t in enumerate(lines)
    )
    edge = 'fill="none" stroke="#8a94a3" stroke-dasharray="4 4"'
    width, height = 720, 60 + 26 * len(lines)
    frame = f'<rect x="0" y="8" width="{width}" height="{height - 16}" rx="8" {edge}/>'
    return _card(
        declaration.title, declaration.question, (width, height), f'{frame}<g fill="#1b2130">{words}</g>'
    )


def _shown(one: Shown) -> tuple[str, str]:
    """(file, picture) of one `show(...)`."""
    declaration = find(one.name)
    words = [declaration.name, *(f"{key}-{value}" for key, value in one.inputs.items())]
    if one.predict and declaration.prediction:
        return file([*words, "asked"]), prediction_asked(declaration)
    scene = opening(declaration, one.inputs)
    return file(words), drawn(declaration.title, declaration.question, scene, declaration.name)


def _recorded(words: tuple[str, ...]) -> tuple[str, str]:
    plot, name = recorded(*words), file(list(words))
    if not plot.scene:
        return name, _card(plot.sentence, "", (720, 0), "")
    return name, drawn(plot.title, plot.question, plot.scene, words[0])


def _pictures(root: Path) -> dict[str, str]:
    """Draw every simulator as it opens by itself and as the lessons open it, and the recorded runs that they show."""
    shown, runs = [Shown(one.name, {}) for one in every()], set()
    course = root / "course"
    lessons = [page for pages in texts.lessons(course).values() for page in pages]
    for path in sorted({*course.glob("*.md"), *lessons}):
        cells = Text(path).cells
        shown += [cell.shown for cell in cells if cell.shown]
        ends = (RECORDED.search(cell.text) for cell in cells if cell.kind == "code")
        runs |= {ast.literal_eval(f"({match[1]},)") for match in ends if match}
    made = {f"{PICTURES}/simulators/{name}": text for name, text in map(_shown, shown)}
    return made | {f"{PICTURES}/recorded/{name}": text for name, text in map(_recorded, sorted(runs))}


def notebook(topic: Topic, one: Declaration) -> str:
    """Return its text's path, 'course/simulators/01_tile_walk.md', so that a list of files has the topics in their
    order."""
    return f"{TEXTS}/{topic.number}_{one.name}.md"


def _texts(found: list[Topic]) -> dict[str, str]:
    made = {}
    for topic in found:
        for one in topic.simulators:
            guess = (ASKED if one.prediction else GUESS).format(name=one.name)
            words = {"title": one.title, "name": one.name, "number": topic.number}
            made[notebook(topic, one)] = TEXT.format(**words, guess=guess)
    return made


def _picture(topic: Topic) -> str:
    """Return the still picture of a topic's first simulator, which the start page links."""
    return f"{PICTURES.removeprefix('course/')}/simulators/{file([topic.simulators[0].name])}"


def _row(topic: Topic) -> str:
    title = f"[{topic.title}]({topic.lesson.pages[0].name}.ipynb)" if topic.lesson else topic.title
    if topic.lesson and topic.lesson.in_pages:
        pages = (f"[{page.title}]({page.name}.ipynb)" for page in topic.lesson.pages)
        title = f"{topic.title}: {' · '.join(pages)}"
    notebooks = [(d.title, notebook(topic, d).removeprefix("course/")) for d in topic.simulators]
    simulators = " · ".join(
        f"[{name}]({Path(place).with_suffix('.ipynb').as_posix()})" for name, place in notebooks
    )
    labs = " · ".join(f"[{Path(lab.path).name}](../work/{lab.path}.ipynb)" for lab in topic.labs)
    thumb = THUMB.format(_picture(topic)) if notebooks else ""
    return f"| {topic.number} | {thumb} | {title} | {topic.question} | {simulators} | {labs or 'to come'} |\n"


def _start(root: Path, found: list[Topic]) -> str:
    """Return the start page with a new table. All its other words are written by hand."""
    text = (root / START).read_text(encoding="utf-8")
    table = HEAD + "".join(map(_row, found))
    return re.sub(rf"^{re.escape(HEAD)}(?:\|.*\n)*", lambda _: table, text, count=1, flags=re.M)


def pages_wanted(root: Path = ROOT) -> dict[str, str]:
    """Return every file by its path."""
    found = topics(root)
    listed = from_sources.page(root / "course", {topic.slug: topic.title for topic in found})
    return _pictures(root) | _texts(found) | {START: _start(root, found), SOURCES: listed}


def differing(root: Path = ROOT) -> list[str]:
    """Return the files that differ from the simulators of today, and those whose simulators are gone."""
    found = [*(root / PICTURES).glob("*/*.svg"), *(root / TEXTS).glob("*.md"), root / START, root / SOURCES]
    there = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in found if path.exists()}
    made = pages_wanted(root)
    return sorted(file for file in made.keys() | there.keys() if made.get(file) != there.get(file))


def write_pages(root: Path = ROOT) -> list[str]:
    made, changed = pages_wanted(root), differing(root)
    for file in changed:
        path = root / file
        if file in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made[file], encoding="utf-8", newline="\n")
        else:
            path.unlink()
            path.with_suffix(".ipynb").unlink(missing_ok=True)
    return changed


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m widgets.pictures", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if a file differs")
    check = parser.parse_args(argv).check
    changed = differing() if check else write_pages()
    for file in changed:
        print(f"{file}: {'differs from its simulator. Run make build' if check else 'made'}")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
