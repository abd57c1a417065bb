"""List what a notebook of this course may not hold, one small rule each."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

MOST_STATEMENTS = 10
NETWORK = set("urllib urllib3 requests httpx http aiohttp socket ftplib wget huggingface_hub".split())
FREE_KERNEL_MODULES = {"reference", "cost", "cases"}  # what a notebook may read of a topic
SHARED_KERNEL_MODULES = {"machines", "cases"}
FOLDERS = "home|Users|root|tmp|work|mnt|content|workspace|opt|var|usr|etc"
MARKS = re.compile(r"(BEGIN|END) (SOLUTION|HIDDEN TESTS|MARK SCHEME)")

CODE_PATTERNS = (
    (re.compile(r"\b(pip3?|conda|apt|apt-get) install\b|^\s*%(pip|conda)\b", re.M), "an install"),
    (re.compile(r"^\s*!|^\s*%(sh|sx|system)\b|^%%(bash|sh|script|system)\b", re.M), "a shell command"),
    (re.compile(r"^\s*%cd\b|\bos\.chdir\b", re.M), "a change of folder. Paths start at the notebook"),
    (re.compile(r"\bsys\.path\b"), "sys.path, although make setup installs kernels, widgets and grader"),
    (re.compile(r"""["']https?://|\burlopen\b|\btorch\.hub\b|\bload_state_dict_from_url\b"""), "the network"),
)
ANY_PATTERNS = (
    (re.compile(r"data:image/|;base64,|[A-Za-z0-9+/]{200,}"), "a base64 picture. Link a file instead"),
    (re.compile(rf"(?<![\w/.:-])(/({FOLDERS})/\w|~/\w|[A-Z]:\\\w)"), "an absolute path"),
)


def nbgrader(cell) -> dict:
    return cell.metadata.get("nbgrader", {})


def _tree(source: str) -> ast.Module:
    """The cell's Python without its magic lines."""
    return ast.parse("\n".join("" if re.match(r"\s*[%!]", line) else line for line in source.split("\n")))


def _imports(tree: ast.Module) -> Iterator[str]:
    """Return every imported name with its module: 'kernels.gemm_tiling.cost'."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _bad_import(name: str) -> str | None:
    parts = name.split(".")
    if parts[0] in NETWORK:
        return f"import of {parts[0]}: the network"
    if parts[0] in {"course", "solutions", "labs"}:
        return f"import of {name}: nothing imports notebooks"
    if parts[0] != "kernels":
        return None
    shared = len(parts) > 1 and parts[1] in SHARED_KERNEL_MODULES
    topic = len(parts) > 2 and parts[2] in FREE_KERNEL_MODULES
    return None if shared or topic else f"import of {name}: only a topic's reference, cost and cases are open"


def _statements(tree: ast.Module) -> int:
    """Return how much a reader has to read. Imports and docstrings cost nothing."""
    free = (ast.Import, ast.ImportFrom)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not isinstance(node, free)]
    texts = [n for n in nodes if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)]
    return len(nodes) - len(texts)


def _code(cell, references: set[str]) -> Iterator[str]:
    yield from (message for pattern, message in CODE_PATTERNS if pattern.search(cell.source))
    if cell.source.startswith("%%"):
        return
    try:
        tree = _tree(cell.source)
    except SyntaxError as error:
        yield f"Python that does not parse (line {error.lineno} of the cell: {error.msg})"
        return
    yield from filter(None, map(_bad_import, _imports(tree)))
    if nbgrader(cell).get("solution"):
        return
    if (count := _statements(tree)) > MOST_STATEMENTS:
        yield f"{count} statements of helper code, where at most {MOST_STATEMENTS} are allowed. The rest belongs in a module"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in references:
            yield f"a second {node.name}(). Import it from its reference.py"


def _solution_marks(cell) -> Iterator[str]:
    for what in ("SOLUTION", "HIDDEN TESTS", "MARK SCHEME"):
        begins, ends = cell.source.count(f"BEGIN {what}"), cell.source.count(f"END {what}")
        if begins != ends:
            yield f"{begins} BEGIN {what} and {ends} END {what}"
    if "BEGIN SOLUTION" in cell.source and not nbgrader(cell).get("solution"):
        yield "a solution outside a cell marked answer= or manual=, which would reach the students"


def in_cell(cell, references: set[str] = frozenset()) -> Iterator[str]:
    """Everything wrong within one cell."""
    yield from (message for pattern, message in ANY_PATTERNS if pattern.search(cell.source))
    if cell.get("attachments"):
        yield "an attached picture. Link a file instead"
    if cell.get("outputs") or cell.get("execution_count"):
        yield "saved output"
    yield from _solution_marks(cell)
    if cell.cell_type == "code":
        yield from _code(cell, references)


def in_order(notebook) -> Iterator[tuple[object, str]]:
    """Yield (cell, complaint) for ids that are not unique and for answers without their check after them."""
    seen = set()
    graded = [cell for cell in notebook.cells if nbgrader(cell)]
    for cell, after in pairwise([*graded, None]):
        if cell.id in seen:
            yield cell, f"the name {cell.id} a second time"
        seen.add(cell.id)
        if nbgrader(cell) and cell.cell_type == "code" and not nbgrader(cell)["grade"]:
            if nbgrader(cell)["solution"] and (after is None or after.id != f"check_{cell.id}"):
                yield cell, f"an answer without its check. Put check={cell.id} after it"
        if cell.id.startswith("check_") and cell.id.removeprefix("check_") not in seen:
            yield cell, f"a check without its answer. Put answer={cell.id.removeprefix('check_')} before it"


def leaks(solution, lab, stubs: set[str]) -> Iterator[tuple[object, str]]:
    """(cell, complaint) for each line of a lab that the solution does not show outside its answers."""
    allowed = set(stubs)
    for cell in solution.cells:
        inside = nbgrader(cell).get("solution") and "BEGIN SOLUTION" not in cell.source
        for line in cell.source.split("\n"):
            if mark := MARKS.search(line):
                inside = mark[1] == "BEGIN"
            elif not inside:
                allowed.add(line.strip())
    for cell in lab.cells:
        for line in cell.source.split("\n"):
            if MARKS.search(line) or line.strip() not in allowed:
                yield cell, f"a line of the solution: {line.strip()[:60]!r}"
                break
