"""Rewrite Python for a tab, where nothing named ml_dtypes can be installed (narrowed.py)."""

import ast

ROOMS = ("grader/judge/", "grader/questions/", "grader/topics/", "kernels/")
TAKES = "narrowed_astype"
IMPORT = ast.parse(f"from grader.site.narrowed import astype as {TAKES}").body[0]
# Replaces ml_dtypes there under its name, with dtypes of the right size, which tilescope's machine knows as well.
STAND_IN = '''"""The names of ml_dtypes that the course uses, as dtypes without arithmetic."""

import numpy as np

bfloat16, float8_e4m3fn, float8_e5m2 = (
    np.dtype([(name, f"<u{size}")]) for name, size in (("bf16", 2), ("e4m3", 1), ("e5m2", 1))
)
'''


class _Conversions(ast.NodeTransformer):
    found = False

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "astype":
            return node
        self.found = True
        return ast.Call(ast.Name(TAKES, ast.Load()), [node.func.value, *node.args], node.keywords)


def rewritten(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files of a bundle with their conversions led to narrowed.astype."""
    ours = {name for name in files if name.startswith(ROOMS) and name.endswith(".py")}
    return {name: _module(text) if name in ours else text for name, text in files.items()}


def _module(text: bytes) -> bytes:
    tree, conversions = ast.parse(text), _Conversions()
    conversions.visit(tree)
    if not conversions.found:
        return text
    first = next(i for i, node in enumerate(tree.body) if not _leads(node))
    tree.body.insert(first, IMPORT)
    return (ast.unparse(ast.fix_missing_locations(tree)) + "\n").encode()


def _leads(node: ast.stmt) -> bool:
    """A docstring or an import from __future__, which have to come first."""
    return isinstance(node, ast.Expr) or (isinstance(node, ast.ImportFrom) and node.module == "__future__")
