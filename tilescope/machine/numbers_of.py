"""Read an operation's attributes as numbers."""

import numpy as np

from .tree import BadIR, Op

NEEDED = object()


def integer(op: Op, name: str, default=NEEDED) -> int:
    value = op.attributes.get(name, default)
    if not isinstance(value, int):
        raise BadIR(f"{op.name} must have the number {name}, got {str(value)[:60]}", op.line)
    return int(value)


def integers(op: Op, name: str) -> tuple[int, ...]:
    value = op.attributes.get(name)
    if not isinstance(value, tuple):
        raise BadIR(f"{op.name} must have the list {name}, got {str(value)[:60]}", op.line)
    return value


def flag(op: Op, name: str) -> bool:
    return op.attributes.get(name, False) is True


def constant(op: Op) -> np.ndarray:
    """The value of arith.constant with the programs' axis, and one element where all agree."""
    value = op.attributes["value"]
    return value[None] if value.shape else value.reshape((1,) * (1 + len(op.result_types[0].shape)))
