"""Make a lab's page from its text, its simulators and its cells to edit, with buttons instead of check and hint."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib.resources import files
from pathlib import Path

from grader import questions
from grader.notebooks import debugger
from grader.questions import Question
from widgets.registry import find
from widgets.site import frame
from widgets.site.drawings import inline
from widgets.site.lesson_page import LAB
from widgets.site.lessons import Shown, _code
from widgets.site.prose import Place, markdown
from widgets.site.stills import simulator

SLOW_S = 60  # a check that takes longer in a tab says so
WITHOUT_TORCH = (
    '<p class="lab-note">Answers of this lab are tried and checked in this page. Its other cells need PyTorch, which no '
    "browser runs, so they work in JupyterLab alone.</p>"
)
SERVED = (  # until lab.js speaks
    "Cells answer here if a web server serves this page and JavaScript is on. From a folder, "
    "<code>python -m http.server</code> serves the page."
)
CSP = f"{frame.POLICY}; worker-src blob:"  # the worker that runs Python, which inherits this policy


@dataclass
class LabPage:
    """The page of one lab. `picture` gives a picture's file, `lead` turns the lab's links to the site's addresses."""

    notebook: Path
    lead: Callable[[str], str | None]
    picture: Callable[[str], Path | None]
    address: str
    solutions: dict[str, str] = field(default_factory=dict)  # cell -> its answer, for instructors
    drawn: int = 0

    @cached_property
    def cells(self) -> list[dict]:
        return json.loads(self.notebook.read_text(encoding="utf-8"))["cells"]

    @property
    def lab(self) -> str:
        return f"{self.notebook.parent.name}/{self.notebook.stem}"

    @cached_property
    def root(self) -> str:
        return "../" * self.address.count("/")

    @cached_property
    def title(self) -> str:
        return "".join(self.cells[0]["source"]).splitlines()[0].lstrip("# ")

    def question(self, cell: dict) -> Question | None:
        """Return the question that a code cell answers."""
        slug = self.notebook.parent.name.partition("_")[2]
        return questions.load().get(f"{slug}.{cell['id']}") if is_answer(cell) else None

    def html(self, contents: str) -> str:
        place = Place(self.lead, self._drawing)
        body = [self._cell(cell, place) for cell in self.cells]
        body.insert(1, self._tools())
        data = json.dumps(self._facts()).replace("<", "\\u003c")
        body += [
            f'<script type="application/json" id="lab">{data}</script>',
            f'<link rel="stylesheet" href="{self.root}assets/lab.css">',
            f'<script type="module" src="{self.root}assets/lab.js"></script>',
        ]
        page = frame.Page(
            title=f"{self.title} · Tile by Tile",
            description=f"{self.title}, judged inside this page.",
            body=f'<article class="prose">{"".join(body)}</article>',
            contents=contents,
            kind="lesson",
            root=self.root,
            live=any(shown(cell) for cell in self.cells),
        )
        return frame.html(page).replace(frame.POLICY, CSP)

    def _facts(self) -> dict:
        """Return the facts that lab.js needs."""
        asked = {cell["id"]: self.question(cell) for cell in self.cells if self.question(cell)}
        return {
            "name": self.lab,
            "notebook": f"{self.root}labs/{self.lab}.ipynb",
            "judge": f"labs/{self.lab}.zip",
            "folder": f"labs/{self.notebook.parent.name}",
            "points": sum(one.points for one in asked.values() if not one.bonus),
            "bonus": [one.id for one in asked.values() if one.bonus],
            "hints": {one.id: list(one.hints) for one in asked.values()},
            "solutions": self.solutions,
        }

    def _drawing(self, source: str, words: str) -> str:
        """Put a drawing inside the page, so that its colours follow the theme."""
        path = self.picture(source)
        if path is None or path.suffix != ".svg":
            return f'<p><img src="{escape(self.lead(source) or source)}" alt="{escape(words)}" loading="lazy"></p>\n'
        self.drawn += 1
        drawing = inline(path.read_text(encoding="utf-8"), f"drawing-{self.drawn}")
        return (
            f'<figure class="drawing"><div class="drawn" tabindex="0" role="group" aria-label="Drawing">{drawing}</div>'
            f"<figcaption>{escape(words)}</figcaption></figure>\n"
        )

    @property
    def needs_torch(self) -> bool:
        """Return whether cells of this lab need PyTorch, which no tab has."""
        return any('needs("torch")' in "".join(cell["source"]) for cell in self.cells)

    def _tools(self) -> str:
        return (
            f"{WITHOUT_TORCH if self.needs_torch else ''}"
            f'<div class="doors"><p><a href="{LAB}/work/{self.lab}.ipynb">Open this lab in your JupyterLab</a> '
            "(while <code>make lab</code> runs)</p></div>"
            f'<p class="lab-status" role="status">{SERVED}</p><p class="lab-total" role="status"></p><div class="lab-tools">'
            '<button type="button" class="lab-save">Save as a notebook</button>'
            '<label>Open a notebook<input type="file" class="lab-open" accept=".ipynb"></label></div>'
            '<p class="lab-told" role="status">The buttons Run, Check and Hint do what the functions of these names do in a '
            "notebook. Shift+Enter runs a cell, and Escape and then Tab lead out of it to its buttons. Your work is kept in "
            "this browser. A saved notebook opens in JupyterLab, and a class hands it in.</p>"
        )

    def _cell(self, cell: dict, place: Place) -> str:
        source, name = "".join(cell["source"]), cell["id"]
        if cell["cell_type"] == "markdown":
            return written(name, source) if is_answer(cell) else markdown(debugger.without(source), place)
        if is_check(cell):
            return ""  # the answer's cell has a button for it
        if one := shown(cell):
            self.drawn += 1
            declaration = find(one.name)
            return simulator(declaration, one, f"simulator-{self.drawn}", first=False)
        question = self.question(cell)
        if question:
            link = f"{LAB}/work/{self.lab}.ipynb#cell-id={name}"
            return answer(name, source, question, link, name in self.solutions)
        return plain(name, source, locked=cell["metadata"].get("nbgrader", {}).get("locked", False))


def is_answer(cell: dict) -> bool:
    return cell["metadata"].get("nbgrader", {}).get("solution", False)


def is_check(cell: dict) -> bool:
    return cell["metadata"].get("nbgrader", {}).get("grade", False)


def shown(cell: dict) -> Shown | None:
    """Return the simulator that a cell shows, if it does nothing else."""
    if cell["cell_type"] != "code":
        return None
    found = _code("".join(cell["source"]))
    return found.shown if found.shown and not found.text else None


def area(source: str, label: str) -> str:
    """A text that lab.js lets the reader edit once it knows what this browser kept, so that no key is lost."""
    return (
        '<textarea readonly spellcheck="false" autocapitalize="off" autocomplete="off" '
        f'aria-label="{escape(label)}">\n{escape(source)}</textarea>'
    )


def button(kind: str, words: str, hidden: bool = False) -> str:
    return f'<button type="button" class="{kind}"{" hidden" * hidden}>{words}</button>'


OUT = '<div class="lab-out" aria-live="polite"></div>'


def plain(name: str, source: str, locked: bool = False) -> str:
    """Make a cell that is run and not judged, such as a prediction, the prints after it, or the reader's own
    numbers."""
    opened = f"<summary>The imports</summary>{area(source, 'Imports')}"
    folded = f'<details class="imports">{opened}</details>' if locked else ""
    return (
        f'<section class="lab-cell" data-cell="{escape(name)}" data-kind="plain">'
        f'{folded or area(source, f"Code cell {name}")}<div class="doors">{button("run", "Run")}'
        f"{button('stop', 'Stop', hidden=True)}</div>{OUT}</section>"
    )


def written(name: str, source: str) -> str:
    """Write the field of a text that a person grades."""
    return (
        f'<section class="lab-cell" data-cell="{escape(name)}" data-kind="text">{area(source, f"Your text: {name}")}'
        '<p class="lab-note">A person grades this text when you hand the notebook in.</p></section>'
    )


def answer(name: str, source: str, question: Question, jupyter: str, solved: bool) -> str:
    """Write the cell of an answer."""
    cases = "".join(
        f'<option value="{i}">case {i}: {escape(c.kind)}</option>' for i, c in enumerate(question.public)
    )
    buttons = [
        button("run", "Run"),
        f'<select class="case" aria-label="What Run tries">{cases}</select>',
        button("check", f"Check ({question.points:g} point{'s' * (question.points != 1)})"),
        button("hint", "Hint") if question.hints else "",
        button("solution", "Solution") if solved else "",
        button("stop", "Stop", hidden=True),
        button("link", "Copy a link to this cell"),
        f'<a class="in-jupyter" href="{escape(jupyter)}">Open in JupyterLab</a>',
    ]
    return (
        f'<section class="lab-cell" data-cell="{escape(name)}" data-kind="answer" '
        f'data-question="{escape(question.id)}">{area(source, f"Your answer: {name}")}'
        f'<div class="doors">{"".join(buttons)}</div>{slow(question)}<ol class="lab-hints"></ol>{OUT}</section>'
    )


def slow(question: Question) -> str:
    """Say how long a check takes in a tab, where that is long."""
    rows = json.loads(files("grader.site").joinpath("seconds.json").read_text(encoding="utf-8"))["seconds"]
    seconds = rows.get(question.id, 0)
    if seconds < SLOW_S / 4:
        return ""
    words = f"A check of a right answer took {seconds:.0f} s in a tab."
    if seconds > SLOW_S:
        words += " Run tries one public case and is quicker, and JupyterLab checks this answer in seconds."
    return f'<p class="lab-note">{words}</p>'
