"""Run the cells of a lab in one namespace, as a notebook does, and first the cells above that a cell needs."""

import ast
import builtins
import contextlib
import html
import io
import linecache
import traceback
from dataclasses import dataclass, field
from itertools import groupby

MOST_CHARACTERS = 100_000  # of what a cell prints
FOLDER = "/lab/cells"  # the file that a cell's functions say they come from
NOT_WRITTEN = "This cell calls a function that you haven't written yet."


@dataclass(frozen=True)
class Shown:
    """Hold a cell's output as HTML for the page, and whether the cell ended with an error."""

    html: str = ""
    failed: bool = False


@dataclass
class Cells:
    """The cells that have run since Python started, and the names that they bound."""

    namespace: dict = field(default_factory=lambda: {"__name__": "__main__"})
    done: dict[str, str] = field(default_factory=dict)  # id -> the text that ran

    def run(self, name: str, source: str, above: list[tuple[str, str]]) -> Shown:
        """Run a cell. Cells above that bind a name it uses run before it, if they changed since they last ran."""
        for one, text in needed(source, above):
            if self.done.get(one) == text:
                continue
            before = self._ran(one, text)
            if before.failed:
                where = f"<p>A cell above ended with an error, and this cell needs it.</p>{before.html}"
                return Shown(where, failed=True)
        return self._ran(name, source)

    def _ran(self, name: str, source: str) -> Shown:
        if name in self.done and self.done[name] != source:
            for later in list(self.done)[list(self.done).index(name) :]:
                self.done.pop(later)  # later cells may have used the old text
        shown = self._execute(name, source)
        if shown.failed:
            self.done.pop(name, None)  # a part of the cell may have run
        else:
            self.done[name] = source
        return shown

    def _execute(self, name: str, source: str) -> Shown:
        file, printed = f"{FOLDER}/{name}.py", io.StringIO()
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                value = self._value(source, file)
                last = as_html(value)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                return Shown(_pre(printed.getvalue()) + _pre(said(error), "lab-error"), failed=True)
        return Shown(_pre(printed.getvalue()) + last)

    def _value(self, source: str, file: str):
        """Execute a cell and return the value of its last line, if that is an expression."""
        tree = ast.parse(source, file)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, file, "exec"), self.namespace)
        return eval(compile(ast.Expression(last.value), file, "eval"), self.namespace) if last else None


def as_html(value) -> str:
    if value is None:
        return ""
    drawn = getattr(value, "_repr_html_", None)
    return drawn() if callable(drawn) else _pre(repr(value))


def _pre(text: str, kind: str = "lab-printed") -> str:
    few = (
        text
        if len(text) <= MOST_CHARACTERS
        else f"{text[:MOST_CHARACTERS]}\n… cut after {MOST_CHARACTERS:,} characters"
    )
    return f'<pre class="{kind}">{html.escape(few)}</pre>' if few.strip() else ""


def said(error: BaseException) -> str:
    """An error with the lines of cells that led to it, without the page's own."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {type(error).__name__}: {error.msg}"
    rows = [row for row in traceback.extract_tb(error.__traceback__) if row.filename.startswith(FOLDER)]
    every = [f"{row.filename[len(FOLDER) + 1 : -3]}, line {row.lineno}: {row.line}" for row in rows]
    runs = [(line, len(list(run))) for line, run in groupby(every)]  # a recursion repeats its line
    lines = [line if many == 1 else f"{line} ({many} times)" for line, many in runs]
    words = f"{type(error).__name__}: {error}".removesuffix(": ")
    if isinstance(error, NotImplementedError):
        words += f"\n{NOT_WRITTEN}"
    if isinstance(error, NameError):
        words += "\nRun the cell that defines this name first."
    return "\n".join([*lines, words])


def needed(source: str, above: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the cells above that bind what a cell uses, and what those use in turn."""
    wanted, found, rows = _names(source)[1], set(), [(name, *_names(text)) for name, text in above]
    while more := {name for name, bound, _ in rows if bound & wanted} - found:
        found |= more
        wanted = wanted.union(*(used for name, _, used in rows if name in more))
    return [(name, text) for name, text in above if name in found]


def _names(source: str) -> tuple[set[str], set[str]]:
    """Return (names that a cell binds at its top, names that it uses anywhere)."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return set(), set()
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - set(dir(builtins))
    bound = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(one.asname or one.name).split(".")[0] for one in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    return bound, used
