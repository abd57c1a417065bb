"""Read an answer's text for what its IR no longer shows: missing parentheses, and program ids that nothing uses."""

import ast

BITWISE = (ast.BitAnd, ast.BitOr)
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def missing_parentheses(source: str) -> str:
    """Return a sentence about the first comparison that takes in a neighbour's & or |, or an empty text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and any(taken_in(source, node, one) for one in sides(node)):
            code = ast.get_source_segment(source, node)
            return (
                f"line {node.lineno} of the cell: Python's & and | bind tighter than <, so `{' '.join(code.split())[:80]}` "
                "compares the result of & or |: put each comparison in parentheses, (a < x) & (b < y)"
            )
    return ""


def sides(node: ast.Compare) -> list[ast.expr]:
    return [node.left, *node.comparators]


def taken_in(source: str, node: ast.Compare, side: ast.expr) -> bool:
    """Return whether a side of a comparison is an & without parentheses that is almost certainly a slip, as in
    `bits & 1 == 0`."""
    if not isinstance(side, ast.BinOp) or not isinstance(side.op, BITWISE):
        return False
    parts = [side.left, side.right]
    if not any(isinstance(op, ORDERS) for op in node.ops) and not any(
        isinstance(part, ast.Compare) for part in parts
    ):
        return False
    if not any(isinstance(part, ast.Compare) for part in parts) and any(map(of_bits, parts)):
        return False  # bits & 255 > 40 compares some bits, and is meant
    lines = source.splitlines()
    before = lines[side.lineno - 1].encode()[: side.col_offset].decode().rstrip()
    after = lines[side.end_lineno - 1].encode()[side.end_col_offset :].decode().lstrip()
    return not (before.endswith("(") and after.startswith(")"))


def of_bits(side: ast.expr) -> bool:
    """Return whether a side of an & is plainly made of bits: a whole number, or something shifted."""
    if isinstance(side, ast.BinOp) and isinstance(side.op, BITWISE):
        return of_bits(side.left) or of_bits(side.right)
    return isinstance(side, ast.Constant) or (
        isinstance(side, ast.BinOp) and isinstance(side.op, ast.LShift | ast.RShift)
    )


def ids_asked(source: str, kernel: str) -> list[int]:
    """Return the axes of the grid on which a kernel's own text calls tl.program_id."""
    found = set()
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef) or function.name != kernel:
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "program_id":
                given = [*node.args, *(one.value for one in node.keywords if one.arg == "axis")]
                if given and isinstance(given[0], ast.Constant) and given[0].value in (0, 1, 2):
                    found.add(given[0].value)
    return sorted(found)


def loop_around(source: str, line: int | None) -> int:
    """Return the line of the innermost loop around a line, or around the only call of the function that it is in, or 0."""
    tree = ast.parse(source)
    functions = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    loops = [one for one in ast.walk(tree) if isinstance(one, ast.For | ast.While)]
    while line:
        around = [one.lineno for one in loops if one.lineno <= line <= one.end_lineno]
        if around:
            return max(around)
        inside = next((one.name for one in functions if one.lineno <= line <= one.end_lineno), "")
        calls = [
            one.lineno
            for one in ast.walk(tree)
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == inside
        ]
        line = calls[0] if len(calls) == 1 and calls[0] != line else 0
    return 0
