"""Check that the types of an operation on memory agree."""

from .rules_of_numbers import COUNTS, FLOATS, bits, either
from .tree import Op, Type

I32, I64 = Type("i32"), Type("i64")


def pointee(type: Type) -> Type:
    return Type(type.element, type.shape)


def load(op: Op) -> str:
    pointer, sizes = op.operand_types[0], op.attributes["operandSegmentSizes"]
    if pointer.scalar != "ptr":
        return "must read through pointers"
    if sizes != (1, *(1 for _ in op.operands[1:]), *(0 for _ in range(3 - len(op.operands)))):
        return "must have a mask where it has an `other`"
    wanted = [pointer, Type("i1", pointer.shape), pointee(pointer)][: len(op.operands)]
    fits = op.operand_types == wanted and op.result_types == [pointee(pointer)]
    return "" if fits else "must have a mask and values of its pointers' shape and type"


def store(op: Op) -> str:
    pointer = op.operand_types[0]
    if pointer.scalar != "ptr":
        return "must write through pointers"
    wanted = [pointer, pointee(pointer), Type("i1", pointer.shape)][: len(op.operands)]
    return "" if op.operand_types == wanted else "must have a mask and values of its pointers' shape and type"


def atomic_rmw(op: Op) -> str:
    pointer, kind = op.operand_types[0], op.attributes["atomic_rmw_op"]
    if wrong := store(op):
        return wrong
    if op.result_types != [pointee(pointer)]:
        return "must give values of its pointers' shape and type"
    kinds = FLOATS if kind == 5 else FLOATS | COUNTS if kind == 10 else frozenset({"i32", "i64"})
    return "" if pointer.element in kinds - {"index"} else f"must be of {either(kinds - {'index'})} here"


def atomic_cas(op: Op) -> str:
    pointer = op.operand_types[0]
    value = pointee(pointer) if pointer.scalar == "ptr" else pointer
    fits = pointer.scalar == "ptr" and op.operand_types[1:] == [value, value] and op.result_types == [value]
    return (
        ""
        if fits and bits(value) >= 16
        else "must compare and write values of 16 bits or more, of its pointers' type"
    )


def make_descriptor(op: Op) -> str:
    base, result = op.operand_types[0], op.result_types[0]
    axes = len(result.shape)
    if result.scalar != "desc" or base != Type("ptr", (), result.element):
        return "must describe what its pointer points to"
    fits = 1 <= axes <= 5 and op.operand_types[1:] == [I32] * axes + [I64] * axes
    return "" if fits else "must have an i32 size and an i64 stride for each axis"


def descriptor_load(op: Op) -> str:
    what, *offsets = op.operand_types
    if what.scalar != "desc" or offsets != [I32] * len(what.shape):
        return "must have a descriptor and an i32 offset for each axis"
    return "" if op.result_types == [Type(what.element, what.shape)] else "must give its descriptor's tile"


def descriptor_store(op: Op) -> str:
    what, tile, *offsets = op.operand_types
    if what.scalar != "desc" or offsets != [I32] * len(what.shape):
        return "must have a descriptor and an i32 offset for each axis"
    return "" if tile == Type(what.element, what.shape) else "must write its descriptor's tile"


def descriptor_rows(op: Op) -> str:
    """Check rows gathered or scattered. The descriptor's tile has one row, which the indices select."""
    what, rows, column, *tiles = op.operand_types
    tile = (tiles or op.result_types)[0]
    if what.scalar != "desc" or len(what.shape) != 2 or what.shape[0] != 1 or column != I32:
        return "must have a descriptor of single rows and an i32 offset"
    fits = rows.scalar == "i32" and len(rows.shape) == 1 and len(tiles) == 1 - len(op.results)
    return (
        ""
        if fits and tile == Type(what.element, (*rows.shape, what.shape[1]))
        else "must have an i32 for each row"
    )
