"""Read and write tiles of a tensor descriptor, with a padding or a mask where they overhang.

A descriptor's value is one row of numbers per program: base, sides, strides in elements, padding.
"""

from math import prod

import numpy as np

from .atomics import ADD, AND, MAX, MIN, OR, XOR, combined, finish
from .bounds import ids
from .errors import KernelError, hold
from .frame import Frame
from .meanings import bound
from .memory import access_shape, place
from .narrow import converted
from .numbers_of import integer
from .reach import Access, may_write, reach
from .tree import NUMPY, Op, Type
from .values import full

PAD_NAN = 2
ALIGNED_BYTES = 16
KINDS = {1: ADD, 2: MIN, 3: MAX, 6: AND, 7: OR, 8: XOR}


@bound("tt.make_tensor_descriptor")
def make_descriptor(op: Op):
    axes, size = len(op.result_types[0].shape), NUMPY[op.result_types[0].element].itemsize
    padding = integer(op, "padding", 1)

    def perform(run, base, *numbers):
        sides, strides = numbers[:axes], numbers[axes:]
        hold_alignment(run.frame, op, base, strides, size)
        row = [base, *sides, *strides, np.array([padding])]
        return np.stack(np.broadcast_arrays(*(x.astype(np.int64) for x in row)), -1)

    return perform


def hold_alignment(frame: Frame, op: Op, base, strides, size: int) -> None:
    """Check the alignment that a GPU's tensor memory accelerator requires."""

    def mistake(text: str, bad: np.ndarray) -> None:
        program = frame.first(bad)
        text += f", in program {ids(program, frame.grid)}"
        hold(KernelError("Descriptor", text, op.line, program=program))

    if (bad := base % ALIGNED_BYTES != 0).any():
        mistake(f"a descriptor's base must be a multiple of {ALIGNED_BYTES} bytes", bad)
    if (bad := strides[-1] != 1).any():
        mistake(f"a descriptor's last stride must be 1, got {int(strides[-1].max())}", bad)
    for axis, stride in enumerate(strides[:-1]):
        bad = stride * size % ALIGNED_BYTES != 0
        if bad.any():
            got = int(stride[bad][0])
            message = f"a descriptor's strides must be multiples of {ALIGNED_BYTES} bytes, got {got} elements of {size} bytes for axis {axis}"
            mistake(message, bad)


class Tile:
    """The addresses of a tile's lanes, and which lanes are inside the tensor."""

    def __init__(self, descriptor: Type):
        self.axes, self.shape, self.size = (
            len(descriptor.shape),
            descriptor.shape,
            NUMPY[descriptor.element].itemsize,
        )

    def reach(self, row: np.ndarray, offsets) -> tuple[np.ndarray, np.ndarray]:
        """Return pointers and mask. `offsets` holds the lanes' indices for each axis."""
        pointer, mask = row[:, 0].reshape(-1, *(1,) * self.axes), np.ones((1,) * (1 + self.axes), bool)
        for axis, at in enumerate(offsets):
            side = row[:, 1 + axis].reshape(-1, *(1,) * self.axes)
            stride = row[:, 1 + self.axes + axis].reshape(-1, *(1,) * self.axes)
            mask = mask & (at >= 0) & (at < side)
            pointer = pointer + np.clip(at, 0, np.maximum(side - 1, 0)) * stride * self.size
        return pointer, mask

    def along(self, axis: int, start: np.ndarray) -> np.ndarray:
        """The indices of a tile that begins at `start` along one axis."""
        lanes = np.arange(self.shape[axis]).reshape([-1 if a == axis else 1 for a in range(self.axes)])
        return start.astype(np.int64).reshape(-1, *(1,) * self.axes) + lanes[None]

    def block(self, starts) -> list[np.ndarray]:
        return [self.along(axis, start) for axis, start in enumerate(starts)]

    def rows(self, chosen: np.ndarray, start: np.ndarray) -> list[np.ndarray]:
        return [chosen.astype(np.int64).reshape(len(chosen), -1, 1), self.along(1, start)]


def access_of(op: Op, kind: str, lanes: int) -> Access:
    return Access(kind, NUMPY[op.operand_types[0].element].itemsize, lanes, op.line)


@bound("tt.descriptor_load", "tt.descriptor_gather")
def descriptor_load(op: Op):
    tile, result = Tile(op.operand_types[0]), op.result_types[0]
    access = access_of(op, "load", prod(result.shape))
    offsets_of = tile.rows if op.name.endswith("gather") else tile.block

    def perform(run, row, *where):
        offsets = offsets_of(*where) if op.name.endswith("gather") else offsets_of(where)
        pointer, mask = tile.reach(row, offsets)
        shape = (max(len(pointer), len(mask)), *result.shape)
        found = np.zeros(shape, result.dtype)
        if result.dtype.kind not in "ib":
            found[np.broadcast_to(row[:, -1] == PAD_NAN, len(found))] = converted(
                np.array(np.nan), result.dtype
            )
        for lanes in reach(run, access, np.broadcast_to(pointer, shape), np.broadcast_to(mask, shape)):
            run.memory.loaded(run, lanes, op.line, False)
            values = lanes.tensor.view(result.dtype).take(lanes.index)
            if lanes.active is None:
                return values.reshape(shape)
            place(found, lanes, values)
        return found

    return perform


@bound("tt.descriptor_store", "tt.descriptor_scatter", "tt.descriptor_reduce")
def descriptor_store(op: Op):
    tile = Tile(op.operand_types[0])
    source = 1 if not op.name.endswith("scatter") else 3
    type = op.operand_types[source]
    kind = "atomic" if op.name.endswith("reduce") else "store"
    access = access_of(op, kind, prod(type.shape))

    def perform(run, row, *operands):
        operands = list(operands)
        value = full(operands.pop(source - 1), type.shape)
        offsets = tile.rows(*operands) if op.name.endswith("scatter") else tile.block(operands)
        pointer, mask = tile.reach(row, offsets)
        shape = access_shape(run, value, pointer, mask)
        value = np.broadcast_to(value, shape)
        for lanes in reach(run, access, np.broadcast_to(pointer, shape), np.broadcast_to(mask, shape)):
            if not may_write(run, access, lanes):
                continue
            new = np.ascontiguousarray(value).reshape(-1) if lanes.active is None else value[lanes.active]
            if kind == "store":
                run.memory.stored(run, lanes, new, op.line, id(op))
                continue
            how = KINDS[integer(op, "kind")]
            _, changed = combined(lanes.tensor.view(new.dtype), lanes, new, how)
            finish(run, lanes, changed, 1, how == ADD and new.dtype.kind not in "iu", op.line)
        return ()

    return perform
