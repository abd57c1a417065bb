"""The memory a kernel may touch: every tensor between two red zones, every byte it does not own poisoned."""

import numpy as np
from frames import DTYPES

RED_ZONE = 4096  # bytes on each side; filled with 0xFF, which is NaN in every float type
ALIGN = 256
POISON = 0xFF


class Buffer:
    def __init__(self, name: str, dtype: str, shape, strides, content: np.ndarray | None = None):
        self.name, self.dtype, self.shape, self.strides = name, DTYPES[dtype], tuple(shape), tuple(strides)
        self.type_name = dtype
        self.extent = extent(self.shape, self.strides)
        nbytes = self.extent * self.dtype.itemsize
        self._raw = np.full(nbytes + 2 * RED_ZONE + ALIGN, POISON, np.uint8)
        self._start = RED_ZONE + (-(self._raw.ctypes.data + RED_ZONE)) % ALIGN
        self.memory = self._raw[self._start : self._start + nbytes]
        if content is not None:
            self.memory[:] = np.ascontiguousarray(content).view(np.uint8).reshape(-1)

    @property
    def address(self) -> int:
        return self.memory.ctypes.data if self.memory.size else self._raw.ctypes.data + self._start

    @property
    def elements(self) -> np.ndarray:
        return self.memory.view(self.dtype)

    def fill(self, value) -> None:
        self.elements[:] = np.asarray(value).astype(self.dtype)

    def red_zones_intact(self) -> bool:
        before, after = self._raw[: self._start], self._raw[self._start + self.memory.size :]
        return bool((before == POISON).all() and (after == POISON).all())


def extent(shape, strides) -> int:
    """Elements from the first to the last that a strided view owns."""
    if any(size == 0 for size in shape):
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def contiguous(shape) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))
