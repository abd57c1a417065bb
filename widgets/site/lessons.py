"""A lesson's text -> the parts of its page: prose, code with what it prints, and simulators in their places."""

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

SHOWS = ("show", "widgets.show")


@dataclass(frozen=True)
class Shown:
    """One `show(...)` of a lesson: the simulator and what it was given."""

    name: str
    inputs: dict
    predict: bool = False


@dataclass(frozen=True)
class Cell:
    kind: str  # 'markdown' or 'code'
    text: str
    shown: Shown | None = None  # a simulator that stands at the end of a code cell


def _literal(call: ast.Call) -> dict | None:
    """The keywords of a call, if all of them are plain values; a measurement belongs to one machine."""
    try:
        pairs = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg != "measured"}
    except ValueError:
        return None
    return None if None in pairs else pairs


def _code(source: str) -> Cell:
    """A code cell, with the `show(...)` of its last line taken out of the code."""
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a magic of IPython
        return Cell("code", source)
    last = body[-1] if body else None
    call = last.value if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) else None
    if not call or ast.unparse(call.func) not in SHOWS or len(call.args) != 1:
        return Cell("code", source)
    name, inputs = call.args[0], _literal(call)
    if not isinstance(name, ast.Constant) or inputs is None:
        return Cell("code", source)
    shown = Shown(name.value, inputs, bool(inputs.pop("predict", False)))
    return Cell("code", "\n".join(source.split("\n")[: last.lineno - 1]).strip(), shown)


@dataclass(frozen=True)
class Lesson:
    path: Path  # course/01_gemm_tiling.md

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def slug(self) -> str:
        return self.name.partition("_")[2]

    @cached_property
    def cells(self) -> list[Cell]:
        import jupytext

        notebook = jupytext.read(self.path, fmt="md")
        return [
            _code(cell.source) if cell.cell_type == "code" else Cell(cell.cell_type, cell.source)
            for cell in notebook.cells
        ]

    @cached_property
    def title(self) -> str:
        first = re.search(r"^# (.+)$", self.cells[0].text, re.M)
        return first[1].strip() if first else self.slug.replace("_", " ")


def lessons(course: Path) -> list[Lesson]:
    return [Lesson(path) for path in sorted(course.glob("[0-9][0-9]_*.md"))]


def glossary(course: Path) -> Lesson:
    return Lesson(course / "glossary.md")
