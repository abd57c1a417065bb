"""A lesson as a chapter: its prose, its code, its numbered figures, and its simulators awake."""

import ast
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

from widgets.registry import find
from widgets.site.contents import NUMBER, lab_address
from widgets.site.figures import Figures
from widgets.site.lessons import Cell, Lesson
from widgets.site.listing import code
from widgets.site.prose import Place, markdown
from widgets.site.stills import simulator
from widgets.site.topics import Topic

LAB = "http://localhost:8888/lab/tree"  # where `make lab` serves, unless it is told otherwise


@dataclass(frozen=True)
class Written:
    body: str
    prose: str  # what a search looks through: no simulators in it
    figures: Figures

    @property
    def live(self) -> bool:
        return bool(self.figures.shown)


def is_setup(text: str) -> bool:
    """Imports and the names given right after them: nothing that a reader reads."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    kinds = (ast.Import, ast.ImportFrom, ast.Assign)
    return bool(body) and isinstance(body[0], kinds[:2]) and all(isinstance(one, kinds) for one in body)


def _code(cell: Cell, printed: str) -> str:
    if not cell.text.strip():
        return printed
    if is_setup(cell.text) and not printed and not cell.shown:
        return f'<details class="setup"><summary>The imports</summary>{code(cell.text)}</details>\n'
    return code(cell.text) + printed


def doors(notebook: str) -> str:
    """How a notebook is opened: in one's own Lab, or as a file."""
    return (
        f'<a href="{LAB}/{notebook}">Open in JupyterLab</a> (while <code>make lab</code> runs), or '
        f'<a href="../{notebook}" download>take the notebook</a>'
    )


def _head(topic: Topic) -> str:
    labs = " · ".join(f'<a href="../{lab_address(lab)}">{escape(lab.short)}</a>' for lab in topic.labs)
    rows = f"<p>{doors(f'course/{topic.lesson.name}.ipynb')}</p>" + (f"<p>Labs: {labs}</p>" if labs else "")
    return f'<div class="doors">{rows}</div>\n'


def write(topic: Topic, course: Path, lead, outputs: list[str] | None) -> Written:
    """`outputs`: what each cell printed, if it was run."""
    crumb = f"{NUMBER.format(topic.number)}Lesson"
    return _written(topic.lesson, Figures(str(int(topic.number)), course, lead), crumb, _head(topic), outputs)


def write_glossary(lesson: Lesson, lead) -> Written:
    """The page of terms: no chapter, but read like one."""
    return _written(lesson, Figures("", lesson.path.parent, lead), "Reference", "", None)


def _written(lesson: Lesson, figures: Figures, crumb: str, head: str, outputs: list[str] | None) -> Written:
    place = Place(figures.lead, figures.picture)
    page, prose = [], []
    for i, cell in enumerate(lesson.cells):
        text = (
            markdown(cell.text, place)
            if cell.kind == "markdown"
            else _code(cell, outputs[i] if outputs else "")
        )
        page.append(text)
        prose.append(text)
        if cell.shown:
            one, uid = find(cell.shown.name), f"simulator-{figures.count + 1}"
            html = simulator(one, cell.shown, uid, first=not figures.shown)
            page.append(figures.simulator(html, one.name, one.title))
    body = figures.refer("".join(page))
    body = re.sub(r"</h1>", lambda m: f"</h1>\n{head}", body, count=1)
    article = f'<article class="prose"><p class="crumb">{crumb}</p>{body}</article>'
    return Written(article, figures.refer("".join(prose)), figures)
