"""Check that the types of loops, branches, folds and words agree with those of their regions."""

from math import prod

from .rules_of_numbers import COUNTS, I1
from .tree import Op, Type


def folds(op: Op) -> str:
    """Check a reduction or a scan, whose region combines two elements into one."""
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
    if op.regions[0][0].types != wanted:
        return "must have a region that takes what it maps"
    gives = [Type(type.scalar, (), type.element) for type in op.result_types for _ in range(pack)]
    ends = [block.ops[-1] for block in op.regions[0] if block.ops]
    returns = [end.operand_types for end in ends if end.name == f"{op.name}.return"]
    fits = returns and all(types == gives for types in returns)
    return "" if fits else "must have a region that gives its results"


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
    """Check scf.if. A second region without operations counts as absent."""
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
    return "" if op.result_types == [Type("i32")] else "must give an i32"


def anything(op: Op) -> str:
    return ""
