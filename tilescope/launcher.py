"""`kernel[grid](...)` on torch's CPU tensors and numpy's arrays goes through the machine, without a GPU.

Replace Triton's launch (`install()`). A kernel's mistake (a race, an access outside its tensors) raises
LaunchError at the launch, unless a watcher in SEEING collects mistakes.
"""

from dataclasses import dataclass, field

import numpy as np
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from tilescope.arrays import for_triton
from tilescope.asked import SEEING, asked
from tilescope.call import Call, Tensors, memory_of
from tilescope.checking import Again, check, of_races, of_report
from tilescope.findings import Finding, of_refusal
from tilescope.lowering import text_of
from tilescope.machine.bounds import ids
from tilescope.machine.read import read
from tilescope.machine.storage import Kept, Storage
from tilescope.machine.tree import BadIR
from tilescope.machine.verify import verify
from tilescope.sources import place_of
from tilescope.tuning import CONFIGS, tuned
from tilescope.versions import hold_triton

CAPABILITY = 90  # of the GPU that kernels are lowered for


class LaunchError(RuntimeError):
    """The machine found mistakes in a launch. `findings` names them, and `report` has the run in full."""

    def __init__(self, findings: list[Finding], report):
        first, more = findings[0], len(findings) - 1
        said = f"{first.place}: {first.kind} in {first.kernel}: {first.message}"
        super().__init__(said + f" (and {more} more)" * bool(more))
        self.findings, self.report = findings, report


@dataclass
class Moved:
    """The bytes that launches asked for in one tensor's memory."""

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


def watch(tensor) -> Moved:
    """Count the bytes that launches move in a tensor's memory from now on. WATCHED.clear() ends the count."""
    return WATCHED.setdefault(memory_of(tensor), Moved())


class NoDevice:
    """Stand in for Triton's driver, with a GPU to lower for and none to run on."""

    def get_current_target(self):
        return GPUTarget("cuda", CAPABILITY, 32)

    def get_current_device(self):
        return -CAPABILITY  # a number of its own, because what is lowered is kept per device

    def get_current_stream(self, device=None):
        return 0

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")


def install() -> None:
    """From here on launches of @triton.jit functions run on the machine, in this process."""
    hold_triton()
    driver.set_active(NoDevice())
    JITFunction.run = launch
    Autotuner.run = tuned


def launch(self, *args, grid, warmup, **kwargs):
    """Replace JITFunction.run."""
    kwargs["debug"] = bool(kwargs.get("debug", self.debug) or knobs.runtime.debug)
    named = self.__name__, self.fn.__code__.co_filename
    args = [for_triton(value) for value in args]
    kwargs = {name: for_triton(value) for name, value in kwargs.items()}
    try:
        bound, made_of, module = compiled(self, args, kwargs)
    except BadIR as error:
        if not SEEING:
            raise LaunchError([of_refusal(*named, error)], None) from None
        for seen in SEEING:
            seen.refused(*named, error)
        return None
    if warmup:
        return None
    grid = grid(bound) if callable(grid) else grid
    signature = made_of[1]
    given = [
        (name, value, signature[name]) for name, value in bound.items() if signature[name] != "constexpr"
    ]
    grid, config = tuple((*grid, 1, 1)[:3]), "".join(CONFIGS[-1:])
    call = Call(*named, module, grid, given, config, made_of)
    if SEEING:
        take_all(call)
        return None
    tensors = call.tensors(remembers=bool(WATCHED))
    again = Again(call, tensors, Kept(tensors.stored), {})
    report = call.run(tensors, counting="full" if WATCHED or METERS else "values")
    tell_prints(call, report)
    try:
        if found := [*of_report(call, report), *of_races(again, report)]:
            raise LaunchError(found, report)
    finally:
        again.leave()
    count_watched(tensors, report)
    for meter in METERS:
        meter(self.__name__, moved_by(report))


def compiled(kernel: JITFunction, args: list, kwargs: dict):
    """The arguments by name, what its module is lowered from, and the module."""
    if kernel.is_gluon():
        raise BadIR("it is a Gluon kernel, which a GPU alone can run")
    *_, backend, binder = kernel.device_caches[NoDevice().get_current_device()]
    bound, specialization, options = binder(*args, **kwargs)
    options, signature, constants, attributes = kernel._pack_args(
        backend, kwargs, bound, specialization, options
    )
    made_of = kernel, signature, constants, attributes, options
    return bound, made_of, lowered(*made_of)


def take_all(call: Call) -> None:
    """Checks a launch once, for all that collect findings."""
    if 0 in call.grid:  # Triton launches nothing
        return
    looks = [look for seen in SEEING for look in seen.looks if look.wants(call, seen.launches)]
    for seen in SEEING:
        seen.launches += 1
    checked = check(call, bool(WATCHED), *map(asked, ("overflow", "atomics", "nan")), looks)
    tell_prints(call, checked.report)
    if checked.report.launches:
        count_watched(checked.tensors, checked.report)
    for seen in SEEING:
        seen.take(call, checked)


def count_watched(tensors: Tensors, report) -> None:
    for key in WATCHED.keys() & tensors.names.keys():
        storage = next(t for t in tensors.stored if t.name == tensors.names[key])
        WATCHED[key].add(storage, report.launches[0].tensors[storage.name])


METERS: list = []  # watchers that count every launch. Each gets (the kernel's name, Moved)


def moved_by(report) -> Moved:
    """Return the bytes that one launch asked for in all its tensors together."""
    moved = Moved()
    for launch in report.launches:
        for counts in launch.tensors.values():
            moved.loaded += counts.get("load", {}).get("requested", 0)
            moved.stored += counts.get("store", {}).get("requested", 0)
    return moved


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
            verify(module)  # an answer's kernel makes its own descriptors, ours may receive some
        LOWERED[key] = module
    return LOWERED[key]


def tell_prints(call: Call, report) -> None:
    """Print what the kernel printed, program by program."""
    for row in report.prints:
        where = place_of(call.file, row["line"])
        print(f"{where}: program {ids(row['program'], call.grid)}: {row['text']}")
    if report.prints_left_out:
        print(
            f"{place_of(call.file, None)}: {call.kernel} printed {report.prints_left_out:,} more lines, left out here"
        )
