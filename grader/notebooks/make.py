"""Make everything of the build in memory. The disk isn't touched here."""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from kernels import texts

from . import filled, labs, opening, pages, refusals, text

PICTURES_AND_DATA = {".svg", ".png", ".json", ".csv"}
SKIPPED = {".ipynb_checkpoints", "__pycache__"}


@dataclass
class Build:
    """The notebooks made, by path from the root, the refused ones, and the files that therefore stay."""

    files: dict[str, bytes] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    blocked: set[str] = field(default_factory=set)

    def refuse(self, path: str, message: str, line: int = 0, cell: str = "") -> None:
        place = f"{path}{f':{line}' if line else ''}"
        self.refused.append(f"{place}: {f'{cell}: ' if cell else ''}{message}")
        room, _, rest = path.partition("/")
        label = rest.partition("/")[0].partition(".")[0]
        rooms = ("solutions", "labs") if room != "course" else ("course",)
        self.blocked |= {f"{name}/{label}" for name in rooms}

    def blocks(self, name: str) -> bool:
        return "/".join(name.partition(".")[0].split("/")[:2]) in self.blocked

    def drop_blocked(self) -> None:
        self.files = {name: content for name, content in self.files.items() if not self.blocks(name)}


def _points(topic: str, notebook: str) -> text.Points:
    """Return the points that the table of questions gives a name of this notebook."""
    try:
        from grader import questions
    except ImportError:
        return lambda name: None
    table = questions.load()

    def points(name: str) -> float | None:
        question = table.get(f"{topic}.{name}")
        if not question or question.notebook != notebook:
            return None
        return 0 if question.bonus else question.points  # a bonus comes on top and isn't part of the total

    return points


def _references(root: Path) -> set[str]:
    from grader.tools.gates.references import functions

    return {name for path in root.glob("kernels/*/reference.py") for name in functions(path)}


def topic(path: Path) -> str:
    """course/05_flash_attention/a_online.md, solutions/05_flash_attention/kernel.md -> flash_attention"""
    label = path.parts[1].partition(".")[0] if path.parts[1][:1].isdigit() else path.stem
    return label.partition("_")[2] if label[:2].isdigit() else label


def sources(root: Path, topics: list[str]) -> list[Path]:
    """The text notebooks of some topics, or of all, as paths from the root."""
    found = [*root.glob("course/**/*.md"), *root.glob("solutions/*/*.md")]
    paths = sorted(path.relative_to(root) for path in found if path.name != "README.md")
    return [path for path in paths if not topics or topic(path) in topics]


def _convert(root: Path, path: Path, build: Build, references: set[str]):
    """Convert one text to one notebook. Collect every complaint about the text."""
    made = filled.fill((root / path).read_text(encoding="utf-8"), topic(path))
    unknown = list(made.complaints)
    if texts.in_folder(path):
        unknown += [(made.lines[line - 1], what) for line, what in pages.complaints(path, made.text)]
    for line, what in unknown:
        build.refuse(path.as_posix(), what, line)
    notebook, complaints = text.read(made.text, _points(topic(path), path.stem))
    complaints += [(cell, what) for cell in notebook.cells for what in refusals.in_cell(cell, references)]
    complaints += refusals.in_order(notebook)
    lines = text.lines_of(made.text, notebook)
    for cell, what in complaints:
        build.refuse(path.as_posix(), what, made.lines[lines[cell.id] - 1], cell.id)
    if texts.in_folder(path):
        pages.add_way(notebook, root, path, made.text)
    if path.parts[0] == "course":
        opening.open_lesson(notebook, path.as_posix())
    if not complaints and not unknown:
        build.files[path.with_suffix(".ipynb").as_posix()] = text.write(notebook)
    return notebook


def _release(root: Path, solutions: dict, build: Build) -> None:
    """Run nbgrader over a copy of the sound solutions and take its labs, pictures included."""
    folders = sorted({Path(name).parent for name in solutions if not build.blocks(name)})
    with tempfile.TemporaryDirectory(prefix="labs_") as name:
        copy = Path(name).resolve()
        for folder in folders:
            shutil.copytree(root / folder, copy / folder, ignore=shutil.ignore_patterns(*SKIPPED, "*.ipynb"))
        for path, notebook in solutions.items():
            if not build.blocks(path):
                (copy / path).write_bytes(text.write(notebook))
        try:
            labs.release(copy)
        except labs.NotReleased as error:
            build.refuse("solutions", f"nbgrader would not make the labs: {error}")
            build.blocked |= {f"labs/{folder.name}" for folder in folders}
        stubs = labs.stubs(copy)
        for path in sorted(path for path in copy.glob("labs/**/*") if path.is_file()):
            _take(path, path.relative_to(copy).as_posix(), solutions, stubs, build)


def _take(path: Path, name: str, solutions: dict, stubs: set[str], build: Build) -> None:
    """Accept one file of labs/ only when it cannot hold an answer."""
    build.files[name] = path.read_bytes()
    if path.suffix == ".ipynb":
        lab = nbformat.from_dict(nbformat.reader.reads(path.read_text(encoding="utf-8")))
        for cell, what in refusals.leaks(solutions[name.replace("labs/", "solutions/", 1)], lab, stubs):
            build.refuse(name, what, cell=cell.id)
    elif path.suffix not in PICTURES_AND_DATA:
        known = ", ".join(sorted(PICTURES_AND_DATA))
        build.refuse(name, f"a file of solutions/ among the labs. Only notebooks and {known} go there")


def make(root: Path, topics: list[str]) -> Build:
    """Build some topics, or all. A refused notebook is left out together with its lab."""
    build, paths, references = Build(), sources(root, topics), _references(root)
    made = {path.with_suffix(".ipynb").as_posix(): _convert(root, path, build, references) for path in paths}
    _release(root, {name: nb for name, nb in made.items() if name.startswith("solutions/")}, build)
    build.drop_blocked()
    return build
