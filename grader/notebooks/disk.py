"""Compare the build with the files on disk."""

from pathlib import Path

import nbformat

from .make import SKIPPED, Build


def strays(root: Path, build: Build) -> list[str]:
    """Return notebooks without a text, and anything in labs/ that no solution makes, but nothing of labs/ without
    solutions."""
    labs = root.glob("labs/**/*") if any(root.glob("solutions/*/*.md")) else ()
    found = [*root.glob("course/**/*.ipynb"), *root.glob("solutions/*/*.ipynb"), *labs]
    paths = (path.relative_to(root) for path in found if path.is_file())
    names = (path.as_posix() for path in paths if not SKIPPED & set(path.parts))
    return sorted(name for name in names if name not in build.files and not build.blocks(name))


def _difference(name: str, old: bytes, new: bytes) -> str:
    """Return where a file on disk first departs from its text's notebook."""
    if not name.endswith(".ipynb"):
        return "differs from its solution"
    try:
        was, now = (nbformat.reader.reads(data.decode()) for data in (old, new))
        cells = list(zip(was.cells, now.cells, strict=False))
    except Exception:  # the file isn't a notebook
        return "is not a notebook"
    for number, (cell, built) in enumerate(cells, 1):
        if cell.get("outputs") != built.get("outputs") or cell.get("execution_count"):
            return f"cell {number} ({built.get('id')}) has saved output"
        if cell != built:
            return f"cell {number} ({built.get('id')}) differs from its text"
    return "differs from its text in the number of cells or the notebook's metadata"


def compare(root: Path, build: Build) -> list[str]:
    """Every file on disk that is not what the build makes, to the byte."""
    found = []
    for name, content in sorted(build.files.items()):
        path = root / name
        old = path.read_bytes() if path.exists() else None
        if old != content:
            why = "is missing" if old is None else _difference(name, old, content)
            found.append(f"{name}: {why}. Run python -m grader build")
    return found


def put(root: Path, build: Build) -> list[str]:
    """Write what changed."""
    said = []
    for name, content in sorted(build.files.items()):
        path = root / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            said.append(f"wrote {name}")
    return said


def clear(root: Path, build: Build) -> list[str]:
    """Remove from labs/, which is only ever built, what is no longer made. A lab whose solutions aren't here stays."""
    gone = [
        name
        for name in strays(root, build)
        if name.startswith("labs/") and (root / _solutions(name)).is_dir()
    ]
    for name in gone:
        (root / name).unlink()
    return [f"removed {name}" for name in gone]


def _solutions(name: str) -> str:
    """labs/01_gemm_tiling/kernel.ipynb -> solutions/01_gemm_tiling"""
    return "/".join(["solutions", *name.split("/")[1:2]])
