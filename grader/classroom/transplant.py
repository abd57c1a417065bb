"""The instructor's own notebook with a student's answers in it; all else that came in stays out."""

import re
import unicodedata
from copy import deepcopy

from grader.classroom.intake import Submitted
from grader.judge import answer
from grader.judge.report import visible

DECLARED = ("points", "grade", "solution", "locked", "task")
SAID = "said_at_intake"  # the id of the cell that tells a student what was wrong with what came in
MATHJAX_DOORS = re.compile(r"\\(?=(?:href|style|class|cssId|require|bbox|unicode|includegraphics)\b)")


def mark(cell) -> dict:
    return cell["metadata"].get("nbgrader", {})


def asked(lab) -> dict:
    """Names of a lab's cells that a student writes, of its tasks, and of all; what cells say of themselves, and checks."""
    cells = [mark(cell) for cell in lab["cells"]]
    ids = [cell["id"] for cell in lab["cells"] if "id" in cell]
    return {
        "wanted": [m["grade_id"] for m in cells if m.get("solution")],
        "tasks": [m["grade_id"] for m in cells if m.get("task")],
        "known": list({*ids, *(m["grade_id"] for m in cells if "grade_id" in m)}),
        "marks": {
            m["grade_id"]: {key: m[key] for key in DECLARED if key in m} for m in cells if "grade_id" in m
        },
        "checks": {mark(c)["grade_id"]: c["source"] for c in lab["cells"] if is_check(c)},
    }


def is_check(cell) -> bool:
    return bool(cell["cell_type"] == "code" and mark(cell).get("grade") and not mark(cell).get("solution"))


def transplant(lab, submitted: Submitted):
    """(notebook, what is said about the submission). `lab` is left as it is."""
    notebook, said = deepcopy(lab), [f"{submitted.trouble}."] if submitted.trouble else []
    cells = []
    for cell in notebook["cells"]:
        cells.append(cell)
        name = mark(cell).get("grade_id")
        if mark(cell).get("solution") and not submitted.trouble:
            said += _fill(cell, name, submitted)
        if mark(cell).get("task"):
            cells += [_own_cell(own, f"{name}_{i}") for i, own in enumerate(submitted.after.get(name, []), 1)]
    said += _odd(**submitted.odd) if submitted.odd else []
    if said:
        cells.insert(0, _said(said))
    notebook["cells"] = cells
    return notebook, said


def _fill(cell, name: str, submitted: Submitted) -> list[str]:
    """Puts the student's text into one cell; says what was odd about it."""
    copies, said = submitted.found.get(name, []), []
    if not copies:
        return [
            f"The cell `{name}` is not in what was handed in, so it is judged as if it had not been started."
        ]
    chosen = next((c for c in reversed(copies) if _differs(c.source, cell["source"])), copies[-1])
    if submitted.copies[name] > 1:
        said.append(
            f"The cell `{name}` is there {submitted.copies[name]} times: the last one that was changed counts."
        )
    if chosen.kind != cell["cell_type"]:
        said.append(f"The cell `{name}` is a {chosen.kind} cell now: its text is taken as it stands.")
    if chosen.cut:
        return [
            *said,
            f"The cell `{name}` is longer than any cell may be, so it is judged as if it had not been started.",
        ]
    cell["source"] = chosen.source if cell["cell_type"] == "code" else plain(chosen.source)
    return said


def _odd(declared: dict, changed: list, claims: int, language: str) -> list[str]:
    """What came in and does not count, so that nobody wonders where it went."""
    said = [
        f"The cell `{name}` declares other {' and '.join(keys)} than the course does, "
        "as an older copy of the lab would: the course's count."
        for name, keys in declared.items()
    ]
    said += [f"The cell `{name}` was changed: the course's own stands in its place." for name in changed]
    if claims:
        said.append(
            "1 cell that the course does not have asks to be graded: it is left out."
            if claims == 1
            else f"{claims} cells that the course does not have ask to be graded: they are left out."
        )
    if language:
        said.append(
            f"It is a notebook of {visible(language)}, not of Python: its cells are read as Python all the same."
        )
    return said


def _differs(mine: str, stub: str) -> bool:
    try:
        return answer.normalise(mine) != answer.normalise(stub)
    except answer.Refused:
        return True


def plain(text: str) -> str:
    """Markdown of a stranger, so that it can be shown to a grader: no tags, no links, no hidden characters.

    A space is set into whatever would begin a tag, a link, a picture or a door of MathJax; it reads the same.
    """
    kept = (c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs"))
    text = re.sub(r"<(?=[A-Za-z/!?])", "< ", "".join(kept))
    text = re.sub(r"(https?:)(?=//)", r"\1 ", text, flags=re.IGNORECASE)  # which renderers make links of
    return MATHJAX_DOORS.sub(r"\\ ", re.sub(r"\](?=[(:\[])", "] ", text))


def _own_cell(own, name: str) -> dict:
    source = own.source if own.kind == "code" else plain(own.source)
    code = {"outputs": [], "execution_count": None} if own.kind == "code" else {}
    return {"cell_type": own.kind, "id": name[-60:], "metadata": {}, "source": source, **code}


def _said(said: list[str]) -> dict:
    lines = "\n".join(f"- {line}" for line in said)
    return {"cell_type": "markdown", "id": SAID, "metadata": {}, "source": f"**What came in**\n\n{lines}"}
