"""A topic's table of wrong answers as a student edition may hold it: what comes out, never the edits that lead there.

An edit names a line of the right answer. What the recogniser needs are sentences and what each mistake computes.
"""

import ast

EDITS = {"by"}  # keywords of a row that hold edits
ALL_EDITS = {"changed"}  # rows that are nothing but edits
OF_THE_SUITES = {"EQUIVALENT"}


class _Emptied(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        for keyword in node.keywords:
            if keyword.arg in EDITS:
                keyword.value = ast.List([], ast.Load())
        if isinstance(node.func, ast.Name) and node.func.id in ALL_EDITS:
            node.args = []
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        if any(isinstance(target, ast.Name) and target.id in OF_THE_SUITES for target in node.targets):
            node.value = ast.Dict([], [])
            return node
        if isinstance(node.value, ast.Constant) and isinstance(
            node.value.value, str
        ):  # a line that edits share
            node.value = ast.Constant("")
            return node
        return self.generic_visit(node)


def emptied(source: str) -> str:
    return ast.unparse(ast.fix_missing_locations(_Emptied().visit(ast.parse(source)))) + "\n"
