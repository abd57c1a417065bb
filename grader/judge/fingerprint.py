"""Hash what decides a question's grade: the judge, the question's folder, and every file that it imports.

A hint, a sentence or another question's folder doesn't count. A budget, a case or a formula does. A part's points
don't count either, because they weigh a verdict without changing it.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

from grader.paths import ROOT

TOPICS = "grader/topics"
TELLS = {
    "hints",
    "asks",
    "where",
    "mistakes",
    "bonus",
    "notebook",
}  # words of a row for people, not judged
OF_THE_REPORT = ("mistakes.py", "shared_mistakes")  # in a topic, the sentences about wrong answers
SHARED = (
    *(
        f"grader/{room}"
        for room in ("judge", "questions", "machine", "jail", "compiler", "bench", "box/serve")
    ),
    "tilescope/front_end",
    "tilescope/machine",
    "tilescope/lowering.py",
)
SHOWN = {"report.py", "picture.py", "record.py", "fingerprint.py"}  # how a verdict is shown decides none


@cache
def code_of(question_id: str) -> str:
    """Hash everything that can change this question's grade. Every process gets the same hash."""
    found = {path.relative_to(ROOT).as_posix(): what_decides(path) for path in files_of(question_id)}
    return _hash([shared_code(), *(part for pair in sorted(found.items()) for part in pair)])


@cache
def shared_code() -> str:
    """Hash what judges every question."""
    found = sorted(path for room in SHARED for path in _modules(ROOT / room))
    kept = [path for path in found if "tests" not in path.parts and path.name not in SHOWN]
    return _hash([part for path in kept for part in (path.relative_to(ROOT).as_posix(), read(path))])


def files_of(question_id: str) -> set[Path]:
    """Return a question's own file and all that it imports, file by file, of its topic and of kernels/."""
    own = ROOT.joinpath(TOPICS, *question_id.split("."), "question.py")
    if not own.exists():
        raise LookupError(f"question must have a folder in {TOPICS}, got {question_id!r}")
    found, waiting = set(), [own]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += imported(path)
    return found


def imported(path: Path) -> list[Path]:
    """Return the files of this question's topic and of kernels/ that a file imports, those of the report left out."""
    names = set()
    for node in ast.walk(ast.parse(read(path))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
        elif isinstance(node, ast.Import):
            names |= {one.name for one in node.names}
    places = [
        ROOT.joinpath(*name.split(".")).with_suffix(".py")
        for name in names
        if name.startswith(("kernels.", "grader.topics."))
    ]
    return sorted(one for one in places if one.exists() and not one.name.startswith(OF_THE_REPORT))


def what_decides(path: Path) -> str:
    """Return a file's code without docstrings and comments, and a question's without its words for people."""
    tree = ast.parse(read(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            told = {"asks", "points"} if called == "Part" else TELLS if path.name == "question.py" else set()
            if called == "Part" and len(node.args) > 1:
                node.args[1] = ast.Constant(0)
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in told]
        elif isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:]
    return ast.dump(tree)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _modules(path: Path) -> list[Path]:
    return [path] if path.is_file() else list(path.rglob("*.py"))


def _hash(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
