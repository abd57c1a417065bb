"""Find one small change that makes a numpy answer right. Name its line and what to change there, but not the cure
itself.

Nothing is guessed. Each change runs in the jail, and one is named only if it makes all public calls right.
"""

import ast
import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from grader.box.warm import JailTrouble
from grader.jail import host
from grader.jail.protocol import BadReply
from grader.judge import returned
from grader.judge.failed import Failed
from grader.judge.numpy_evidence import NumpyEvidence, encoded_calls
from grader.questions import Call

MOST_S = 4.0  # of processor time for all that is tried
MOST_WALL_S = 20.0
MOST_CHANGES = 1_500
AT_ONCE = 40  # changes a process
FIRST_CALLS = 3  # that a change has to make right before it is tried on the others
LONGEST = 60  # characters of code in a sentence

OPERATORS = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div, ast.Mod),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE),
    ast.NotEq: (ast.Eq,),
}
FUNCTIONS = (
    ("min", "max", "sum", "mean", "len"),
    ("minimum", "maximum"),
    ("argmin", "argmax"),
    ("floor", "ceil", "rint", "round", "int"),
    ("repeat", "tile"),
    ("any", "all"),
    ("zeros", "ones"),
    ("cumsum", "cumprod"),
    ("startswith", "endswith"),
    ("bisect_left", "bisect_right"),
    ("isfinite", "isnan"),
)
AXES = {"axis": (0, 1, -1)}
REDUCED = AXES | {"keepdims": (True,)}
ARGUMENTS = {  # what a function is told beside its array, and the values that may be meant
    **dict.fromkeys(("packbits", "unpackbits"), {"bitorder": ("little",)}),
    **dict.fromkeys(("sum", "mean", "max", "min"), REDUCED),
    **dict.fromkeys(("argmax", "argmin", "cumsum", "concatenate", "stack", "repeat"), AXES),
    **dict.fromkeys(("argsort", "sort"), {"kind": ("stable",)} | AXES),
    "searchsorted": {"side": ("left", "right")},
    **dict.fromkeys(("ravel", "flatten", "reshape"), {"order": ("F",)}),
}


METHODS, BUILTINS = ("mean", "rint", "floor", "ceil"), ("len", "int")  # what has no other form


@dataclass(frozen=True)
class Change:
    """Hold the answer with one change, by its line, the words for it, and the whole source."""

    line: int
    words: str
    source: str


def sentence(evidence: NumpyEvidence, calls: list[Call]) -> str:
    """Name the first change that makes all these calls right, or return an empty text."""
    try:
        return _sentence(evidence, calls)
    except (Failed, JailTrouble, BadReply, SyntaxError, RecursionError):
        return ""


def _sentence(evidence: NumpyEvidence, calls: list[Call]) -> str:
    began, wanted = time.monotonic(), wanted_of(evidence, calls)
    found, spent = list(changes(evidence.source, evidence.question.entry))[:MOST_CHANGES], 0.0
    for start in range(0, len(found), AT_ONCE):
        some = found[start : start + AT_ONCE]
        rights, seconds = right(evidence, [one.source for one in some], calls[:FIRST_CALLS], wanted)
        spent += seconds
        for change in (one for one, is_right in zip(some, rights, strict=True) if is_right):
            (all_right,), seconds = right(evidence, [change.source], calls, wanted)
            spent += seconds
            if all_right:
                return (
                    f"line {change.line}: {change.words} makes all {len(calls)} calls right that were tried"
                )
        if spent > MOST_S or time.monotonic() - began > MOST_WALL_S:
            break
    return ""


def wanted_of(evidence: NumpyEvidence, calls: list[Call]) -> list:
    return [evidence.question.reference(*copy.deepcopy(call.args)) for call in calls]


def right(
    evidence: NumpyEvidence, sources: list[str], calls: list[Call], wanted: list
) -> tuple[list[bool], float]:
    """Return of each source whether it is right on all calls, and the processor time that this took."""
    question = evidence.question
    encoded, arrays = encoded_calls(calls)
    outcome, rows = host.call_variants(sources, question.entry, encoded, arrays, level=evidence.level)
    if outcome.error:
        return [False] * len(sources), outcome.cpu_s
    return [
        row is not None
        and not any(
            returned.of_call(question, call.args, one, want, outcome.arrays)
            for call, one, want in zip(calls, row, wanted, strict=False)
        )
        for row in rows
    ], outcome.cpu_s


# ---- all small changes


def changes(source: str, entry: str, alone: bool = False) -> Iterator[Change]:
    """Yield the answer with one change each, in all its functions or the entry alone: those that explain most first, and of
    these the smallest part first, because a larger one may hold a second fault that cancels the first."""
    tree = ast.parse(source)
    functions = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    functions = [one for one in functions if not alone or one.name == entry]
    nodes = [node for function in functions for node in ast.walk(function) if hasattr(node, "lineno")]
    nodes.sort(key=lambda node: sum(1 for _ in ast.walk(node)))
    # where something is stored in an array: what is stored there is more likely wrong than the array
    into = {
        id(one.value) for one in nodes if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store)
    }
    nodes = [node for node in nodes if id(node) not in into]
    made = next((assigned(one) for one in functions if one.name == entry), {})
    looped = any(isinstance(one, ast.For | ast.While) for one in nodes)
    names = list(made)
    plain = operators, constants, called, arguments, others(names), indexed(nodes, names), repeated(nodes)
    # a sign passes through products, and may cancel there
    later = sorted(nodes, key=lambda node: -node.lineno)
    later.sort(key=lambda node: sum(1 for _ in ast.walk(node)))
    seen = {source}
    rest = named(names), more, beside(names), bounds(names)
    if alone:  # what packs weights has many names, and lays out axes
        makers = *plain[:4], order, axes, signs, operands, named(names), *plain[4:], *rest
    else:
        makers = *plain, signs, operands, order, axes, *rest
    for maker in makers:
        for node in later if maker is signs else nodes:
            for words, new in maker(node):
                if isinstance(new, ast.Name) and made.get(new.id, 0) >= node.lineno and not looped:
                    continue  # nothing has made it yet
                text = changed(source, node, new)
                if text and text not in seen:
                    seen.add(text)
                    code = ast.get_source_segment(source, node) or ""
                    yield Change(node.lineno, words.format(shown(code)), text)
        if maker is axes and not alone:
            yield from unturned(source)


def unturned(source: str) -> Iterator[Change]:
    """Leave out every .T of a text that has several, because one turns back what another has turned."""
    tree = ast.parse(source)
    turned = [one for one in ast.walk(tree) if isinstance(one, ast.Attribute) and one.attr == "T"]
    lines = sorted({one.lineno for one in turned})

    class Without(ast.NodeTransformer):
        def visit_Attribute(self, node):
            self.generic_visit(node)
            return node.value if node.attr == "T" else node

    if len(turned) > 1:
        where = f" there and in line {', '.join(map(str, lines[1:]))}" if lines[1:] else ""
        yield Change(lines[0], f"leaving out .T{where}", ast.unparse(Without().visit(tree)))


def assigned(function: ast.FunctionDef) -> dict[str, int]:
    """Return the names of a function with the first line that makes each."""
    made = {one.arg: 0 for one in function.args.args}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            made[node.id] = min(node.lineno, made.get(node.id, node.lineno))
    return made


def read(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)


def changed(source: str, node: ast.AST, new: ast.AST) -> str:
    """Return the source with one node replaced by another, or an empty text if that can't be written."""
    lines = source.encode().split(b"\n")
    first, last = node.lineno - 1, node.end_lineno - 1
    text = ast.unparse(ast.fix_missing_locations(new)).encode()
    inside = b"(" + text + b")" if isinstance(new, ast.expr) else text
    after = lines[last][node.end_col_offset :]
    lines[first : last + 1] = [lines[first][: node.col_offset] + inside + after]
    return b"\n".join([*lines[: first + 1], *[b""] * (last - first), *lines[first + 1 :]]).decode()


def shown(code: str) -> str:
    line = " ".join(code.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 2] + " …"


def operators(node) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.BinOp):
        for op in OPERATORS.get(type(node.op), ()):
            yield "another operator in `{}`", ast.BinOp(node.left, op(), node.right)
        if isinstance(node.op, ast.FloorDiv | ast.Div):
            up = ast.UnaryOp(
                ast.USub(), ast.BinOp(ast.UnaryOp(ast.USub(), node.left), ast.FloorDiv(), node.right)
            )
            yield "another rounding of `{}`", up
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for op in COMPARISONS.get(type(node.ops[0]), ()):
            yield "another comparison in `{}`", ast.Compare(node.left, [op()], node.comparators)


def order(node) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add | ast.Mult | ast.BitAnd | ast.BitOr):
        yield "the other order in `{}`", ast.BinOp(node.right, node.op, node.left)
    elif isinstance(node, ast.IfExp):
        yield "the other order in `{}`", ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "cumsum" and node.args:
        back = ast.Slice(step=ast.UnaryOp(ast.USub(), ast.Constant(1)))
        turned = ast.Call(node.func, [ast.Subscript(node.args[0], back), *node.args[1:]], node.keywords)
        yield "the sums from the other end in `{}`", ast.Subscript(turned, back)


def axes(node) -> Iterator[tuple[str, ast.AST]]:
    """Turn a matrix, or keep the axis that a mean or a sum takes away."""
    if isinstance(node, ast.Attribute) and node.attr == "T":
        yield "leaving out .T in `{}`", node.value
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        yield "a transposed factor in `{}`", ast.BinOp(node.left, node.op, ast.Attribute(node.right, "T"))
        yield "a transposed factor in `{}`", ast.BinOp(ast.Attribute(node.left, "T"), node.op, node.right)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        of, name = node.func.value, node.func.attr
        if name in ("mean", "sum", "max", "min") and node.keywords and not node.args:
            yield "leaving out the function in `{}`", of
            beside = ast.Tuple([ast.Slice(), ast.Constant(None)])
            yield f"each row's own in place of the {name} in `{{}}`", ast.Subscript(of, beside)
        elif name == "reshape" and len(node.args) == 2:
            other = ast.Call(node.func, node.args[::-1], node.keywords)
            yield "the other order of the axes in `{}`", ast.Attribute(other, "T")


def constants(node) -> Iterator[tuple[str, ast.AST]]:
    if not isinstance(node, ast.Constant):
        return
    if isinstance(node.value, bool):
        yield "another value than {}", ast.Constant(not node.value)
    elif isinstance(node.value, int | float):
        for value in dict.fromkeys(
            [node.value + 1, node.value - 1, 2 * node.value, node.value / 2, -node.value]
        ):
            new = int(value) if isinstance(node.value, int) and value == int(value) else value
            yield (
                "another number than {}",
                ast.Constant(new) if new >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-new)),
            )


def called(node) -> Iterator[tuple[str, ast.AST]]:
    if not isinstance(node, ast.Call):
        return
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    for group in FUNCTIONS:
        for other in group if name in group else ():
            if other == name or (
                isinstance(node.func, ast.Name) and other in ("mean", "rint", "floor", "ceil")
            ):
                continue
            function = copy.copy(node.func)
            if isinstance(function, ast.Attribute):
                function.attr = other
            else:
                function.id = other
            yield "another function in `{}`", ast.Call(function, node.args, node.keywords)
    if name in ("sort", "argsort", "sorted"):
        yield (
            "the opposite order of `{}`",
            ast.Subscript(node, ast.Slice(step=ast.UnaryOp(ast.USub(), ast.Constant(1)))),
        )
    if name in ("int", "floor", "round", "trunc"):
        ceil = ast.Call(ast.Attribute(ast.Name("math"), "ceil"), node.args, [])
        yield "another rounding in `{}`", ceil
    if node.args and isinstance(node.func, ast.Name | ast.Attribute):
        yield "leaving out the function in `{}`", node.args[0]


def arguments(node) -> Iterator[tuple[str, ast.AST]]:
    """Change what a function of numpy is told beside its array: an axis, a side, an order."""
    if not isinstance(node, ast.Call):
        return
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    given = {one.arg: one.value for one in node.keywords}
    for argument, values in ARGUMENTS.get(name, {}).items():
        for value in values:
            if getattr(given.get(argument), "value", None) != value:
                told = given | {argument: ast.Constant(value)}
                keywords = [ast.keyword(one, to) for one, to in told.items()]
                yield f"another {argument}= in `{{}}`", ast.Call(node.func, node.args, keywords)
    for left_out in given:
        keywords = [one for one in node.keywords if one.arg != left_out]
        yield f"leaving out {left_out}= in `{{}}`", ast.Call(node.func, node.args, keywords)
    if len(node.args) == 2:
        yield "the other order of what `{}` is given", ast.Call(node.func, node.args[::-1], node.keywords)


def signs(node) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield "leaving out the sign in `{}`", node.operand
    elif (
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.step is not None
    ):
        yield "leaving out the index of `{}`", node.value
    elif isinstance(node, ast.Call | ast.BinOp) or read(node):
        yield "another sign of `{}`", ast.UnaryOp(ast.USub(), node)


def operands(node) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.BinOp):
        yield "leaving out a part of `{}`", node.left
        yield "leaving out a part of `{}`", node.right
    elif isinstance(node, ast.BoolOp):
        for place in range(len(node.values)):
            rest = [*node.values[:place], *node.values[place + 1 :]]
            yield "leaving out a part of `{}`", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        yield (
            "another operator in `{}`",
            ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values),
        )
    elif isinstance(node, ast.IfExp):
        yield "leaving out a part of `{}`", node.body
        yield "leaving out a part of `{}`", node.orelse
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield "leaving out the index of `{}`", node.value
        if not isinstance(node.slice, ast.Slice | ast.Tuple):
            yield "the index alone in place of `{}`", node.slice


def more(node) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.BinOp | ast.Call) or read(node):
        for op, number in ((ast.Mult, 2), (ast.Div, 2), (ast.Add, 1), (ast.Sub, 1)):
            yield "a number more beside `{}`", ast.BinOp(node, op(), ast.Constant(number))
    if isinstance(node, ast.BinOp | ast.Call):
        yield "1 minus `{}`, or the like,", ast.BinOp(ast.Constant(1), ast.Sub(), node)
        for name in ("ceil", "sqrt"):
            yield (
                f"a math.{name}, or the like, round `{{}}`",
                ast.Call(ast.Attribute(ast.Name("math"), name), [node], []),
            )


def others(names: list[str]) -> Callable:
    def of_names(node) -> Iterator[tuple[str, ast.AST]]:
        if read(node) and node.id in names:
            for name in names:
                if name != node.id:
                    yield "another name than `{}`", ast.Name(name)

    return of_names


def named(names: list[str]) -> Callable:
    def of_numbers(node) -> Iterator[tuple[str, ast.AST]]:
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1:
            for name in names:
                yield "a name in place of {}", ast.Name(name)

    return of_numbers


def indexed(nodes: list[ast.AST], names: list[str]) -> Callable:
    """Take a place in one array for what another one holds there, and a permutation for its inverse."""
    sorting = ("argsort", "lexsort")
    orders = {
        target.id
        for one in nodes
        if isinstance(one, ast.Assign)
        for target in one.targets
        if isinstance(target, ast.Name)
        and any(getattr(of, "attr", "") in sorting for of in ast.walk(one.value))
    }

    def of_names(node) -> Iterator[tuple[str, ast.AST]]:
        inverse = ast.Call(ast.Attribute(ast.Name("np"), "argsort"), [node], [])
        if read(node) and node.id in orders:
            yield "the inverse of the order `{}`", inverse
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in sorting:
            yield "the inverse of the order `{}`", inverse
        if read(node) and node.id in names:
            for name in names:
                if name != node.id:
                    yield (
                        "what another name holds at `{0}`, in place of `{0}`,",
                        ast.Subscript(ast.Name(name), node),
                    )

    return of_names


def repeated(nodes: list[ast.AST]) -> Callable:
    """Take a name for an expression that an earlier line makes this name from."""
    made = {}
    for one in nodes:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                for part in ast.walk(value):
                    if isinstance(part, ast.BinOp | ast.Call | ast.IfExp | ast.Subscript):
                        made.setdefault(ast.unparse(part), []).append((one.lineno, name))

    def of_parts(node) -> Iterator[tuple[str, ast.AST]]:
        if isinstance(node, ast.BinOp | ast.Call | ast.IfExp | ast.Subscript):
            for line, name in made.get(ast.unparse(node), ()):
                if line < node.lineno:
                    yield f"a name in place of `{{}}`, which line {line} computes, too,", ast.Name(name)

    return of_parts


def beside(names: list[str]) -> Callable:
    """Multiply, add or wrap by one more name."""

    def of_names(node) -> Iterator[tuple[str, ast.AST]]:
        for name in names if isinstance(node, ast.BinOp) else ():
            yield "a remainder of `{}`", ast.BinOp(node, ast.Mod(), ast.Name(name))
        for name in names if read(node) and node.id in names else ():
            for op, what in ((ast.Mult, "factor"), (ast.Div, "factor"), (ast.Add, "term"), (ast.Sub, "term")):
                if what == "factor" or name != node.id:
                    yield f"a {what} more beside `{{}}`", ast.BinOp(node, op(), ast.Name(name))

    return of_names


def bounds(names: list[str]) -> Callable:
    def of_names(node) -> Iterator[tuple[str, ast.AST]]:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
            for name in names:
                for bound in ("max", "min") if name != node.id else ():
                    call = ast.Call(ast.Name(bound), [node, ast.Name(name)], [])
                    yield f"{bound}(…, another name) in place of `{{}}`", call

    return of_names
