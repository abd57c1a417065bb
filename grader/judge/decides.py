"""What decides a question's grade, as one hash: what judges every question, its own row, and all that the row uses.

A hint, a sentence or another question of the topic decides nothing here; a point, a budget, a case or a formula does.
"""

import ast
import copy
import hashlib
from functools import cache
from pathlib import Path

from grader.places import ROOT

TOPICS = "grader.topics"
TELLS = {
    "hints",
    "asks",
    "where",
    "mistakes",
    "bonus",
    "notebook",
}  # of a row: what is said, not what is judged
SHARED = (
    *(
        f"grader/{room}"
        for room in ("judge", "questions", "machine", "jail", "compiler", "bench", "box/serve")
    ),
    "tilescope/front_end",
    "tilescope/machine",
    "tilescope/lowering.py",
)
SHOWN = {"report.py", "picture.py", "record.py", "decides.py"}  # how a verdict is shown decides none


@cache
def code_of(question_id: str) -> str:
    """A hash over everything that can change this question's grade, the same in every process."""
    return _hash(
        [
            shared_code().encode(),
            *(f"{key}{text}".encode() for key, text in sorted(row_of(question_id).items())),
        ]
    )


@cache
def shared_code() -> str:
    """A hash over what judges every question."""
    found = sorted(path for room in SHARED for path in _modules(ROOT / room))
    kept = [path for path in found if "tests" not in path.parts and path.name not in SHOWN]
    return _hash([path.relative_to(ROOT).as_posix().encode() + path.read_bytes() for path in kept])


def _modules(path: Path) -> list[Path]:
    return [path] if path.is_file() else list(path.rglob("*.py"))


def row_of(question_id: str) -> dict[tuple[str, str], str]:
    """The question's row and every definition that it reaches, as text by (module, name)."""
    module, row = next(_rows(question_id), (TOPICS, None))
    if row is None:
        raise LookupError(f"question must stand in a module of {TOPICS}, got {question_id!r}")
    row = copy.copy(row)
    row.keywords = [keyword for keyword in row.keywords if keyword.arg not in TELLS]
    found = {(module, question_id): ast.dump(row)}
    _follow(row, module, found)
    return found


def _rows(question_id: str):
    slug = question_id.split(".")[0]
    for path in sorted(ROOT.joinpath(*TOPICS.split("."), slug).glob("*.py")):
        module = f"{TOPICS}.{slug}.{path.stem}"
        for node in ast.walk(_tree(module)):
            if isinstance(node, ast.Call) and _named(node, "id") == question_id:
                yield module, node


def _hash(parts: list[bytes]) -> str:
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:32]


def _named(call: ast.Call, name: str):
    values = (k.value for k in call.keywords if k.arg == name)
    return next((value.value for value in values if isinstance(value, ast.Constant)), None)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _tree(module: str) -> ast.Module:
    tree = ast.parse(read(_file(module)))
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Name) and call.func.id == "Part":  # what a lab's table says of it
            call.keywords = [keyword for keyword in call.keywords if keyword.arg != "asks"]
    return tree


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
        elif isinstance(one, ast.Name) and one.id in defined:
            _add(module, one.id, found)


def _add(module: str, name: str, found: dict) -> None:
    """A definition of a topic's module, or of the module that it has the name from."""
    defined, imported = _definitions(module)
    if name in imported:
        return _import(*imported[name], None, found)
    if name in defined and (module, name) not in found:
        found[module, name] = ast.dump(defined[name])
        _follow(defined[name], module, found)
    return None


def _import(package: str, name: str, attribute: str | None, found: dict) -> None:
    if package.split(".")[0] == "kernels":  # formulas and references count as whole files
        module = f"{package}.{name}" if _file(f"{package}.{name}").exists() else package
        for path in (
            sorted(_file(module).parent.glob("*.py")) if "." in module[len("kernels.") :] else [_file(module)]
        ):
            if path.stem.partition("_")[0] in (
                "cost",
                "reference",
                "machines",
                "cases",
                "philox",
                "requests",
            ):
                found[path.relative_to(ROOT).as_posix(), "*"] = read(path)
    elif package.startswith(TOPICS):
        inner = _file(f"{package}.{name}").exists()
        module, wanted = (f"{package}.{name}", attribute) if inner else (package, name)
        if wanted:
            _add(module, wanted, found)
