"""What the types of an operation must have to do with each other, one function a kind: it says what is wrong, or nothing.

A rule runs on operations of which the number of operands and results and the attributes are right already.
"""

from math import prod

from .libdevice import SYMBOLS
from .tree import Op, Type

INTS = frozenset({"i1", "i8", "i16", "i32", "i64", "index"})
COUNTS = INTS - {"i1"}
FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
NARROW = frozenset({"f8E4M3FN", "f8E5M2"})
NUMBERS = INTS | FLOATS | NARROW
I1, I32, I64 = Type("i1"), Type("i32"), Type("i64")
MOST_DOT_AXES = 3


def bits(type: Type) -> int:
    return 1 if type.scalar == "i1" else 8 * type.dtype.itemsize


def alike(kinds: frozenset):
    """Operands and results are all of one type, a number of `kinds` or a tensor of it."""

    def rule(op: Op) -> str:
        types = op.operand_types + op.result_types
        if len(set(types)) > 1:
            return "must have one type for operands and result"
        return "" if types[0].scalar in kinds else f"must be of {_or(kinds)}"

    return rule


def converts(source: frozenset, result: frozenset, sizes="any"):
    """One number (or a tensor of it) becomes another: `sizes` is wider, narrower, same or any."""

    def rule(op: Op) -> str:
        old, new = op.operand_types[0], op.result_types[0]
        if old.shape != new.shape or old.scalar not in source or new.scalar not in result:
            return f"must go from {_or(source)} to {_or(result)} of one shape"
        fits = {
            "any": True,
            "wider": bits(new) > bits(old),
            "narrower": bits(new) < bits(old),
            "same": bits(new) == bits(old),
        }
        return "" if fits[sizes] else f"must go to a type that is {sizes}"

    return rule


def compares(kinds: frozenset):
    def rule(op: Op) -> str:
        left, right = op.operand_types
        if left != right or left.scalar not in kinds:
            return f"must compare two of one type, of {_or(kinds)}"
        return (
            ""
            if op.result_types == [Type("i1", left.shape)]
            else "must give truth values of its operands' shape"
        )

    return rule


def select(op: Op) -> str:
    condition, yes, no = op.operand_types
    if not yes == no == op.result_types[0] or yes.scalar == "desc":
        return "must choose between two of its result's type"
    return (
        ""
        if condition in (I1, Type("i1", yes.shape))
        else "must choose by truth values of its result's shape"
    )


def extended(op: Op) -> str:
    left, right = op.operand_types
    low, high = op.result_types
    other = Type("i1", left.shape) if op.name == "arith.addui_extended" else left
    right_types = left == right == low and high == other and left.scalar in COUNTS
    return "" if right_types else "must have whole numbers of one type"


def constant(op: Op) -> str:
    type, value = op.result_types[0], op.attributes["value"]
    fits = type.scalar in NUMBERS and value.dtype == type.dtype and value.shape in ((), type.shape)
    return "" if fits else "must have a value of its result's type"


def poison(op: Op) -> str:
    return "" if op.result_types[0].scalar != "desc" else "must be no descriptor"


def fp_to_fp(op: Op) -> str:
    old, new = op.operand_types[0], op.result_types[0]
    wrong = converts(FLOATS | NARROW, FLOATS | NARROW)(op)
    if not wrong and (bits(new) < bits(old)) != ("rounding" in op.attributes):
        return "must say how it rounds where it narrows, and nowhere else"
    return wrong


def bitcast(op: Op) -> str:
    old, new = op.operand_types[0], op.result_types[0]
    if old.shape != new.shape or "desc" in (old.scalar, new.scalar):
        return "must keep its operand's shape"
    if "ptr" in (old.scalar, new.scalar):
        return "" if old.scalar == new.scalar else "must keep a pointer a pointer"
    return "" if bits(old) == bits(new) else "must keep the number of bits"


def pointer_to_int(op: Op) -> str:
    old, new = op.operand_types[0], op.result_types[0]
    pointer, number = (old, new) if op.name == "tt.ptr_to_int" else (new, old)
    fits = pointer.scalar == "ptr" and number == Type("i64", pointer.shape)
    return "" if fits else "must go between a pointer and an i64"


def addptr(op: Op) -> str:
    pointer, offset = op.operand_types
    fits = pointer.scalar == "ptr" and op.result_types == [pointer]
    fits = fits and offset.scalar in COUNTS and offset.shape == pointer.shape
    return "" if fits else "must add a whole number to each pointer"


def extern(op: Op) -> str:
    symbol, shape = SYMBOLS[op.attributes["symbol"]], op.result_types[0].shape
    wanted = [Type(scalar, shape) for scalar in symbol.operands]
    fits = op.operand_types == wanted and op.result_types == [Type(symbol.result, shape)]
    return (
        ""
        if fits
        else f"{op.attributes['symbol']} must take {', '.join(symbol.operands)} and give {symbol.result}"
    )


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
    return "" if pointer.element in kinds - {"index"} else f"must be of {_or(kinds - {'index'})} here"


def atomic_cas(op: Op) -> str:
    pointer = op.operand_types[0]
    value = pointee(pointer) if pointer.scalar == "ptr" else pointer
    fits = pointer.scalar == "ptr" and op.operand_types[1:] == [value, value] and op.result_types == [value]
    return (
        ""
        if fits and bits(value) >= 16
        else "must compare and write values of 16 bits or more, of its pointers' type"
    )


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


def folds(op: Op) -> str:
    """A reduction or a scan: its region says how two become one."""
    shape, axis = op.operand_types[0].shape, op.attributes["axis"]
    if any(type.shape != shape or type.scalar == "desc" for type in op.operand_types) or axis >= len(shape):
        return "must have tensors of one shape with its axis"
    left = shape if op.name == "tt.scan" else shape[:axis] + shape[axis + 1 :]
    if op.result_types != [Type(type.scalar, left, type.element) for type in op.operand_types]:
        return "must give a result for each operand, of its type"
    single = [Type(type.scalar, (), type.element) for type in op.operand_types]
    return _one_block(op.regions[0], single + single, f"{op.name}.return", single)


def mapped(op: Op) -> str:
    shape, pack = op.operand_types[0].shape, op.attributes["pack"]
    tensors = op.operand_types + op.result_types
    if (
        any(type.shape != shape or type.scalar == "desc" for type in tensors)
        or not shape
        or prod(shape) < pack
    ):
        return "must have tensors of one shape"
    wanted = [Type(type.scalar, (), type.element) for type in op.operand_types for _ in range(pack)]
    return "" if op.regions[0][0].types == wanted else "must have a region that takes one of each operand"


def _one_block(blocks: list, arguments: list, end: str, ends_with: list) -> str:
    if len(blocks) != 1 or blocks[0].types != list(arguments):
        return "must have a region that takes its values"
    last = blocks[0].ops[-1] if blocks[0].ops else None
    if last is None or last.name != end or last.operand_types != list(ends_with):
        return f"must have a region that ends in {end} with its values"
    return ""


def loop(op: Op) -> str:
    counter = op.operand_types[0]
    if op.operand_types[:3] != [counter] * 3 or counter.scalar not in COUNTS or counter.shape:
        return "must count in whole numbers of one type"
    if op.operand_types[3:] != op.result_types:
        return "must give back what it carries"
    return _one_block(op.regions[0], [counter, *op.result_types], "scf.yield", op.result_types)


def branch(op: Op) -> str:
    """scf.if: a second region without operations is one that is not there."""
    then, *other = op.regions
    if op.operand_types != [I1]:
        return "must ask one truth value"
    for place, blocks in enumerate((then, *other)):
        empty = len(blocks) == 1 and not blocks[0].ops and not blocks[0].types
        if not (empty and place and not op.result_types):
            if wrong := _one_block(blocks, [], "scf.yield", op.result_types):
                return wrong
    return "" if other or not op.result_types else "must have a second region for its values"


def while_loop(op: Op) -> str:
    before, after = op.regions
    wrong = _one_block(before, op.operand_types, "scf.condition", [I1, *op.result_types])
    return wrong or _one_block(after, op.result_types, "scf.yield", op.operand_types)


def conditional(op: Op) -> str:
    sizes = op.attributes["operandSegmentSizes"]
    fits = len(sizes) == 3 and sizes[0] == 1 and sum(sizes) == len(op.operands) and op.operand_types[0] == I1
    return "" if fits else "must ask one truth value and hand on its values"


def assertion(op: Op) -> str:
    return "" if op.operand_types[0].scalar == "i1" else "must ask truth values"


def assume(op: Op) -> str:
    return "" if op.operand_types == [I1] else "must ask one truth value"


def prints(op: Op) -> str:
    if any(type.scalar == "desc" for type in op.operand_types):
        return "must print numbers or pointers"
    return (
        ""
        if len(op.attributes["isSigned"]) == len(op.operands)
        else "must say of each value whether it has a sign"
    )


def i32_result(op: Op) -> str:
    return "" if op.result_types == [I32] else "must give an i32"


def anything(op: Op) -> str:
    return ""


def _or(kinds: frozenset) -> str:
    return " or ".join(sorted(kinds - {"index"}))


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
    """Rows gathered or scattered: the descriptor's tile has one, the indices say which."""
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
