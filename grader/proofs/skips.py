"""Make wrong answers from a right one that leave out what seems not to matter: numbers that are faint beside others, zero
times something, values that aren't finite.

Each changes one load, product, sum or exponential of one kernel, and its results are right for usual numbers. Those that break
no promise of the lab are listed with the reason in skips.json.
"""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from grader import questions
from grader.judge import answer, parts
from grader.judge.failed import Refusal
from grader.judge.record import PASS
from grader.proofs import resumed
from grader.proofs.closed import CANNOT_BE_MADE, SEED
from grader.proofs.resumed import DIES, LIVES, NOT_MADE
from grader.proofs.right import kernel_questions, right
from grader.proofs.wasteful import is_call, jitted
from grader.proofs.wrong import reasons_of, sample

HARMLESS = Path(__file__).with_name("skips.json")
QUICK = (
    "roofline.doubled",
    "roofline.outer_difference",
    "roofline.small_product",
    "next_bottleneck.residual_norm",
)
OF_ANOTHER_KIND = "CompileTimeAssertionFailure"  # of a number, which Triton finds

FINITE = """
@triton.jit
def largest(value):
    size = tl.abs(value.to(tl.float32))
    return tl.max(tl.ravel(tl.where(size < float("inf"), size, 0.0)), 0)
"""
OF_LOADS = {
    "a NaN counts as 0": "tl.where(value == value, value, 0.0).to(value.dtype)",
    "an infinity counts as 0": 'tl.where(tl.abs(value.to(tl.float32)) == float("inf"), 0.0, value).to(value.dtype)',
    "faint in its block counts as 0": "tl.where(tl.abs(value.to(tl.float32)) < largest(value) * 0.0009765625, 0.0, value).to(value.dtype)",
    "below 2^-14 counts as 0": "tl.where(tl.abs(value.to(tl.float32)) < 0.00006103515625, 0.0, value).to(value.dtype)",
    "at most 2^15": "tl.where(value > 32768.0, 32768.0, tl.where(value < -32768.0, -32768.0, value)).to(value.dtype)",
}
OF_NUMBERS = {
    "at most 255": "tl.minimum(value, 255)",
    "at most 2^15": "tl.minimum(value, 32768)",
    "negative counts as 0": "tl.where(value < 0, 0, value)",
}
OF_DOTS = {
    "zeros of the first swallow the second": (
        1,
        "tl.where(tl.max(tl.abs(first.to(tl.float32)), 0)[:, None] == 0, 0.0, second).to(second.dtype)",
    ),
    "zeros of the second swallow the first": (
        0,
        "tl.where(tl.max(tl.abs(second.to(tl.float32)), 1)[None, :] == 0, 0.0, first).to(first.dtype)",
    ),
    "a faint first block is left out": (
        0,
        "tl.where(largest(first) < 0.001953125, 0.0, first).to(first.dtype)",
    ),
    "a faint second block is left out": (
        1,
        "tl.where(largest(second) < 0.001953125, 0.0, second).to(second.dtype)",
    ),
}
OF_PRODUCTS = {"0 times anything is 0": "tl.where((first == 0) | (second == 0), 0.0, first * second)"}
OF_SUMS = {
    "a faint block isn't added": "tl.where(largest(second) < largest(first) * 0.000244140625, first, first + second)",
    "what is faint isn't added": "tl.where(tl.abs(second) < tl.abs(first) * 0.000244140625, first, first + second)",
    "nothing is added to 1": "tl.where(first > 0.999, first, first + second)",
}
OF_EXPONENTIALS = {
    "below 2^-20 it is 0": "tl.where(value < -14.0, 0.0, tl.{name}(value))",
    "above 2^7 it is less": "tl.{name}(tl.minimum(value, 5.0))",
}
HELPER = """
@triton.jit
def left_out({taken}):
    tl.static_assert({test})
    return {result}
"""
FLOATING, WHOLE = "{}.dtype.is_floating()", "{}.dtype.is_int()"


@dataclass(frozen=True)
class Skip:
    """Hold a change of the `number`th node that ast.walk finds in a cell. `operand` is the one of tl.dot that changes."""

    name: str
    number: int
    helper: str
    operand: int = 0


def skips(source: str) -> Iterator[Skip]:
    """Yield all changes of a cell."""
    tree = ast.parse(source)
    places = {id(node): number for number, node in enumerate(ast.walk(tree))}
    names: Counter = Counter()
    for kernel in tree.body:
        if not isinstance(kernel, ast.FunctionDef) or not jitted(kernel):
            continue
        values = of_values(kernel)
        for node in ast.walk(kernel):
            for way, taken, test, result, operand in _changes(node, values):
                name = f"{way}: {short(node)}"[:120]
                names[name] += 1
                name += f" ({names[name]})" if names[name] > 1 else ""
                helper = HELPER.format(taken=taken, test=test, result=result)
                yield Skip(name, places[id(node)], helper, operand)


def short(node: ast.AST) -> str:
    """Return a node's words, a load's pointer without its mask."""
    if is_call(node, "load"):
        return f"tl.load({ast.unparse(node.args[0])})"
    return ast.unparse(node)


def of_values(kernel: ast.FunctionDef) -> set[str]:
    """Return the names that may hold numbers, not addresses: those made of loaded or multiplied ones or by functions."""
    found: set[str] = set()
    while True:
        more = {
            name.id
            for node in ast.walk(kernel)
            if isinstance(node, ast.Assign | ast.AugAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            for name in ast.walk(target)
            if isinstance(name, ast.Name) and holds_value(node.value, found)
        }
        if more <= found:
            return found
        found |= more


def holds_value(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Call) and ast.unparse(node.func) in MAKE_VALUES:
        return True
    if isinstance(node, ast.Compare) or (isinstance(node, ast.Name) and node.id in names):
        return isinstance(node, ast.Name)
    return any(holds_value(one, names) for one in ast.iter_child_nodes(node))


MAKE_VALUES = ("tl.load", "tl.dot", "tl.exp", "tl.exp2", "tl.log", "tl.zeros", "tl.full")


def _changes(node: ast.AST, values: set[str]) -> Iterator[tuple[str, str, str, str, int]]:
    """Yield (way, arguments, what must hold of them, result, operand) of the changes of one node."""
    if is_call(node, "load"):
        for way, result in OF_LOADS.items():
            yield way, "value", FLOATING.format("value"), result, 0
        for way, result in OF_NUMBERS.items():
            yield way, "value", WHOLE.format("value"), result, 0
    pair, floats = "first, second", f"{FLOATING.format('first')} and {FLOATING.format('second')}"
    if is_call(node, "dot"):
        for way, (operand, result) in OF_DOTS.items():
            yield way, pair, floats, result, operand
    adds = OF_SUMS if isinstance(getattr(node, "op", None), ast.Add) else {}
    multiplies = OF_PRODUCTS if isinstance(getattr(node, "op", None), ast.Mult) else {}
    if isinstance(node, ast.BinOp | ast.AugAssign) and holds_value(node, values):
        for way, result in (adds | multiplies).items():
            yield way, pair, floats, result, 0
    for name in ("exp", "exp2"):
        if is_call(node, name):
            for way, result in OF_EXPONENTIALS.items():
                yield way, "value", FLOATING.format("value"), result.format(name=name), 0


def made(source: str, skip: Skip) -> str:
    """Return the changed cell."""
    tree = ast.parse(source)
    node = next(islice(ast.walk(tree), skip.number, None))
    called = ast.Name("left_out", ast.Load())
    if isinstance(node, ast.AugAssign):
        before = copy.deepcopy(node.target)
        before.ctx = ast.Load()
        new: ast.AST = ast.Assign([node.target], ast.Call(called, [before, node.value], []))
    elif isinstance(node, ast.BinOp):
        new = ast.Call(called, [node.left, node.right], [])
    elif is_call(node, "dot"):
        new = copy.deepcopy(node)
        new.args[skip.operand] = ast.Call(called, copy.deepcopy(node.args[:2]), [])
    elif is_call(node, "load"):
        new = ast.Call(called, [copy.deepcopy(node)], [])
    else:
        new = ast.Call(called, node.args[:1], [])
    Replaced(node, new).visit(tree)
    helpers = ast.parse(FINITE * ("largest(" in skip.helper) + skip.helper).body
    last = max(
        (i for i, one in enumerate(tree.body) if isinstance(one, ast.Import | ast.ImportFrom)), default=-1
    )
    tree.body[last + 1 : last + 1] = helpers
    return ast.unparse(ast.fix_missing_locations(tree))


class Replaced(ast.NodeTransformer):
    """One node gives way to another one."""

    def __init__(self, old: ast.AST, new: ast.AST):
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else super().visit(node)


def judge(question_id: str, name: str) -> str:
    """Say whether an answer that leaves something out lives, dies or cannot be made, by its values alone."""
    question = questions.find(question_id)
    text = answer.normalise(made(right(question_id), of_question(question_id)[name]))
    evidence = parts.gather(question, text, SEED, "cpu", eager=False)
    try:
        for part in question.parts:
            if part.judge in parts.OF_VALUES:
                found = parts.judge(evidence, part)
                if found.state != PASS:
                    kind = (found.facts.get("error") or {}).get("kind")
                    return NOT_MADE if kind in (*CANNOT_BE_MADE, OF_ANOTHER_KIND) else DIES
        return LIVES
    except (answer.Refused, Refusal):
        return NOT_MADE
    finally:
        evidence.end()


@cache
def harmless() -> dict[str, dict[str, str]]:
    """Return the skips that break no promise, as question -> skip -> reason."""
    return reasons_of(HARMLESS)


@cache
def of_question(question_id: str) -> dict[str, Skip]:
    return {skip.name: skip for skip in skips(right(question_id))}


def tasks(everything: bool, question: str | None = None) -> list[tuple[str, str]]:
    """Return (question, skip) of all that must lose points, or of a sample that is judged soon."""
    chosen = [one.id for one in kernel_questions() if question in (None, one.id)]
    if not (everything or question):
        chosen = [one for one in chosen if one in QUICK]
    every = {
        one: [name for name in of_question(one) if name not in harmless().get(one, {})] for one in chosen
    }
    if everything or question:
        return [(one, name) for one, names in every.items() for name in names]
    return [(one, name) for one, names in every.items() for name in sample(names, 1)]


def run(
    everything: bool, say, question: str | None = None, jobs: int = 1, record: Path | None = None
) -> tuple[list[dict], list[str]]:
    """Return (a row for each answer that was made, the survivors)."""
    asked = tasks(everything, question)
    ever_asked = tasks(everything=True) if record else asked
    return resumed.run(("question", "skip"), asked, ever_asked, judge, say, jobs, record)
