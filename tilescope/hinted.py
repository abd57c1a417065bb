"""Find where a kernel's text gives a hint. The IR keeps a hint with the operation that made the number, not
with the call. A hint about the kernel's own argument has no operation, so only the text shows this hint."""

import ast
import linecache
from functools import cache

from .arrays import is_tensor, view_of
from .findings import Finding


def written_at(file: str, error: dict) -> int | None:
    """Return the line of the call that gave a false hint,
    or the operation's own line if the text doesn't show the call."""
    calls = calls_of(file).get(error.get("word"), [])
    return min((line for line in calls if line >= (error["line"] or 0)), default=error["line"])


@cache
def calls_of(file: str) -> dict[str, list[int]]:
    """The lines on which each name is called."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))  # of a notebook's cell too
    except (SyntaxError, ValueError):
        return {}
    found: dict[str, list[int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            found.setdefault(name, []).append(node.lineno)
    return found


def of_arguments(call) -> list[Finding]:
    """The arguments of a launch that tl.multiple_of says something false about."""
    given, constants = {name: value for name, value, _ in call.given}, constants_of(call)
    found = []
    for line, name, wanted in promised(call.file, call.lowered[0].fn.__code__.co_firstlineno):
        number = constants.get(wanted, wanted)
        value = given.get(name, constants.get(name))
        if is_tensor(value):
            value, what = (
                view_of(value).offset,
                f"{name} begins {view_of(value).offset} bytes into its memory",
            )
        else:
            what = f"{name} is {value}"
        if isinstance(number, int) and isinstance(value, int) and number > 0 and value % number:
            text = f"tl.multiple_of promises a multiple of {number}, and {what}"
            found.append(Finding("hint", text, call.kernel, call.file, line, programs=[[0, 0, 0]]))
    return found


def constants_of(call) -> dict:
    """The values of a kernel's constants by their names."""
    kernel, _, constants, *_ = call.lowered
    known = {name: getattr(value, "value", value) for name, value in kernel.fn.__globals__.items()}
    return known | {kernel.arg_names[place]: value for (place, *_), value in constants.items()}


@cache
def promised(file: str, first: int) -> list[tuple[int, str, int | str]]:
    """(line, parameter, multiple) of each tl.multiple_of of a parameter that every program comes by, in the kernel
    that begins at a line of a file."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return []
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    kernel = next((node for node in nodes if begins(node) <= first <= node.lineno), None)
    if kernel is None:
        return []
    names, found = {one.arg for one in kernel.args.args}, []
    for statement in kernel.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr):
            for node in ast.walk(statement):
                if row := promise(node, names):
                    found.append(row)
        names -= {
            node.id
            for node in ast.walk(statement)
            if isinstance(getattr(node, "ctx", None), ast.Store) and isinstance(node, ast.Name)
        }
    return found


def begins(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def promise(node, names: set[str]) -> tuple[int, str, int | str] | None:
    """Return the promise that tl.multiple_of(x, 16) makes about a parameter."""
    if (
        not isinstance(node, ast.Call)
        or getattr(node.func, "attr", getattr(node.func, "id", "")) != "multiple_of"
    ):
        return None
    given = [*node.args, *(one.value for one in node.keywords)]
    if len(given) != 2 or getattr(given[0], "id", "") not in names:
        return None
    wanted = given[1].elts[0] if isinstance(given[1], ast.List | ast.Tuple) and given[1].elts else given[1]
    wanted = wanted.id if isinstance(wanted, ast.Name) else getattr(wanted, "value", None)
    return (node.lineno, given[0].id, wanted) if isinstance(wanted, int | str) else None
