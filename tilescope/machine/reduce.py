"""tl.reduce and tl.associative_scan, whatever their region combines."""

from math import prod

import numpy as np

from .meanings import PURE, pure
from .narrow import NARROW, converted, widened
from .numbers_of import flag, integer
from .tree import BadIR, Block, Module, Op
from .values import aligned

FOLDS = {
    "arith.addf": np.add,
    "arith.addi": np.add,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.mulf": np.multiply,
}
ENDS = ("tt.reduce.return", "tt.scan.return")
COMBINING = ("tt.reduce", "tt.scan")
IN_ONE_GO = 64  # numbers that are summed one after the other, as a GPU's lanes do


def needed_ops(block: Block) -> list[Op]:
    """A combining region without its assertions, and without what only they looked at."""
    needed, kept = set(), []
    for op in reversed(block.ops):
        if op.name in ENDS or needed & set(op.results):
            needed |= set(op.operands)
            kept.insert(0, op)
    return kept


def region_of(op: Op) -> Block:
    if len(op.regions) != 1 or len(op.regions[0]) != 1:
        raise BadIR(f"{op.name} must have one region of one block", op.line)
    return op.regions[0][0]


def with_constants(module: Module) -> None:
    """Put constants into the combining regions that use them, because MLIR moves them out,
    in front of the operation."""
    for function in module.functions.values():
        ops = list(all_ops(function.blocks))
        constants = {op.results[0]: op for op in ops if op.name == "arith.constant"}
        for op in ops:
            if op.name in COMBINING:
                block = region_of(op)
                own = {*block.arguments, *(name for inner in block.ops for name in inner.results)}
                foreign = dict.fromkeys(
                    name for inner in block.ops for name in inner.operands if name not in own
                )
                if not foreign.keys() <= constants.keys():
                    raise BadIR(f"{op.name} must combine its own arguments and constants", op.line)
                block.ops = [*(constants[name] for name in foreign), *block.ops]


def all_ops(blocks: list[Block]):
    for block in blocks:
        for op in block.ops:
            yield op
            for region in op.regions:
                yield from all_ops(region)


def combiner(op: Op):
    """Return the function that computes the region on whole arrays."""
    block = region_of(op)
    *ops, end = needed_ops(block)
    if any(inner.name not in PURE for inner in ops):
        raise BadIR(f"{op.name} must combine by arithmetic alone", op.line)
    steps = [(PURE[inner.name](inner), inner.operands, inner.results) for inner in ops]

    def combine(*arrays):
        known = dict(zip(block.arguments, arrays, strict=True))
        for function, operands, results in steps:
            found = function(*(known[name] for name in operands))
            known.update(zip(results, found if isinstance(found, tuple) else (found,), strict=True))
        return [np.broadcast_to(known[name], arrays[0].shape) for name in end.operands]

    return combine


def single_fold(op: Op):
    """The numpy function of a region that is one operation on its two arguments, or None."""
    block = region_of(op)
    ops = needed_ops(block)
    if len(ops) == 2 and sorted(ops[0].operands) == sorted(block.arguments):
        if op.operand_types[0].dtype != bool:
            return FOLDS.get(ops[0].name)
    return None


def keeping_type(fold, x: np.ndarray) -> dict:
    return {"dtype": x.dtype} if fold in (np.add, np.multiply) else {}


def in_turn(fold, x: np.ndarray, axis: int) -> list[np.ndarray]:
    """Fold bf16 along an axis, rounded after each step. Return all intermediate results."""
    found = [x.take(0, axis)]
    for at in range(1, x.shape[axis]):
        found.append(converted(fold(widened(found[-1]), widened(x.take(at, axis))), x.dtype))
    return found


@pure("tt.reduce")
def reduce(op: Op):
    axis, fold = 1 + integer(op, "axis"), single_fold(op)
    combine = combiner(op) if fold is None else None

    def folded(*xs):
        (x,) = aligned(xs, op.operand_types)
        if x.dtype in NARROW:
            return (in_turn(fold, x, axis)[-1],)
        if fold is np.add and x.shape[axis] > IN_ONE_GO and x.strides[axis] != x.itemsize:
            # numpy sums in pairs along the fastest axis alone
            return (fold.reduce(np.ascontiguousarray(np.moveaxis(x, axis, -1)), axis=-1, dtype=x.dtype),)
        return (fold.reduce(x, axis=axis, **keeping_type(fold, x)),)

    def halved(*xs):
        """Fold halves onto each other, whatever the region computes. Its sides are powers of two. Either half comes first in
        turn, since a GPU promises no order."""
        xs = aligned(xs, op.operand_types)
        while xs[0].shape[axis] > 1:
            half = xs[0].shape[axis] // 2
            low = [x.take(range(half), axis) for x in xs]
            high = [x.take(range(half, 2 * half), axis) for x in xs]
            xs = combine(*low, *high) if half.bit_length() % 2 else combine(*high, *low)
        return tuple(x.squeeze(axis) for x in xs)

    return folded if fold is not None else halved


@pure("tt.scan")
def scan(op: Op):
    axis, fold, backward = 1 + integer(op, "axis"), single_fold(op), flag(op, "reverse")
    combine = combiner(op) if fold is None else None

    def run(*xs):
        xs = aligned(xs, op.operand_types)
        if backward:
            xs = [np.flip(x, axis) for x in xs]
        if fold is None:
            xs = doubling(xs)
        elif xs[0].dtype in NARROW:
            xs = [np.stack(in_turn(fold, xs[0], axis), axis)]
        else:
            xs = [fold.accumulate(xs[0], axis=axis, **keeping_type(fold, xs[0]))]
        return tuple(np.flip(x, axis) if backward else x for x in xs)

    def doubling(xs):
        step, count = 1, xs[0].shape[axis]
        while step < count:
            early = [x.take(range(count - step), axis) for x in xs]
            late = [x.take(range(step, count), axis) for x in xs]
            late = combine(*early, *late)
            xs = [np.concatenate([x.take(range(step), axis), t], axis) for x, t in zip(xs, late, strict=True)]
            step *= 2
        return xs

    return run


def region_weight(op: Op) -> list[tuple[Op, int]]:
    """Return the region's operations and how often each runs, for the count.
    n lanes become one in n - 1 steps."""
    elements = prod(op.operand_types[0].shape)
    if op.name == "tt.reduce":
        elements -= prod(op.result_types[0].shape)
    return [(inner, elements) for inner in needed_ops(region_of(op)) if inner.name not in ENDS]
