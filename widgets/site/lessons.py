"""Read a lesson's text into the parts of its page, which are prose, code with its output, and simulators."""

import ast
import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from kernels import texts

SHOWS = ("show", "widgets.show")
SPELLED = {"gemm": "GEMM", "moe": "MoE"}  # short names, while other words stay words
WAY = "way"  # the tag of cells that the build adds


@dataclass(frozen=True)
class Shown:
    """Hold one `show(...)` of a lesson, with the simulator and its inputs."""

    name: str
    inputs: dict
    predict: bool = False


@dataclass(frozen=True)
class Cell:
    kind: str  # 'markdown' or 'code'
    text: str
    shown: Shown | None = None  # a simulator at the end of a code cell
    folded: bool = False  # code that only sets up or formats


def _literal(call: ast.Call) -> dict | None:
    """Return the keywords of a call if all are plain values. A measurement is left out, it belongs to one machine."""
    try:
        pairs = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg != "measured"}
    except ValueError:
        return None
    return None if None in pairs else pairs


def _code(source: str) -> Cell:
    """Return a code cell, with the `show(...)` of its last line taken out of the code."""
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
class Text:
    """Hold a text of the course, or the notebook built from it, in which numbers are filled in."""

    path: Path  # course/01_gemm_tiling.ipynb, course/06_sampling_fusion/a_costs.ipynb

    @property
    def name(self) -> str:
        """Return its path in course/, such as 01_gemm_tiling or 06_sampling_fusion/a_costs."""
        return f"{self.path.parent.name}/{self.path.stem}" if texts.in_folder(self.path) else self.path.stem

    @cached_property
    def _notebook(self):
        import jupytext

        return jupytext.read(self.path, fmt=self.path.suffix[1:])

    @cached_property
    def cells(self) -> list[Cell]:
        """Return its cells, without what the build adds to lead from page to page."""
        return [
            replace(_code(cell.source), folded=cell.metadata.get("jupyter", {}).get("source_hidden", False))
            if cell.cell_type == "code"
            else Cell(cell.cell_type, cell.source)
            for cell in self._notebook.cells
            if WAY not in cell.metadata.get("tags", ())
        ]

    @cached_property
    def minutes(self) -> int:
        """Return the minutes of reading that the build counted, or 0 for pages outside a lesson's folder."""
        found = re.search(r"about (\d+) min", self._notebook.cells[0].source)
        return int(found[1]) if found and texts.in_folder(self.path) else 0

    @cached_property
    def title(self) -> str:
        first = re.search(r"^# (.+)$", self.cells[0].text, re.M)
        return first[1].strip() if first else self.path.stem.replace("_", " ")


@dataclass(frozen=True)
class Lesson:
    name: str  # 06_sampling_fusion
    pages: tuple[Text, ...]

    @property
    def slug(self) -> str:
        return self.name.partition("_")[2]

    @property
    def in_pages(self) -> bool:
        """Return whether it is a folder of pages."""
        return "/" in self.pages[0].name

    @property
    def title(self) -> str:
        return spelled(self.slug) if self.in_pages else self.pages[0].title

    @property
    def cells(self) -> list[Cell]:
        return [cell for page in self.pages for cell in page.cells]


def spelled(slug: str) -> str:
    """'moe_routing' -> 'MoE routing'"""
    words = slug.split("_")
    first = SPELLED.get(words[0], words[0].capitalize())
    return " ".join([first, *(SPELLED.get(word, word) for word in words[1:])])


def lessons(course: Path) -> list[Lesson]:
    """Return all lessons as they were built."""
    found = texts.lessons(course)
    return [Lesson(name, tuple(map(built, pages))) for name, pages in found.items()]


def built(text: Path) -> Text:
    """Return the notebook of a text, and refuse a text that was not built."""
    notebook = text.with_suffix(".ipynb")
    if not notebook.is_file():
        raise ValueError(f"a lesson must be built before it is read, got no {notebook}; run make build")
    return Text(notebook)


def references(course: Path) -> tuple[Text, Text]:
    """Return the pages outside any lesson, which are the terms and the list of where each source is taught."""
    return built(course / "glossary.md"), built(course / "from_the_sources.md")
