"""Make useless answers from a right one. They return zeros, the mean, or the output of the case before.

A kernel's copy does so everywhere, or beyond the largest public size. For a function, its results are replaced.
"""

import ast

from grader.proofs.wasteful import More, NotMade, Stores, kept, made

ZEROS, MEAN, LAST = "zeros", "the mean", "the last case's output"
INSTEAD = {
    ZEROS: """
@triton.jit
def instead(value):
    return tl.where(tl.program_id(0) < 0, value, 0)
""",
    MEAN: """
@triton.jit
def instead(value):
    if value.type.is_block():
        return tl.where(tl.program_id(0) < 0, value, (tl.sum(value) / value.numel).to(value.dtype))
    else:
        return tl.where(tl.program_id(0) < 0, value, 0)  # a number's own mean is the right answer
""",
}


def stores(way: str):
    """Return a way of `wasteful.cell` that stores something else."""

    def more(copies: dict, tops: list[str]) -> More:
        def change(node: ast.Expr) -> ast.Expr:
            call = node.value
            if len(call.args) < 2:
                raise NotMade("a store names its value")
            call.args[1] = ast.Call(ast.Name("instead", ast.Load()), [call.args[1]], [])
            return node

        found = Stores(change)
        for node in copies.values():
            found.visit(node)
        return made(found.count, before=(INSTEAD[way],))

    return more


def keeps(copies: dict, tops: list[str]) -> More:
    """Store nothing, so that memory holds what it held."""
    count = 0
    for node in copies.values():
        found = Stores(kept)
        found.visit(node)
        count += found.count
        if found.count:
            node.body[0:0] = ast.parse("kept = tl.program_id(0) < 0").body
    return made(count)


OF_KERNELS = {ZEROS: stores(ZEROS), MEAN: stores(MEAN), LAST: keeps}

OTHERS = """
right_results = {entry}


def like(found, change):
    if isinstance(found, (tuple, list)):
        return type(found)(like(one, change) for one in found)
    if isinstance(found, dict):
        return {{name: like(one, change) for name, one in found.items()}}
    return change(found)


def zeros(one):
    return np.zeros_like(one) if isinstance(one, (np.ndarray, np.generic)) else type(one)()


def mean(one):
    if not isinstance(one, np.ndarray) or one.dtype.kind not in "fiu" or one.size < 2:
        return zeros(one)
    return np.full_like(one, one.mean())


LAST = []


def {entry}(*arguments):
    found = right_results(*arguments)
    LAST.append(found)
    return {result}
"""
RESULTS = {
    ZEROS: "like(found, zeros)",
    MEAN: "like(found, mean)",
    LAST: "LAST[-2] if len(LAST) > 1 else like(found, zeros)",
}


def function(source: str, entry: str, way: str) -> str:
    """Return the cell of a function, in numpy or of a rank, whose results are replaced."""
    return source + OTHERS.format(entry=entry, result=RESULTS[way])
