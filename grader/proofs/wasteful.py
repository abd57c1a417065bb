"""Make wasteful answers from a right one, in which a copy of its kernels spends more of one counted quantity.

The copy is launched everywhere, at the compiled size alone, or at secret sizes. Its results are the same.
"""

import ast
import copy
from collections.abc import Callable
from functools import partial

LANES = 1024
A_TURN, A_DOT = 2 * LANES, 2 * 64**3  # operations of a turn below, and FLOP
ALWAYS = 1 << 25  # programs, more than a grid may have
AGAIN = f"""
@triton.jit
def again(first, second):
    return tl.where(tl.program_id(0) < {ALWAYS}, first, second)
"""
SPENT = f"""
    waste = tl.arange(0, {LANES})
    for turn in range(TURNS):
        waste = waste * 3 + turn
    kept = tl.sum(waste, 0) != 7
"""
DOTS = """
    product = tl.zeros((64, 64), tl.float32)
    for turn in range(TURNS):
        product += tl.dot(tl.full((64, 64), 1.0, tl.float16), tl.full((64, 64), 1.0, tl.float16))
    kept = tl.sum(tl.sum(product, 0), 0) != 7
"""
SUFFIX = "_more"
AXES = (0, 1, 2)


class NotMade(ValueError):
    """This right answer has nothing that could be done twice in this way."""


def cell(source: str, entry: str, way: Callable, where: str = "True", limit: int = 0) -> str:
    """Return the answer whose kernels spend more, in a way such as those of WAYS, where the condition `where` on `p`
    holds.

    `limit` is the number of operations that a launch may do, which arithmetic then does once more."""
    tree = ast.parse(source)
    kernels = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and jitted(node)}
    launch = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == entry)
    called = {one.id for node in kernels.values() for one in ast.walk(node) if isinstance(one, ast.Name)}
    tops = [name for name in kernels if name not in called and name in names_of(launch, tree)]
    copies = {name: copy.deepcopy(node) for name, node in kernels.items()}
    for node in copies.values():
        Renamed(kernels).visit(node)
        node.name += SUFFIX
    more = way(copies, tops)
    launch.name = "right_plan"
    changed = [ast.unparse(ast.fix_missing_locations(node)) for node in copies.values()]
    made = [AGAIN, *more.before, *changed, *more.kernels]
    pairs = ", ".join(f"({name}, {name}{SUFFIX})" for name in tops)
    return "\n\n".join(
        [
            ast.unparse(ast.fix_missing_locations(tree)),
            *made,
            LAUNCH.format(entry=entry, pairs=pairs, where=where, plan=more.plan, limit=limit),
        ]
    )


LAUNCH = """
import math

LIMIT = {limit}
MORE = [{pairs}]


def {entry}(p):
    plan = dict(right_plan(p))
    if {where}:
        steps = [dict(step, kernel=next(more for own, more in MORE if step["kernel"] is own)) for step in plan["steps"]]
{plan}
        plan["steps"] = steps
    return plan
"""


class More:
    """Holds the kernels and the change of the plan that a way adds to changed copies."""

    def __init__(
        self, plan: str = "        pass", kernels: tuple[str, ...] = (), before: tuple[str, ...] = ()
    ):
        self.plan, self.kernels, self.before = plan, kernels, before


def jitted(node: ast.FunctionDef) -> bool:
    return any("jit" in ast.unparse(one) for one in node.decorator_list)


def names_of(launch: ast.FunctionDef, tree: ast.Module) -> set[str]:
    """Return all names that the launch mentions, those of plain helpers too."""
    found = {one.id for one in ast.walk(launch) if isinstance(one, ast.Name)}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in found and not jitted(node):
            found |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found


class Renamed(ast.NodeTransformer):
    """Calls of copied functions go to the copies."""

    def __init__(self, names):
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(node.id + SUFFIX, node.ctx) if node.id in self.names else node


def is_call(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == f"tl.{name}"


class LoadsAgain(ast.NodeTransformer):
    """Each load is done several times, with masks that always hold and yet keep the compiler from loading once."""

    def __init__(self, times: int):
        self.times, self.count = times, 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not is_call(node, "load"):
            return node
        self.count += 1
        loaded = node
        for number in range(1, self.times):
            more = copy.deepcopy(node)
            masked(more, f"tl.program_id(0) < {ALWAYS + number}", 1)
            loaded = ast.Call(ast.Name("again", ast.Load()), [loaded, more], [])
        return loaded


def masked(call: ast.Call, condition: str, place: int) -> None:
    """Give a load or a store, whose mask stands in this place, one more condition."""
    more = ast.parse(condition, mode="eval").body
    given = next((k for k in call.keywords if k.arg == "mask"), None)
    if given:
        given.value = ast.BinOp(given.value, ast.BitAnd(), more)
    elif len(call.args) > place:
        call.args[place] = ast.BinOp(call.args[place], ast.BitAnd(), more)
    else:
        call.keywords.append(ast.keyword("mask", more))


class Stores(ast.NodeTransformer):
    """`change` makes statements of each tl.store."""

    def __init__(self, change: Callable):
        self.change, self.count = change, 0

    def visit_Expr(self, node: ast.Expr):
        if not is_call(node.value, "store"):
            return node
        self.count += 1
        return self.change(node)


def every_load(copies: dict, tops: list[str], times: int = 2) -> More:
    loads = LoadsAgain(times)
    for node in copies.values():
        loads.visit(node)
    return made(loads.count)


def every_store(copies: dict, tops: list[str]) -> More:
    return of_stores(copies, lambda node: [node, copy.deepcopy(node)])


def read_back(copies: dict, tops: list[str]) -> More:
    """Load every stored value and store it again."""

    def change(node: ast.Expr) -> list[ast.Expr]:
        pointer, _, *more = node.value.args
        keywords = [k for k in node.value.keywords if k.arg in ("mask", "boundary_check")]
        mask = [ast.keyword("mask", more[0])] if more else []
        loaded = ast.Call(ast.parse("tl.load", mode="eval").body, [pointer], [*mask, *keywords])
        again = ast.Call(node.value.func, [pointer, loaded], [*mask, *keywords])
        return [node, ast.Expr(again)]

    return of_stores(copies, change)


def of_stores(copies: dict, change: Callable) -> More:
    stores = Stores(change)
    for node in copies.values():
        stores.visit(node)
    return made(stores.count)


def made(count: int, **more) -> More:
    if not count:
        raise NotMade("there is nothing to do twice")
    return More(**more)


def spending(words: str, a_turn: int) -> Callable:
    """Add work whose result each store of the kernel waits for. All programs together do `p`'s limit again."""

    def way(copies: dict, tops: list[str]) -> More:
        count = 0
        for name in tops:
            node = copies[name]
            stores = Stores(kept)
            stores.visit(node)
            count += stores.count
            node.args.args.append(ast.arg("TURNS", ast.parse("tl.constexpr", mode="eval").body))
            node.body[0:0] = ast.parse(f"if True:\n{words}").body[0].body
        plan = (
            "        for step in steps:\n"
            '            programs = math.prod(step["grid"])\n'
            f'            step["constexprs"] = dict(step.get("constexprs", {{}}), TURNS=2 + LIMIT // ({a_turn} * programs))'
        )
        return made(count, plan=plan)

    return way


def kept(node: ast.Expr) -> ast.Expr:
    masked(node.value, "kept", 2)
    return node


THROUGH_SCRATCH = f"""
    mine = tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))
    for turn in range(TURNS):
        tl.store(waste_ptr + (mine * TURNS + turn) * {LANES} + tl.arange(0, {LANES}), tl.arange(0, {LANES}))
"""
IN_SCRATCH = f"""        room = 0
        for step in steps:
            programs = math.prod(step["grid"])
            turns = 1 + LIMIT // ({4 * LANES} * programs)
            step["constexprs"] = dict(step.get("constexprs", {{}}), TURNS=turns)
            room = max(room, programs * turns * {LANES})
        plan["scratch"] = dict(plan.get("scratch", {{}}), waste=((room,), "int32", 0))"""


def through_scratch(copies: dict, tops: list[str]) -> More:
    """All programs together store `p`'s limit of scratch once more."""
    for name in tops:
        node = copies[name]
        node.args.args.insert(0, ast.arg("waste_ptr"))
        node.args.args.append(ast.arg("TURNS", ast.parse("tl.constexpr", mode="eval").body))
        node.body[0:0] = ast.parse(f"if True:\n{THROUGH_SCRATCH}").body[0].body
    return More(IN_SCRATCH)


def launched_again(copies: dict, tops: list[str]) -> More:
    return More("        steps = steps * 5")


class Placed(ast.NodeTransformer):
    """A program's own numbers come from its caller."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        for word, name in (("program_id", "place"), ("num_programs", "places")):
            if is_call(node, word):
                axis = node.args[0] if node.args else next(k.value for k in node.keywords if k.arg == "axis")
                return ast.Name(f"{name}_{ast.literal_eval(axis)}", ast.Load())
        return node


FIRST = """    if tl.program_id(0) + tl.program_id(1) + tl.program_id(2) > 0:
        return
"""


def serial(copies: dict, tops: list[str], idle: bool = False) -> More:
    """Run all programs' work one after the other in the first program. With `idle`, the others are launched idle."""
    found = []
    for name, node in list(copies.items()):
        if name not in tops:
            if any(is_call(one, "program_id") for one in ast.walk(node)):
                raise NotMade("a helper asks for its program's number")
            continue
        Placed().visit(node)
        inner, own = f"{name}_one", [one.arg for one in node.args.args]
        node.name = inner
        node.args.args += [ast.arg(f"place_{axis}") for axis in AXES]
        node.args.args += [
            ast.arg(f"places_{axis}", ast.parse("tl.constexpr", mode="eval").body) for axis in AXES
        ]
        said = ", ".join(
            [
                *map(ast.unparse, copies[name].args.args[: len(own)]),
                *(f"places_{axis}: tl.constexpr" for axis in AXES),
            ]
        )
        given = ", ".join([*own, "place_0", "place_1", "place_2", *(f"places_{axis}" for axis in AXES)])
        found.append(
            f"@triton.jit\ndef {name}{SUFFIX}({said}):\n{FIRST * idle}"
            "    for place_2 in range(places_2):\n        for place_1 in range(places_1):\n"
            f"            for place_0 in range(places_0):\n                {inner}({given})\n"
        )
    plan = (
        "        for step in steps:\n"
        '            grid = (tuple(step["grid"]) + (1, 1))[:3]\n'
        '            step["constexprs"] = dict(step.get("constexprs", {}), places_0=grid[0], places_1=grid[1], places_2=grid[2])\n'
    ) + ("" if idle else '            step["grid"] = (1,)')
    return More(plan, tuple(found))


WAYS = {
    "every load twice": every_load,
    "every store twice": every_store,
    "outputs read back": read_back,
    "whole numbers": spending(SPENT, A_TURN),
    "dots": spending(DOTS, A_DOT),
    "scratch": through_scratch,
    "launches": launched_again,
    "one program after the other": serial,
    "idle programs": partial(serial, idle=True),
}
