"""For the kernels' own tests where there is no GPU: `kernel[grid](...)` on torch's CPU tensors goes through the machine.

`install()` takes the place of Triton's launch. What a kernel does wrong on the machine (a race, an access outside its
tensors) raises LaunchError where it was launched.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from tilescope.lowering import text_of
from tilescope.machine.dtypes import DTYPES
from tilescope.machine.limits import Limits
from tilescope.machine.read import read
from tilescope.machine.run import Launching, run
from tilescope.machine.storage import Storage
from tilescope.machine.verify import verify

CAPABILITY = 90  # of the GPU that kernels are lowered for
WAVE = 16
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


class LaunchError(RuntimeError):
    """What the machine found wrong with a launch; `report` has it in full."""

    def __init__(self, message: str, report):
        super().__init__(message)
        self.report = report


@dataclass
class Moved:
    """What launches asked for in one tensor's memory, in bytes."""

    loaded: int = 0
    stored: int = 0
    read: list = field(default_factory=list)  # addresses of the elements that were loaded

    @property
    def distinct(self) -> int:
        """Elements that were loaded, each once."""
        return len(np.unique(np.concatenate(self.read))) if self.read else 0

    def add(self, storage: Storage, counts: dict) -> None:
        self.loaded += counts.get("load", {}).get("requested", 0)
        self.stored += counts.get("store", {}).get("requested", 0)
        first = storage.elements.ctypes.data
        self.read.append(first + np.flatnonzero(storage.loads) * storage.itemsize)


WATCHED: dict[int, Moved] = {}  # by memory


def watch(tensor: torch.Tensor) -> Moved:
    """Counts from here on what launches move in a tensor's memory; WATCHED.clear() ends it."""
    return WATCHED.setdefault(memory_of(tensor), Moved())


class NoDevice:
    """Stands in for Triton's driver: a GPU to lower for, and none to run on."""

    def get_current_target(self):
        return GPUTarget("cuda", CAPABILITY, 32)

    def get_current_device(self):
        return -CAPABILITY  # a number of its own, because what is lowered is kept per device

    def get_current_stream(self, device=None):
        return 0

    def get_active_torch_device(self):
        return torch.device("cpu")


def install() -> None:
    """From here on launches of @triton.jit functions run on the machine, in this process."""
    driver.set_active(NoDevice())
    JITFunction.run = launch
    Autotuner.run = first_config


def first_config(self, *args, **kwargs):
    """Nothing can be timed here, so the first configuration that is allowed does."""
    self.nargs = dict(zip(self.arg_names, args, strict=False))
    config = self.prune_configs(kwargs)[0]
    named = {**self.nargs, **kwargs, **config.all_kwargs()}
    if config.pre_hook is not None:
        config.pre_hook(named)
    self.nargs = None
    return self.fn.run(*args, **kwargs, **config.all_kwargs())


def launch(self, *args, grid, warmup, **kwargs):
    """Takes the place of JITFunction.run."""
    if self.is_gluon():
        raise NotImplementedError(f"{self.__name__} is a Gluon kernel, which a GPU alone can run")
    kwargs["debug"] = kwargs.get("debug", self.debug) or False
    *_, backend, binder = self.device_caches[NoDevice().get_current_device()]
    bound, specialization, options = binder(*args, **kwargs)
    options, signature, constants, attributes = self._pack_args(
        backend, kwargs, bound, specialization, options
    )
    module = lowered(self, signature, constants, attributes, options)
    if warmup:
        return None
    grid = grid(bound) if callable(grid) else grid
    values = [value for name, value in bound.items() if signature[name] != "constexpr"]
    types = [type for type in signature.values() if type != "constexpr"]
    tensors = Tensors([value for value in values if isinstance(value, torch.Tensor | TensorDescriptor)])
    arguments = [
        pair for value, type in zip(values, types, strict=True) for pair in tensors.arguments(value, type)
    ]
    step = Launching(module, tuple((*grid, 1, 1)[:3]), arguments)
    counting, limits = "full" if WATCHED else "values", Limits(seconds=SECONDS)
    report = run([step], tensors.stored, wave=WAVE, counting=counting, repeatable=False, limits=limits)
    complain(self.__name__, report)
    for key in WATCHED.keys() & tensors.names.keys():
        storage = next(t for t in tensors.stored if t.name == tensors.names[key])
        WATCHED[key].add(storage, report.launches[0].tensors[storage.name])


LOWERED: dict = {}  # kernel, specialised alike -> module


def lowered(kernel: JITFunction, signature, constants, attributes, options):
    key = (
        kernel.cache_key,
        repr(signature),
        repr(constants),
        repr(attributes),
        options.num_warps,
        options.debug,
    )
    if key not in LOWERED:
        wanted = {"num_warps": options.num_warps, "debug": options.debug}
        text = text_of(kernel, signature, constants, attributes, target=CAPABILITY, **wanted)
        module = read(text, cell=kernel.fn.__code__.co_filename)
        if not any(type.startswith("tensordesc") for type in signature.values()):
            verify(module)  # an answer's kernel makes its descriptors itself; ours may be given some
        LOWERED[key] = module
    return LOWERED[key]


def complain(kernel: str, report) -> None:
    if report.error is not None:
        raise LaunchError(f"{kernel}: {report.error['message']} (line {report.error['line']})", report)
    if report.races:
        race = report.races[0]
        raise LaunchError(
            f"{kernel}: {race['how']} at element {race['element']} (line {race['line']})", report
        )
    if report.undecided:
        raise LaunchError(f"{kernel}: {report.undecided}", report)


@dataclass
class Span:
    """What the arguments of one launch use of one memory of torch's, in bytes."""

    first: int
    end: int
    views: list


class Tensors:
    """The machine's storages for torch's tensors; views of one memory share one storage, and write into it."""

    def __init__(self, given: list):
        tensors = [value.base if isinstance(value, TensorDescriptor) else value for value in given]
        self.spans: dict[int, Span] = {}
        for tensor in tensors:
            self.include(tensor)
        self.stored: list[Storage] = []
        self.names = {key: self.store(span) for key, span in self.spans.items()}

    def include(self, tensor: torch.Tensor) -> None:
        first, end = reach(tensor)
        span = self.spans.setdefault(memory_of(tensor), Span(first, end, []))
        span.first, span.end = min(span.first, first), max(span.end, end)
        span.views.append(tensor)

    def store(self, span: Span) -> str:
        tensor, name = span.views[0], f"argument_{len(self.stored)}"
        alone = all(same_view(tensor, other) for other in span.views)
        content = content_of(tensor, span.first, span.end)
        shape, strides = (
            (tensor.shape, tensor.stride()) if alone and tensor.numel() else ((content.size,), None)
        )
        self.stored.append(Storage(name, len(self.stored), content, "inout", shape, strides))
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
