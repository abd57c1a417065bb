"""One reference a topic, in kernels/<slug>/reference.py, and no second one anywhere."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from .tree import PACKAGES, modules, parse

SECOND = re.compile(
    r"^_?(reference|ref|naive|golden)_|_(reference|ref|naive|golden)$|^(reference|naive|golden)$"
)


def functions(path: Path) -> list[str]:
    """The public functions of a module."""
    tree = parse(path)
    return [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]


def _computes_in_numpy(path: Path) -> bool:
    """A formula of cost.py and a kernel's launcher may bear the name of what they cost and compute."""
    tops = {
        name.partition(".")[0]
        for node in ast.walk(parse(path))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        )
    }
    return "numpy" in tops and "triton" not in tops


def _definitions(path: Path) -> list[ast.FunctionDef]:
    return [n for n in ast.walk(parse(path)) if isinstance(n, ast.FunctionDef)]


def check(root: Path) -> list[str]:
    owners, said = defaultdict(list), []
    for folder in sorted(path for path in (root / "kernels").glob("*/") if (path / "cases.py").exists()):
        if not (folder / "reference.py").exists():
            said.append(f"kernels/{folder.name}: must have a reference.py, got none; write it in numpy")
    for path in sorted((root / "kernels").glob("*/reference.py")):
        for name in functions(path):
            owners[name].append(path)
    for name, paths in sorted(owners.items()):
        if len(paths) > 1:
            places = ", ".join(path.relative_to(root).as_posix() for path in paths)
            said.append(f"{name}() must be defined once, got {places}; keep it in one topic or kernels/")
    for path in modules(root, *PACKAGES, tests=True):
        where = path.relative_to(root).as_posix()
        if path.name == "reference.py" and path.parent.parent == root / "kernels":
            continue
        numpy = _computes_in_numpy(path)
        for node in _definitions(path):
            if numpy and node.name in owners:
                home = owners[node.name][0].relative_to(root).as_posix()
                said.append(f"{where}:{node.lineno}: a second {node.name}(); import it from {home}")
            elif (
                SECOND.search(node.name)
                and not node.name.startswith("test_")
                and not path.stem.startswith("cost")
            ):
                said.append(f"{where}:{node.lineno}: {node.name}(): references stand in reference.py only")
    return said
