"""Tensors as a launch sees them. Addresses aren't real. The high bits of a pointer hold its tensor's number,
so an access outside it is seen by its offset and reaches nothing."""

from functools import cached_property
from math import prod

import numpy as np

from .errors import OverLimit

SPAN = 40  # 1 TiB of offsets a tensor
HALF = 1 << (SPAN - 1)
PAGE = 64  # elements of a tensor that is larger than memory
ROOM, ROOM_OF_OUTPUTS = 1 << 25, 1 << 24  # elements that one run may touch
ROLES = ("in", "out", "inout", "scratch")


class Storage:
    """One tensor: flat elements from the first it owns to the last. If it `remembers`, it also keeps the
    history of each element over all launches."""

    def __init__(
        self,
        name: str,
        number: int,
        content: np.ndarray,
        role: str,
        shape=None,
        strides=None,
        axes="",
        remembers: bool = True,
    ):
        if role not in ROLES:
            raise ValueError(f"a tensor's role must be one of {', '.join(ROLES)}, got {role!r}")
        self.name, self.role, self.base = name, role, (number + 1) << SPAN
        self.elements = content.reshape(-1)
        self.itemsize, self.extent = content.dtype.itemsize, content.size
        self.whole = self.extent  # elements that an access may reach
        self.shape = tuple(shape) if shape is not None else (self.extent,)
        self.strides = tuple(strides) if strides is not None else contiguous(self.shape)
        self.named = len(axes) == len(self.shape)  # whether its axes have names of their own
        self.axes = axes if self.named else "0123456789"[: len(self.shape)]
        self.bytes = self.elements.view(np.uint8)
        self.shared = role != "in"  # inputs are never written, so their readers need no record
        self.remembers, self.keepers = remembers, []  # copies of its content, notified before a write
        self.written = np.zeros(self.extent, bool) if role == "out" else None
        # the last program to write each element
        self.writer = np.full(self.extent, -1, np.int32) if self.shared and remembers else None
        self.turn = None  # and which turn of its own that was, once any program has a second one
        self.owned = self._owned()

    @cached_property
    def loads(self) -> np.ndarray:
        """Return how often each element was loaded. The counts take memory from the first request on, like `stores`."""
        return np.zeros(self.extent if self.remembers else 0, np.uint32)

    @cached_property
    def stores(self) -> np.ndarray:
        """How often each element was stored."""
        return np.zeros(self.extent if self.remembers else 0, np.uint32)

    def _owned(self) -> np.ndarray | None:
        """Return True where the tensor owns an element, or None if it has no gaps."""
        if prod(self.shape) >= self.extent:
            return None
        owned = np.zeros(self.extent, bool)
        np.lib.stride_tricks.as_strided(owned, self.shape, self.strides)[...] = True
        return owned

    def wrote(self, lanes, programs: np.ndarray, turn: np.ndarray, of_each: np.ndarray | None = None) -> None:
        """Notes which program writes these lanes, and in which of its turns. `of_each` is each element's program, if it is
        known."""
        self.writer[lanes.element] = lanes.per_element(programs) if of_each is None else of_each
        turns = turn[programs]
        if self.turn is None and turns.any():
            self.turn = np.zeros(self.extent, np.int32)
        if self.turn is not None:
            self.turn[lanes.element] = lanes.per_element(turns)

    def keep(self) -> None:
        """Lets its keepers copy what it holds, before the first write."""
        lacking = [keeper for keeper in self.keepers if self not in keeper.kept]
        if lacking:
            copy = Kept.copy(self)
            for keeper in lacking:
                keeper.kept[self] = copy

    def view(self, dtype: np.dtype) -> np.ndarray:
        whole = len(self.bytes) // dtype.itemsize * dtype.itemsize
        return self.bytes[:whole].view(dtype)

    def unwritten(self) -> np.ndarray:
        """The tensor's own elements that no launch has written."""
        if self.written is None:
            return np.empty(0, np.int64)
        missing = ~self.written if self.owned is None else ~self.written & self.owned
        return np.flatnonzero(missing)


class Paged(Storage):
    """Hold a tensor without gaps that is larger than memory. A page takes room once an access reaches the page.

    An input holds the elements of `pool`, over and over. Elements are numbered by their place in the room here."""

    def __init__(
        self, name: str, number: int, pool: np.ndarray, role: str, shape, strides, axes="", page=PAGE, room=0
    ):
        pages = -(-prod(shape) // page)
        room, self.page = min(room or (ROOM if role == "in" else ROOM_OF_OUTPUTS), pages * page), page
        super().__init__(name, number, np.zeros(room, pool.dtype), role, shape, strides, axes)
        self.pool, self.whole = pool, prod(shape)
        self.places = np.zeros(
            -(-self.whole // self.page), np.int32
        )  # of each page, 1 for the first in the room
        self.pages = np.zeros(room // self.page, np.int64)  # of each place, its page
        self.used = 0

    def in_room(self, offset: np.ndarray) -> np.ndarray:
        """Return where bytes of the tensor are in the room."""
        shift = (self.page * self.itemsize).bit_length() - 1
        page = offset >> shift
        place = self.places[page]
        if not place.all():
            self.fetch(np.unique(page[place == 0]))
            place = self.places[page]
        return ((place.astype(np.int64) - 1) << shift) + (offset & ((1 << shift) - 1))

    def fetch(self, pages: np.ndarray) -> None:
        first, self.used = self.used, self.used + pages.size
        if self.used > self.pages.size:
            raise OverLimit("bytes", f"these programs touch more of {self.name} than fits into memory")
        self.places[pages] = np.arange(first + 1, self.used + 1)
        self.pages[first : self.used] = pages
        if self.pool.size:
            element = self.numbered(np.arange(first * self.page, self.used * self.page))
            self.elements[first * self.page : self.used * self.page] = self.pool.take(
                element % self.pool.size
            )

    def numbered(self, element: np.ndarray) -> np.ndarray:
        """Return the tensor's own numbers of elements of the room."""
        return self.pages[element // self.page] * self.page + element % self.page


class Kept:
    """The earlier content of tensors written since this began."""

    def __init__(self, tensors: list[Storage]):
        self.tensors: list[Storage] = tensors
        self.kept: dict[Storage, tuple] = {}
        for tensor in tensors:
            tensor.keepers.append(self)

    @staticmethod
    def copy(tensor: Storage) -> tuple:
        return tensor.elements.copy(), None if tensor.written is None else tensor.written.copy()

    def now(self) -> dict[Storage, tuple]:
        """Return the present content of the written tensors."""
        return {tensor: self.copy(tensor) for tensor in self.kept}

    def back(self, to: dict[Storage, tuple] | None = None) -> None:
        """Restore the content from the start, or from another time."""
        for tensor, (elements, written) in (self.kept if to is None else to).items():
            tensor.elements[...] = elements
            if written is not None:
                tensor.written[...] = written

    def end(self) -> None:
        for tensor in self.tensors:
            tensor.keepers.remove(self)


def contiguous(shape) -> tuple[int, ...]:
    strides, step = [], 1
    for side in reversed(tuple(shape)):
        strides.append(step)
        step *= max(1, side)
    return tuple(reversed(strides))
