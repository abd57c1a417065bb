"""Pack the modules that a page's Python imports, found by their imports, and their tables into one zip."""

import ast
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

from widgets.registry import places

ROOT = Path(__file__).parents[2]
PACKAGES = ("kernels", "widgets")
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # a zip of the same texts is the same zip


def _imported(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Return the imports that run when a module is loaded, not those inside its functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imported(child)


def _names(path: Path) -> Iterator[str]:
    for node in _imported(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.level:
            raise ValueError(f"{path.name}: imports must be absolute, got a relative one; name its package")
        else:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files_of(name: str, root: Path) -> list[Path]:
    """Return the packages on the way to a module, and the module."""
    parts = name.split(".")
    stems = (root.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1))
    both = (path for stem in stems for path in (stem / "__init__.py", stem.with_suffix(".py")))
    return [path for path in both if path.is_file()]


def modules(root: Path = ROOT, more: tuple[str, ...] = ()) -> list[Path]:
    """Return every file of ours that the simulators, and `more` modules, load in a page, as paths from the root."""
    starts = ["widgets.site.inside", *more, *(f"widgets.{slug}.{name}" for name, slug in places().items())]
    todo, seen = [path for name in starts for path in _files_of(name, root)], set()
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            ours = (name for name in _names(path) if name.partition(".")[0] in PACKAGES)
            todo += [found for name in ours for found in _files_of(name, root)]
    return sorted(path.relative_to(root) for path in seen)


def beside(root: Path = ROOT) -> list[Path]:
    """Return the tables that a module of ours reads from its own folder."""
    folders = {(root / path).parent / "tables" for path in modules(root)}
    return sorted(path.relative_to(root) for folder in folders for path in folder.glob("*.json"))


def zipped(root: Path = ROOT) -> bytes:
    texts = {path.as_posix(): (root / path).read_bytes() for path in (*modules(root), *beside(root))}
    return archive(texts)


def archive(files: dict[str, bytes]) -> bytes:
    """Zip files by their names, with the same bytes from every build."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for name in sorted(files):
            made.writestr(zipfile.ZipInfo(name, LONG_AGO), files[name], zipfile.ZIP_DEFLATED)
    return held.getvalue()


def members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as held:
        return {name: held.read(name) for name in held.namelist()}
