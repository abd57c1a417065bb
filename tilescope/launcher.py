"""`kernel[grid](...)` on torch's CPU tensors goes through the machine, without a GPU.

`install()` takes the place of Triton's launch. A mistake of a kernel's (a race, an access outside its tensors) raises
LaunchError where it was launched, unless somebody in SEEING collects mistakes.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from tilescope.call import Call, Tensors, memory_of
from tilescope.checking import check
from tilescope.lowering import text_of
from tilescope.machine.read import read
from tilescope.machine.storage import Storage
from tilescope.machine.tree import BadIR
from tilescope.machine.verify import verify

CAPABILITY = 90  # of the GPU that kernels are lowered for


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
    try:
        module = lowered(self, signature, constants, attributes, options)
    except BadIR as error:
        if not SEEING:
            raise
        for seen in SEEING:
            seen.refused(self.__name__, self.fn.__code__.co_filename, error)
        return None
    if warmup:
        return None
    grid = grid(bound) if callable(grid) else grid
    given = [
        (name, value, signature[name]) for name, value in bound.items() if signature[name] != "constexpr"
    ]
    call = Call(self.__name__, self.fn.__code__.co_filename, module, tuple((*grid, 1, 1)[:3]), given)
    call.lowered = self, signature, constants, attributes, options
    if SEEING:
        take_all(call)
        return None
    tensors = call.tensors()
    report = call.run(tensors, counting="full" if WATCHED else "values")
    complain(self.__name__, report)
    count_watched(tensors, report)


SEEING: list = []  # those that collect what launches do wrong, each with `begin`, `take` and `refused`


def take_all(call: Call) -> None:
    """Checks a launch once, for all that collect findings."""
    if 0 in call.grid:  # Triton launches nothing
        return
    for seen in SEEING:
        seen.begin(call)
    checked = check(call)
    if checked.report.launches:
        count_watched(checked.tensors, checked.report)
    for seen in SEEING:
        seen.take(call, checked)


def count_watched(tensors: Tensors, report) -> None:
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
