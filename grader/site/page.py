"""A lab as a page: its text, its answer cells to edit, and buttons where a notebook calls run, check and hint."""

import ast
import json
from html import escape
from pathlib import Path

from grader import questions
from grader.notebooks import debugger
from widgets.site import frame
from widgets.site.listing import code
from widgets.site.prose import Place, markdown

CALLS = ("run", "check", "hint", "last_record")


def page(notebook: Path, lead, contents: str, address: str) -> str:
    """Return the page of a lab's notebook; `lead` turns the lab's links to the site's addresses."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    slug, name = notebook.parent.name.split("_", 1)[1], notebook.stem
    root = "../" * address.count("/")
    answers = {cell["id"]: f"{slug}.{cell['id']}" for cell in cells if is_answer(cell)}
    place = Place(lead, lambda source, words: picture(lead(source) or source, words))
    body = [cell_html(cell, answers, place) for cell in cells]
    title = "".join(cells[0]["source"]).splitlines()[0].lstrip("# ")
    body.insert(1, tools())
    facts = {
        "name": f"{notebook.parent.name}/{name}",
        "notebook": f"{root}labs/{notebook.parent.name}/{notebook.name}",
        "hints": {question: list(questions.find(question).hints) for question in answers.values()},
    }
    data = json.dumps(facts).replace("<", "\\u003c")
    body.append(f'<script type="application/json" id="lab">{data}</script>')
    body.append(f'<link rel="stylesheet" href="{root}assets/lab.css">')
    body.append(f'<script type="module" src="{root}assets/lab.js"></script>')
    return frame.html(
        frame.Page(
            title=f"{title} · Tile by Tile",
            description=f"{title}, judged inside this page.",
            body=f'<article class="prose">{"".join(body)}</article>',
            contents=contents,
            kind="lesson",
            root=root,
        )
    )


def picture(source: str, words: str) -> str:
    return f'<p><img src="{escape(source)}" alt="{escape(words)}"></p>\n'


def is_answer(cell: dict) -> bool:
    return cell["cell_type"] == "code" and cell["metadata"].get("nbgrader", {}).get("solution", False)


def tools() -> str:
    return (
        '<p class="lab-status" role="status"></p><div class="lab-tools">'
        '<button type="button" class="lab-save">Save as a notebook</button>'
        '<label>Open a notebook <input type="file" class="lab-open" accept=".ipynb"></label></div>'
        "<p>What you write is kept in this browser. The notebook opens in JupyterLab and is what a class hands in.</p>"
    )


def cell_html(cell: dict, answers: dict[str, str], place: Place) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return markdown(debugger.without(source), place)
    if cell["id"] in answers:
        return editor(cell["id"], answers[cell["id"]], source)
    return "" if is_a_button(source) else code(source)


def is_a_button(source: str) -> bool:
    """Whether a cell only calls run or check, or prepares a notebook: the page has buttons for that."""
    calls = [node for node in ast.parse(source).body if not isinstance(node, ast.Import | ast.ImportFrom)]
    names = [getattr(getattr(node, "value", None), "func", None) for node in calls]
    return all(getattr(name, "id", "") in (*CALLS, "needs") for name in names)


def editor(name: str, question: str, source: str) -> str:
    return (
        f'<section class="lab-cell" data-cell="{escape(name)}" data-question="{escape(question)}">'
        f'<textarea spellcheck="false" autocapitalize="off" autocomplete="off" aria-label="Your answer: {escape(name)}">'
        f"\n{escape(source)}</textarea>"
        '<div class="doors"><button type="button" class="run">Run</button>'
        '<button type="button" class="check">Check</button><button type="button" class="hint">Hint</button>'
        '<button type="button" class="stop" hidden>Stop</button></div><ol class="lab-hints"></ol>'
        '<div class="lab-out" aria-live="polite"></div></section>'
    )
