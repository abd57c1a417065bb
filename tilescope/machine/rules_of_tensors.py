"""Check that the types of an operation that moves or multiplies whole tensors agree."""

from math import prod

from .rules_of_numbers import FLOATS, NARROW
from .tree import Op, Type

MOST_DOT_AXES = 3


def splat(op: Op) -> str:
    one, many = op.operand_types[0], op.result_types[0]
    if op.name == "tt.unsplat":
        one, many = many, one
    fits = (
        not one.shape
        and one.scalar != "desc"
        and many == Type(one.scalar, many.shape, one.element)
        and many.shape
    )
    if op.name == "tt.unsplat":
        fits = fits and prod(many.shape) == 1
    return "" if fits else "must go between a number and a tensor of it"


def reshaped(new_shape):
    """The result has its operand's elements in the shape that `new_shape(op, shape)` gives."""

    def rule(op: Op) -> str:
        old, new = op.operand_types[0], op.result_types[0]
        if not old.shape or not new.shape or "desc" in (old.scalar, new.scalar):
            return "must go from tensor to tensor"
        wanted = Type(old.scalar, new_shape(op, old.shape), old.element)
        return "" if new == wanted else "must have a result of another shape"

    return rule


def expanded(op: Op, shape: tuple) -> tuple:
    axis = op.attributes["axis"]
    return (*shape[:axis], 1, *shape[axis:]) if axis <= len(shape) else ()


def broadcast_to(op: Op, shape: tuple) -> tuple:
    wide = op.result_types[0].shape
    fits = len(wide) == len(shape) and all(old in (1, new) for old, new in zip(shape, wide, strict=True))
    return wide if fits else ()


def as_many(op: Op, shape: tuple) -> tuple:
    return op.result_types[0].shape if prod(op.result_types[0].shape) == prod(shape) else ()


def turned(op: Op, shape: tuple) -> tuple:
    order = op.attributes["order"]
    return tuple(shape[axis] for axis in order) if sorted(order) == list(range(len(shape))) else ()


def cat(op: Op) -> str:
    left, right, new = *op.operand_types, op.result_types[0]
    fits = left == right and len(left.shape) == 1 and left.scalar != "desc"
    return (
        ""
        if fits and new == Type(left.scalar, (2 * left.shape[0],), left.element)
        else "must join two lists of one type"
    )


def join(op: Op) -> str:
    halves, whole = (
        (op.operand_types, op.result_types[0])
        if op.name == "tt.join"
        else (op.result_types, op.operand_types[0])
    )
    half = halves[0]
    fits = halves[0] == halves[1] and half.scalar != "desc"
    fits = fits and whole.shape and whole == Type(half.scalar, (*half.shape, 2), half.element)
    return (
        ""
        if fits and half.shape
        else "must go between two tensors of one type and one with an axis of 2 at the end"
    )


def make_range(op: Op) -> str:
    start, end = op.attributes["start"], op.attributes["end"]
    return "" if op.result_types == [Type("i32", (end - start,))] else "must give an i32 for each number"


def histogram(op: Op) -> str:
    source, new = op.operand_types[0], op.result_types[0]
    masks = [Type("i1", source.shape)][: len(op.operands) - 1]
    fits = source == Type("i32", source.shape) and op.operand_types[1:] == masks
    fits = fits and len(source.shape) == len(new.shape) == 1 and new.scalar == "i32"
    return "" if fits else "must count a list of i32 in a list of i32"


def gather(op: Op) -> str:
    source, index = op.operand_types
    axis, new = op.attributes["axis"], op.result_types[0]
    fits = len(source.shape) == len(index.shape) > axis and index.scalar in ("i32", "i64", "i16", "i8")
    fits = fits and source.scalar != "desc" and new == Type(source.scalar, index.shape, source.element)
    if not fits:
        return "must have indices of its result's shape and an axis of its source"
    same = all(
        i <= s for place, (i, s) in enumerate(zip(index.shape, source.shape, strict=True)) if place != axis
    )
    return "" if same else "must have indices no longer than its source, but on its axis"


def dot(op: Op) -> str:
    a, b, c = op.operand_types
    if op.result_types != [c] or not 2 <= len(a.shape) == len(b.shape) == len(c.shape) <= MOST_DOT_AXES:
        return "must multiply matrices, the sum of its result's type"
    if (*a.shape[:-1], b.shape[-1]) != c.shape or (*b.shape[:-2], b.shape[-2]) != (
        *a.shape[:-2],
        a.shape[-1],
    ):
        return "must multiply matrices that fit each other"
    if a.scalar == "i8":
        return "" if b.scalar == "i8" and c.scalar == "i32" else "must sum i8 in i32"
    narrow = a.scalar in NARROW and b.scalar in NARROW
    fits = (narrow or a.scalar == b.scalar and a.scalar in FLOATS) and c.scalar in (
        "f16",
        "bf16",
        "f32",
        "f64",
    )
    return (
        ""
        if fits and (a.scalar == "f64") == (c.scalar == "f64")
        else "must multiply two of one type of floats, or i8"
    )
