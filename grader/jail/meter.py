"""Counts the memory traffic of a Triton kernel under the interpreter, and stops it before it leaves its tensors.

For each tensor and launch: bytes asked for, bytes without duplicates inside one access, 32-byte sectors, bytes
unique within a wave of programs, bytes unique over the launch; how often each element was touched; and which
elements two programs used in a way that depends on who comes first.
"""

from dataclasses import dataclass, field

import numpy as np
from triton.runtime import interpreter as stock

SECTOR = 32
NOBODY = -1
KINDS = ("load", "store", "atomic")
FLOAT_ADDS = "atomic additions of floats, whose order changes the last bits"


class OutOfBounds(IndexError):
    def __init__(self, kind, tensor, program, first, last, extent):
        self.report = {
            "kind": kind,
            "tensor": tensor,
            "program": list(program),
            "first": first,
            "last": last,
            "extent": extent,
        }
        super().__init__(
            f"{kind} outside {tensor}: program {tuple(program)} reached element {first if first < 0 else last}, "
            f"the tensor spans elements 0 to {extent - 1}"
        )


@dataclass
class Counts:
    requested: int = 0
    dedup: int = 0
    sectors: int = 0
    wave: int = 0
    unique: int = 0
    accesses: int = 0


@dataclass
class Tensor:
    """One tensor argument: its address range and what happened in it during the current launch."""

    name: str
    base: int
    extent: int  # elements between the first and the last that the tensor owns
    itemsize: int
    loads: np.ndarray = None  # touches per element, over all launches
    stores: np.ndarray = None
    counts: dict = field(default_factory=dict)

    def __post_init__(self):
        self.loads = np.zeros(self.extent, np.uint32)
        self.stores = np.zeros(self.extent, np.uint32)
        self.rank = np.zeros(self.extent, np.int64)
        sectors = (self.base % SECTOR + self.extent * self.itemsize + SECTOR - 1) // SECTOR
        self.sector_rank = np.zeros(sectors, np.int64)
        self.start_launch()

    def start_launch(self):
        self.counts = {kind: Counts() for kind in KINDS}
        self.wave_of = {kind: np.full(self.extent, NOBODY, np.int32) for kind in ("load", "store")}
        self.seen = {kind: np.zeros(self.extent, bool) for kind in KINDS}
        self.writer = np.full(self.extent, NOBODY, np.int32)
        self.reader = np.full(self.extent, NOBODY, np.int32)
        self.adder = np.full(self.extent, NOBODY, np.int32)


def _first_of_each(index: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """True once for every distinct index, without a sort: the last writer of a slot is its one winner."""
    order = np.arange(index.size)
    rank[index] = order
    return rank[index] == order


class Meter:
    def __init__(self, tensors: list[Tensor], wave: int, repeatable: bool = True):
        self.tensors = list(tensors)  # as the question lists them: addresses differ from run to run
        self.wave, self.repeatable = wave, repeatable
        self.launches: list[dict] = []
        self.races: list[dict] = []
        self.flops = 0
        self.program, self.linear = (0, 0, 0), 0

    def start_launch(self, kernel: str, grid) -> None:
        self.launches.append({"kernel": kernel, "grid": list(grid)})
        self.flops = 0
        self.launch_races = []
        for tensor in self.tensors:
            tensor.start_launch()

    def end_launch(self) -> None:
        rows = {}
        atomics = any(t.counts["atomic"].accesses for t in self.tensors)
        for tensor in self.tensors:
            for kind, seen in tensor.seen.items():
                tensor.counts[kind].unique = int(seen.sum()) * tensor.itemsize
            rows[tensor.name] = {
                kind: vars(counts) for kind, counts in tensor.counts.items() if counts.accesses
            }
        # with atomics a kernel may order its programs itself, so only plain double writes still count
        certain = ("write after write", FLOAT_ADDS)
        self.races += [race for race in self.launch_races if race["how"] in certain or not atomics]
        self.launches[-1] |= {"tensors": rows, "flops": self.flops}

    def at_program(self, program, linear: int) -> None:
        self.program, self.linear = program, linear

    def access(
        self, kind: str, pointers: np.ndarray, mask: np.ndarray, itemsize: int, values=None, adds_floats=False
    ) -> None:
        addresses = np.broadcast_to(pointers, np.broadcast_shapes(pointers.shape, mask.shape))
        active = np.broadcast_to(mask, addresses.shape)
        addresses = addresses[active].astype(np.int64)
        if not addresses.size:
            return
        tensor = self._owner(kind, addresses, itemsize)
        index = (addresses - tensor.base) // itemsize
        counts = tensor.counts[kind]
        counts.accesses += 1
        counts.requested += index.size * itemsize
        winners = _first_of_each(index, tensor.rank)
        distinct = index[winners]
        counts.dedup += distinct.size * itemsize
        sector = (addresses - tensor.base + tensor.base % SECTOR) // SECTOR
        counts.sectors += int(_first_of_each(sector, tensor.sector_rank).sum()) * SECTOR
        tensor.seen[kind][distinct] = True
        touched = tensor.loads if kind == "load" else tensor.stores
        touched[distinct] += 1
        if adds_floats and self.repeatable:
            others = (tensor.adder[distinct] != NOBODY) & (tensor.adder[distinct] != self.linear)
            self._note(tensor, FLOAT_ADDS, distinct[others])
            tensor.adder[distinct] = self.linear
        if kind != "atomic":
            self._wave(tensor, kind, distinct, counts, itemsize)
            changed = self._changed(tensor, addresses, winners, values) if kind == "store" else None
            self._race(tensor, kind, distinct, changed)

    def _owner(self, kind, addresses, itemsize) -> Tensor:
        low, high = int(addresses.min()), int(addresses.max())
        for tensor in self.tensors:
            if tensor.base <= low and high + itemsize <= tensor.base + tensor.extent * tensor.itemsize:
                return tensor
        nearest = min(
            self.tensors, key=lambda t: min(abs(low - t.base), abs(high - t.base - t.extent * t.itemsize))
        )
        first, last = (low - nearest.base) // itemsize, (high - nearest.base) // itemsize
        raise OutOfBounds(kind, nearest.name, self.program, first, last, nearest.extent)

    def _wave(self, tensor, kind, distinct, counts, itemsize) -> None:
        wave, of = self.linear // self.wave, tensor.wave_of[kind]
        counts.wave += int((of[distinct] != wave).sum()) * itemsize
        of[distinct] = wave

    def _changed(self, tensor, addresses, winners, values) -> np.ndarray:
        """Which stored bytes differ from what lies there: a second write of the same value races with nobody."""
        if values is None:
            return np.ones(int(winners.sum()), bool)
        size = tensor.itemsize
        there = tensor.memory[(addresses - tensor.base)[winners][:, None] + np.arange(size)]
        new = np.ascontiguousarray(values).view(np.uint8).reshape(-1, size)[winners]
        return (there != new).any(axis=1)

    def _race(self, tensor, kind, distinct, changed) -> None:
        me = self.linear
        others_wrote = (tensor.writer[distinct] != NOBODY) & (tensor.writer[distinct] != me)
        if kind == "load":
            self._note(tensor, "read after write", distinct[others_wrote])
            tensor.reader[distinct] = me
            return
        others_read = (tensor.reader[distinct] != NOBODY) & (tensor.reader[distinct] != me)
        self._note(tensor, "write after write", distinct[others_wrote & changed])
        self._note(tensor, "write after read", distinct[others_read & changed])
        tensor.writer[distinct] = me

    def _note(self, tensor, how, elements) -> None:
        if elements.size and len(self.launch_races) < 8:
            launch = len(self.launches) - 1
            self.launch_races.append(
                {
                    "launch": launch,
                    "tensor": tensor.name,
                    "how": how,
                    "element": int(elements[0]),
                    "program": list(self.program),
                }
            )


_active: Meter | None = None


def activate(meter: Meter | None) -> None:
    global _active
    _active = meter


def install() -> None:
    """Put the meter under every way a kernel reaches memory; they all end in these four methods."""
    builder = stock.InterpreterBuilder
    if hasattr(builder, "metered"):
        return
    builder.metered = True
    load, store, rmw, cas, dot = (
        builder.create_masked_load, builder.create_masked_store, builder.create_atomic_rmw, builder.create_atomic_cas, builder.create_dot,
    )  # fmt: skip

    def itemsize(pointers):
        return max(1, pointers.get_element_ty().primitive_bitwidth // 8)

    def lanes(mask):
        """A vector's condition & a scalar's comes as numbers 0 and 1, which would be taken for places."""
        return mask.data.astype(bool, copy=False)

    def metered_load(self, ptrs, mask, *rest, **named):
        if _active:
            _active.access("load", ptrs.data, lanes(mask), itemsize(ptrs))
        return load(self, ptrs, mask, *rest, **named)

    def metered_store(self, ptrs, value, mask, *rest):
        if _active:
            shape = np.broadcast_shapes(ptrs.data.shape, mask.data.shape)
            stored = np.broadcast_to(value.data, shape)[np.broadcast_to(lanes(mask), shape)]
            _active.access("store", ptrs.data, lanes(mask), itemsize(ptrs), stored)
        return store(self, ptrs, value, mask, *rest)

    def metered_rmw(self, op, ptr, val, mask, *rest):
        if _active:
            adds_floats = op == stock._ir.ATOMIC_OP.FADD
            _active.access("atomic", ptr.data, lanes(mask), itemsize(ptr), adds_floats=adds_floats)
        return rmw(self, op, ptr, val, mask, *rest)

    def metered_cas(self, ptr, *rest):
        if _active:
            _active.access("atomic", ptr.data, np.ones_like(ptr.data, bool), itemsize(ptr))
        return cas(self, ptr, *rest)

    def metered_dot(self, a, b, *rest):
        if _active:
            _active.flops += 2 * int(np.prod(a.data.shape)) * b.data.shape[-1]
        return dot(self, a, b, *rest)

    builder.create_masked_load, builder.create_masked_store, builder.create_dot = (
        metered_load,
        metered_store,
        metered_dot,
    )
    builder.create_atomic_rmw, builder.create_atomic_cas = metered_rmw, metered_cas
