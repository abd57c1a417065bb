"""Tell what each name of a kernel stands for (a pointer, a stride, a size, indices, a mask, values), by how it is made, so
that only names of a kind are tried in one another's place."""

import ast
from collections import Counter

POINTER, STRIDE, SIZE, CONSTANT, NUMBER = "pointer", "stride", "size", "constant", "number"  # parameters
WHOLE, INDEX, MASK, VALUE = "whole number", "index", "mask", "value"
MOST_IN_A_WORD = 65  # numbers up to 64 may count the codes of a word, or the bits
READS = (
    "load",
    "dot",
    "zeros",
    "full",
    "sum",
    "max",
    "min",
    "exp",
    "exp2",
    "log",
    "sqrt",
    "rsqrt",
    "erf",
    "abs",
)
KEEPS = ("to", "where", "maximum", "minimum", "cdiv", "trans", "reshape", "broadcast_to", "expand_dims")


class Names:
    """Hold the kind of each name of a kernel, and of a pointer the parameter that it is made from."""

    def __init__(self, function: ast.FunctionDef):
        self.kinds: dict[str, str] = {}
        self.of: dict[str, str] = {}
        self.made: dict[str, int] = {}  # the first line that makes a name
        self.uses = Counter(
            node.id
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        )
        self.used = set(self.uses)
        self.widths = widths(function)
        whole = (
            one.value
            for one in ast.walk(function)
            if isinstance(one, ast.Constant) and type(one.value) is int
        )
        self.numbers = [one for one in dict.fromkeys(whole) if 1 < one < MOST_IN_A_WORD]
        for one in (*function.args.args, *function.args.kwonlyargs):
            self.kinds[one.arg], self.made[one.arg] = parameter(one), 0
            if self.kinds[one.arg] == POINTER:
                self.of[one.arg] = one.arg.removesuffix("_ptr")
        for statement in function.body:
            self.learn(statement)

    def learn(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                for name, value in zip(names, values, strict=False):
                    self.store(name, value)
            case ast.Assign(targets=[target], value=value) | ast.AugAssign(target=target, value=value):
                self.store(target, value)
            case ast.AnnAssign(target=ast.Name(id=name)):  # NAME: tl.constexpr = ...
                self.keep(name, CONSTANT, statement.lineno)
            case ast.For(target=ast.Name(id=name), body=body):
                self.keep(name, WHOLE, statement.lineno)
                for one in body:
                    self.learn(one)
            case ast.If(body=body, orelse=rest) | ast.While(body=body, orelse=rest):
                for one in (*body, *rest):
                    self.learn(one)

    def store(self, target: ast.expr, value: ast.expr) -> None:
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        for one in names:
            if isinstance(one, ast.Name):
                self.keep(one.id, self.kind(value), target.lineno)
                if tensor := self.tensor(value):
                    self.of.setdefault(one.id, tensor)

    def keep(self, name: str, kind: str, line: int) -> None:
        self.kinds.setdefault(name, kind)
        self.made.setdefault(name, line)

    def kind(self, node: ast.expr) -> str:
        match node:
            case ast.Name(id=name):
                return self.kinds.get(name, VALUE)
            case ast.Constant(value=value):
                return WHOLE if isinstance(value, int) else NUMBER
            case ast.Compare():
                return MASK
            case ast.BinOp(left=left, right=right):
                return widest(self.kind(left), self.kind(right))
            case ast.UnaryOp(operand=operand) | ast.Subscript(value=operand):
                return self.kind(operand)
            case ast.IfExp(body=body, orelse=rest):
                return widest(self.kind(body), self.kind(rest))
            case ast.Call(func=ast.Attribute(value=of, attr=name), args=args):
                if name in ("program_id", "num_programs"):
                    return WHOLE
                if name == "arange":
                    return INDEX
                if name in READS:
                    return VALUE
                if name in KEEPS:
                    kinds = [self.kind(one) for one in (args[1:] if name == "where" else args)]
                    own = [] if getattr(of, "id", "") == "tl" else [self.kind(of)]
                    return widest(*(own or kinds or [VALUE]))
        return VALUE

    def tensor(self, node: ast.AST) -> str:
        """Return the tensor whose pointer an expression is made from, or an empty text."""
        found = (self.of[one.id] for one in ast.walk(node) if isinstance(one, ast.Name) and one.id in self.of)
        return next(found, "") if self.kind(node) == POINTER else ""

    def alike(self, name: str, line: int) -> list[str]:
        """Return the names of the same kind that are known on a line. A constant may be taken for a size."""
        kind = self.kinds.get(name)
        kinds = (SIZE, CONSTANT) if kind in (SIZE, CONSTANT) else (kind,)
        return [
            one for one, of in self.kinds.items() if one != name and of in kinds and self.made[one] < line
        ]

    def width_of_step(self, node: ast.Name, context: dict) -> set[str]:
        """Return how wide the blocks are that a loop steps over, if a name is its step and not one of these."""
        loop = context.get(context.get(node))
        steps = getattr(getattr(loop, "iter", None), "args", [])
        if not isinstance(loop, ast.For) or len(steps) != 3 or steps[2] is not node:
            return set()
        found = self.widths.get(getattr(loop.target, "id", ""), set())
        return set() if node.id in found else found


def widths(function: ast.FunctionDef) -> dict[str, set[str]]:
    """Return of each name the lengths of the ranges that are added to it, as BLOCK of k + tl.arange(0, BLOCK)."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(function):
        match node:
            case ast.BinOp(
                left=ast.Name(id=name),
                op=ast.Add(),
                right=ast.Call(func=ast.Attribute(attr="arange"), args=[_, ast.Name(id=width)]),
            ):
                found.setdefault(name, set()).add(width)
    return found


def parameter(one: ast.arg) -> str:
    if one.arg.endswith("_ptr"):
        return POINTER
    if one.arg.startswith("stride"):
        return STRIDE
    if one.annotation is not None:
        return CONSTANT
    return SIZE if one.arg.isupper() else NUMBER


ORDER = (POINTER, VALUE, MASK, INDEX, NUMBER, WHOLE, STRIDE, SIZE, CONSTANT)


def widest(*kinds: str) -> str:
    """Return the kind of what is computed from these. What is computed from sizes alone is a size."""
    first = min(kinds, key=ORDER.index)
    if first in (SIZE, CONSTANT):
        return SIZE
    return WHOLE if first == STRIDE and len(kinds) > 1 else first
