"""Find each operation's meaning. `pure` ones know only their operands, `bound` ones the run they are part of.

A factory takes the operation from the tree, reads its attributes once, and returns what is called for every execution.
"""

from collections.abc import Callable

PURE: dict[str, Callable] = {}  # factory(op) -> function(*values)
BOUND: dict[str, Callable] = {}  # factory(op) -> function(run, *values)


def pure(*names: str):
    def add(factory):
        PURE.update(dict.fromkeys(names, factory))
        return factory

    return add


def bound(*names: str):
    def add(factory):
        BOUND.update(dict.fromkeys(names, factory))
        return factory

    return add
