"""The files of a project and what its modules import, read from the syntax tree."""

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from os.path import isfile
from pathlib import Path

PACKAGES = ("kernels", "widgets", "tilescope", "grader")
MADE_AT_THE_TOP = {".git", ".venv", "work", "site"}
MADE_ANYWHERE = {
    "__pycache__",
    ".pytest_cache",
    ".ruff_cache",
    ".ipynb_checkpoints",
}


def files(root: Path) -> list[Path]:
    """Return every file that git keeps or would keep, or every file but the usual leavings without git."""
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split("\0")
        return sorted(path for name in set(names) if name and (path := root / name).is_file())
    return sorted(p for p in root.rglob("*") if p.is_file() and not _made(p.relative_to(root).parts))


def _made(parts: tuple[str, ...]) -> bool:
    return parts[0] in MADE_AT_THE_TOP or not MADE_ANYWHERE.isdisjoint(parts)


def modules(root: Path, *rooms: str, tests: bool = False) -> list[Path]:
    """Return the Python files of some folders. Tests and pytest's own files are included only on request."""
    found = (path for room in rooms for path in sorted((root / room).rglob("*.py")))
    return [
        path
        for path in found
        if not _made(path.relative_to(root).parts)  # pip builds tilescope's wheel within its folder
        and (tests or not ("tests" in path.relative_to(root).parts or path.name == "conftest.py"))
    ]


BOXES_OWN = "grader/box/serve"  # on the path inside every box, so its modules are known there by bare names


def file_of_bare_name(path: Path, top: str, root: Path) -> Path | None:
    """Return the file that a module inside a box imports by a bare name, from its own folder or from the box."""
    found = [path.with_name(f"{top}.py")]
    if "inside" in path.parts:
        found.append(root / BOXES_OWN / f"{top}.py")
    return next((file for file in found if file.exists()), None)


FOR_ALL_TOPICS = {"tests", "site"}  # folders of widgets/ that serve every simulator


def is_topic(folder: Path) -> bool:
    """Return whether a folder of kernels/ or widgets/ belongs to one topic. kernels/bench and the like serve all
    topics."""
    formulas = (folder / "cost.py").exists() or (folder / "reference.py").exists()
    simulators = folder.parent.name == "widgets" and (folder / "__init__.py").exists()
    return folder.name not in FOR_ALL_TOPICS and (formulas or simulators)


def parse(path: Path) -> ast.Module:
    """Return a module's syntax tree, or an empty one if it doesn't parse, which ruff reports."""
    return parsed(path.read_text(encoding="utf-8"))


def parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])


@dataclass(frozen=True)
class Import:
    name: str  # absolute, with the imported name, such as kernels.gemm_tiling.cost
    line: int
    lazy: bool  # inside a function, or for a type checker only

    @property
    def top(self) -> str:
        return self.name.partition(".")[0]


def _guards_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def statements(node: ast.AST, lazy: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every statement below, and whether it runs only later. Imports and definitions are never inside an
    expression."""
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        for child in getattr(node, field, ()):
            inner = lazy or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) or _guards_types(child)
            yield child, inner
            yield from statements(child, inner)


def imports(path: Path, root: Path) -> list[Import]:
    """Return a module's imports, with relative names made absolute."""
    return list(_imports(path, root, path.stat().st_mtime_ns))


@lru_cache(maxsize=4096)
def _imports(path: Path, root: Path, changed: int) -> tuple[Import, ...]:
    return _imported(path.relative_to(root).parts[:-1], path.read_text(encoding="utf-8"))


@lru_cache(maxsize=4096)  # by the text, so that a copy of a module isn't parsed again
def _imported(package: tuple[str, ...], text: str) -> tuple[Import, ...]:
    found = []
    for node, lazy in statements(parsed(text)):
        if isinstance(node, ast.Import):
            found += [Import(alias.name, node.lineno, lazy) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *(node.module.split(".") if node.module else [])])
            found += [Import(f"{module}.{alias.name}", node.lineno, lazy) for alias in node.names]
    return tuple(found)


def files_of(name: str, root: Path) -> list[Path]:
    """Return the files that run when `name` is imported: each package on the way, then the module."""
    stem, found = str(root), []
    for part in name.split(
        "."
    ):  # asked for thousands of times a check, so a Path is made of what is there alone
        stem = f"{stem}/{part}"
        found += [Path(file) for file in (f"{stem}/__init__.py", f"{stem}.py") if isfile(file)]
    return found


def reached(start: Path, root: Path, lazy: bool = False, known: dict | None = None) -> dict[str, str]:
    """Return foreign top-level names that loading `start` loads, each with the importing line.

    With `lazy`, also return names that `start` itself imports only later, inside its functions. `known` belongs to a
    caller: each module's needs, looked up once for all starts in a tree that doesn't change meanwhile.
    """
    known = {} if known is None else known
    name = ".".join(start.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    todo, seen, foreign = files_of(name, root), set(), {}
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        if path not in known:
            known[path] = [
                (one, files_of(one.name, root) if one.top in PACKAGES else None)
                for one in imports(path, root)
            ]
        for one, needed in known[path]:
            if one.lazy and not (lazy and path == start):
                continue
            if needed is not None:
                todo += needed
            else:
                foreign.setdefault(one.top, f"{path.relative_to(root).as_posix()}:{one.line}")
    return foreign
