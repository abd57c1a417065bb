"""Find how many neighbours in memory one instruction of a load or a store may move, as far as a compiler can see them.

As in Triton's analysis of axes, a block has a contiguity, a divisibility and a constancy along each of its axes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd, prod

import numpy as np

from .module_size import every_op
from .rules_of_numbers import bits
from .threads import FROM_MEMORY
from .tree import Function, Module, Op, Type

MOST = 1 << 30  # what divides 0
PASSES = 16  # over a function, until what loops carry no longer changes
VECTOR = 128  # bits that one instruction of a lane moves at most
PROMISES = {"contiguity": "tt.contiguity", "divisibility": "tt.divisibility", "constancy": "tt.constancy"}
THREADS = 128  # of a program, as launches have if they name no number of warps
# the operand that is the mask, if there is one
MASKS = {"tt.load": 1, "tt.store": 2, "tt.atomic_rmw": 2, "tt.atomic_cas": 3}
ANYTHING = FROM_MEMORY | {"tt.gather"}  # whose results the text doesn't tell


@dataclass(frozen=True)
class Axes:
    """Hold for each axis how many numbers in a row follow one another, what divides the first of each such row, and how many
    in a row are equal. A lone number has one axis."""

    contiguity: tuple[int, ...]
    divisibility: tuple[int, ...]
    constancy: tuple[int, ...]
    value: int | None = None  # if it is one known number
    loaded: tuple[bool, ...] = ()  # for each axis, whether what memory holds decides how it goes on
    begins: bool = False  # and whether it decides where it begins
    parameter: int | None = None  # of the kernel, if these are addresses in one tensor

    def __post_init__(self):
        object.__setattr__(self, "loaded", self.loaded or (False,) * len(self.contiguity))

    def meet(self, other: "Axes") -> "Axes":
        """Return what holds for either of two."""
        pairs = [(getattr(self, name), getattr(other, name)) for name in PROMISES]
        value = self.value if self.value == other.value else None
        return Axes(
            *(each(gcd, *pair) for pair in pairs),
            value,
            *memory(self, other),
            only(self.parameter, other.parameter),
        )


@dataclass(frozen=True)
class Access:
    """Hold a load or a store of a block: the line, the place of its tensor among the kernel's parameters, the bits of a
    number, how many of them one instruction may move, and the lanes along the block's longest axis."""

    kind: str  # "load" or "store"
    line: int
    parameter: int
    bits: int
    neighbours: int
    side: int


def accesses(module: Module) -> list[Access]:
    """Return the loads and stores of blocks, in the order of the text, without those whose addresses or masks come from
    memory."""
    found = []
    for op, address, mask in blocks_moved(module):
        size, open_axes = size_of(op), [not loaded for loaded in address.loaded]
        picked = mask is not None and any(mask.loaded)
        if op.name in ("tt.load", "tt.store") and address.parameter is not None and not picked:
            along = in_sight(op, address, mask)
            best = [
                run
                for run, side, free in zip(along, shape_of(op), open_axes, strict=True)
                if side > 1 and free
            ]
            if best:
                kind = op.name.removeprefix("tt.")
                found.append(Access(kind, op.line, address.parameter, size, max(best), max(shape_of(op))))
    return found


def dealt_out(module: Module) -> dict[int, tuple[int, int]]:
    """Return along which axis the compiler deals out a block to threads, and how many numbers in a row to each, by the id of
    the operation that loads or stores it."""
    found = {}
    for op, address, mask in blocks_moved(module):
        # here what memory holds may be anything
        along = in_sight(
            op, replace(address, begins=False), mask and replace(mask, loaded=(False,) * len(mask.loaded))
        )
        axis = max(range(len(along)), key=lambda one: (address.contiguity[one], one))
        found[id(op)] = axis, min(along[axis], max(1, prod(shape_of(op)) // THREADS))
    return found


def blocks_moved(module: Module) -> Iterator[tuple[Op, Axes, Axes | None]]:
    """Yield each operation that moves a block, with what is known of its addresses and of its mask."""
    for function in module.functions.values():
        known = Known(function)
        for op in every_op(function.blocks):
            if op.name in MASKS and op.operand_types[0].element and op.operand_types[0].shape:
                each, place = [*map(known.of, op.operands, op.operand_types)], MASKS[op.name]
                yield op, each[0], each[place] if len(each) > place else None


def shape_of(op: Op) -> tuple[int, ...]:
    return op.operand_types[0].shape


def size_of(op: Op) -> int:
    """Return the bits of a number that is moved."""
    return bits(Type(op.operand_types[0].element))


def in_sight(op: Op, address: Axes, mask: Axes | None) -> list[int]:
    """Return for each axis how many neighbours one instruction may move."""
    size, found = size_of(op), []
    for axis, run in enumerate(address.contiguity):
        if not address.begins:
            run = min(run, max(1, 8 * address.divisibility[axis] // size))
        if mask is not None and not mask.loaded[axis]:
            run = min(run, mask.constancy[axis])
        found.append(min(run, VECTOR // size))
    return found


class Known:
    """Hold what is known of each value of a function."""

    def __init__(self, function: Function):
        self.values: dict[str, Axes] = {}
        # of each operation, what was known of its operands when it was last read, and of its result: it may be read again
        self.found: dict[tuple, tuple] = {}
        first, *others = function.blocks
        promises = function.argument_attributes or [{}] * len(first.arguments)
        for place, (name, type) in enumerate(zip(first.arguments, first.types, strict=True)):
            known = nothing(type)
            if function.public:  # parameters of others may be anything
                divides = promises[place].get("tt.divisibility", 1)
                known = replace(known, divisibility=(divides,), parameter=place if type.element else None)
            self.values[name] = known
        for block in others:
            self.values |= {
                name: nothing(type) for name, type in zip(block.arguments, block.types, strict=True)
            }
        for _ in range(PASSES):
            before = dict(self.values)
            for block in function.blocks:
                self.read(block.ops)
            if self.values == before:
                return
        # a loop goes on changing: nothing is known of what loops carry
        self.values = {}

    def of(self, name: str, type: Type) -> Axes:
        return self.values.get(name) or nothing(type)

    def read(self, ops: list[Op]) -> None:
        for op in ops:
            if op.name in REGIONS:
                REGIONS[op.name](self, op)
                continue
            for region in op.regions:  # of a reduction, which combines lone numbers
                for block in region:
                    self.read(block.ops)
            for name, type in zip(op.results, op.result_types, strict=True):
                operands = [*map(self.of, op.operands, op.operand_types)]
                before, known = self.found.get((id(op), name), (None, None))
                if before != operands:
                    known = promised(op, made(op, type, operands))
                    if type.element:
                        whose = (one.parameter for one in operands if one.parameter is not None)
                        known = replace(known, parameter=only(*whose))
                    self.found[id(op), name] = operands, known
                self.values[name] = known

    def hand(self, names: list[str], given: list[str]) -> None:
        """Let values be any of those that are handed to them."""
        for name, other in zip(names, given, strict=True):
            if other in self.values:
                mine, theirs = self.values.get(name), self.values[other]
                self.values[name] = mine.meet(theirs) if mine else theirs

    def loop(self, op: Op) -> None:
        (body,) = op.regions[0]
        begin, _, step = (self.of(name, Type("i32")) for name in op.operands[:3])
        counter, *carried = body.arguments
        self.values[counter] = Axes(
            (1,), each(gcd, begin.divisibility, step.divisibility), (1,), None, *memory(begin, step)
        )
        self.hand(carried, op.operands[3:])
        self.hand(op.results, op.operands[3:])
        self.read(body.ops)
        self.hand(carried, body.ops[-1].operands)
        self.hand(op.results, body.ops[-1].operands)

    def while_loop(self, op: Op) -> None:
        (before,), (after,) = op.regions
        self.hand(before.arguments, op.operands)
        self.read(before.ops)
        handed = before.ops[-1].operands[1:]
        self.hand(after.arguments, handed)
        self.hand(op.results, handed)
        self.read(after.ops)
        self.hand(before.arguments, after.ops[-1].operands)

    def branch(self, op: Op) -> None:
        for (block,) in op.regions:
            self.read(block.ops)
            if op.results:
                self.hand(op.results, block.ops[-1].operands)


def made(op: Op, type: Type, operands: list[Axes]) -> Axes:
    """Return what is known of an operation's result."""
    if op.name in SHAPED:
        return SHAPED[op.name](op, type, *operands)
    found = RULES[op.name](op, type, *operands) if op.name in RULES else nothing(type)
    rank = len(found.contiguity)
    if op.name in RULES and all(len(one.contiguity) == rank for one in operands):
        loaded, begins = memory(*operands) if operands else ((), False)
    else:
        begins = op.name in ANYTHING or any(one.begins for one in operands)
        loaded = (begins,) * rank
    return replace(found, loaded=loaded, begins=begins)


REGIONS = {"scf.for": Known.loop, "scf.while": Known.while_loop, "scf.if": Known.branch}


def each(function, *numbers: tuple) -> tuple:
    """Apply a function axis by axis."""
    return tuple(function(*one) for one in zip(*numbers, strict=True))


def only(*found):
    """Return what all of these are, or None."""
    return found[0] if len(set(found)) == 1 else None


def memory(*values: Axes) -> tuple[tuple[bool, ...], bool]:
    """Return along which axes what memory holds decides any of these values, and whether it decides where one begins."""
    return each(lambda *one: any(one), *(value.loaded for value in values)), any(
        value.begins for value in values
    )


def nothing(type: Type) -> Axes:
    """Return what is known of a value of which nothing is known."""
    ones = (1,) * max(1, len(type.shape))
    return Axes(ones, ones, ones)


def power(number: int) -> int:
    """Return the largest power of two that divides a number."""
    return min(number & -number, MOST) if number else MOST


def promised(op: Op, found: Axes) -> Axes:
    """Add the promises of tl.multiple_of and its kin, which the machine holds a run to."""
    said = {
        name: each(max, getattr(found, name), tuple(op.attributes[word]))
        for name, word in PROMISES.items()
        if len(op.attributes.get(word, ())) == len(found.contiguity)
    }
    return replace(found, **said) if said else found


# ---- rules, by operation


def constant(op: Op, type: Type) -> Axes:
    value = op.attributes["value"]
    numbers = np.unique(np.asarray(value)) if np.size(value) else np.array([])
    if numbers.size != 1 or numbers.dtype.kind not in "iub":
        return nothing(type)
    number, rank = int(numbers[0]), max(1, len(type.shape))
    return Axes((1,) * rank, (power(number),) * rank, type.shape or (1,), number)


def make_range(op: Op, type: Type) -> Axes:
    return Axes(type.shape, (power(op.attributes["start"]),), (1,))


def splat(op: Op, type: Type, one: Axes) -> Axes:
    rank = len(type.shape)
    return Axes((1,) * rank, one.divisibility * rank, type.shape, one.value, begins=one.begins)


def unsplat(op: Op, type: Type, one: Axes) -> Axes:
    return Axes((1,), (gcd(*whole(one)),), (1,), one.value, (one.begins,), one.begins)


def expand_dims(op: Op, type: Type, one: Axes) -> Axes:
    axis = op.attributes["axis"]
    divides = gcd(*whole(one))

    def with_axis(numbers: tuple, new: int) -> tuple:
        return (*numbers[:axis], new, *numbers[axis:])

    return Axes(
        with_axis(one.contiguity, 1),
        with_axis(one.divisibility, divides),
        with_axis(one.constancy, 1),
        one.value,
        with_axis(one.loaded, False),
        one.begins,
    )


def broadcast(op: Op, type: Type, one: Axes) -> Axes:
    was = op.operand_types[0].shape
    wider = [before == 1 and now > 1 for before, now in zip(was, type.shape, strict=True)]
    return Axes(
        tuple(1 if wide else run for wide, run in zip(wider, one.contiguity, strict=True)),
        one.divisibility,
        tuple(
            now if wide else same for wide, now, same in zip(wider, type.shape, one.constancy, strict=True)
        ),
        one.value,
        tuple(not wide and loaded for wide, loaded in zip(wider, one.loaded, strict=True)),
        one.begins,
    )


def trans(op: Op, type: Type, one: Axes) -> Axes:
    order = op.attributes["order"]
    turned = [tuple(getattr(one, name)[axis] for axis in order) for name in (*PROMISES, "loaded")]
    return Axes(*turned[:3], one.value, turned[3], one.begins)


def same(op: Op, type: Type, one: Axes) -> Axes:
    return one


def add(op: Op, type: Type, left: Axes, right: Axes) -> Axes:
    times = bits(Type(type.element)) // 8 if op.name == "tt.addptr" else 1
    value = left.value + right.value if None not in (left.value, right.value) and times == 1 else None
    return Axes(
        each(
            lambda run, same, other_run, other_same: max(gcd(run, other_same), gcd(same, other_run)),
            *(left.contiguity, left.constancy, right.contiguity, right.constancy),
        ),
        each(lambda mine, other: gcd(mine, other * times), left.divisibility, right.divisibility),
        each(gcd, left.constancy, right.constancy),
        value,
    )


def subtract(op: Op, type: Type, left: Axes, right: Axes) -> Axes:
    value = left.value - right.value if None not in (left.value, right.value) else None
    return Axes(
        each(gcd, left.contiguity, right.constancy),
        each(gcd, left.divisibility, right.divisibility),
        each(gcd, left.constancy, right.constancy),
        value,
    )


def multiply(op: Op, type: Type, left: Axes, right: Axes) -> Axes:
    if 1 in (left.value, right.value):
        return right if left.value == 1 else left
    value = left.value * right.value if None not in (left.value, right.value) else None

    def divides(mine: int, other: int) -> int:
        return min(mine * other, MOST)

    return Axes(
        (1,) * len(left.contiguity),
        each(divides, whole(left), whole(right)),
        each(gcd, left.constancy, right.constancy),
        value,
    )


def whole(one: Axes) -> tuple[int, ...]:
    """Return what divides every number, of which those that follow the first of a row have no divisor."""
    return tuple(
        1 if run > 1 else divides for run, divides in zip(one.contiguity, one.divisibility, strict=True)
    )


def shift_left(op: Op, type: Type, left: Axes, right: Axes) -> Axes:
    if right.value is None or not 0 <= right.value < 31:
        return replace(nothing(type), constancy=each(gcd, left.constancy, right.constancy))
    return multiply(
        op,
        type,
        left,
        replace(right, value=1 << right.value, divisibility=(1 << right.value,) * len(right.divisibility)),
    )


def divide(op: Op, type: Type, left: Axes, right: Axes) -> Axes:
    if right.value == 1:
        return left
    value = left.value // right.value if None not in (left.value, right.value) and right.value else None
    return Axes(
        (1,) * len(left.contiguity),
        tuple(
            divides // right.value
            if right.value and right.value > 0 and divides % right.value == 0 and run == 1
            else 1
            for divides, run in zip(left.divisibility, left.contiguity, strict=True)
        ),
        each(
            lambda same, run, divides, other, other_same: max(
                gcd(same, other_same), gcd(run, divides, other) if other_same > 1 else 1
            ),
            *(left.constancy, left.contiguity, left.divisibility, right.divisibility, right.constancy),
        ),
        value,
    )


def remainder(op: Op, type: Type, left: Axes, right: Axes) -> Axes:
    value = left.value % right.value if None not in (left.value, right.value) and right.value else None
    return Axes(
        each(
            lambda run, divides, other, other_same: (
                gcd(run, divides, other) if other_same > 1 or run == 1 else 1
            ),
            *(left.contiguity, left.divisibility, right.divisibility, right.constancy),
        ),
        each(gcd, left.divisibility, right.divisibility),
        each(gcd, left.constancy, right.constancy),
        value,
    )


def alike(op: Op, type: Type, left: Axes, right: Axes) -> Axes:
    """Return what is known where equal operands give equal results and no more is seen: of bits, a minimum, a maximum."""
    return replace(nothing(type), constancy=each(gcd, left.constancy, right.constancy))


def compare(op: Op, type: Type, left: Axes, right: Axes) -> Axes:
    """Return how many neighbours are on the same side: as many as both the row and what it is compared with divide."""

    def together(same: int, run: int, divides: int, other_same: int, other: int) -> int:
        return gcd(run, divides, other) if other_same > 1 and run > 1 else 1

    found = [
        max(
            gcd(same, other_same),
            together(same, run, divides, other_same, other),
            together(other_same, other_run, other, same, divides),
        )
        for same, run, divides, other_same, other_run, other in zip(
            *(left.constancy, left.contiguity, left.divisibility),
            *(right.constancy, right.contiguity, right.divisibility),
            strict=True,
        )
    ]
    return replace(nothing(type), constancy=tuple(found))


def select(op: Op, type: Type, condition: Axes, left: Axes, right: Axes) -> Axes:
    found = left.meet(right)
    if len(condition.constancy) != len(found.constancy):
        return found
    return replace(
        found,
        contiguity=each(gcd, found.contiguity, condition.constancy),
        constancy=each(gcd, found.constancy, condition.constancy),
        value=None,
    )


SHAPED = {
    "tt.splat": splat,
    "tt.unsplat": unsplat,
    "tt.expand_dims": expand_dims,
    "tt.broadcast": broadcast,
    "tt.trans": trans,
}
RULES = {
    "arith.constant": constant,
    "tt.make_range": make_range,
    "tt.addptr": add,
    "arith.addi": add,
    "arith.subi": subtract,
    "arith.muli": multiply,
    "arith.shli": shift_left,
    "arith.select": select,
    "arith.cmpi": compare,
    **dict.fromkeys(("arith.divsi", "arith.divui"), divide),
    **dict.fromkeys(("arith.remsi", "arith.remui"), remainder),
    **dict.fromkeys(("arith.andi", "arith.ori", "arith.xori", "arith.shrsi", "arith.shrui"), alike),
    **dict.fromkeys(("arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui"), alike),
    **dict.fromkeys(
        ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.bitcast", "tt.bitcast"),
        same,
    ),
}
