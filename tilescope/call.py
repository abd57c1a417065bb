"""One launch with its tensors.
Their memory becomes the machine's storages, so a launch can run several times."""

import sys
from dataclasses import dataclass

from triton.tools.tensor_descriptor import TensorDescriptor

from tilescope.machine.limits import Limits
from tilescope.machine.run import Launching, run
from tilescope.machine.storage import Storage
from tilescope.machine.tree import Module

from .arrays import View, is_tensor, view_of
from .asked import seconds
from .sources import place_of

WAVE = 16
ALIGNMENT = 128  # bytes, up to which addresses are as they are in memory


@dataclass
class Call:
    """One launch made ready, so that it can run several times."""

    kernel: str
    file: str
    module: Module
    grid: tuple[int, int, int]
    given: list[tuple]  # (parameter, value, Triton's type) of every argument that isn't a constant
    config: str = ""  # of an autotuned kernel
    lowered: tuple = ()  # the kernel, its signature, constants, attributes and options, to lower it again

    def tensors(self, whole: bool = False, remembers: bool = False) -> "Tensors":
        """Return the tensors as storages. `whole` lets an access reach all the memory that a view is part of."""
        given = [(name, value) for name, value, _ in self.given if is_tensor(value)]
        return Tensors(given, whole, remembers)

    def has_views(self) -> bool:
        """Return whether a tensor's memory holds more than the tensor."""
        return any(not view_of(value).fills_its_memory for _, value, _ in self.given if is_tensor(value))

    def tell(self, line: int, passed: float) -> None:
        """Report that the launch takes long, and its present line."""
        most = f"it may take {seconds():g} s of processor time (--seconds)"
        words = f"{self.kernel} has run for {passed:.0f} s and is here, and {most}"
        print(f"tilescope: {place_of(self.file, line)}: {words}", file=sys.stderr, flush=True)

    def run(self, tensors: "Tensors", module: Module | None = None, **more):
        arguments = [pair for _, value, type in self.given for pair in tensors.arguments(value, type)]
        step = Launching(module or self.module, self.grid, arguments)
        limits = Limits(seconds=seconds(), tell=self.tell)
        return run([step], tensors.stored, **{"wave": WAVE, "repeatable": False, "limits": limits, **more})


@dataclass
class Span:
    """The range of bytes that one launch's arguments use in one memory."""

    first: int
    end: int
    views: list[View]
    parameters: list[str]


class Tensors:
    """Holds the machine's storages for tensors. Views of one memory share one storage, including writes."""

    def __init__(self, given: list[tuple[str, object]], whole: bool = False, remembers: bool = False):
        self.whole, self.remembers, self.spans = whole, remembers, {}
        for parameter, value in given:
            self.include(parameter, view_of(value))
        self.stored: list[Storage] = []
        self.names = {key: self.store(span) for key, span in self.spans.items()}

    def include(self, parameter: str, view: View) -> None:
        first, end = view.all if self.whole else view.reach
        span = self.spans.setdefault(view.memory, Span(first, end, [], []))
        span.first, span.end = min(span.first, first), max(span.end, end)
        span.views.append(view)
        span.parameters.append(parameter)

    def store(self, span: Span) -> str:
        """Keep a storage under the names of the parameters that use it, x or x/y."""
        view, name = span.views[0], "/".join(span.parameters)
        content = view.content(span.first, span.end)
        shaped = bool(content.size) and min(view.strides, default=1) >= 0
        shaped = shaped and all(view == other for other in span.views)
        if self.whole:  # a shape limits the elements that a kernel may reach, here to all
            shaped = shaped and view.fills_its_memory
        shape, strides = (view.shape, view.strides) if shaped else ((content.size,), None)
        role = "inout" if any(v.writable for v in span.views) else "in"
        stored = Storage(name, len(self.stored), content, role, shape, strides, remembers=self.remembers)
        stored.base += (view.memory + span.first) % ALIGNMENT  # what Triton knows of a pointer stays true
        self.stored.append(stored)
        return name

    def arguments(self, value, type: str) -> list[tuple]:
        """The kernel's arguments that one value of a launch becomes."""
        if isinstance(value, TensorDescriptor):
            padding = 2 if value.padding == "nan" else 1
            place = ("place", (*self.place(value.base), *value.shape, *value.strides, padding))
            return [place, *(("i32", n) for n in value.shape), *(("i64", n) for n in value.strides)]
        if is_tensor(value):
            return [("place", self.place(value))]
        return [("bool" if type in ("i1", "u1") else type, value)]

    def place(self, value) -> tuple[str, int]:
        view = view_of(value)
        return self.names[view.memory], view.offset - self.spans[view.memory].first


def memory_of(value) -> int:
    """The address of the memory that a tensor is part of."""
    return view_of(value).memory
