"""Treat torch's tensors and numpy's arrays alike, by their memory and their offset in this memory. torch need not be
installed."""

import ctypes
import sys
from dataclasses import dataclass
from math import prod

import numpy as np
from triton.tools.tensor_descriptor import TensorDescriptor

from .machine.dtypes import DTYPES

NAMES = {  # what numpy, torch and Triton call a type -> what a plan calls it
    "bool": "bool",
    "int1": "bool",
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float8_e4m3fn": "fp8e4nv",
    "fp8e4nv": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "fp8e5": "fp8e5",
    **{f"float{bits}": f"fp{bits}" for bits in (16, 32, 64)},
    **{f"fp{bits}": f"fp{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}


class Array(np.ndarray):
    """A numpy array that Triton takes for a tensor."""

    def data_ptr(self) -> int:
        return self.ctypes.data

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.itemsize for step in self.strides)


def for_triton(value):
    """Return the value itself, or a numpy array wrapped for Triton."""
    return value.view(Array) if type(value) is np.ndarray else value


def is_torch(value) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_tensor(value) -> bool:
    """Return whether a kernel gets a pointer for this value."""
    return isinstance(value, np.ndarray | TensorDescriptor) or hasattr(value, "data_ptr")


@dataclass
class View:
    """A tensor as a part of a memory. Strides count elements, everything else counts bytes."""

    memory: int  # its address
    size: int
    offset: int
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writable: bool = True

    @property
    def reach(self) -> tuple[int, int]:
        """The bytes of its memory from the tensor's first element to its last."""
        if not prod(self.shape):
            return self.offset, self.offset
        steps = [(side - 1) * stride for side, stride in zip(self.shape, self.strides, strict=True)]
        size = self.dtype.itemsize
        first = self.offset + sum(step for step in steps if step < 0) * size
        return first, self.offset + (sum(step for step in steps if step > 0) + 1) * size

    @property
    def all(self) -> tuple[int, int]:
        """The bytes of its memory that elements of its type, in step with its own, can have."""
        size = self.dtype.itemsize
        first = self.offset % size
        return first, self.size - (self.size - first) % size

    @property
    def fills_its_memory(self) -> bool:
        expected = 1
        for side, stride in reversed([*zip(self.shape, self.strides, strict=True)]):
            if side != 1 and stride != expected:
                return False
            expected *= side
        return self.reach == self.all

    def content(self, first: int, end: int) -> np.ndarray:
        """Return those bytes of its memory as elements. Writing to the result writes into the tensor."""
        count = (end - first) // self.dtype.itemsize
        if not count:
            return np.empty(0, self.dtype)
        raw = (ctypes.c_uint8 * (count * self.dtype.itemsize)).from_address(self.memory + first)
        return np.frombuffer(raw, np.uint8).view(self.dtype)


def view_of(value) -> View:
    """Return the view that a tensor is. A descriptor gets the view of its base."""
    if isinstance(value, TensorDescriptor):
        return view_of(value.base)
    if isinstance(value, np.ndarray):
        return of_array(value)
    return of_torch(value) if is_torch(value) else of_wrapper(value)


def of_wrapper(value) -> View:
    """Of an object of a library's own with `data_ptr` and `dtype`, such as triton.reinterpret makes, which holds its
    tensor."""
    address = value.data_ptr()
    for held in vars(value).values():
        if is_torch(held) or isinstance(held, np.ndarray):
            view = view_of(held)
            if view.memory <= address <= view.memory + view.size:
                strides = tuple(value.stride()) if hasattr(value, "stride") else view.strides
                place = view.memory, view.size, address - view.memory
                return View(*place, dtype_named(value.dtype), tuple(value.shape), strides)
    raise ValueError(f"a tensor must be torch's or numpy's, got {type(value).__name__}")


def of_torch(tensor) -> View:
    if tensor.device.type != "cpu":
        raise ValueError(
            f"a tensor must be in the CPU's memory, got one on {tensor.device}. Launch it on a GPU"
        )
    storage, size = tensor.untyped_storage(), tensor.itemsize
    place = storage.data_ptr(), storage.nbytes(), tensor.storage_offset() * size
    return View(*place, dtype_named(tensor.dtype), tuple(tensor.shape), tuple(tensor.stride()))


def of_array(array: np.ndarray) -> View:
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    first, end = np.lib.array_utils.byte_bounds(root)
    dtype, size = dtype_named(array.dtype), array.itemsize
    if any(step % size for step in array.strides):
        raise ValueError(
            f"an array's strides must be multiples of its {size}-byte elements, got {array.strides}"
        )
    strides = tuple(step // size for step in array.strides)
    return View(
        first, end - first, array.ctypes.data - first, dtype, array.shape, strides, array.flags.writeable
    )


def dtype_named(dtype) -> np.dtype:
    """numpy's type for one of torch's, numpy's or Triton's."""
    name = str(dtype).split(".")[-1]
    if name not in NAMES:
        raise ValueError(f"a tensor's type must be one of {', '.join(sorted(NAMES))}, got {name}")
    return DTYPES[NAMES[name]]
