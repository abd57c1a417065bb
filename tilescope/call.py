"""One launch with its tensors: torch's memory as the machine's storages, so that a launch can run several times."""

from dataclasses import dataclass

import numpy as np
import torch
from triton.tools.tensor_descriptor import TensorDescriptor

from tilescope.machine.dtypes import DTYPES
from tilescope.machine.limits import Limits
from tilescope.machine.run import Launching, run
from tilescope.machine.storage import Storage
from tilescope.machine.tree import Module

WAVE = 16
AXES = "ijklmnop"  # the names of a tensor's axes in messages
SECONDS = 120.0
BY_BITS = {1: torch.uint8, 2: torch.int16}  # what numpy reads a type of torch's as that it lacks
NAMES = {
    torch.bool: "bool",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "fp8e4nv",
    torch.float8_e5m2: "fp8e5",
    torch.float16: "fp16",
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
}


@dataclass
class Call:
    """One launch made ready, so that it can run several times."""

    kernel: str
    file: str
    module: Module
    grid: tuple[int, int, int]
    given: list[tuple]  # (parameter, value, Triton's type) of every argument that is no constant
    lowered: tuple | None = (
        None  # the kernel, its signature, constants, attributes and options: to lower it again
    )

    def tensors(self, whole: bool = False) -> "Tensors":
        """The tensors as storages; `whole` lets an access reach all of the memory that a view is part of."""
        kinds = torch.Tensor | TensorDescriptor
        return Tensors([(name, value) for name, value, _ in self.given if isinstance(value, kinds)], whole)

    def has_views(self) -> bool:
        """Whether a tensor's memory holds more than the tensor."""
        return any(not fills_its_memory(v) for s in self.tensors().spans.values() for v in s.views)

    def run(self, tensors: "Tensors", module: Module | None = None, **more):
        arguments = [pair for _, value, type in self.given for pair in tensors.arguments(value, type)]
        step = Launching(module or self.module, self.grid, arguments)
        limits = Limits(seconds=SECONDS)
        return run([step], tensors.stored, wave=WAVE, repeatable=False, limits=limits, **more)


@dataclass
class Span:
    """What the arguments of one launch use of one memory of torch's, in bytes."""

    first: int
    end: int
    views: list
    parameters: list[str]


class Tensors:
    """The machine's storages for torch's tensors; views of one memory share one storage, and write into it."""

    def __init__(self, given: list[tuple[str, object]], whole: bool = False):
        self.whole, self.spans = whole, {}
        for parameter, value in given:
            self.include(parameter, value.base if isinstance(value, TensorDescriptor) else value)
        self.stored: list[Storage] = []
        self.names = {key: self.store(span) for key, span in self.spans.items()}

    def include(self, parameter: str, tensor: torch.Tensor) -> None:
        first, end = all_of(tensor) if self.whole else reach(tensor)
        span = self.spans.setdefault(memory_of(tensor), Span(first, end, [], []))
        span.first, span.end = min(span.first, first), max(span.end, end)
        span.views.append(tensor)
        span.parameters.append(parameter)

    def store(self, span: Span) -> str:
        """Keeps a storage under the names of the parameters that use it: x, or x/y."""
        tensor, name = span.views[0], "/".join(span.parameters)
        content = content_of(tensor, span.first, span.end)
        shaped = bool(tensor.numel()) and all(same_view(tensor, other) for other in span.views)
        if self.whole:  # a shape says which elements a kernel may reach: here all of them
            shaped = shaped and fills_its_memory(tensor)
        shape, strides = (tensor.shape, tensor.stride()) if shaped else ((content.size,), None)
        axes = AXES[: len(shape)]
        self.stored.append(Storage(name, len(self.stored), content, "inout", shape, strides, axes))
        return name

    def arguments(self, value, type: str) -> list[tuple]:
        """The kernel's arguments that one value of a launch becomes."""
        if isinstance(value, TensorDescriptor):
            padding = 2 if value.padding == "nan" else 1
            place = ("place", (*self.place(value.base), *value.shape, *value.strides, padding))
            return [place, *(("i32", n) for n in value.shape), *(("i64", n) for n in value.strides)]
        if isinstance(value, torch.Tensor):
            return [("place", self.place(value))]
        return [("bool" if type in ("i1", "u1") else type, value)]

    def place(self, tensor: torch.Tensor) -> tuple[str, int]:
        key = memory_of(tensor)
        return self.names[key], tensor.storage_offset() * tensor.itemsize - self.spans[key].first


def memory_of(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def reach(tensor: torch.Tensor) -> tuple[int, int]:
    """The bytes of its memory from a tensor's first element to its last."""
    first = tensor.storage_offset() * tensor.itemsize
    if not tensor.numel():
        return first, first
    last = sum((side - 1) * stride for side, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return first, first + (last + 1) * tensor.itemsize


def all_of(tensor: torch.Tensor) -> tuple[int, int]:
    """The bytes of its memory that elements of its type can have."""
    size = tensor.untyped_storage().nbytes()
    return 0, size - size % tensor.itemsize


def fills_its_memory(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous() and reach(tensor) == all_of(tensor)


def same_view(one: torch.Tensor, other: torch.Tensor) -> bool:
    return (one.dtype, one.shape, one.stride(), one.storage_offset()) == (
        other.dtype,
        other.shape,
        other.stride(),
        other.storage_offset(),
    )


def content_of(tensor: torch.Tensor, first: int, end: int) -> np.ndarray:
    """Those bytes as numpy's, of the tensor's type; what is written there is written into the tensor."""
    if tensor.device.type != "cpu":
        raise ValueError(
            f"a tensor must lie in the CPU's memory, got one on {tensor.device}; launch it on a GPU"
        )
    size, dtype = tensor.itemsize, DTYPES[NAMES[tensor.dtype]]
    flat = torch.as_strided(tensor.detach(), ((end - first) // size,), (1,), first // size)
    readable = (
        flat.view(BY_BITS[size])
        if tensor.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        else flat
    )
    return readable.numpy().view(dtype)
