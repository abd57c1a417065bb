"""List small changes of a kernel's text, the likeliest cure of a failure first: the lines that a report blames before those
that make what these use, and names that a parameter's own name speaks for before all other changes."""

import ast
import copy
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import combinations

from grader.judge.kernel_names import (
    CONSTANT,
    INDEX,
    MASK,
    NUMBER,
    POINTER,
    SIZE,
    STRIDE,
    VALUE,
    WHOLE,
    Names,
)
from grader.judge.repair import COMPARISONS, OPERATORS, Change, changed, shown

MOST_NAMES, MOST_SIZES = 4, 8  # that are tried in place of one
BITS = ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift
BESIDE = 3  # lines between two sums of a block that may need the same factor
NEAR = 4  # steps from the blamed lines to what their names are made of
STEP = 0.5  # the rank that one costs
SUSPECT = -4  # the rank of what speaks for itself, as another tensor's stride
LATE = 2.5  # what is added to the rank of a change of what looks right
DTYPES = ("float16", "bfloat16", "float32")
FUNCTIONS = (
    ("max", "min", "sum"),
    ("maximum", "minimum"),
    ("exp", "exp2"),
    ("log", "log2"),
    ("argmax", "argmin"),
)
SIZED = SIZE, CONSTANT
LOADS = "load", "store"
Found = tuple[int, str, ast.AST]  # the rank of a change among those of a line, words for it, and the new node


def changes(source: str, blamed: set[int], nearly_all: bool = False) -> Iterator[Change]:
    """Yield the source with one change each, in its kernels and launch functions. If nearly all elements are wrong, masks come late."""
    found, helpers = [], called_near(source, blamed)
    for function in kernels(source):
        context, names, near = parents(function), Names(function), distances(function, blamed)
        far = min(NEAR + 1, helpers.get(function.name, NEAR + 1))
        masks = of_masks(function) if nearly_all else set()
        found += [
            (STEP * near.get(node.lineno, far) + rank + LATE * (node in masks), node, words, new, context)
            for statement in function.body
            for node in ast.walk(statement)
            if hasattr(node, "lineno")
            for rank, words, new in alternatives(node, names, context)
        ]
    yield from as_texts(source, [*found, *of_launches(source)])


def of_plans(source: str, *_) -> Iterator[Change]:
    """Yield the source with one change each, in its launch functions alone."""
    yield from as_texts(source, of_launches(source))


def of_launches(source: str) -> list[tuple]:
    found = []
    for function in launches(source):
        context = parents(function)
        found += [(rank, node, words, new, context) for rank, words, node, new in of_launch(function)]
    return found


def as_texts(source: str, found: list[tuple]) -> Iterator[Change]:
    """Yield the changes of these nodes, the lowest rank first, each text once."""
    seen = {source}
    for _, node, words, new, context in sorted(found, key=lambda one: one[0]):
        text = changed(source, node, new)
        if text and text not in seen:
            seen.add(text)
            yield Change(node.lineno, f"{words}{within(source, node, context)}", text)


def of_masks(function: ast.FunctionDef) -> set[ast.AST]:
    """Return all nodes of masks and of comparisons, which decide over the last elements of an axis alone."""
    masks = [
        node.value if isinstance(node, ast.keyword) else node
        for node in ast.walk(function)
        if isinstance(node, ast.Compare) or isinstance(node, ast.keyword) and node.arg == "mask"
    ]
    return {one for mask in masks for one in ast.walk(mask)}


def kernels(source: str) -> list[ast.FunctionDef]:
    return [one for one in ast.parse(source).body if isinstance(one, ast.FunctionDef) and one.decorator_list]


def launches(source: str) -> list[ast.FunctionDef]:
    """Return the functions that plan, which are those without a decorator that are given p."""
    functions = [one for one in ast.parse(source).body if isinstance(one, ast.FunctionDef)]
    return [one for one in functions if not one.decorator_list and [a.arg for a in one.args.args] == ["p"]]


def of_launch(function: ast.FunctionDef) -> Iterator[tuple[int, str, ast.AST, ast.AST]]:
    """Yield what could be meant in a launch function: another size, another rounding, another number."""
    nodes = [one for one in ast.walk(function) if hasattr(one, "lineno")]
    sizes = list(dict.fromkeys(ast.unparse(one) for one in nodes if of_size(one)))
    for node in nodes:
        code = quoted(node)
        match node:
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                rounded = ast.Call(ast.Attribute(ast.Name("triton"), "cdiv"), [left, right], [])
                yield 1, f"another rounding of {code}", node, rounded
            case ast.Call(func=ast.Attribute(attr="cdiv"), args=[left, right]):
                yield 1, f"another rounding of {code}", node, ast.BinOp(left, ast.FloorDiv(), right)
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=args, keywords=[]):
                other = ast.Name("min" if name == "max" else "max")
                yield 2, f"another function in {code}", node, ast.Call(other, args, [])
                for size in sizes if any(of_size(one) for one in args) else ():
                    if size not in map(ast.unparse, args):
                        more = ast.Call(node.func, [*args, ast.parse(size, mode="eval").body], [])
                        yield 1, f"one more size in {code}", node, more
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                other = ast.Sub() if isinstance(op, ast.Add) else ast.Add()
                yield 2, f"another operator in {code}", node, ast.BinOp(left, other, right)
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                for other in (value + 1, value - 1, 2 * value, value // 2):
                    if other > 0 and other != value:
                        yield 3, f"another number than {value}", node, ast.Constant(other)
            case ast.Attribute() if of_size(node):
                for size in sizes:
                    if size != ast.unparse(node):
                        yield 1, f"another size than {code}", node, ast.parse(size, mode="eval").body


def of_size(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="p"), attr=name):
            return name.isupper()
    return False


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
    """Return how many steps each line is from a blamed one: a statement that makes a name is a step from those that use it."""
    makes: dict[str, set[int]] = {}
    uses: dict[int, set[str]] = {}
    first = first_lines(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            line = first.get(node.lineno, node.lineno)
            if isinstance(node.ctx, ast.Store):
                makes.setdefault(node.id, set()).add(line)
            else:
                uses.setdefault(line, set()).add(node.id)
    edge = {first.get(line, line) for line in blamed}
    found = dict.fromkeys(edge, 0)
    for step in range(1, NEAR + 1):
        names = set().union(*(uses.get(line, ()) for line in edge))
        edge = set().union(*(makes.get(name, ()) for name in names)) - found.keys()
        found |= dict.fromkeys(edge, step)
    return {line: found[start] for line, start in first.items() if start in found} | found


def called_near(source: str, blamed: set[int]) -> dict[str, int]:
    """Return how many steps each function of the cell is from a blamed line, by the lines that call it."""
    steps: dict[str, int] = {}
    for function in kernels(source):
        near = distances(function, blamed)
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.lineno in near:
                step = near[node.lineno] + 1
                steps[node.func.id] = min(step, steps.get(node.func.id, step))
    return steps


def first_lines(function: ast.FunctionDef) -> dict[int, int]:
    """Return the first line of the statement that each line belongs to."""
    simple = (one for one in ast.walk(function) if isinstance(one, ast.stmt) and not hasattr(one, "body"))
    return {line: one.lineno for one in simple for line in range(one.lineno, one.end_lineno + 1)}


def alternatives(node: ast.AST, names: Names, context: dict) -> Iterator[Found]:
    """Yield what could be meant instead of a node."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if not isinstance(context.get(node), ast.Attribute):
            yield from of_name(node, name, names, context)
        case ast.Constant():
            yield from of_constant(node, context)
        case ast.Compare(left=left, ops=[op], comparators=right):
            for other in COMPARISONS.get(type(op), ()):
                rounded = any(isinstance(one, ast.FloorDiv) for one in ast.walk(right[0]))
                words = "another comparison than " + quoted(node)
                yield -1 if rounded else 1, words, ast.Compare(left, [other()], right)
            for whole in (
                one for one, kind in names.kinds.items() if kind == WHOLE and names.made[one] < node.lineno
            ):
                moved = ast.BinOp(left, ast.Add(), ast.Name(whole))
                yield 2, "another index than " + quoted(left), ast.Compare(moved, [op], right)
        case ast.BinOp():
            yield from of_operator(node, names, context)
            yield from of_parentheses(node, names, context)
        case ast.Assign(value=ast.BinOp(left=left, op=ast.Add(), right=right) as value):
            for factor in factors_beside(node, names, context):
                of = quoted(right)
                more = ast.BinOp(left, ast.Add(), ast.BinOp(right, ast.Mult(), ast.Name(factor)))
                yield 0, f"a factor more beside {of}", ast.Assign(node.targets, more, lineno=node.lineno)
        case ast.AugAssign(target=target, op=ast.Add(), value=value):
            for factor in factors_beside(node, names, context):
                more = ast.BinOp(value, ast.Mult(), ast.Name(factor))
                yield 0, f"a factor more beside {quoted(value)}", ast.AugAssign(target, ast.Add(), more)
            yield 3, "another operator in " + quoted(node), ast.AugAssign(target, ast.Sub(), value)
            yield 3, "another operator in " + quoted(node), ast.Assign([target], value, lineno=node.lineno)
        case ast.Assign(targets=[ast.Name(id=name) as target], value=value) if held(
            name, node, names, context
        ):
            yield 1, f"adding to what `{name}` held", ast.AugAssign(target, ast.Add(), value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield 2, "leaving out the sign of " + quoted(node), operand
        case ast.Subscript(value=value, slice=ast.Tuple(elts=parts)) if len(parts) == 2:
            turned = ast.Subscript(value, ast.Tuple(parts[::-1]))
            yield 0 if names.kind(value) == VALUE else 2, "the other axis in " + quoted(node), turned
        case ast.Attribute(value=of, attr=name) if name in DTYPES:
            for other in DTYPES:
                if other != name:
                    yield 3, "another dtype than " + quoted(node), ast.Attribute(of, other)
        case ast.Call(func=ast.Attribute()):
            yield from of_call(node, names)


def factors_beside(node: ast.stmt, names: Names, context: dict) -> list[str]:
    """Return the values that another sum of the same block is multiplied by, and this one isn't."""
    own = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    found = [
        side.id
        for other in getattr(context.get(node), "body", ())
        if isinstance(other, ast.Assign | ast.AugAssign) and abs(other.lineno - node.lineno) <= BESIDE
        for one in ast.walk(other)
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult)
        for side in (one.left, one.right)
        if isinstance(side, ast.Name) and names.kinds.get(side.id) == VALUE
    ]
    return [one for one in dict.fromkeys(found) if one not in own and names.made[one] < node.lineno]


def of_name(node: ast.Name, name: str, names: Names, context: dict) -> Iterator[Found]:
    address = around(node, names, context)
    kind, tensor = names.kinds.get(name), names.tensor(address) if address is not None else ""
    others = names.alike(name, node.lineno)
    if kind == STRIDE:
        others.sort(key=lambda one: (not of_tensor(one, tensor), unlike(one, name)))
    else:  # a name that the kernel makes is taken for another of these rather than for a parameter
        others.sort(key=lambda one: (bool(names.made[one]) != bool(names.made[name]), *unlike(one, name)))
    looks_right = fits(node, name, tensor, names, context)
    for number, other in enumerate(others[: MOST_SIZES if kind in SIZED else MOST_NAMES]):
        rank = number + LATE * looks_right
        if other in names.width_of_step(node, context):
            rank = SUSPECT
        elif kind == STRIDE and tensor and of_tensor(other, tensor) and not of_tensor(name, tensor):
            rank = SUSPECT
        elif other not in names.used:  # a parameter that nothing reads was meant for something
            rank = SUSPECT + 1
        yield rank, f"another name than `{name}`", ast.Name(other)
    if address is not None and kind in (WHOLE, INDEX, VALUE):
        for op in (ast.Sub, ast.Add):
            yield 2, f"1 more or less beside `{name}`", ast.BinOp(node, op(), ast.Constant(1))
    if address is not None and kind in (WHOLE, INDEX):
        blocks = [one for one, of in names.kinds.items() if of == CONSTANT]
        for block in blocks:
            part = ast.BinOp(node, ast.FloorDiv(), ast.Name(block))
            yield 2, f"another index than `{name}`", part
    if kind == VALUE and isinstance(context.get(node), ast.BinOp | ast.Assign | ast.AugAssign):
        factors = [one for one, of in names.kinds.items() if of == NUMBER and one not in names.used]
        for factor in factors:
            yield SUSPECT + 1, f"a factor more beside `{name}`", ast.BinOp(node, ast.Mult(), ast.Name(factor))


def fits(node: ast.Name, name: str, tensor: str, names: Names, context: dict) -> bool:
    """Return whether a name looks right where it is: a tensor's own stride, a size of the axis that an index names, one
    that a shape has to agree with, or the only use of a parameter."""
    kind, parent = names.kinds.get(name), context.get(node)
    if kind == STRIDE:
        address = around(node, names, context)
        again = [one for one in ast.walk(address) if getattr(one, "id", "") == name] if address else []
        return of_tensor(name, tensor) and len(again) == 1
    if kind in SIZED and names.uses[name] == 1:
        return True
    if kind in SIZED and isinstance(parent, ast.Tuple):
        return isinstance(context.get(parent), ast.Call)
    if isinstance(parent, ast.Compare) and kind in (SIZE, INDEX):
        sides = (getattr(one, "id", "") for one in (parent.left, *parent.comparators))
        return len({one[-1:].lower() for one in sides}) == 1
    if kind == POINTER and tensor:
        address = around(node, names, context) or node
        own = [one.id for one in ast.walk(address) if names.kinds.get(getattr(one, "id", "")) == STRIDE]
        return bool(own) and all(of_tensor(one, tensor) for one in own)
    return False


def of_parentheses(node: ast.BinOp, names: Names, context: dict) -> Iterator[Found]:
    """Group three parts otherwise."""
    if names.kind(node) == POINTER:
        return
    left, op, right = node.left, node.op, node.right
    words = "other parentheses in " + quoted(node)
    for one, other in ((left, right), (right, left)):
        if not isinstance(one, ast.BinOp) or type(one.op) is type(op):
            continue
        rank = -1 if isinstance(op, BITS) != isinstance(one.op, BITS) else 1  # which few know by heart
        if one is left:
            yield rank, words, ast.BinOp(one.left, one.op, ast.BinOp(one.right, op, other))
            yield rank, words, ast.BinOp(ast.BinOp(one.left, op, other), one.op, one.right)
        else:
            yield rank, words, ast.BinOp(ast.BinOp(other, op, one.left), one.op, one.right)
            yield rank, words, ast.BinOp(one.left, one.op, ast.BinOp(other, op, one.right))


def of_tensor(stride: str, tensor: str) -> bool:
    """Return whether a stride's name says that it is a tensor's: stride_km or stride_wk1 of k or wk."""
    rest = stride.removeprefix("stride").removeprefix("_")
    return bool(tensor) and rest.startswith(tensor) and len(rest) == len(tensor) + 1


def around(node: ast.AST, names: Names, context: dict) -> ast.AST | None:
    """Return the largest expression around a node that is an address."""
    found, one = None, context.get(node)
    while isinstance(one, ast.expr):
        if isinstance(one, ast.BinOp) and names.kind(one) == POINTER:
            found = one
        elif isinstance(one, ast.Call):
            break
        one = context.get(one)
    return found


def of_constant(node: ast.Constant, context: dict) -> Iterator[Found]:
    value, parent = node.value, context.get(node)
    filled = isinstance(parent, ast.keyword) and parent.arg == "other"
    if isinstance(value, bool):
        yield 2, f"another value than {value}", ast.Constant(not value)
    elif isinstance(value, int):
        for other in dict.fromkeys((value + 1, value - 1, 2 * value, value // 2)):
            if other >= 0 and other != value:
                yield 2, f"another number than {value}", ast.Constant(other)
    elif isinstance(value, float):
        for other in (0.0, 1.0, 2 * value, value / 2, -value):
            if other != value:
                yield 3, f"another number than {value}", ast.Constant(other)
    if filled:
        yield 1, f"another value for other= than {value}", infinity()


def infinity() -> ast.AST:
    return ast.UnaryOp(ast.USub(), ast.Call(ast.Name("float"), [ast.Constant("inf")], []))


def of_operator(node: ast.BinOp, names: Names, context: dict) -> Iterator[Found]:
    left, op, right = node.left, node.op, node.right
    for other in OPERATORS.get(type(op), ()):
        if not (names.kind(node) == POINTER and isinstance(other(), ast.Mult)):
            parted = isinstance(op, ast.FloorDiv | ast.Mod) and isinstance(other(), ast.FloorDiv | ast.Mod)
            yield 0 if parted else 2, "another operator in " + quoted(node), ast.BinOp(left, other(), right)
    for part in (left, right):
        if names.kind(part) == names.kind(node) or names.kind(node) != POINTER:
            yield 3, "leaving out a part of " + quoted(node), part
    if isinstance(op, ast.Sub | ast.FloorDiv | ast.Mod):
        yield 3, "the other order in " + quoted(node), ast.BinOp(right, op, left)
    if isinstance(op, ast.FloorDiv | ast.Mod) and names.kind(left) in (WHOLE, INDEX):
        for more in names.numbers:
            scaled = ast.BinOp(left, ast.Mult(), ast.Constant(more))
            rank = 1 if isinstance(left, ast.Name) and names.kind(left) == WHOLE else 2
            yield rank, "a factor more beside " + quoted(left), ast.BinOp(scaled, op, right)
    if isinstance(op, ast.FloorDiv):
        yield 2, "another rounding of " + quoted(node), call("cdiv", left, right)
    if isinstance(op, ast.FloorDiv | ast.Mod) and names.kind(right) == SIZE:
        sizes = [one for one, of in names.kinds.items() if of == SIZE and one != getattr(right, "id", "")]
        for size in sizes:
            whole = ast.BinOp(ast.Name(size), ast.FloorDiv(), right)
            yield 1, f"another number than {quoted(right)} in {quoted(node)}", ast.BinOp(left, op, whole)
    if not isinstance(context.get(node), ast.BinOp):
        yield from of_pairs(node, names)


def of_pairs(node: ast.BinOp, names: Names) -> Iterator[Found]:
    """Exchange two strides of an address, or two sizes of a mask."""
    wanted, rank = {POINTER: (STRIDE, -1), MASK: (SIZE, 1)}.get(names.kind(node), ("", 0))
    there = {
        one.id for one in ast.walk(node) if isinstance(one, ast.Name) and names.kinds.get(one.id) == wanted
    }
    tensor = names.tensor(node)
    if own := {one: new for one in there if (new := own_stride(one, tensor, names)) not in ("", one)}:
        yield SUSPECT, f"the strides of {tensor} in {quoted(node)}", exchanged(node, own)
    for one, other in combinations(sorted(there) if wanted else (), 2):
        turned = exchanged(node, {one: other, other: one})
        yield rank, f"`{one}` and `{other}` exchanged in {quoted(node)}", turned


def own_stride(stride: str, tensor: str, names: Names) -> str:
    """Return the stride of a tensor along the axis that another stride's name ends with, or an empty text."""
    own = (one for one, kind in names.kinds.items() if kind == STRIDE and of_tensor(one, tensor))
    return next((one for one in own if one[-1] == stride[-1]), "")


def exchanged(node: ast.AST, instead: dict[str, str]) -> ast.AST:
    new = copy.deepcopy(node)
    for one in ast.walk(new):
        if isinstance(one, ast.Name):
            one.id = instead.get(one.id, one.id)
    return new


def call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("tl"), name), list(arguments), [])


def of_call(node: ast.Call, names: Names) -> Iterator[Found]:
    of, name, args, keywords = node.func.value, node.func.attr, node.args, node.keywords
    for other in others(name):
        yield 2, "another function in " + quoted(node), ast.Call(ast.Attribute(of, other), args, keywords)
    if name == "cdiv" and len(args) == 2:
        yield 2, "another rounding of " + quoted(node), ast.BinOp(args[0], ast.FloorDiv(), args[1])
    if name == "trans" and args:
        yield 1, "leaving out the function in " + quoted(node), args[0]
    if name == "to" and names.kind(node) == VALUE:
        yield 3, "leaving out the conversion in " + quoted(node), of
    if name == "zeros":
        low = call("full", *args[:1], infinity(), *args[1:])
        yield 3, "another first value than " + quoted(node), ast.Call(low.func, low.args, keywords)
    if name == "load" and not any(one.arg == "other" for one in keywords):
        filled = [*keywords, ast.keyword("other", ast.Constant(0.0))]
        yield 2, "a value for other= in " + quoted(node), ast.Call(node.func, args, filled)
    if name == "dot" and len(args) > 1:
        swapped = ast.Call(node.func, [args[1], args[0], *args[2:]], keywords)
        yield 3, "the other order in " + quoted(node), swapped
    for place, one in enumerate(keywords if name in LOADS else ()):
        if one.arg == "mask":
            turned = [
                *keywords[:place],
                ast.keyword("mask", call("trans", one.value)),
                *keywords[place + 1 :],
            ]
            yield 1, "the other axis of the mask of " + quoted(node), ast.Call(node.func, args, turned)
    if name in LOADS and not any(one.arg == "mask" for one in keywords) and len(args) < 2 + (name == "store"):
        masks = [one for one, kind in names.kinds.items() if kind == MASK and names.made[one] < node.lineno]
        for mask in masks:
            covered = [*keywords, ast.keyword("mask", ast.Name(mask))]
            yield 1, "a mask in " + quoted(node), ast.Call(node.func, args, covered)


def held(name: str, node: ast.Assign, names: Names, context: dict) -> bool:
    """Return whether a statement of a loop gives a name from before a new value that doesn't depend on its old one."""
    inside, one = False, context.get(node)
    while one is not None:
        inside = inside or isinstance(one, ast.For | ast.While)
        one = context.get(one)
    inside = inside and names.made[name] < node.lineno
    return inside and not any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node.value))


def quoted(node: ast.AST) -> str:
    return f"`{shown(ast.unparse(node))}`"


def others(name: str) -> Iterator[str]:
    for group in FUNCTIONS:
        yield from (other for other in group if name in group and other != name)


def unlike(one: str, other: str) -> tuple[bool, float]:
    """Return how little two names resemble each other: M and N do, M and BLOCK_M don't."""
    return abs(len(one) - len(other)) > 1, -SequenceMatcher(None, one, other).ratio()
