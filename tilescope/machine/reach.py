"""Find which lanes of an access reach which tensor, and whether they may."""

from dataclasses import dataclass
from math import prod

import numpy as np

from . import bounds
from .errors import KernelError, hold
from .storage import HALF, SPAN, Paged, Storage
from .tree import Op


@dataclass(slots=True)
class Lanes:
    """The active lanes of one access in one tensor, flat, program by program."""

    tensor: Storage
    offset: np.ndarray  # bytes from the tensor's start
    size: int  # bytes of one item of the access
    index: np.ndarray  # in such items
    counts: np.ndarray  # lanes of each row
    rows: int
    shape: tuple
    active: np.ndarray | None  # which lanes, where not all are
    again: int  # lanes of the tile that ask for one address by the shape of the IR alone
    times: int  # programs that ask alike
    access: "Access"

    @property
    def wide(self) -> int:
        """The tensor's elements that one lane covers."""
        return max(1, self.size // self.tensor.itemsize)

    @property
    def element(self) -> np.ndarray:
        """Every element of the tensor that the lanes cover, lane by lane."""
        if self.size == self.tensor.itemsize:
            return self.index
        return covered(self.offset // self.tensor.itemsize, self.wide)

    def per_element(self, of_rows: np.ndarray) -> np.ndarray:
        """Return the value of each element's program."""
        if self.rows == 1:
            return np.full(self.offset.size * self.wide, of_rows[0])
        return np.repeat(of_rows, self.counts * self.wide)


def covered(first: np.ndarray, wide: int) -> np.ndarray:
    return first if wide == 1 else (first[:, None] + np.arange(wide)).reshape(-1)


@dataclass(slots=True)
class Access:
    """The facts of one access in the tree, shared by all its executions."""

    kind: str  # "load", "store", "atomic"
    size: int
    lanes: int  # of the whole tile
    line: int
    op: Op | None = None  # None for a descriptor's, whose lanes no thread has


def reach(run, access: Access, pointer: np.ndarray, mask: np.ndarray | None) -> list[Lanes]:
    """Return the lanes of an access, tensor by tensor.
    A lane that leaves its tensor is a mistake and is left out."""
    shape = np.broadcast_shapes(pointer.shape, mask.shape) if mask is not None else pointer.shape
    address, active = np.broadcast_to(pointer, shape), None
    if mask is not None and not mask.all():
        active = np.broadcast_to(mask, shape)
        address = address[active]
        if not address.size:
            return []
        counts = np.count_nonzero(active.reshape(shape[0], -1), axis=1)
    else:
        address = address.reshape(-1)
        counts = np.full(shape[0], address.size // shape[0])
    if run.memory.probe is not None:
        run.memory.probe.asked(access, address)
    low, high = int(address.min()), int(address.max())
    if (low + HALF) >> SPAN != (high + HALF) >> SPAN:
        return one_by_one(run, access, pointer, mask, shape)
    number = ((low + HALF) >> SPAN) - 1
    if not 0 <= number < len(run.memory.tensors):
        program = run.frame.place(int(np.flatnonzero(counts)[0]))
        hold(bounds.nowhere(access.kind, program, run.grid, access.line))
        run.memory.left_out += 1
        return []
    tensor = run.memory.tensors[number]
    offset = address - tensor.base
    if low < tensor.base or high + access.size > tensor.base + tensor.whole * tensor.itemsize:
        bad = (offset < 0) | (offset + access.size > tensor.whole * tensor.itemsize)
        hold(stray(run, access, tensor, address, bad, counts, pointer))
        return reach(run, access, pointer, without(run, shape, active, bad))
    if access.size > 1 and (bad := offset & (access.size - 1) != 0).any():
        hold(misaligned(run, access, tensor, bad, counts))
        return reach(run, access, pointer, without(run, shape, active, bad))
    if isinstance(tensor, Paged):
        offset = tensor.in_room(offset)
    index = offset >> (access.size.bit_length() - 1)
    again = access.lanes // max(1, prod(shape[1:]))
    times = run.frame.size if shape[0] == 1 else 1
    return [Lanes(tensor, offset, access.size, index, counts, shape[0], shape, active, again, times, access)]


def without(run, shape: tuple, active: np.ndarray | None, bad: np.ndarray) -> np.ndarray:
    """The mask of an access when those of its active lanes that are `bad` are left out."""
    run.memory.left_out += 1
    rest = np.ones(shape, bool) if active is None else active.copy()
    rest[rest] = ~bad
    return rest


def one_by_one(run, access: Access, pointer, mask, shape) -> list[Lanes]:
    """Lanes that reach several tensors."""
    numbers = np.broadcast_to((pointer + HALF) >> SPAN, shape)
    active = np.broadcast_to(mask, shape) if mask is not None else np.ones(shape, bool)
    parts = [reach(run, access, pointer, active & (numbers == n)) for n in np.unique(numbers[active])]
    return [lanes for part in parts for lanes in part]


def stray(run, access: Access, tensor: Storage, address, bad, counts, pointer=None) -> KernelError:
    row_of = np.repeat(np.arange(len(counts)), counts)

    def tile(row: int) -> np.ndarray:
        return np.zeros(()) if pointer is None else pointer[row if len(pointer) > 1 else 0]

    return bounds.outside(access.kind, tensor, address, bad, row_of, run.frame, tile, access.line)


def misaligned(run, access: Access, tensor: Storage, bad: np.ndarray, counts) -> KernelError:
    message = f"{access.kind} of {access.size} bytes at an address of {tensor.name} that {access.size} does not divide"
    program = run.frame.place(int(np.repeat(np.arange(len(counts)), counts)[np.flatnonzero(bad)[0]]))
    message += f", in program {bounds.ids(program, run.grid)}"
    return KernelError("Misaligned", message, access.line, tensor=tensor.name, program=program)


def may_write(run, access: Access, lanes: Lanes) -> bool:
    """Check that a kernel may write to these elements.
    Inputs and the gaps between rows are read-only, and the error says so."""
    tensor = lanes.tensor
    tensor.keep()
    if tensor.role == "in":
        program = run.frame.place(int(np.flatnonzero(lanes.counts)[0]))
        message = (
            f"{access.kind} to {tensor.name}, which is an input: program {bounds.ids(program, run.grid)}"
        )
        hold(KernelError("WrittenInput", message, access.line, tensor=tensor.name, program=program))
        return False
    if tensor.owned is not None and not (owned := tensor.owned[lanes.element]).all():
        address, counts = tensor.base + lanes.element * tensor.itemsize, lanes.counts * lanes.wide
        hold(stray(run, access, tensor, address, ~owned, counts))
    return True
