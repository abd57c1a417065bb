"""What may stand in an answer cell, as an allow-list over its syntax tree."""

import ast

from grader.answer import Refused, parse

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
TRITON_MEMBERS = {"jit", "cdiv", "next_power_of_2", "language"}
TL_REFUSED = {
    "inline_asm_elementwise": "inline assembly", "extra": "device libraries", "core": "Triton's internals",
    "semantic": "Triton's internals", "standard": "Triton's internals", "target_info": "the target", "str_to_ty": "Triton's internals",
}  # fmt: skip
NODES_REFUSED = {
    ast.Import: "this import", ast.ImportFrom: "this import", ast.ClassDef: "a class", ast.Try: "try", ast.TryStar: "try",
    ast.With: "with", ast.AsyncFunctionDef: "async", ast.AsyncFor: "async", ast.AsyncWith: "async", ast.Await: "async",
    ast.Global: "global", ast.Nonlocal: "nonlocal", ast.Delete: "del", ast.Yield: "yield", ast.YieldFrom: "yield",
    ast.NamedExpr: ":=", ast.Match: "match",
}  # fmt: skip
AT_TOP = (ast.FunctionDef, ast.Assign, ast.AnnAssign, ast.Import)


def hold(source: str, kind: str) -> None:
    """Raises Refused, with a sentence and a line, where the cell holds what it may not."""
    tree = parse(source)
    if tree is None:
        return
    _Kernel(tree).check() if kind == "kernel" else _numpy(tree)


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
    def __init__(self, tree: ast.Module):
        self.tree = tree
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

    def _attribute(self, node: ast.Attribute) -> None:
        root = ast.unparse(node.value)
        if node.attr.startswith("_") or node.attr in ("fn", "run", "warmup", "src", "cache"):
            self._refuse(f"`{ast.unparse(node)}`", node)
        if root == "triton" and node.attr not in TRITON_MEMBERS:
            self._refuse(
                f"`{ast.unparse(node)}`; of triton it may use {', '.join(sorted(TRITON_MEMBERS - {'language'}))}",
                node,
            )
        if root in ("tl", "triton.language") and (node.attr in TL_REFUSED or node.attr.startswith("extern")):
            self._refuse(f"`{ast.unparse(node)}` ({TL_REFUSED.get(node.attr, 'device libraries')})", node)

    def _decorators(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            if ast.unparse(target) != "triton.jit":
                self._refuse(
                    f"the decorator `@{ast.unparse(decorator)[:60]}`; tuned settings go into launch(p)", node
                )

    def _refuse(self, what: str, node: ast.AST):
        raise Refused(f"{KERNEL_MAY}; it may not hold {what}", getattr(node, "lineno", None))
