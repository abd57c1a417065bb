"""Find the cases of several ranks at which conditions of an answer on sizes go ways that no other case goes.

An answer may take another way for sizes that no case happens to have. Its text names them. So the sizes of each
candidate go through the comparisons in the text, without running it. What isn't made of sizes is unknown.
"""

import ast
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from grader.questions import Together

MOST, EACH = 8, 2  # cases of a check, and of those that go the same ways
LARGEST = 1 << 40
ARITHMETIC = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
ORDERS = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
CALLS = {"min": min, "max": max, "abs": abs, "int": int, "len": lambda shape: shape[0]}


@dataclass
class Conditions:
    """Hold the comparisons in one function of a cell."""

    source: str
    entry: str
    tests: list[ast.expr] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)  # that may be sizes

    def __post_init__(self):
        functions = [one for one in ast.parse(self.source).body if isinstance(one, ast.FunctionDef)]
        self.function = next((one for one in functions if one.name == self.entry), None)
        nodes = list(ast.walk(self.function)) if self.function else []
        self.tests = [one for one in nodes if isinstance(one, ast.Compare | ast.BoolOp | ast.BinOp)]
        found = {value(one, {}) for one in nodes if isinstance(one, ast.Constant | ast.BinOp)}
        self.numbers = sorted({int(one) for one in found if type(one) in (int, float) and one > 1})

    def ways(self, case: Together) -> set[tuple[int, bool]]:
        """Return which way each comparison goes on some rank of a case."""
        found = set()
        for rank, arguments in enumerate(case.each):
            known = self.sizes(rank, len(case.each), arguments)
            each = ((place, value(test, known)) for place, test in enumerate(self.tests))
            found |= {way for way in each if isinstance(way[1], bool)}
        return found

    def sizes(self, rank: int, ranks: int, arguments: tuple) -> dict:
        """Return what the function's names hold, as far as it is made of sizes."""
        comm, *names = [one.arg for one in self.function.args.args] or [""]
        known: dict = {f"{comm}.rank": rank, f"{comm}.ranks": ranks}
        for name, one in zip(names, arguments, strict=False):
            known[name] = one.shape if isinstance(one, np.ndarray) else one
        for name, node in assigned(self.function):
            known[name] = value(node, known) if node is not None else None
        return known


def assigned(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield each name that is assigned, in the order of the text, and what it is assigned, if that is plain."""
    nodes = [
        one for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    ]
    plain = {}
    for one in ast.walk(function):
        if isinstance(one, ast.Assign) and len(one.targets) == 1:
            left, right = one.targets[0], one.value
            both = isinstance(left, ast.Tuple) and isinstance(right, ast.Tuple)
            pairs = zip(left.elts, right.elts, strict=False) if both else [(left, right)]
            plain |= {id(name): node for name, node in pairs}
    for one in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        yield one.id, plain.get(id(one))


def value(node: ast.expr, known: dict):
    """Return a number, a truth or a shape, or None if it isn't made of sizes alone."""
    try:
        found = _value(node, known)
    except (ArithmeticError, TypeError, ValueError, LookupError):
        return None
    return None if isinstance(found, int | float) and abs(found) > LARGEST else found


def _value(node: ast.expr, known: dict):
    match node:
        case ast.Constant(value=int() | float() as plain):
            return plain
        case ast.Name(id=name):
            return known.get(name)
        case ast.Attribute(value=ast.Name(id=name), attr="shape"):
            return known.get(name)
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return known.get(f"{name}.{attribute}")
        case ast.Subscript(value=ast.Attribute(attr="shape") as shape, slice=axis):
            return value(shape, known)[value(axis, known)]
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in CALLS:
            return CALLS[name](*(value(one, known) for one in arguments))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            return ARITHMETIC[type(op)](value(left, known), value(right, known))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -value(operand, known)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not value(operand, known)
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [value(one, known) for one in (left, *others)]
            return (
                all(ORDERS[type(op)](*sides[i : i + 2]) for i, op in enumerate(ops))
                if None not in sides
                else None
            )
        case ast.BoolOp(op=op, values=parts):
            found, decides = [value(one, known) for one in parts], isinstance(op, ast.Or)
            return decides if decides in found else None if None in found else not decides
    return None


def telling(conditions: Conditions, usual: list[Together], candidates: list[Together]) -> list[Together]:
    """Return the candidates that go ways which no usual case goes, each time the one that goes most of them. Another
    goes each way too, since one case may not show what is wrong."""
    gone, picked = set().union(*map(conditions.ways, usual)), []
    each = [(one, conditions.ways(one) - gone) for one in candidates]
    for _ in range(EACH):
        rest = [pair for pair in each if not any(pair[0] is one for one in picked)]
        while rest and len(picked) < MOST:
            case, new = max(rest, key=lambda pair: len(pair[1]))
            if not new:
                break
            picked.append(case)
            rest = [(one, ways - new) for one, ways in rest]
    return picked
