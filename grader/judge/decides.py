"""What decides a question's grade, as one hash: its own row and all that the row uses, followed through its topic's files.

A hint, a sentence or another question of the topic decides nothing here; a point, a budget, a case or a formula does.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

from grader.places import ROOT

TELLS = {
    "hints",
    "asks",
    "where",
    "mistakes",
    "bonus",
    "notebook",
}  # of a row: what is said, not what is judged
SHARED = ("judge", "questions", "machine", "jail", "compiler", "bench", "box/serve")
SHOWN = {"report.py", "picture.py", "record.py", "decides.py"}  # how a verdict is shown decides none


@cache
def shared_code() -> str:
    """A hash over what judges every question."""
    found = sorted(path for room in SHARED for path in (ROOT / "grader" / room).rglob("*.py"))
    kept = [path for path in found if "tests" not in path.parts and path.name not in SHOWN]
    return _hash(path.relative_to(ROOT).as_posix().encode() + path.read_bytes() for path in kept)


def code_of(question_id: str, module: str) -> str:
    """A hash over the row of a question in `module` and over every definition that it reaches."""
    found = {}
    tree = _tree(module)
    row = next(
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and _named(node, "id") == question_id
    )
    row.keywords = [keyword for keyword in row.keywords if keyword.arg not in TELLS]
    found[module, question_id] = ast.dump(row)
    _follow(row, module, found)
    return _hash(f"{key}{text}".encode() for key, text in sorted(found.items()))


def _hash(parts) -> str:
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:32]


def _named(call: ast.Call, name: str):
    return next(
        (k.value.value for k in call.keywords if k.arg == name and isinstance(k.value, ast.Constant)), None
    )


def _tree(module: str) -> ast.Module:
    return ast.parse(_file(module).read_text(encoding="utf-8"))


def _file(module: str) -> Path:
    plain = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    return plain if plain.exists() else ROOT.joinpath(*module.split("."), "__init__.py")


@cache
def _definitions(module: str) -> tuple[dict, dict]:
    """(what a module defines at its top, by name; where each imported name comes from)."""
    defined, imported = {}, {}
    for node in _tree(module).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)):
                defined[name] = node
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    return defined, imported


def _follow(node: ast.AST, module: str, found: dict) -> None:
    """Adds what a definition uses, and what that uses in turn."""
    defined, imported = _definitions(module)
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id in imported:
            _import(*imported[one.value.id], one.attr, found)
        elif isinstance(one, ast.Name) and one.id in imported:
            _import(*imported[one.id], None, found)
        elif isinstance(one, ast.Name) and one.id in defined and (module, one.id) not in found:
            found[module, one.id] = ast.dump(defined[one.id])
            _follow(defined[one.id], module, found)


def _import(package: str, name: str, attribute: str | None, found: dict) -> None:
    if package.startswith(
        "kernels"
    ):  # formulas and references count as whole files: they are read by all of a topic
        for module in (package, f"{package}.{name}"):
            if _file(module).exists():
                found[module, "*"] = _file(module).read_text(encoding="utf-8")
    elif package.startswith("grader.topics"):
        inner = _file(f"{package}.{name}").exists()
        module, wanted = (f"{package}.{name}", attribute) if inner else (package, name)
        definition = _definitions(module)[0].get(wanted) if wanted else None
        if definition is not None and (module, wanted) not in found:
            found[module, wanted] = ast.dump(definition)
            _follow(definition, module, found)
