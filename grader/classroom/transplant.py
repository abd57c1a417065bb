"""Copy a student's answers into a clean lab notebook. All other text of the student is shown at its position, ungraded."""

import ast
import re
import unicodedata
from copy import deepcopy

from grader.classroom.open_safely import Cell, Submitted
from grader.classroom.parse_sandboxed import MOST_OWN
from grader.judge import answer
from grader.judge.report import visible

DECLARED = ("points", "grade", "solution", "locked", "task")
SAID = "said_at_intake"  # the id of the cell that lists the problems of the hand-in for its student
OWN = "*Handed in here, outside the answers. It is not run and does not count by itself:*"
PRINTED = "*What it printed there:*"
CUT = "\n\n... (it goes on in submitted/)"
FOUND_BY = {"function": "function's name", "place": "place"}
MATHJAX_DOORS = re.compile(r"\\(?=(?:href|style|class|cssId|require|bbox|unicode|includegraphics)\b)")


def mark(cell) -> dict:
    return cell["metadata"].get("nbgrader", {})


def asked(lab) -> dict:
    """Each cell of a lab with what it is to a student, and what graded cells say of themselves."""
    cells = [mark(cell) for cell in lab["cells"]]
    return {
        "cells": [
            {
                "name": name_of(cell),
                "kind": "code" if cell["cell_type"] == "code" else "markdown",
                "role": role(cell),
                "source": cell["source"],
                "functions": functions(cell) if role(cell) == "answer" else [],
            }
            for cell in lab["cells"]
        ],
        "marks": {
            m["grade_id"]: {key: m[key] for key in DECLARED if key in m} for m in cells if "grade_id" in m
        },
    }


def name_of(cell) -> str:
    return mark(cell).get("grade_id") or cell.get("id", "")


def role(cell) -> str:
    """Return whose a cell is. Answers are the student's. Checks, tasks and fixed cells are the course's. Plain cells
    may be either's."""
    said = mark(cell)
    kinds = {
        "answer": said.get("solution"),
        "task": said.get("task"),
        "check": is_check(cell),
        "fixed": said.get("locked"),
    }
    return next((kind for kind, holds in kinds.items() if holds), "plain")


def functions(cell) -> list[str]:
    """The functions that an answer's cell begins with."""
    if cell["cell_type"] != "code":
        return []
    try:
        return [node.name for node in ast.parse(cell["source"]).body if isinstance(node, ast.FunctionDef)]
    except SyntaxError:
        return []


def is_check(cell) -> bool:
    return bool(cell["cell_type"] == "code" and mark(cell).get("grade") and not mark(cell).get("solution"))


def transplant(lab, submitted: Submitted):
    """Return (notebook, remarks about the submission). `lab` stays unchanged."""
    notebook, said = deepcopy(lab), [f"{submitted.trouble}."] if submitted.trouble else []
    cells = _own_cells(submitted.after.get("", []), "top")
    for cell in notebook["cells"]:
        cells.append(cell)
        name = name_of(cell)
        if role(cell) == "answer" and not submitted.trouble:
            said += _fill(cell, name, submitted)
        if edited := submitted.edited.get(name):
            cells += _as_handed_in(cell, name, edited)
        cells += _own_cells(submitted.after.get(name, []), name)
    if submitted.more:
        said.append(f"{submitted.more} more cells of its own are not shown, only the first {MOST_OWN} are.")
    said += _odd(**submitted.odd) if submitted.odd else []
    if said:
        cells.insert(0, _said(said))
    notebook["cells"] = cells
    return notebook, said


def _as_handed_in(cell, name: str, edited: Cell) -> list[dict]:
    """Return a cell of the lab that isn't an answer, such as a prediction, with the student's code and its output."""
    if cell["cell_type"] != "code":
        return _own_cells([edited], f"{name}_edited")
    cell["source"] = edited.source
    return _printed(edited, name)


def _own_cells(own: list[Cell], name: str) -> list[dict]:
    """Return a student's own cells, for reading only. They aren't run and don't count."""
    found = [_markdown(f"own_{name}", OWN)] if own else []
    for number, one in enumerate(own, 1):
        found += [_own_cell(one, f"own_{number}_{name}"), *_printed(one, f"{number}_{name}")]
    return found


def _printed(one: Cell, name: str) -> list[dict]:
    """As words set off by four spaces, in which nothing acts."""
    if not one.printed.strip():
        return []
    lines = "\n".join(f"    {line}" for line in visible(one.printed).splitlines())
    return [_markdown(f"printed_{name}", f"{PRINTED}\n\n{lines}")]


def _fill(cell, name: str, submitted: Submitted) -> list[str]:
    """Put the student's text into one cell. Return its oddities."""
    copies, said = submitted.found.get(name, []), []
    if not copies:
        return [
            f"The cell `{name}` is not in what was handed in, so it is judged as if it had not been started."
        ]
    if how := submitted.found_by.get(name):
        said.append(f"The cell `{name}` has lost its name and was found by its {FOUND_BY[how]}.")
    chosen = next((c for c in reversed(copies) if _differs(c.source, cell["source"])), copies[-1])
    if submitted.copies[name] > 1:
        said.append(
            f"The cell `{name}` is there {submitted.copies[name]} times: the last one that was changed counts."
        )
    if chosen.kind != cell["cell_type"]:
        said.append(f"The cell `{name}` is a {chosen.kind} cell now, and its text is taken as it is.")
    if chosen.cut:
        return [
            *said,
            f"The cell `{name}` is longer than any cell may be, so it is judged as if it had not been started.",
        ]
    cell["source"] = chosen.source if cell["cell_type"] == "code" else plain(chosen.source)
    return said


def _odd(declared: dict, changed: list, claims: int, language: str) -> list[str]:
    """List the parts of a hand-in that don't count, so that their absence surprises no reader."""
    said = [
        f"The cell `{name}` declares other {' and '.join(keys)} than the course does, "
        "as an older copy of the lab would: the course's count."
        for name, keys in declared.items()
    ]
    said += [f"The cell `{name}` was changed and is replaced by the course's own." for name in changed]
    if claims:
        said.append(
            "1 cell that the course does not have asks to be graded, but it earns nothing."
            if claims == 1
            else f"{claims} cells that the course does not have ask to be graded, but they earn nothing."
        )
    if language:
        said.append(
            f"It is a notebook of {visible(language)}, not of Python, but its cells are still read as Python."
        )
    return said


def _differs(mine: str, stub: str) -> bool:
    try:
        return answer.normalise(mine) != answer.normalise(stub)
    except answer.Refused:
        return True


def plain(text: str) -> str:
    """Return a stranger's Markdown in a form that is safe to show: no tags, no links, no hidden characters.

    A space breaks anything that would begin a tag, a link, a picture or a MathJax command. The text reads the same.
    """
    kept = (c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs"))
    text = re.sub(r"<(?=[A-Za-z/!?])", "< ", "".join(kept))
    text = re.sub(r"(https?:)(?=//)", r"\1 ", text, flags=re.IGNORECASE)  # which renderers make links of
    return MATHJAX_DOORS.sub(r"\\ ", re.sub(r"\](?=[(:\[])", "] ", text))


def _own_cell(own: Cell, name: str) -> dict:
    if own.kind != "code":
        return _markdown(name, plain(own.source) + CUT * own.cut)
    code = {"outputs": [], "execution_count": None, "metadata": {}}
    return {"cell_type": "code", "id": name[:60], "source": own.source + CUT * own.cut, **code}


def _markdown(name: str, source: str) -> dict:
    return {"cell_type": "markdown", "id": name[:60], "metadata": {}, "source": source}


def _said(said: list[str]) -> dict:
    lines = "\n".join(f"- {line}" for line in said)
    return _markdown(SAID, f"**What came in**\n\n{lines}")
