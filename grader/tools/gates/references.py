"""One reference a topic, in kernels/<slug>/reference.py, and no second one anywhere."""

import ast
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .tree import PACKAGES, modules, parse, parsed, statements

SECOND = re.compile(
    r"^_?(reference|ref|naive|golden)_|_(reference|ref|naive|golden)$|^(reference|naive|golden)$"
)


def functions(path: Path) -> list[str]:
    """Return the public functions of a module."""
    tree = parse(path)
    return [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]


@dataclass(frozen=True)
class Defined:
    """One module's definitions, and whether it computes in numpy. A formula of cost.py may share its name with the
    kernel's launcher."""

    functions: tuple[
        tuple[str, str, int], ...
    ]  # name, first argument, line, without functions that only ask the reference
    numpy: bool


def _first(node: ast.FunctionDef) -> str:
    return next((argument.arg for argument in [*node.args.posonlyargs, *node.args.args]), "")


def _asks(node: ast.FunctionDef, text: str) -> bool:
    """Return whether a function hands its question on to the reference of its own name. Look at the text first."""
    return f".{node.name}" in text and any(
        isinstance(one, ast.Attribute) and one.attr == node.name for one in ast.walk(node)
    )


def _defined(path: Path) -> Defined:
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4096)
def _read(path: Path, changed: int) -> Defined:
    return _defined_in(path.read_text(encoding="utf-8"))


@lru_cache(maxsize=4096)  # by the text, so that a copy of a module isn't parsed again
def _defined_in(text: str) -> Defined:
    functions, tops = [], set()
    for node, _ in statements(parsed(text)):
        if isinstance(node, ast.FunctionDef):
            if not _asks(node, text):
                functions.append((node.name, _first(node), node.lineno))
        elif isinstance(node, ast.Import):
            tops |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            tops.add((node.module or "").partition(".")[0])
    return Defined(tuple(functions), "numpy" in tops and "triton" not in tops)


def check(root: Path) -> list[str]:
    owners, said = defaultdict(list), []
    for folder in sorted(path for path in (root / "kernels").glob("*/") if (path / "cases.py").exists()):
        if not (folder / "reference.py").exists():
            said.append(f"kernels/{folder.name}: must have a reference.py, got none. Write it in numpy")
    for path in sorted((root / "kernels").glob("*/reference.py")):
        for name in functions(path):
            owners[name].append(path)
    for name, paths in sorted(owners.items()):
        if len(paths) > 1:
            places = ", ".join(path.relative_to(root).as_posix() for path in paths)
            said.append(f"{name}() must be defined once, got {places}. Keep it in one topic or kernels/")
    firsts = {
        name: {f[1] for path in paths for f in _defined(path).functions if f[0] == name}
        for name, paths in owners.items()
    }
    for path in modules(root, *PACKAGES, tests=True):
        where = path.relative_to(root).as_posix()
        if path.name == "reference.py" and path.parent.parent == root / "kernels":
            continue
        found = _defined(path)
        for name, first, line in found.functions:
            if found.numpy and first in firsts.get(name, ()):
                home = owners[name][0].relative_to(root).as_posix()
                said.append(f"{where}:{line}: a second {name}(). Import it from {home}")
            elif SECOND.search(name) and not name.startswith("test_") and not path.stem.startswith("cost"):
                said.append(f"{where}:{line}: {name}(): references belong in reference.py only")
    return said
