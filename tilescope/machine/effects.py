"""Report on a running kernel: its ids, prints, asserts and assumptions."""

import numpy as np

from .bounds import ids
from .errors import KernelError, hold
from .meanings import bound
from .numbers_of import flag, integer
from .tree import Op


@bound("tt.get_program_id")
def program_id(op: Op):
    axis = integer(op, "axis")
    return lambda run: run.frame.program(axis)


@bound("tt.get_num_programs")
def num_programs(op: Op):
    axis = integer(op, "axis")
    return lambda run: np.array([run.grid[axis]], np.int32)


@bound("tt.print")
def device_print(op: Op):
    prefix, hexadecimal, shapes = (
        str(op.attributes.get("prefix", "")),
        flag(op, "hex"),
        [t.shape for t in op.operand_types],
    )

    def perform(run, *values):
        whole = [np.broadcast_to(v, (len(v), *shape)) for v, shape in zip(values, shapes, strict=True)]
        run.printed.add(run.number, run.frame, op.line, prefix, whole, hexadecimal)
        return ()

    return perform


def first_false(run, condition: np.ndarray) -> tuple[list[int], str]:
    """Return the first program where a condition does not hold, and its name with the lane."""
    row, *lane = (int(at) for at in np.argwhere(~condition)[0])
    program = run.frame.place(row)
    where = f"lane {lane[0] if len(lane) == 1 else tuple(lane)} of " if lane else ""
    return program, f"{where}program {ids(program, run.grid)}"


@bound("tt.assert")
def device_assert(op: Op):
    message = str(op.attributes.get("message", "")) or "tl.device_assert"

    def perform(run, condition, mask=None):
        held = condition.astype(bool) if mask is None else condition.astype(bool) | ~mask
        if not held.all():
            program, where = first_false(run, np.broadcast_to(held, (len(held), *op.operand_types[0].shape)))
            text = f"an assertion does not hold in {where}: {message[:200]}"
            hold(KernelError("Assertion", text, op.line, program=program))
        return ()

    return perform


@bound("llvm.intr.assume")
def assume(op: Op):
    def perform(run, condition):
        if not condition.all():
            program, where = first_false(run, condition)
            text = f"tl.assume promises the compiler what is not so in {where}"
            hold(KernelError("FalseAssume", text, op.line, program=program))
        return ()

    return perform


@bound("gpu.barrier", "ttg.barrier")
def barrier(op: Op):
    """Do nothing, because the threads of one program never part here."""
    return lambda run: ()
