"""Turn, join, cut and index tensors, with no arithmetic on their elements."""

import numpy as np

from .bounds import ids
from .errors import KernelError
from .meanings import bound, pure
from .numbers_of import integer, integers
from .tree import Op
from .values import aligned, full


@pure("tt.make_range")
def make_range(op: Op):
    value = np.arange(integer(op, "start"), integer(op, "end"), dtype=np.int32)[None]
    return lambda: value


@pure("tt.splat")
def splat(op: Op):
    ones = (1,) * len(op.result_types[0].shape)
    return lambda x: x.reshape(x.shape[:1] + ones)


@pure("tt.unsplat")
def unsplat(op: Op):
    return lambda x: x.reshape(x.shape[0])


@pure("tt.expand_dims")
def expand_dims(op: Op):
    axis = 1 + integer(op, "axis")
    return lambda x: np.expand_dims(x, axis)


@pure("tt.broadcast")
def broadcast(op: Op):
    return lambda x: x


@pure("tt.trans")
def transpose(op: Op):
    order = (0, *(1 + n for n in integers(op, "order")))
    return lambda x: x.transpose(order)


@pure("tt.reshape")
def reshape(op: Op):
    before, after = op.operand_types[0].shape, op.result_types[0].shape
    return lambda x: full(x, before).reshape((x.shape[0], *after))


@pure("tt.join")
def join(op: Op):
    return lambda a, b: np.stack(np.broadcast_arrays(a, b), -1)


@pure("tt.split")
def split(op: Op):
    shape = op.operand_types[0].shape

    def run(x):
        x = full(x, shape)
        return x[..., 0], x[..., 1]

    return run


@pure("tt.cat")
def cat(op: Op):
    return lambda *x: np.concatenate(aligned(x, op.operand_types), 1)


@bound("tt.gather")
def gather(op: Op):
    axis = 1 + integer(op, "axis")

    def run(run, source, index):
        source, index = aligned((source, index), op.operand_types)
        bad = (index < 0) | (index >= source.shape[axis])
        if bad.any():
            program = run.frame.first(bad)
            where = f"an axis that has {source.shape[axis]}, in program {ids(program, run.grid)}"
            text = f"tl.gather takes place {int(index[bad][0])} of {where}"
            raise KernelError("GatherRange", text, op.line, program=program)
        return np.take_along_axis(source, index.astype(np.int64), axis)

    return run


@bound("tt.histogram")
def histogram(op: Op):
    """Compiled code counts by the low bits of a number, so one beyond the bins would count in another bin."""
    bins = op.result_types[0].shape[0]

    def run(run, x, mask=None):
        programs = max(len(x), len(mask) if mask is not None else 1)
        x = full(x, op.operand_types[0].shape, programs)
        counted = np.ones(x.shape, bool) if mask is None else np.broadcast_to(mask, x.shape)
        bad = counted & ((x < 0) | (x >= bins))
        if bad.any():
            program = run.frame.first(bad)
            where = f"which is none of its {bins} bins, in program {ids(program, run.grid)}"
            text = f"tl.histogram counts {int(x[bad][0])}, {where}. A GPU counts it in another bin"
            raise KernelError("HistogramRange", text, op.line, program=program)
        flat = (np.arange(programs)[:, None] * bins + x)[counted]
        return np.bincount(flat, minlength=programs * bins).reshape(programs, bins).astype(np.int32)

    return run


def may_reorder(op: Op, ordered: set[str]) -> bool:
    """Return whether the compiler may give the elements of a result any order, and anything depends on it: a sum over all
    of them doesn't. `ordered` holds the values that operations other than tt.reduce take."""
    free = op.name == "tt.cat" or op.attributes.get("allow_reorder")
    return bool(free) and (op.results[0] in ordered or len(op.result_types[0].shape) > 1)


def reordered(perform):
    """Return a function whose result has its elements in reverse: an order that nobody asked for, and that is allowed."""

    def run(*values):
        found = perform(*values)
        return np.flip(found, tuple(range(1, found.ndim)))

    return run
