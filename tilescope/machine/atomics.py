"""Perform atomics of scalars and tensors.
Lanes run one after the other if their old values are used, all together otherwise."""

import numpy as np

from .clocks import NOT_ATOMIC
from .errors import KernelError
from .meanings import bound
from .memory import access_of, access_shape
from .narrow import converted, widened
from .numbers_of import integer
from .reach import Lanes, may_write, reach
from .tree import Op
from .values import bits

OF_ONE_BLOCK = 2  # an atomic's `scope`: 1 a GPU, 2 a block of threads, 3 the system
AND, OR, XOR, ADD, FADD, MAX, MIN, UMAX, UMIN, XCHG = range(1, 11)
COMBINE = {
    AND: np.bitwise_and,
    OR: np.bitwise_or,
    XOR: np.bitwise_xor,
    ADD: np.add,
    FADD: np.add,
    MAX: np.maximum,
    MIN: np.minimum,
    UMAX: np.maximum,
    UMIN: np.minimum,
}

CALLS = {
    number: f"tl.atomic_{name}"
    for name, numbers in {
        "and": (AND,),
        "or": (OR,),
        "xor": (XOR,),
        "add": (ADD, FADD),
        "max": (MAX, UMAX),
        "min": (MIN, UMIN),
        "xchg": (XCHG,),
    }.items()
    for number in numbers
}


def order_of(op: Op) -> int:
    """Return an atomic's `sem`, or NOT_ATOMIC for one of scope "cta", since programs run in blocks of their own."""
    return NOT_ATOMIC if integer(op, "scope") == OF_ONE_BLOCK else integer(op, "sem")


@bound("tt.atomic_rmw")
def atomic_rmw(op: Op):
    access, kind, sem = access_of(op, "atomic"), integer(op, "atomic_rmw_op"), order_of(op)
    dtype = op.result_types[0].dtype
    of_bits = np.dtype(f"u{dtype.itemsize}") if kind in (UMAX, UMIN) and dtype.kind == "i" else dtype

    def run(run, pointer, value, mask=None):
        shape = access_shape(run, pointer, value, mask)
        value, found = np.broadcast_to(value, shape), np.zeros(shape, dtype)
        for lanes in reach(run, access, np.broadcast_to(pointer, shape), mask):
            if not may_write(run, access, lanes):
                continue
            there = lanes.tensor.view(of_bits)
            where = lanes.active if lanes.active is not None else np.ones(shape, bool)
            old, changed = combined(there, lanes, value[where].view(of_bits), kind)
            finish(run, lanes, changed, sem, kind == FADD, access.line, reads=kind != XCHG, call=CALLS[kind])
            found[where] = old.view(dtype)
        return found

    return run


def combined(there: np.ndarray, lanes: Lanes, new: np.ndarray, kind: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the value that each lane finds, and whether the lane changes it.
    Lanes at one element follow each other."""
    old, changed = np.empty_like(new), np.zeros(len(lanes.index), bool)
    for together in rounds(lanes.index, lanes.per_element(np.arange(lanes.rows))[:: lanes.wide]):
        at, given = lanes.index[together], new[together]
        found = there[at]
        if kind == XCHG:
            after = given
        else:
            after = converted(COMBINE[kind](widened(found), widened(given)), there.dtype)
        there[at] = after
        old[together] = found
        changed[together] = bits(found) != bits(np.ascontiguousarray(after))
    return old, changed


def rounds(index: np.ndarray, row: np.ndarray) -> list:
    """Split lanes into sets without a repeated element. Programs come one after the other, and in each, the last lane at an
    element comes first, since a GPU takes lanes in an order of its own."""
    if (index[1:] > index[:-1]).all():
        return [slice(None)]
    by_element = np.lexsort((-np.arange(len(index)), row, index))
    ordered = index[by_element]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    turn = np.arange(len(index)) - np.repeat(starts, np.diff(np.r_[starts, len(index)]))
    if not turn.any():
        return [slice(None)]
    by_turn = np.argsort(turn, kind="stable")
    return np.split(by_element[by_turn], np.cumsum(np.bincount(turn))[:-1])


@bound("tt.atomic_cas")
def atomic_cas(op: Op):
    access, sem = access_of(op, "atomic"), order_of(op)

    def run(run, pointer, compare, value):
        shape = access_shape(run, pointer, compare, value)
        compare, value = (np.broadcast_to(x, shape).reshape(-1) for x in (compare, value))
        found = np.zeros(shape, value.dtype)
        parts = reach(run, access, np.broadcast_to(pointer, shape), None)
        if len(parts) > 1:
            raise KernelError("Pointers", "one atomic must stay in one tensor", access.line)
        for lanes in parts:
            if not may_write(run, access, lanes):
                continue
            there, flat = lanes.tensor.view(value.dtype), found.reshape(-1)
            changed = np.zeros(len(lanes.index), bool)
            taking = range(len(flat)) if lanes.active is None else np.flatnonzero(lanes.active)
            for number, (lane, at) in enumerate(zip(taking, lanes.index.tolist(), strict=True)):
                flat[lane] = there[at]
                if bits(there[at : at + 1]) == bits(compare[lane : lane + 1]):
                    changed[number] = bits(there[at : at + 1])[0] != bits(value[lane : lane + 1])[0]
                    there[at] = value[lane]
            finish(run, lanes, changed, sem, False, access.line, call="tl.atomic_cas")
        return found

    return run


def finish(
    run,
    lanes: Lanes,
    changed: np.ndarray,
    sem: int,
    adds_floats: bool,
    line: int,
    reads: bool = True,
    call: str = "",
) -> None:
    memory = run.memory
    if run.turns is not None:
        run.turns.look_at(run.frame, call, lanes)
    memory.count(run.frame, lanes, "atomic", line)
    run.counts["atomic"] += lanes.index.size
    if reads:
        memory.note_unwritten(lanes, line)
    if lanes.tensor.written is not None:
        lanes.tensor.written[lanes.element] = True
    memory.changes += bool(changed.any())
    memory.order.atomic(run, lanes, changed, sem, adds_floats, line)
