"""List small changes of a kernel's text, the likeliest cure of a failure first: other names before other operators, and
the lines that a report blames before those that make what these use."""

import ast
from collections.abc import Iterator
from difflib import SequenceMatcher

from grader.judge.repair import COMPARISONS, OPERATORS, Change, changed, shown

MOST_NAMES = 4  # that are tried in place of one
NEAR = 3  # steps from the blamed lines to what their names are made of
DTYPES = ("float16", "bfloat16", "float32")
FUNCTIONS = (
    ("max", "min", "sum"),
    ("maximum", "minimum"),
    ("exp", "exp2"),
    ("log", "log2"),
    ("argmax", "argmin"),
)


def changes(source: str, blamed: set[int]) -> Iterator[Change]:
    """Yield the source with one change each, in its kernels alone."""
    for function in kernels(source):
        context = parents(function)
        near = distances(function, blamed)
        found = [
            (near.get(node.lineno, NEAR + 1) + rank, node, words, new)
            for statement in function.body
            for node in ast.walk(statement)
            if hasattr(node, "lineno")
            for rank, words, new in alternatives(node, function)
        ]
        for _, node, words, new in sorted(found, key=lambda one: one[0]):
            if text := changed(source, node, new):
                yield Change(node.lineno, f"{words}{within(source, node, context)}", text)


def kernels(source: str) -> list[ast.FunctionDef]:
    return [one for one in ast.parse(source).body if isinstance(one, ast.FunctionDef) and one.decorator_list]


def parents(function: ast.FunctionDef) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}


def within(source: str, node: ast.AST, context: dict) -> str:
    """Say in which expression a node is, if it is only a name or a number."""
    around = context.get(node)
    if not isinstance(node, ast.Name | ast.Constant) or not isinstance(around, ast.expr):
        return ""
    code = ast.get_source_segment(source, around) or ""
    return f" in `{shown(code)}`" if code else ""


def distances(function: ast.FunctionDef, blamed: set[int]) -> dict[int, int]:
    """Return how many steps each line is from a blamed one: a line that makes a name is a step from the lines that use it."""
    makes: dict[str, set[int]] = {}
    uses: dict[int, set[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                makes.setdefault(node.id, set()).add(node.lineno)
            else:
                uses.setdefault(node.lineno, set()).add(node.id)
    found, edge = dict.fromkeys(blamed, 0), set(blamed)
    for step in range(1, NEAR + 1):
        names = set().union(*(uses.get(line, ()) for line in edge))
        edge = set().union(*(makes.get(name, ()) for name in names)) - found.keys()
        found |= dict.fromkeys(edge, step)
    return found


def alternatives(node: ast.AST, function: ast.FunctionDef) -> Iterator[tuple[int, str, ast.AST]]:
    """Yield what could be meant instead of a node: its rank among the changes of a line, words for it, and the new node."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            for number, other in enumerate(alike(name, node.lineno, function)):
                yield number, f"another name than `{name}`", ast.Name(other)
        case ast.Constant(value=bool() as value):
            yield 2, f"another value than {value}", ast.Constant(not value)
        case ast.Constant(value=int() as value):
            for other in dict.fromkeys((value + 1, value - 1, 2 * value, value // 2)):
                if other >= 0 and other != value:
                    yield 2, f"another number than {value}", ast.Constant(other)
        case ast.Compare(left=left, ops=[op], comparators=right):
            for other in COMPARISONS.get(type(op), ()):
                yield 1, "another comparison than " + quoted(node), ast.Compare(left, [other()], right)
        case ast.BinOp(left=left, op=op, right=right):
            for other in OPERATORS.get(type(op), ()):
                yield 2, "another operator in " + quoted(node), ast.BinOp(left, other(), right)
            for part in (left, right):
                yield 3, "leaving out a part of " + quoted(node), part
            if isinstance(op, ast.Sub | ast.FloorDiv | ast.Mod):
                yield 3, "the other order in " + quoted(node), ast.BinOp(right, op, left)
        case ast.AugAssign(target=target, op=ast.Add(), value=value):
            yield 3, "another operator in " + quoted(node), ast.AugAssign(target, ast.Sub(), value)
            yield 3, "another operator in " + quoted(node), ast.Assign([target], value, lineno=node.lineno)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield 2, "leaving out the sign of " + quoted(node), operand
        case ast.Subscript(value=value, slice=ast.Tuple(elts=parts)) if len(parts) == 2:
            turned = ast.Subscript(value, ast.Tuple(parts[::-1]))
            yield 2, "the other axis in " + quoted(node), turned
        case ast.Attribute(value=of, attr=name) if name in DTYPES:
            for other in DTYPES:
                if other != name:
                    yield 3, "another dtype than " + quoted(node), ast.Attribute(of, other)
        case ast.Call(func=ast.Attribute(value=of, attr=name), args=args, keywords=keywords):
            for other in others(name):
                yield (
                    2,
                    "another function in " + quoted(node),
                    ast.Call(ast.Attribute(of, other), args, keywords),
                )
            if name == "trans" and args:
                yield 1, "leaving out the function in " + quoted(node), args[0]
            if name == "load" and not any(one.arg == "other" for one in keywords):
                filled = [*keywords, ast.keyword("other", ast.Constant(0.0))]
                yield 2, "a value for other= in " + quoted(node), ast.Call(node.func, args, filled)
            if name == "dot" and len(args) > 1:
                swapped = ast.Call(node.func, [args[1], args[0], *args[2:]], keywords)
                yield 3, "the other order in " + quoted(node), swapped


def quoted(node: ast.AST) -> str:
    return f"`{shown(ast.unparse(node))}`"


def others(name: str) -> Iterator[str]:
    for group in FUNCTIONS:
        yield from (other for other in group if name in group and other != name)


def alike(name: str, line: int, function: ast.FunctionDef) -> list[str]:
    """Return the names that are likeliest to be meant instead: of the same sort, known on this line, spelled alike."""
    arguments = [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]
    made = [
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.lineno < line
    ]
    known = [one for one in dict.fromkeys([*arguments, *made]) if one != name and sort(one) == sort(name)]
    if name not in arguments and name not in made:
        return []
    return sorted(known, key=lambda one: unlike(one, name))[:MOST_NAMES]


def unlike(one: str, other: str) -> tuple[bool, float]:
    """Return how little two names resemble each other: M and N do, M and BLOCK_M don't."""
    return abs(len(one) - len(other)) > 1, -SequenceMatcher(None, one, other).ratio()


def sort(name: str) -> str:
    """Return what a name stands for, by its spelling: a size, a stride, a pointer, or something else."""
    if name.startswith("stride"):
        return "stride"
    return "size" if name.isupper() else "pointer" if name.endswith("_ptr") else "other"
