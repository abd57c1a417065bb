"""Check that the types of an operation on numbers agree. A rule returns the fault, or nothing.

A rule runs where the number of operands and results and the attributes are right already.
"""

from .libdevice import SYMBOLS
from .tree import Op, Type

INTS = frozenset({"i1", "i8", "i16", "i32", "i64", "index"})
COUNTS = INTS - {"i1"}
FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
NARROW = frozenset({"f8E4M3FN", "f8E5M2"})
NUMBERS = INTS | FLOATS | NARROW
I1 = Type("i1")


def bits(type: Type) -> int:
    return 1 if type.scalar == "i1" else 8 * type.dtype.itemsize


def either(kinds: frozenset) -> str:
    return " or ".join(sorted(kinds - {"index"}))


def alike(kinds: frozenset):
    """Require one type for operands and results, a number of `kinds` or a tensor of this number."""

    def rule(op: Op) -> str:
        types = op.operand_types + op.result_types
        if len(set(types)) > 1:
            return "must have one type for operands and result"
        return "" if types[0].scalar in kinds else f"must be of {either(kinds)}"

    return rule


def converts(source: frozenset, result: frozenset, sizes="any"):
    """Convert one number (or tensor) to another type. `sizes` is wider, narrower, same or any."""

    def rule(op: Op) -> str:
        old, new = op.operand_types[0], op.result_types[0]
        if old.shape != new.shape or old.scalar not in source or new.scalar not in result:
            return f"must go from {either(source)} to {either(result)} of one shape"
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
            return f"must compare two of one type, of {either(kinds)}"
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
