"""Follow an answer's own conditions on sizes, strides and dtypes, without running its Python.

An answer may take another way for sizes that no case happens to have. Its text names them. So a small interpreter of
Python's syntax goes through launch(p) and its kernels for a case, with the facts that launch(p) gets, and records which
way each condition goes. What it doesn't understand is unknown, and both ways of such a condition are followed.
"""

import ast
import math
import operator
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import islice

from grader.jail.protocol import ToldCase, launch_facts

STEPS = 6000  # of the syntax tree, for one case
OF_A_PROGRAM = 1500  # for one of its programs
TURNS = 64  # of a loop
SOME_TURNS = 12  # of a longer loop that has conditions on its turn, besides those at numbers of the cell
DEPTH = 8  # of calls
LARGEST = 1 << 62
LENGTH = 4096  # of a text or a list
Branches = frozenset  # of ways: (where in the text, value)


class Unknown:
    """Stand for a value that the text alone doesn't tell."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = Unknown()
NUMBER = (int, float)
TEXT_OR_LIST = (str, list)
READ = (ast.Constant, ast.Attribute)  # expressions that compute nothing
PLAIN = (int, float, str, bool, type(None))
BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
UNARY = {ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
ORDERS = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
CALLS = {
    "cdiv": lambda a, b: -(-a // b),
    "next_power_of_2": lambda n: 1 << max(0, n - 1).bit_length(),
    **{one.__name__: one for one in (min, max, abs, int, bool, float, str, len, sum, any, all, round, range)},
    **{one.__name__: one for one in (list, tuple, set, sorted, divmod, enumerate, zip, reversed)},
    **{one.__name__: one for one in (hex, oct, bin, ord, chr, repr)},
    **{n: getattr(math, n) for n in ("ceil", "floor", "log2", "log", "sqrt", "isqrt", "prod", "gcd")},
    "static_range": range,
    "minimum": min,
    "maximum": max,
    "where": lambda test, one, other: one if test else other,
}
METHODS = (
    *("bit_length", "get", "keys", "values", "items", "index", "count", "startswith", "endswith", "find"),
    *("zfill", "rjust", "ljust", "strip", "lstrip", "rstrip", "split", "join", "upper", "lower", "isdigit"),
)
MEETING = "min", "max", "minimum", "maximum", "cdiv"
FOLLOWED = {"program_id", "num_programs", "to", "arange", *METHODS, *CALLS}
WIDE = "zfill", "rjust", "ljust"  # make a text as long as a number says
RAISED = (
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    MemoryError,
)  # by a cell's own arithmetic
TYPES = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "int32": "i32",
    "int64": "i64",
    "int8": "i8",
}
SPEC = 4  # characters of a format
DIGITS = 6  # of a size that a text begins
DIGITS_OF_ALL = 24  # of a text that is a number


class Returned(Exception):
    """End a function, with its value."""


class TooLong(Exception):
    """End the walk of a case that takes too many steps."""


@dataclass(frozen=True)
class Facts:
    """Hold what is known of an object's attributes: of the p of launch(p), of a communicator, of an array."""

    known: dict = field(hash=False)


@dataclass(frozen=True)
class Span:
    """Hold the least and the largest number of a block whose numbers go from one to the other, as tl.arange makes it."""

    least: int
    most: int


@dataclass
class Reader:
    """Read one cell once, for many cases."""

    source: str
    entry: str

    def __post_init__(self):
        try:
            body = ast.parse(self.source).body
        except SyntaxError:
            body = []
        self.functions = {one.name: one for one in body if isinstance(one, ast.FunctionDef)}
        self.plain = [one for one in body if isinstance(one, ast.Assign)]
        self.named: list[int] = []  # the numbers, once somebody asked for them

    @property
    def conditional(self) -> bool:
        """Return whether anything in the cell may depend on a number of its own."""
        return any(
            isinstance(node, ast.If | ast.IfExp | ast.While | ast.Compare | ast.BoolOp | ast.Dict)
            for one in self.functions.values()
            for node in ast.walk(one)
        )

    def branches(self, told: ToldCase, programs: Callable = lambda grid: (), weights: list = ()) -> dict:
        """Return the ways that conditions go for a case, as far as launch(p) and its kernels tell, each with the program
        that goes it: one of `programs` of the first kernel's grid, or None for a way that all go. `weights` are the
        arguments of the cell's own function on weights."""
        walk = Walk(self, programs)
        walk.through(Facts(launch_facts(**told.plain())))
        if told.packs:
            walk.prepare(told.packs.entry, weights)
        return walk.found

    def gaps(self, told: ToldCase) -> dict:
        """Return by place how far apart numbers are that launch(p) and its kernels compare in their first and last programs,
        and the remainders of divisions."""
        walk = Walk(self, lambda grid: grid and sorted({(0, 0, 0), tuple(n - 1 for n in grid)}) or ())
        walk.through(Facts(launch_facts(**told.plain())))
        return walk.gaps

    def branches_of_rank(self, rank: int, ranks: int, arguments: tuple) -> Branches:
        """Return the way that each condition goes on one rank, by its number and the shapes of its arguments."""
        comm = Facts({"rank": rank, "ranks": ranks})
        walk = Walk(self)
        walk.through(comm, *map(shape_of, arguments))
        return frozenset(walk.found)

    def numbers(self) -> list[int]:
        """Return the whole numbers in the cell, those that it makes of plain numbers, the powers of two by which it shifts to the
        right, those that a division makes equal to one of them, and those that begin with the digits of a text."""
        self.named = self.numbers_of([*self.plain, *self.functions.values()])
        return self.named

    def numbers_of_kernels(self) -> list[int]:
        """Return those of its kernels alone, whose dependence on sizes no plan shows."""
        return self.numbers_of([one for one in self.functions.values() if one.decorator_list])

    def numbers_of(self, body: list[ast.stmt]) -> list[int]:
        found = set()
        for node in ast.walk(ast.Module(body, [])):
            value = Walk(self).value(node, {}) if isinstance(node, ast.Constant | ast.BinOp) else UNKNOWN
            if isinstance(value, NUMBER) and not isinstance(value, bool) and value == value // 1:
                found.add(int(value))
            match node:
                case ast.BinOp(op=ast.RShift(), right=ast.Constant(value=int(places))) if 0 < places < 32:
                    found.add(1 << places)
                case ast.Compare(
                    left=ast.BinOp(op=op, right=ast.Constant(value=int(by))), comparators=[other]
                ):
                    found |= beginning(op, by, Walk(self).value(other, {}))
            if isinstance(value, str) and value.isdecimal() and len(value) <= DIGITS:
                found |= {int(value) * 10**more for more in range(DIGITS + 1 - len(value))}
        return sorted(found)

    def constants(self) -> list[float]:
        """Return the finite numbers in the cell, of any kind and sign, and those that its texts spell."""
        found, parts = set(), (ast.BinOp, ast.UnaryOp)
        for node in ast.walk(ast.Module([*self.plain, *self.functions.values()], [])):
            value = Walk(self).value(node, {}) if isinstance(node, parts) else UNKNOWN
            if isinstance(node, ast.Constant):  # as it stands, because a walk knows no very large number
                value = as_number(node.value)
            if isinstance(value, NUMBER) and not isinstance(value, bool):
                found.add(value)
        return sorted(found)


def beginning(op: ast.operator, by: int, quotient) -> set[int]:
    """Return the first number of which a division or a shift to the right makes this quotient."""
    if not isinstance(quotient, int) or not 0 < quotient < LARGEST or not 0 < by < LARGEST:
        return set()
    if isinstance(op, ast.RShift) and by < 32:
        return {quotient << by}
    return {quotient * by} if isinstance(op, ast.FloorDiv) else set()


def of_spans(op: ast.operator, left, right):
    """Return the numbers of a block after an operation with a number, or with another block."""
    pairs = [(one.least, one.most) if isinstance(one, Span) else (one, one) for one in (left, right)]
    if not all(isinstance(n, int) for pair in pairs for n in pair):
        return UNKNOWN
    (least, most), (few, many) = pairs
    match op:
        case ast.Add():
            return Span(least + few, most + many)
        case ast.Sub():
            return Span(least - many, most - few)
        case ast.Mult():
            each = [one * other for one in pairs[0] for other in pairs[1]]
            return Span(min(each), max(each))
        case ast.FloorDiv() | ast.RShift() if few == many > 0:
            return Span(*(BINARY[type(op)](n, few) for n in pairs[0]))
        case ast.Mod() if few == many > 0:
            return Span(least % few, most % few) if least // few == most // few else Span(0, few - 1)
    return UNKNOWN


def ordered(op: ast.cmpop, left, right):
    """Return whether all numbers of a block compare with a number in this way, or none, or unknown."""
    if isinstance(left, Span) and isinstance(right, int):
        ends, exact = (
            [ORDERS.get(type(op), lambda *_: None)(n, right) for n in (left.least, left.most)],
            right,
        )
        least, most = left.least, left.most
    elif isinstance(right, Span) and isinstance(left, int):
        ends, exact = (
            [ORDERS.get(type(op), lambda *_: None)(left, n) for n in (right.least, right.most)],
            left,
        )
        least, most = right.least, right.most
    else:
        return UNKNOWN
    if isinstance(op, ast.Eq | ast.NotEq):
        if least == most or not least <= exact <= most:
            return ends[0]
        return UNKNOWN
    return ends[0] if ends[0] == ends[1] and isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) else UNKNOWN


def as_number(value):
    """Return a constant as a finite number, or what it is else."""
    try:
        found = float(value) if isinstance(value, str) and len(value) <= DIGITS_OF_ALL else value
        return found if not isinstance(found, NUMBER) or math.isfinite(found) else UNKNOWN
    except (OverflowError, ValueError):
        return UNKNOWN


def shape_of(argument):
    """Return what is told of an argument: a number, or the shape of an array."""
    shape = getattr(argument, "shape", None)
    if shape is None:
        return argument if isinstance(argument, PLAIN) else UNKNOWN
    return array_of(shape)


def array_of(shape: tuple) -> Facts:
    """Return what is known of an array of a shape."""
    return Facts({"shape": tuple(shape), "ndim": len(shape), "size": math.prod(shape), "T": UNKNOWN})


def pointers(known: dict) -> dict[str, Facts]:
    """Return what kernels know of their pointers: the dtypes of what they point to."""
    return {
        f"{name}_ptr": Facts({"dtype": Facts({"element_ty": dtype}), "type": Facts({"element_ty": dtype})})
        for name, dtype in known.get("dtypes", {}).items()
    }


def grid_of(step: dict) -> tuple[int, int, int] | None:
    """Return the grid of a plan's step, if it is known."""
    grid = step.get("grid")
    if (
        isinstance(grid, tuple | list)
        and 0 < len(grid) < 4
        and all(isinstance(n, int) and n > 0 for n in grid)
    ):
        return (*grid, 1, 1)[:3]
    return None


class Walk:
    """Walk through a cell once, for one case."""

    def __init__(self, reader: Reader, programs: Callable = lambda grid: ()):
        self.functions, self.plain, self.entry = reader.functions, reader.plain, reader.entry
        self.named, self.constants = reader.named, set()
        self.programs, self.program, self.grid = programs, None, None
        self.found: dict = {}  # way -> program
        self.gaps: dict = {}  # place -> how far apart numbers are that are compared, and 0, or a remainder and its divisor
        self.globals: dict = {}
        self.left, self.depth, self.failed = STEPS, 0, 0
        self.truths = 0  # values of conditions so far
        self.turning = 0  # loops whose turns were chosen

    def through(self, *given) -> None:
        """Follow the entry with these arguments, and the kernels of its plan with what they may name of the first."""
        try:
            self.block(self.plain, self.globals)
            if self.entry in self.functions:
                self.kernels(self.call(self.functions[self.entry], list(given), {}), given[0].known)
        except (TooLong, RecursionError, *RAISED):
            pass

    def prepare(self, entry: str, weights: list) -> None:
        """Follow the cell's own function on weights."""
        self.left, self.program = STEPS, None
        try:
            if entry in self.functions:
                self.call(self.functions[entry], list(weights), {})
        except (TooLong, RecursionError, *RAISED):
            pass

    def kernels(self, plan, known: dict) -> None:
        """Follow the kernels of a plan, the first one also in a few programs."""
        steps = plan.get("steps") if isinstance(plan, dict) else None
        for number, step in enumerate(steps if isinstance(steps, list | tuple) else ()):
            if isinstance(step, dict) and isinstance(step.get("kernel"), ast.FunctionDef):
                constants = step.get("constexprs")
                named = known | pointers(known) | (constants if isinstance(constants, dict) else {})
                self.grid = grid_of(step)
                self.constants = constants.keys() if isinstance(constants, dict) else set()
                self.call(step["kernel"], [], named)
                for program in self.programs(self.grid) if number == 0 else ():
                    self.left, self.program = OF_A_PROGRAM, program
                    try:
                        self.call(step["kernel"], [], named)
                    except TooLong:
                        pass
                self.program = None

    def call(self, function: ast.FunctionDef, given: list, named: dict):
        """Return the value of a function of the cell."""
        if self.depth >= DEPTH:
            return UNKNOWN
        parameters = [
            one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        ]
        defaults = dict(zip(parameters[::-1], function.args.defaults[::-1], strict=False))
        names = {one: self.value(value, {}) for one, value in defaults.items()}
        names = dict.fromkeys(parameters, UNKNOWN) | names
        names |= {one: value for one, value in named.items() if one in parameters}
        names |= dict(zip(parameters, given, strict=False))
        self.depth += 1
        try:
            self.block(function.body, names)
        except Returned as end:
            return end.args[0]
        finally:
            self.depth -= 1
        return None

    # ---- statements

    def block(self, body: list[ast.stmt], names: dict) -> None:
        for one in body:
            self.statement(one, names)

    def statement(self, node: ast.stmt, names: dict) -> None:
        self.step()
        match node:
            case ast.Assign(targets=targets, value=value):
                found = self.value(value, names)
                for target in targets:
                    self.assign(target, found, names)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self.assign(target, self.value(value, names), names)
            case ast.AugAssign(target=target, op=op, value=value):
                found = self.tried(op, self.value(target, names), self.value(value, names))
                self.assign(target, found, names)
            case ast.If(test=test, body=body, orelse=orelse):
                self.either(self.told(test, names), body, orelse, names)
            case ast.For(target=target, iter=over, body=body):
                found = self.value(over, names)
                if isinstance(found, range) and len(found) > TURNS:
                    self.some_turns(target, found, body, names)
                else:
                    self.turns(target, found, body, names)
            case ast.While(test=test, body=body):
                self.repeat(test, body, names)
            case ast.Return(value=value):
                raise Returned(None if value is None else self.value(value, names))
            case ast.Expr(value=value):
                self.value(value, names)
            case ast.With(body=body):
                self.block(body, names)
            case ast.Try():
                self.attempt(node, names)
            case ast.Assert(test=test):
                self.told(test, names)
            case ast.Raise():
                raise Returned(UNKNOWN)
            case ast.FunctionDef():
                names[node.name] = node

    def either(self, test, body: list, orelse: list, names: dict) -> None:
        """Follow one way, or both where the test is unknown. What both assign is unknown then."""
        if test is not UNKNOWN:
            return self.block(body if test else orelse, names)
        before, ends = dict(names), []
        for way in (body, orelse):
            mine = dict(before)
            try:
                self.block(way, mine)
                ends.append(mine)
            except Returned:
                pass
        if not ends:
            raise Returned(UNKNOWN)
        for name in {name for end in ends for name in end}:
            values = [end.get(name, UNKNOWN) for end in ends]
            names[name] = values[0] if all(value is values[0] for value in values) else UNKNOWN
        return None

    def attempt(self, node: ast.Try, names: dict) -> None:
        """Follow the handlers too if an expression of the body fails."""
        before = self.failed
        self.block(node.body, names)
        failed = self.failed > before
        self.record(node, failed)
        for body in [one.body for one in node.handlers] if failed else [node.orelse]:
            self.block(body, names)
        self.block(node.finalbody, names)

    def some_turns(self, target: ast.expr, over: range, body: list, names: dict) -> None:
        """Follow a turn of a long loop that isn't known. If a known one has conditions that this one leaves open, follow
        some over the whole loop, and those at numbers of the cell."""
        before = self.truths
        self.turns(target, UNKNOWN, body, names)
        unknown, self.turning = self.truths - before, self.turning + 1
        self.turns(target, [over[0]], body, names)
        if self.truths - before > 2 * unknown:
            spread = range(0, len(over), max(1, len(over) // SOME_TURNS))
            at_numbers = [(n - over.start) // over.step for n in self.named]
            chosen = {*spread, *(n for n in at_numbers if 0 <= n < len(over)), len(over) - 1}
            self.turns(target, [over[n] for n in sorted(chosen)[:TURNS]], body, names)
        self.turning -= 1

    def turns(self, target: ast.expr, over, body: list, names: dict) -> None:
        try:
            each = list(islice(over, TURNS)) if not isinstance(over, Unknown | range) else [UNKNOWN]
            each = list(over) if isinstance(over, range) and len(over) <= TURNS else each
        except TypeError:
            each = [UNKNOWN]
        for one in each:
            self.assign(target, one, names)
            self.block(body, names)

    def repeat(self, test: ast.expr, body: list, names: dict) -> None:
        for _ in range(TURNS):
            found = self.told(test, names)
            if found is not UNKNOWN and not found:
                return
            self.block(body, names)
            if found is UNKNOWN:
                return

    def assign(self, target: ast.expr, value, names: dict) -> None:
        match target:
            case ast.Name(id=name):
                names[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                values = (
                    value
                    if isinstance(value, tuple | list) and len(value) == len(parts)
                    else [UNKNOWN] * len(parts)
                )
                for part, one in zip(parts, values, strict=True):
                    self.assign(part, one, names)
            case ast.Subscript(value=of, slice=key):
                held, at = self.value(of, names), self.value(key, names)
                if isinstance(held, dict) and isinstance(at, PLAIN):
                    held[at] = value

    # ---- expressions

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooLong

    def told(self, test: ast.expr, names: dict):
        """Return whether a test holds, and record it."""
        found = self.value(test, names)
        found = UNKNOWN if isinstance(found, Span) else found
        if found is not UNKNOWN:
            found = bool(found)
            self.record(test, found)
        return found

    def record(self, node: ast.expr, value: Hashable, what: str = "") -> None:
        """Keep a way. Of one program, numbers are none, nor of a turn that was chosen."""
        if self.program is None and not self.turning or isinstance(value, bool):
            way = (node.lineno, node.col_offset, node.end_col_offset, what or type(node).__name__), value
            self.found.setdefault(way, self.program)
            self.truths += isinstance(value, bool)

    def meet(self, node: ast.expr, left, right, divides: bool = False) -> None:
        """Keep how far apart two whole numbers are, or the remainder of their division."""
        whole = type(left) is int and type(right) is int
        if whole and not self.turning and (right > 1 or not divides):
            pair = (left % right, right) if divides else (left - right, 0)
            place = node.lineno, node.col_offset, node.end_col_offset, divides
            self.gaps.setdefault(place, set()).add(pair)

    def record_look_up(self, node: ast.expr, held, at) -> None:
        """Keep whether a table holds an element, and which one it is."""
        there = at in held if isinstance(held, dict) else isinstance(at, int) and -len(held) <= at < len(held)
        self.record(node, there, "held")
        if there:
            self.record(node, f"element {at}", "element")

    def value(self, node: ast.expr, names: dict):
        """Return the value of an expression, and record numbers and truths that it computes. A search reads millions."""
        self.left -= 1
        if self.left < 0:
            raise TooLong
        kind = type(node)
        if kind is ast.Name:
            return names.get(node.id, self.globals.get(node.id, self.functions.get(node.id, UNKNOWN)))
        try:
            found = VALUE_OF[kind](self, node, names) if kind in VALUE_OF else UNKNOWN
        except RAISED:
            self.failed += 1
            return UNKNOWN
        if found is UNKNOWN:
            return found
        if (
            isinstance(found, NUMBER)
            and not abs(found) < LARGEST
            or isinstance(found, TEXT_OR_LIST)
            and len(found) > LENGTH
        ):
            return UNKNOWN
        if isinstance(found, int) and kind not in READ:
            self.record(node, found)
        return found

    def attribute(self, node: ast.Attribute, names: dict):
        held = self.value(node.value, names)
        if held is UNKNOWN and node.attr in TYPES:
            return TYPES[node.attr]
        return held.known.get(node.attr, UNKNOWN) if isinstance(held, Facts) else UNKNOWN

    def unary(self, node: ast.UnaryOp, names: dict):
        found = self.value(node.operand, names)
        return UNKNOWN if found is UNKNOWN else UNARY[type(node.op)](found)

    def chosen(self, node: ast.IfExp, names: dict):
        found = self.told(node.test, names)
        ways = [self.value(one, names) for one in (node.body, node.orelse)] if found is UNKNOWN else []
        return UNKNOWN if ways else self.value(node.body if found else node.orelse, names)

    def subscript(self, node: ast.Subscript, names: dict):
        held, at = self.value(node.value, names), self.value(node.slice, names)
        return UNKNOWN if UNKNOWN in (held, at) else self.element(node, held, at)

    def slice(self, node: ast.Slice, names: dict):
        ends = [one and self.value(one, names) for one in (node.lower, node.upper, node.step)]
        return UNKNOWN if UNKNOWN in ends else slice(*ends)

    def text(self, node: ast.JoinedStr, names: dict):
        parts = [self.value(one, names) for one in node.values]
        return UNKNOWN if UNKNOWN in parts else "".join(parts)

    def formatted(self, node: ast.FormattedValue, names: dict):
        if node.conversion != -1:
            return UNKNOWN
        found = self.value(node.value, names)
        how = self.value(node.format_spec, names) if node.format_spec else ""
        known = UNKNOWN not in (found, how) and len(how) < SPEC
        return format(found, how) if known else UNKNOWN

    def walrus(self, node: ast.NamedExpr, names: dict):
        found = self.value(node.value, names)
        self.assign(node.target, found, names)
        return found

    def element(self, node: ast.expr, held, at):
        """Return an element of a table, and record which one of a few it is."""
        if isinstance(held, Span):  # [:, None]
            return held
        if isinstance(held, dict | list | tuple) and isinstance(at, PLAIN):
            self.record_look_up(node, held, at)
        return held[at]

    def computed(self, node: ast.BinOp, names: dict):
        left, right = self.value(node.left, names), self.value(node.right, names)
        if type(node.op) in (ast.FloorDiv, ast.Mod):
            self.meet(node, left, right, divides=True)
        return self.binary(node.op, left, right)

    def tried(self, op: ast.operator, left, right):
        try:
            return self.binary(op, left, right)
        except RAISED:
            return UNKNOWN

    def binary(self, op: ast.operator, left, right):
        kind = type(op)
        if left is UNKNOWN or right is UNKNOWN:
            if kind is ast.BitAnd and (left is False or right is False):
                return False
            return True if kind is ast.BitOr and (left is True or right is True) else UNKNOWN
        if isinstance(left, Span) or isinstance(right, Span):
            return of_spans(op, left, right)
        if kind not in BINARY:
            return UNKNOWN
        if isinstance(op, ast.Pow | ast.LShift) and abs(right) > 64:
            return UNKNOWN
        if isinstance(op, ast.Mult) and not (isinstance(left, NUMBER) and isinstance(right, NUMBER)):
            return UNKNOWN
        if isinstance(op, ast.Mult) and isinstance(left, bool) and isinstance(right, bool):
            return left and right  # a condition written as a product
        return BINARY[type(op)](left, right)

    def together(self, node: ast.BoolOp, names: dict):
        """Return `and` or `or`, whose later values count only where the earlier ones leave it open."""
        every, open_ = isinstance(node.op, ast.And), False
        for one in node.values:
            found = self.value(one, names)
            if found is UNKNOWN or isinstance(found, Span):
                open_ = True
            elif bool(found) != every:
                return found
        return UNKNOWN if open_ else found

    def compared(self, node: ast.Compare, names: dict):
        sides, ops = [node.left, *node.comparators], node.ops
        values = [self.value(one, names) for one in sides]
        for place, (left, op, right) in enumerate(zip(values, ops, values[1:], strict=False)):
            if isinstance(left, Span) or isinstance(right, Span):
                found = (
                    ordered(op, left, right) if any(map(self.plainly, sides[place : place + 2])) else UNKNOWN
                )
                if found is not True:
                    return found
                continue
            if UNKNOWN in (left, right):
                return UNKNOWN
            self.meet(node, left, right)
            if isinstance(op, ast.In | ast.NotIn):
                there = list(right)
                if isinstance(left, PLAIN) and left in there:
                    self.record(node, f"element {there.index(left)}", "element")
                found = (left in there) == isinstance(op, ast.In)
            else:
                found = ORDERS[type(op)](left, right)
            if not found:
                return False
        return True

    def plainly(self, node: ast.expr) -> bool:
        """Return whether an expression names constants alone, since every kernel compares blocks with sizes."""
        return all(one.id in self.constants for one in ast.walk(node) if isinstance(one, ast.Name))

    def table(self, node: ast.Dict, names: dict) -> dict:
        found = {}
        for key, value in zip(node.keys, node.values, strict=True):
            at, held = self.value(key, names) if key else UNKNOWN, self.value(value, names)
            if key is None and isinstance(held, dict):
                found |= held
            elif isinstance(at, PLAIN):
                found[at] = held
        return found

    def called(self, node: ast.Call, names: dict):
        given = [self.value(one, names) for one in node.args if not isinstance(one, ast.Starred)]
        named = {one.arg: self.value(one.value, names) for one in node.keywords if one.arg}
        function = node.func
        if (
            type(function) is ast.Attribute
            and function.attr not in FOLLOWED
            and type(function.value) is ast.Name
        ):
            self.left -= 2
            return UNKNOWN  # most calls are of this kind, such as tl.load(...)
        match node.func:
            case ast.Attribute(attr="program_id" | "num_programs" as name):
                each, axes = self.program if name == "program_id" else self.grid, [*given, *named.values()]
                return each[axes[0]] if each and axes in ([0], [1], [2]) else UNKNOWN
            case ast.Attribute(value=of, attr="to"):
                held = self.value(of, names)
                return held if isinstance(held, (*NUMBER, Span)) else UNKNOWN
            case ast.Attribute(attr="arange") if len(given) == 2 and all(isinstance(n, int) for n in given):
                return Span(given[0], max(given) - 1)
            case ast.Name(id="len") if [type(one) for one in given] == [Facts]:
                return given[0].known["shape"][0]
            case ast.Name(id="dict"):
                return named if not given else UNKNOWN
            case ast.Name(id=name) if isinstance(
                own := names.get(name, self.functions.get(name)), ast.FunctionDef
            ):
                return self.call(own, given, named)
            case ast.Attribute(value=of, attr=name) if name in METHODS:
                held = self.value(of, names)
                plain = isinstance(held, int | str | dict | list | tuple) and UNKNOWN not in given
                if not plain or any(isinstance(one, int) and one > LENGTH for one in given if name in WIDE):
                    return UNKNOWN
                if name == "get" and isinstance(held, dict):
                    self.record_look_up(node, held, given[0])
                return getattr(held, name)(*given)
            case ast.Lambda() | ast.Name() if isinstance(own := self.value(node.func, names), ast.Lambda):
                return self.value(
                    own.body, names | dict(zip((a.arg for a in own.args.args), given, strict=False))
                )
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in CALLS:
                values = [*given, *named.values()]
                whole = not any(UNKNOWN in one for one in values if isinstance(one, list | tuple))
                whole = whole and not any(isinstance(one, range) and len(one) > LENGTH for one in values)
                if name in MEETING and len(values) == 2:
                    self.meet(node, *values, divides=name == "cdiv")
                return CALLS[name](*given, **named) if whole and UNKNOWN not in values else UNKNOWN
        self.value(node.func, names) if not isinstance(node.func, ast.Name) else None
        return UNKNOWN

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp, names: dict):
        if len(node.generators) > 1:
            return UNKNOWN
        one, elt = node.generators[0], node.elt
        over = self.value(one.iter, names)
        if isinstance(over, Unknown) or len(over) > TURNS:
            return UNKNOWN
        found, mine = [], dict(names)
        for item in over:
            self.assign(one.target, item, mine)
            tests = [self.told(test, mine) for test in one.ifs]
            if UNKNOWN in tests:
                return UNKNOWN
            if all(tests):
                found.append(self.value(elt, mine))
        return found


VALUE_OF = {
    ast.Constant: lambda walk, node, names: node.value,
    ast.BinOp: Walk.computed,
    ast.Call: Walk.called,
    ast.Attribute: Walk.attribute,
    ast.UnaryOp: Walk.unary,
    ast.BoolOp: Walk.together,
    ast.Compare: Walk.compared,
    ast.IfExp: Walk.chosen,
    ast.Tuple: lambda walk, node, names: tuple([walk.value(one, names) for one in node.elts]),
    ast.List: lambda walk, node, names: [walk.value(one, names) for one in node.elts],
    ast.Dict: Walk.table,
    ast.Subscript: Walk.subscript,
    ast.Slice: Walk.slice,
    ast.JoinedStr: Walk.text,
    ast.FormattedValue: Walk.formatted,
    ast.Lambda: lambda walk, node, names: node,
    ast.NamedExpr: Walk.walrus,
    ast.ListComp: Walk.comprehension,
    ast.GeneratorExp: Walk.comprehension,
}
