"""Make a lesson into a chapter, with its prose, its code, its numbered figures, and its simulators awake."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from widgets.registry import find
from widgets.site.contents import NUMBER, lab_address, page_address, root_of
from widgets.site.figures import Figures
from widgets.site.lessons import Cell, Text
from widgets.site.listing import code
from widgets.site.prose import Place, markdown
from widgets.site.stills import simulator
from widgets.site.topics import Topic

LAB = "http://localhost:8888/lab/tree"  # the default address of `make lab`


@dataclass(frozen=True)
class Written:
    body: str
    prose: str  # the text that a search looks through, without simulators
    live: bool  # it holds a simulator


def _code(cell: Cell, printed: str) -> str:
    if not cell.text.strip():
        return printed
    if cell.folded:
        name = "The code" if printed or cell.shown else "The imports"
        return f'<details class="setup"><summary>{name}</summary>{code(cell.text)}</details>\n{printed}'
    return code(cell.text) + printed


def doors(notebook: str, root: str) -> str:
    """Return the ways to open a notebook, in your own Lab or as a file."""
    return (
        f'<a href="{LAB}/{notebook}">Open in JupyterLab</a> (while <code>make lab</code> runs), or '
        f'<a href="{root}{notebook}" download>take the notebook</a>'
    )


def _head(topic: Topic, page: Text) -> str:
    root = root_of(page_address(page))
    labs = " · ".join(f'<a href="{root}{lab_address(lab)}">{escape(lab.short)}</a>' for lab in topic.labs)
    rows = f"<p>{doors(f'course/{page.name}.ipynb', root)}</p>" + (f"<p>Labs: {labs}</p>" if labs else "")
    return f'<div class="doors">{rows}</div>\n'


def _crumb(topic: Topic, page: Text) -> str:
    """Say which lesson this is, and where in it a page is and how long it takes."""
    number, lesson = NUMBER.format(topic.number), topic.lesson
    if not lesson.in_pages:
        return f"{number}Lesson"
    at = lesson.pages.index(page) + 1
    return f"{number}{escape(lesson.title)} · page {at} of {len(lesson.pages)} · about {page.minutes} min to read"


def write(topic: Topic, figures: Figures, printed: Callable[[Text], list[str] | None]) -> dict[str, Written]:
    """Return a lesson's pages by their addresses. `printed` holds the output of each cell, if it was run."""
    made = {}
    for page in topic.lesson.pages:
        made[page] = _written(page, figures, _crumb(topic, page), _head(topic, page), printed(page))
    return {page_address(page): _referred(one, figures, page) for page, one in made.items()}


def write_apart(page: Text, lead) -> Written:
    """Write the page of terms, or of the sources, which isn't a chapter but reads like one."""
    figures = Figures("", lead)
    return _referred(_written(page, figures, "Reference", "", None), figures, page)


def _referred(written: Written, figures: Figures, page: Text) -> Written:
    return Written(figures.refer(written.body, page), figures.refer(written.prose, page), written.live)


def _written(text: Text, figures: Figures, crumb: str, head: str, outputs: list[str] | None) -> Written:
    figures.open(text)
    place = Place(figures.lead, figures.picture)
    page, prose, shown = [], [], False
    for i, cell in enumerate(text.cells):
        html = (
            markdown(cell.text, place)
            if cell.kind == "markdown"
            else _code(cell, outputs[i] if outputs else "")
        )
        page.append(html)
        prose.append(html)
        if cell.shown:
            one, uid = find(cell.shown.name), f"simulator-{figures.count + 1}"
            html, shown = simulator(one, cell.shown, uid, first=not shown), True
            page.append(figures.simulator(html, one.name, one.title))
    body = re.sub(r"</h1>", lambda m: f"</h1>\n{head}", "".join(page), count=1)
    article = f'<article class="prose"><p class="crumb">{crumb}</p>{body}</article>'
    return Written(article, "".join(prose), shown)
