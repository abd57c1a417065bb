"""Where a kernel's text gives a hint: its IR keeps a hint with the operation that made the number, not with the call."""

import ast
import linecache
from functools import cache


def written_at(file: str, error: dict) -> int | None:
    """The line of the call that gave a false hint; the operation's own line where the text does not tell."""
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
