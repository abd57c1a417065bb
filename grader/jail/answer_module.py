"""Loads the source of an answer cell as a module of its own, with its lines kept for tracebacks."""

import linecache
import math
import sys
import traceback
import types

NAME = "answer"
FILE = "<answer>"


class AnswerError(Exception):
    """The answer's own fault, with the place in its cell."""

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
    """Turns any exception of the answer into an AnswerError that says which of its lines it came from."""

    def __init__(self, stage: str):
        self.stage = stage

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None or isinstance(error, AnswerError) or getattr(error, "report", None) is not None:
            return False
        root = error
        while root.__cause__ is not None and type(root).__name__ in ("InterpreterError", "CompilationError"):
            root = root.__cause__
        raise AnswerError(
            self.stage, describe(error, root), line_of(error) or line_of(root), type(root).__name__
        ) from None


def describe(error: BaseException, root: BaseException) -> str:
    if isinstance(root, SystemExit):
        return "the answer ended its own process (exit or quit)"
    text = str(error if type(error).__name__ == "CompilationError" else root).strip() or "no message"
    return f"{type(root).__name__}: {text}"


def line_of(error: BaseException) -> int | None:
    """The last line of the answer's own cell that the error passed through."""
    if isinstance(error, SyntaxError) and error.filename == FILE:
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
    return lines[-1] if lines else None
