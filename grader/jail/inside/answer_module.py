"""Loads the source of an answer cell as a module of its own, with its lines kept for tracebacks."""

import ast
import linecache
import math
import sys
import traceback
import types

from .front_end_words import said_anew, unplaced

NAME = "answer"
FILE = "<answer>"


class AnswerError(Exception):
    """The answer's own fault, with its line in the cell."""

    def __init__(self, stage: str, message: str, line: int | None = None, kind: str = "error"):
        super().__init__(message)
        self.report = {"stage": stage, "kind": kind, "message": message[:2000], "line": line}


def load(source: str, prelude: dict) -> types.ModuleType:
    module = types.ModuleType(NAME)
    vars(module).update(prelude, math=math, __name__=NAME)
    sys.modules[NAME] = module
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    with blame("load"):
        exec(compile(source, FILE, "exec", dont_inherit=True), vars(module))
    return module


class blame:
    """Turn any exception of the answer into an AnswerError that names its line."""

    def __init__(self, stage: str, kernel: str = ""):
        self.stage, self.kernel = stage, kernel

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None or isinstance(error, AnswerError | MemoryError):
            return False
        chain = causes(error)
        line = next((found for one in reversed(chain) if (found := line_of(one))), None)
        where = f"kernel {self.kernel}: " if self.kernel else ""
        if (
            line is None
            and self.kernel
            and GAVE_UP in str(chain[-1])
            and (found := unplaced(lines_of(self.kernel)))
        ):
            line, said = found
            raise AnswerError(self.stage, f"{where}{said} (in `{code_at(line)}`)", line) from None
        raise AnswerError(self.stage, where + describe(chain, line), line, kind_of(chain, line)) from None


GAVE_UP = "error encountered during parsing"  # Triton's words when it refuses IR, without a line


def lines_of(kernel: str) -> list[tuple[int, str]]:
    """The lines of a function of the cell, with their numbers."""
    lines = linecache.getlines(FILE)
    tree = ast.parse("".join(lines))
    found = next((one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == kernel), None)
    return [(n, lines[n - 1].strip()) for n in range(found.lineno, found.end_lineno + 1)] if found else []


def causes(error: BaseException) -> list[BaseException]:
    """Return the error and, if Triton's front end raised it, its causes, the innermost last."""
    chain = [error]
    while is_triton(chain[-1]) and chain[-1].__cause__ is not None and len(chain) < 50:
        chain.append(chain[-1].__cause__)
    return chain


def kind_of(chain: list[BaseException], line: int | None) -> str:
    """The exception's name. Triton takes no raise, so that a kernel's untouched stub is known by its words."""
    untouched = is_triton(chain[0]) and code_at(line).startswith("raise NotImplementedError")
    return "NotImplementedError" if untouched else type(chain[-1]).__name__


def code_at(line: int | None) -> str:
    return linecache.getline(FILE, line).strip()[:120] if line else ""


def is_triton(error: BaseException) -> bool:
    return hasattr(error, "error_message") and hasattr(error, "node")


SILENT = {  # exceptions of plain Python that come without words
    StopIteration: ": next() found nothing; a second argument says what it gives then",
    AssertionError: ": what the assert asks for does not hold",
}


def describe(chain: list[BaseException], line: int | None) -> str:
    root = chain[-1]
    if isinstance(root, SystemExit):
        return "the answer ended its own process (exit or quit)"
    code = code_at(line)
    if is_triton(chain[0]) and code.startswith("print("):
        return (
            "print inside a kernel takes a label first: "
            'write tl.device_print("my label", value), and look at it with run()'
        )
    if is_triton(chain[0]) and "'MatMult'" in str(root):
        return f"Triton has no operator @: the product of two blocks is tl.dot(a, b) (in `{code}`)"
    text = str(root.error_message or "" if is_triton(root) else root).strip()
    kind = "" if is_triton(root) else f"{type(root).__name__}: "
    if not text and not is_triton(chain[0]):
        return f"{type(root).__name__}{SILENT.get(type(root), '')}" + f" (in `{code}`)" * bool(code)
    wanted = "" if text else demand(root)
    text = text or wanted
    said = said_anew(text, code) if is_triton(chain[0]) or "_semantic" in text else text
    if not text or said == wanted:
        wants = f": it wants {wanted}" if wanted else ""
        return f"Triton does not take `{code}`{wants}" if code else type(root).__name__
    kind = kind if said == text else ""
    return kind + said + (f" (in `{code}`)" if is_triton(chain[0]) and code else "")


def demand(root: BaseException) -> str:
    """Return the condition of an assertion without a message: its own line, in the front end's names."""
    frames = traceback.extract_tb(root.__traceback__) if isinstance(root, AssertionError) else []
    line = (frames[-1].line or "") if frames else ""
    return line.removeprefix("assert ")[:160] if line.startswith("assert ") else ""


def line_of(error: BaseException) -> int | None:
    """The last line of the answer's own cell that the error passed through."""
    if isinstance(error, SyntaxError) and error.filename == FILE:
        return error.lineno
    if is_triton(error) and hasattr(error.node, "lineno"):
        return _line_in_cell(error)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
    return lines[-1] if lines else None


def _line_in_cell(error) -> int | None:
    """Find the line in the cell. Triton counts lines from the function's own first, so look for that function."""
    whole, own = "".join(linecache.getlines(FILE)), (error.src or "").rstrip()
    start = whole.find(own) if own else -1
    return whole[:start].count("\n") + error.node.lineno if start >= 0 else None
