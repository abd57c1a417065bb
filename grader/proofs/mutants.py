"""Make wrong answers from a right one, each by a single small change of its syntax tree."""

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
IN_ORDER = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod)
RENAMED = {
    "max": "min",
    "min": "max",
    "maximum": "minimum",
    "minimum": "maximum",
    "sum": "max",
    "exp": "exp2",
    "exp2": "exp",
    "float32": "float16",
    "cumsum": "cumprod",
    "sqrt": "exp",
    "rsqrt": "sqrt",
}
DROPPED = ("mask", "other", "axis", "bitcast")
BODIES = (ast.FunctionDef, ast.For, ast.While)
OPTIONS = ("num_warps", "num_stages")  # of a step. They change no value, so only the clock can judge them


@dataclass(frozen=True)
class Mutant:
    """`name` says which words changed and how, and stays the same while the cell around them changes."""

    name: str
    line: int
    tree: ast.AST
    number: int  # of the changed node, as ast.walk counts
    change: Callable

    @property
    def source(self) -> str:
        mutated = copy.deepcopy(self.tree)
        self.change(next(islice(ast.walk(mutated), self.number, None)))
        return ast.unparse(ast.fix_missing_locations(mutated))


def mutants(source: str) -> list[Mutant]:
    tree, names, found = ast.parse(source), Counter(), []
    options, again = _options(tree), _assigned_again(tree)
    for number, node in enumerate(ast.walk(tree)):
        left_out = _statements(node, again[id(node)]) if isinstance(node, BODIES) else ()
        for what, change in [] if id(node) in options else [*_changes(node), *left_out]:
            name = _name(what, node, change)
            names[name] += 1
            numbered = f"{name} ({names[name]})" if names[name] > 1 else name
            found.append(Mutant(numbered, getattr(node, "lineno", 0), tree, number, change))
    return found


def _name(what: str, node: ast.AST, change: Callable) -> str:
    if what.startswith("left out"):
        return what
    changed = copy.deepcopy(node)
    change(changed)
    return f"{what}: {ast.unparse(node)} -> {ast.unparse(changed)}"[:160]


def _options(tree: ast.AST) -> set[int]:
    """Nodes that say how many warps and stages a step gets."""
    pairs = [
        pair for n in ast.walk(tree) if isinstance(n, ast.Dict) for pair in zip(n.keys, n.values, strict=True)
    ]
    chosen = [value for key, value in pairs if isinstance(key, ast.Constant) and key.value in OPTIONS]
    return {id(node) for value in chosen for node in ast.walk(value)}


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable]]:
    """Return (description, function that changes it) for one node."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        other = COMPARED[type(node.ops[0])]
        yield "comparison", lambda n: n.ops.__setitem__(0, other())
    if isinstance(node, ast.BinOp):
        yield from _binary(node)
    if isinstance(node, ast.AugAssign) and type(node.op) in COMPUTED:
        yield "operator", lambda n: setattr(n, "op", COMPUTED[type(n.op)]())
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield from _constant(node)
    if isinstance(node, ast.Attribute) and node.attr in RENAMED and isinstance(node.value, ast.Name):
        yield "function", lambda n: setattr(n, "attr", RENAMED[n.attr])
    if isinstance(node, ast.Call):
        yield from _call(node)
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and not isinstance(node.operand, ast.Constant)
    ):
        yield "sign", lambda n: setattr(n, "op", ast.UAdd())


def _binary(node: ast.BinOp) -> Iterator[tuple[str, Callable]]:
    if type(node.op) in COMPUTED:
        yield "operator", lambda n: setattr(n, "op", COMPUTED[type(n.op)]())
    if isinstance(node.op, IN_ORDER):
        yield "swapped", lambda n: n.__dict__.update(left=n.right, right=n.left)
    if isinstance(node.op, ast.Mult | ast.Add | ast.BitAnd | ast.Div | ast.Sub):
        yield "right side dropped", lambda n: n.__dict__.update(right=_neutral(n.op))


def _neutral(op: ast.operator) -> ast.AST:
    """Return the value that leaves the other side as it is."""
    value = -1 if isinstance(op, ast.BitAnd) else 1 if isinstance(op, ast.Mult | ast.Div) else 0
    return ast.Constant(True) if isinstance(op, ast.BitAnd) else ast.Constant(value)


def _constant(node: ast.Constant) -> Iterator[tuple[str, Callable]]:
    if isinstance(node.value, bool):
        return
    yield "plus one", lambda n: setattr(n, "value", n.value + 1)
    if isinstance(node.value, float) and node.value:
        yield "a little more", lambda n: setattr(n, "value", n.value * 1.05)
    if node.value not in (0, 1, 2):
        yield (
            "halved",
            lambda n: setattr(n, "value", n.value // 2 if isinstance(n.value, int) else n.value / 2),
        )


def _call(node: ast.Call) -> Iterator[tuple[str, Callable]]:
    name = ast.unparse(node.func)
    for position, keyword in enumerate(node.keywords):
        if keyword.arg in DROPPED:
            yield f"no {keyword.arg}", lambda n, i=position: n.keywords.pop(i)
    if name in ("tl.where", "where"):
        yield "branches swapped", lambda n: n.args.__setitem__(slice(1, 3), [n.args[2], n.args[1]])
    if name in ("tl.dot", "dot") and len(node.args) == 3:
        yield "no accumulator", lambda n: n.args.pop(2)
    if name in ("tl.zeros", "zeros"):
        yield "ones", _ones
    if name.endswith("cdiv") and len(node.args) == 2:
        yield "rounded down", _rounded_down
    if name == "tl.program_id":
        yield "another axis", lambda n: setattr(n.args[0], "value", (n.args[0].value + 1) % 2)


def _ones(node: ast.Call) -> None:
    node.func = ast.Attribute(ast.Name("tl", ast.Load()), "full", ast.Load())
    node.args.insert(1, ast.Constant(1.0))


def _rounded_down(node: ast.Call) -> None:
    """cdiv(a, b) becomes cdiv(a - b + 1, b), which is a // b."""
    a, b = node.args
    node.args[0] = ast.BinOp(ast.BinOp(a, ast.Sub(), copy.deepcopy(b)), ast.Add(), ast.Constant(1))


def _statements(node: ast.AST, again: set[str]) -> Iterator[tuple[str, Callable]]:
    """Leave out statements that are calls, or assignments to a name that has an earlier value."""
    for position, statement in enumerate(node.body):
        called = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        if called or isinstance(statement, ast.AugAssign) or _targets(statement) & again:
            yield (
                "left out: " + ast.unparse(statement)[:80],
                lambda n, i=position: n.body.__setitem__(i, ast.Pass()),
            )


def _assigned_again(tree: ast.AST) -> dict[int, set[str]]:
    """For each statement with a body the names that its function assigns more than once, or takes."""
    found = {}
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        times = Counter(a.arg for a in function.args.args)
        times.update(name for n in ast.walk(function) for name in _targets(n))
        again = {name for name, count in times.items() if count > 1}
        found |= {id(n): again for n in ast.walk(function) if isinstance(n, BODIES)}
    return found


def _targets(statement: ast.AST) -> set[str]:
    assigned = (
        statement.targets
        if isinstance(statement, ast.Assign)
        else [statement.target]
        if isinstance(statement, ast.AugAssign)
        else []
    )
    return {n.id for target in assigned for n in ast.walk(target) if isinstance(n, ast.Name)}
