"""A text notebook (jupytext Markdown) -> the same .ipynb, to the byte, every time."""

import re
import shlex
from collections.abc import Callable

import nbformat

# Each word on a fence or region, spelled out in nbgrader's terms.
KINDS = {
    "answer": {"grade": False, "solution": True, "locked": False, "task": False},
    "check": {"grade": True, "solution": False, "locked": True, "task": False},
    "manual": {"grade": True, "solution": True, "locked": False, "task": False},
    "task": {"grade": False, "solution": False, "locked": True, "task": True},
    "locked": {"grade": False, "solution": False, "locked": True, "task": False},
}
CELL_TYPES = {"answer": {"code"}, "check": {"code"}, "task": {"markdown"}}
SCORED = {"check", "manual", "task"}
PREFIX = {"check": "check_"}  # the check of answer=forward is the cell check_forward
OTHER_KEYS = {"points", "tags"}
NAME = re.compile(r"[a-z][a-z0-9_]{0,50}")
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

Points = Callable[[str], float | None]  # a question's name -> its points in the table of questions


class BadCell(ValueError):
    """The words on one cell's fence do not make sense."""


def _words(metadata: dict) -> dict:
    """Return the key=value pairs of a fence. jupytext hands over unquoted ones unread."""
    found = {key: value for key, value in metadata.items() if not key.startswith("lines_to_")}
    for word in shlex.split(found.pop("incorrectly_encoded_metadata", "")):
        key, equals, value = word.partition("=")
        found[key] = value if equals else None
    bare = [key for key, value in found.items() if value is None]
    if bare:
        raise BadCell(f"a word on a fence must be key=value, got {bare[0]!r}. See grader/notebooks/README.md")
    return found


def _points(kind: str, name: str, words: dict, points: Points) -> dict:
    """Return the cell's points. The table of questions decides if it knows the question."""
    if kind not in SCORED:
        if "points" in words:
            raise BadCell(f"points must be on the check, got points on {kind}={name}. Move them")
        return {}
    tabled, written = points(name), words.get("points")
    if tabled is None and written is None:
        raise BadCell(
            f"{kind}={name} must have points, got none. Write points=N or add it to the topic's questions.py"
        )
    try:
        value = float(tabled if written is None else written)
    except ValueError:
        raise BadCell(f"points must be a number, got {written!r}. Write points=10") from None
    if tabled is not None and value != float(tabled):
        raise BadCell(
            f"points must be {tabled:g} as in the topic's questions.py, got {written}. Remove them here"
        )
    return {"points": int(value) if value.is_integer() else value}


def _finish(cell, position: int, points: Points) -> None:
    """Give a cell its id and its nbgrader metadata, and drop what jupytext left."""
    words = _words(cell.metadata)
    kinds = [kind for kind in KINDS if kind in words]
    unknown = set(words) - set(KINDS) - OTHER_KEYS
    cell.metadata = {"tags": words["tags"]} if "tags" in words else {}
    cell.id = f"cell_{position:02d}"
    if unknown or len(kinds) > 1:
        got = " ".join(sorted(unknown) or kinds)
        raise BadCell(
            f"a cell must have at most one of {', '.join(KINDS)}, got {got}. See the build's README"
        )
    if not kinds:
        return
    kind, name = kinds[0], str(words[kinds[0]])
    if not NAME.fullmatch(name) or name.startswith("check_"):
        raise BadCell(f"{kind} must be a snake_case name without check_, got {name!r}. Rename it")
    if cell.cell_type not in CELL_TYPES.get(kind, {"code", "markdown"}):
        raise BadCell(f"{kind}={name} must be on a {'/'.join(CELL_TYPES[kind])} cell, got {cell.cell_type}")
    cell.id = PREFIX.get(kind, "") + name
    cell.metadata["nbgrader"] = {
        **KINDS[kind],
        **_points(kind, name, words, points),
        "grade_id": cell.id,
        "schema_version": 3,
    }


def read(text: str, points: Points = lambda name: None):
    """Return (notebook, [(cell, complaint)]). The notebook is whole even if a cell is refused."""
    import jupytext

    notebook = jupytext.reads(text, fmt="md")
    notebook.metadata = dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    complaints = []
    for position, cell in enumerate(notebook.cells, 1):
        try:
            _finish(cell, position, points)
        except BadCell as error:
            complaints.append((cell, str(error)))
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = None, []
    return notebook, complaints


def write(notebook) -> bytes:
    """Return the one spelling of a notebook on disk, the same as nbgrader's."""
    return (nbformat.writes(notebook).rstrip("\n") + "\n").encode()


def lines_of(text: str, notebook) -> dict[str, int]:
    """Cell id -> the line of the text at which the cell's source begins."""
    lines, at = {}, 0
    for cell in notebook.cells:
        found = text.find(cell.source, at)
        at = max(found, at)
        lines[cell.id] = text.count("\n", 0, at) + 1
    return lines
