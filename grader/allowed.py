"""What may stand in an answer cell, as an allow-list over its syntax tree."""

import ast

from grader.answer import Refused, parse
from grader.triton_words import MEMBERS, MODULES, NOT_IN_A_KERNEL, TRITON, WHY_NOT

OURS = {"kernels", "widgets", "grader", "solutions"}
NUMPY_IMPORTS = {"numpy", "math"}
KERNEL_IMPORTS = {"import triton", "import triton.language as tl", "import math"}
KERNEL_MAY = "a kernel answer may hold @triton.jit functions, constants, helper functions and launch(p)"
NUMPY_MAY = "an answer may import numpy and math"

BUILTINS = {
    "range", "len", "min", "max", "abs", "int", "float", "bool", "tuple", "list", "dict", "enumerate", "zip", "sum",
    "print", "sorted", "reversed", "all", "any", "round", "pow", "divmod", "isinstance", "str",
    "NotImplementedError", "ValueError", "AssertionError",
}  # fmt: skip
PRELUDE = {"triton", "tl", "math"}
NODES_REFUSED = {
    ast.Import: "this import", ast.ImportFrom: "this import", ast.ClassDef: "a class", ast.Try: "try", ast.TryStar: "try",
    ast.With: "with", ast.AsyncFunctionDef: "async", ast.AsyncFor: "async", ast.AsyncWith: "async", ast.Await: "async",
    ast.Global: "global", ast.Nonlocal: "nonlocal", ast.Delete: "del", ast.Yield: "yield", ast.YieldFrom: "yield",
    ast.NamedExpr: ":=", ast.Match: "match",
}  # fmt: skip
AT_TOP = (ast.FunctionDef, ast.Assign, ast.AnnAssign, ast.Import)


def hold(source: str, question) -> None:
    """Raises Refused, with a sentence and a line, where the cell holds what it may not."""
    tree = parse(source)
    if tree is None:
        return
    _Kernel(tree, facts(question)).check() if question.kind == "kernel" else _numpy(tree)


def facts(question) -> set[str]:
    """What launch(p) may read of its p."""
    if question.kind != "kernel":
        return set()
    cases = [c for c in (*question.public, question.traffic_case, question.compile_case) if c]
    names = {name for case in cases for name in (*case.sizes, *case.scalars)}
    return (
        names
        | {f"stride_{t.name}{axis}" for t in question.tensors for axis in t.axes}
        | {"sm_count", "dtypes"}
    )


def _numpy(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or "."]
            for root in (name.split(".")[0] for name in names):
                if root in OURS:
                    raise Refused(
                        f"{NUMPY_MAY}; {root} holds the course's own solution, so it stays outside an answer",
                        node.lineno,
                    )
                if root not in NUMPY_IMPORTS:
                    raise Refused(f"{NUMPY_MAY}, got {root}", node.lineno)


class _Kernel:
    def __init__(self, tree: ast.Module, facts: set[str]):
        self.tree, self.members = tree, MEMBERS | facts
        self.roots = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        self.defined = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        self.defined |= {
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        self.defined |= {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}

    def check(self) -> None:
        for node in ast.walk(self.tree):
            self._node(node)
        for position, node in enumerate(self.tree.body):
            docstring = position == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not isinstance(node, AT_TOP) and not docstring:
                self._refuse(f"a bare `{ast.unparse(node)[:60]}` at the top", node)

    def _node(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import) and ast.unparse(node) in KERNEL_IMPORTS:
            return
        if type(node) in NODES_REFUSED:
            text = ast.unparse(node).split("\n")[0]
            ours = any(name in text.replace(".", " ").split() for name in OURS)
            hint = " (the course's own kernel stays outside an answer)" if ours else ""
            self._refuse(f"`{text[:80]}`{hint}", node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if node.id not in self.defined | BUILTINS | PRELUDE:
                self._refuse(f"the name {node.id!r}, which the cell does not define", node)
            if node.id in PRELUDE and id(node) not in self.roots:
                self._refuse(f"{node.id!r} under another name", node)
        if isinstance(node, ast.Name | ast.arg | ast.FunctionDef):
            name = getattr(node, "id", None) or getattr(node, "arg", None) or node.name
            if name in PRELUDE and not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
                self._refuse(f"a new meaning for {name!r}", node)
            if name.startswith("__"):
                self._refuse(f"the name {name!r}", node)
        if isinstance(node, ast.Attribute):
            self._attribute(node)
        if isinstance(node, ast.FunctionDef):
            self._decorators(node)
            if node.decorator_list:
                self._body_of_kernel(node)

    def _attribute(self, node: ast.Attribute) -> None:
        root, words = ast.unparse(node.value), f"`{ast.unparse(node)}`"
        known = MODULES.get(root, self.members)
        if root == "math" and not node.attr.startswith("_") or node.attr in known:
            return
        if root == "triton":
            words += f"; of triton it may use {', '.join(sorted(TRITON - {'language'}))}"
        elif reasons := [WHY_NOT[word] for word in words.strip("`").split(".") if word in WHY_NOT]:
            words += f" ({reasons[0]})"
        self._refuse(words, node)

    def _body_of_kernel(self, function: ast.FunctionDef) -> None:
        """A kernel is Triton, not Python: in the interpreter the two could be mixed, on a GPU they can't."""
        for node in ast.walk(function):
            if isinstance(node, ast.JoinedStr):
                self._refuse("a string with values in it inside a kernel; tl.device_print shows values", node)
            if isinstance(node, ast.Name) and node.id in NOT_IN_A_KERNEL and node.id not in self.defined:
                self._refuse(f"{node.id}() inside a kernel", node)

    def _decorators(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            if ast.unparse(target) != "triton.jit":
                self._refuse(
                    f"the decorator `@{ast.unparse(decorator)[:60]}`; tuned settings go into launch(p)", node
                )

    def _refuse(self, what: str, node: ast.AST):
        raise Refused(f"{KERNEL_MAY}; it may not hold {what}", getattr(node, "lineno", None))
