"""Strip the edits from a topic's wrong answers, for the student edition: keep output and sentence.

An edit quotes a line of the right answer, and so may a helper that writes edits. So whatever the recogniser does not
reach from MISTAKES goes too.
"""

import ast

BY_SUITES = {"edits", "cell"}  # keywords of a row that make the wrong answer
EMPTY = {"by"}  # the same, where a row must have it
ROWS_OF_EDITS = {"edited", "changed", "of_table"}  # rows that are nothing else
KEPT = "MISTAKES"


def emptied(sources: dict[str, str]) -> dict[str, str]:
    """Return modules (name -> text) with what the recogniser reaches from the tables of mistakes."""
    trees = {name: _Emptied().visit(ast.parse(text)) for name, text in sources.items()}
    needed = _reached(trees)
    return {name: _without(tree, needed[name]) for name, tree in trees.items()}


class _Emptied(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        node.keywords = [keyword for keyword in node.keywords if keyword.arg not in BY_SUITES]
        for keyword in node.keywords:
            if keyword.arg in EMPTY:
                keyword.value = ast.List([], ast.Load())
        return node

    def visit_Tuple(self, node: ast.Tuple) -> ast.Tuple:
        node.elts = [one for one in node.elts if not _is_edits(one)]
        return self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> ast.Dict:
        kept = [pair for pair in zip(node.keys, node.values, strict=True) if not _is_edits(pair[1])]
        node.keys, node.values = [key for key, _ in kept], [value for _, value in kept]
        return self.generic_visit(node)


def _is_edits(node: ast.AST) -> bool:
    node = node.value if isinstance(node, ast.Starred) else node
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ROWS_OF_EDITS


def _defined(node: ast.stmt) -> set[str]:
    """Return the names that a statement at the top of a module binds, imported ones left out."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return set()


def _reached(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return, for each module, the names reached from a table of mistakes by any user."""
    found = {name: set() for name in trees}
    waiting = [(name, KEPT) for name in trees]
    while waiting:
        module, name = waiting.pop()
        if name in found[module]:
            continue
        found[module].add(name)
        for node in trees[module].body:
            if name in _defined(node):
                waiting += [
                    (module, one.id)
                    for one in ast.walk(node)
                    if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
                ]
            elif isinstance(node, ast.ImportFrom):
                for one in node.names:
                    if (one.asname or one.name) == name and node.module in trees:
                        waiting.append((node.module, one.name))
                    full = f"{node.module}.{one.name}"
                    if (one.asname or one.name) == name and full in trees:
                        waiting += [(full, attribute) for attribute in _attributes(trees[module], name)]
    return found


def _attributes(tree: ast.Module, name: str) -> set[str]:
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    }


def _without(tree: ast.Module, needed: set[str]) -> str:
    kept = []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            node.names = [one for one in node.names if (one.asname or one.name).split(".")[0] in needed]
            kept += [node] if node.names else []
        elif isinstance(node, ast.Expr) or _defined(node) & needed:
            kept.append(node)
    tree.body = kept
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
