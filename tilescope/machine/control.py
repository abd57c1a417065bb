"""Run loops, branches, calls and blocks.
When programs take different ways, each way runs with its own rows only."""

import numpy as np

from .bounds import ids
from .errors import KernelError, OverLimit
from .frame import Frame
from .hints import hold_carried
from .numbers_of import integer
from .program import Ready, Step
from .tree import BadIR
from .values import full, merged, rows_of

DEEPEST_CALL = 64


def yielded(run, block: Ready, frame: Frame, arguments) -> list[np.ndarray]:
    """Run a region once and return its terminator's operands."""
    frame.values.update(zip(block.block.arguments, arguments, strict=True))
    if block.promised:
        hold_carried(frame, block.promised, arguments)
    end = run.block(block, frame)
    return [frame.get(name) for name in end.operands]


def only_block(region: list[Ready], line: int) -> Ready:
    if len(region) != 1:
        raise BadIR("a loop or branch must hold one block", line)
    return region[0]


def parting(run, frame: Frame, values: list, stays, turn) -> list[np.ndarray]:
    """Run a loop that programs leave at different times.
    Rows that stay are gathered, and rows that leave are put aside."""
    rows, left, count, inner = np.arange(frame.size), [], 0, frame
    while True:
        stay = stays(rows, count)
        if not stay.all():
            left.append((rows[~stay], [rows_of(v, ~stay) for v in values]))
            rows, values = rows[stay], [rows_of(v, stay) for v in values]
            if not len(rows):
                break
            inner = frame.part(rows)
        values = turn(rows, count, values, inner)
        count += 1
    return [merged([(r, v[k]) for r, v in left], frame.size) for k in range(len(values))]


def for_loop(run, step: Step, frame: Frame) -> list[np.ndarray]:
    block = only_block(step.inner[0], step.line)
    low, high, stride, *values = [frame.get(name) for name in step.operands]
    kind = low.dtype
    low, high, stride = (np.asarray(x, np.int64) for x in (low, high, stride))
    if (stride <= 0).any():
        program = frame.first(stride <= 0)
        text = (
            f"a loop's step must be positive, got {int(stride.min())} in program {ids(program, frame.grid)}"
        )
        raise KernelError("LoopStep", text, step.line, program=program)
    trips = np.maximum(0, -(-(high - low) // stride))
    if (trips == trips[0]).all():
        for i in range(int(trips[0])):
            run.turn(step)
            values = yielded(run, block, frame.scope(), [(low + i * stride).astype(kind), *values])
        return values

    def turn(rows, i, values, inner):
        run.turn(step)
        counter = rows_of(low, rows) + i * rows_of(stride, rows)
        return yielded(run, block, inner.scope(), [counter.astype(kind), *values])

    return parting(run, frame, values, lambda rows, i: trips[rows] > i, turn)


def branch(run, step: Step, frame: Frame) -> list[np.ndarray]:
    condition = frame.get(step.operands[0])
    if (condition == condition[0]).all():
        return side(run, step, frame.scope(), bool(condition[0]))
    found = []
    for truth in (True, False):
        rows = np.flatnonzero(condition == truth)
        found.append((rows, side(run, step, frame.part(rows), truth)))
    return [merged([(rows, v[k]) for rows, v in found], frame.size) for k in range(len(step.results))]


def side(run, step: Step, frame: Frame, truth: bool) -> list[np.ndarray]:
    place = 0 if truth else 1
    if place >= len(step.inner) or not step.inner[place]:
        return []
    return yielded(run, only_block(step.inner[place], step.line), frame, ())


def while_loop(run, step: Step, frame: Frame) -> list[np.ndarray]:
    before, after = (only_block(region, step.line) for region in step.inner)
    rows, left, inner = np.arange(frame.size), [], frame
    values = [frame.get(name) for name in step.operands]
    while True:
        run.turn(step)
        seen = run.turns.version if run.turns is not None else 0
        carried = values
        stay, *handed = yielded(run, before, inner.scope(), values)
        stay = np.broadcast_to(stay, len(rows))
        if not stay.all():
            left.append((rows[~stay], [rows_of(v, ~stay) for v in handed]))
            rows, handed = rows[stay], [rows_of(v, stay) for v in handed]
            if not len(rows):
                return [merged([(r, v[k]) for r, v in left], frame.size) for k in range(len(step.results))]
            inner = frame.part(rows)
        values = yielded(run, after, inner.scope(), handed)
        if run.turns is not None:
            run.turns.waited(int(inner.programs[0]), seen, carried, values, step.line)


def call(run, step: Step, frame: Frame) -> list[np.ndarray]:
    blocks = run.program.functions[step.op.attributes["callee"]]
    if run.depth >= DEEPEST_CALL:
        raise OverLimit("calls", f"functions call each other more than {DEEPEST_CALL} deep", step.line)
    inner = Frame(frame.programs, frame.grid)
    names = blocks[0].block.arguments
    inner.values.update(zip(names, (frame.get(name) for name in step.operands), strict=True))
    run.depth += 1
    try:
        return body(run, blocks, inner)
    finally:
        run.depth -= 1


def map_lanes(run, step: Step, frame: Frame) -> list[np.ndarray]:
    """Perform tl.map_elementwise.
    Every `pack` lanes go through the region by themselves, as programs go through a kernel."""
    pack, shape = integer(step.op, "pack"), step.op.operand_types[0].shape
    groups = [full(frame.get(name), shape, frame.size).reshape(-1, pack) for name in step.operands]
    count = len(groups[0])
    rows = np.repeat(np.arange(frame.size), count // frame.size)
    inner = Frame(frame.programs[rows], frame.grid, frame, rows)
    lanes = [group[:, lane] for group in groups for lane in range(pack)]
    inner.values.update(zip(step.inner[0][0].block.arguments, lanes, strict=True))
    found = [np.broadcast_to(x, count) for x in body(run, step.inner[0], inner)]
    return [np.stack(found[i : i + pack], -1).reshape(frame.size, *shape) for i in range(0, len(found), pack)]


STRUCTURE = {
    "scf.for": for_loop,
    "scf.if": branch,
    "scf.while": while_loop,
    "tt.call": call,
    "tt.map_elementwise": map_lanes,
}


def body(run, blocks: list[Ready], frame: Frame) -> list[np.ndarray]:
    """A function's blocks. Programs in different blocks take turns, the earliest block first."""
    if len(blocks) == 1:
        end = run.block(blocks[0], frame)
        return [frame.get(name) for name in end.operands]
    number_of = {ready.block.label: i for i, ready in enumerate(blocks)}
    done = len(blocks)
    at, returned, everyone = np.zeros(frame.size, int), [], np.arange(frame.size)
    while (at < done).any():
        here = int(at.min())
        rows = everyone[at == here]
        inner = frame if len(rows) == frame.size else frame.part(rows)
        end = run.block(blocks[here], inner)
        run.turn(end)
        if inner is not frame:
            for name in blocks[here].defines & inner.values.keys():
                lay(frame, name, rows, inner.values[name])
        if not end.op.successors:
            returned.append((rows, [inner.get(name) for name in end.operands]))
            at[rows] = done
            continue
        for way, label, handed in ways(end, inner, len(rows)):
            target = blocks[number_of[label]]
            values = [rows_of(inner.get(name), way) for name in handed]
            for name, value in zip(target.block.arguments, values, strict=True):
                lay(frame, name, rows[way], value)
            at[rows[way]] = number_of[label]
    return [merged([(r, v[k]) for r, v in returned], frame.size) for k in range(len(returned[0][1]))]


def ways(end: Step, frame: Frame, count: int):
    """(which rows, to which block, with which values) of a branch between blocks."""
    if end.op.name == "cf.br":
        yield np.ones(count, bool), end.op.successors[0], end.operands
        return
    taken = np.broadcast_to(frame.get(end.operands[0]), count)
    first = end.op.attributes["operandSegmentSizes"][1]
    handed = end.operands[1 : 1 + first], end.operands[1 + first :]
    for way, label, names in zip((taken, ~taken), end.op.successors, handed, strict=True):
        if way.any():
            yield way, label, names


def lay(frame: Frame, name: str, rows: np.ndarray, value: np.ndarray) -> None:
    """Join some programs' value with the values of all others."""
    if len(rows) == frame.size:
        frame.values[name] = value
        return
    known = [(np.arange(frame.size), frame.values[name])] if name in frame.values else []
    frame.values[name] = merged([(rows, value), *known], frame.size)
