"""Record the requested program of a script's launches, or else the first that a finding names."""

from dataclasses import dataclass
from math import prod

import numpy as np

from .call import Call
from .checking import Again, Checked
from .launcher import CAPABILITY
from .machine.dtypes import NAMES
from .recorder import Place, Recorder, Recording, Value
from .sources import called_at, operations, source_of, variables
from .texts import texts_of


@dataclass(frozen=True)
class Wanted:
    """The program and launch to record. Findings choose anything left open."""

    program: int | tuple[int, ...] | None = None
    kernel: str = ""
    launch: int | None = None  # counts from 0

    def __str__(self) -> str:
        asked = {"kernel": self.kernel or None, "launch": self.launch, "program": self.program}
        return ", ".join(f"{name} {value}" for name, value in asked.items() if value is not None)

    def allows(self, call: Call, number: int) -> bool:
        kernel = self.kernel in ("", call.kernel)
        return kernel and self.launch in (None, number) and self.number(call.grid) is not None

    def number(self, grid: tuple[int, int, int]) -> int | None:
        """Return the program's number in a grid, or None if the grid lacks the program."""
        if self.program is None:
            return 0
        if isinstance(self.program, int):
            return self.program if 0 <= self.program < prod(grid) else None
        x, y, z = (*self.program, 0, 0)[:3]
        inside = all(0 <= one < side for one, side in zip((x, y, z), grid, strict=True))
        return x + grid[0] * (y + grid[1] * z) if inside else None


class Stepping:
    """Records one program of a watch's launches."""

    def __init__(self, wanted: Wanted | None = None, texts: bool = False):
        self.wanted, self.texts, self.recording = wanted or Wanted(), texts, None
        self.refusals: list[str] = []  # launches that lack the program

    def wants(self, call: Call, number: int) -> bool:
        if not self.wanted.allows(call, number):
            self.refusals.append(f"{call.kernel} with the grid {call.grid}")
            return False
        return True

    def look(self, checked: Checked, again: Again) -> None:
        named = [f for f in checked.findings if f.programs]
        if self.recording is None or (named and not self.recording.findings):
            self.recording = record(checked, again, self.program(again.call, named), self.texts)

    def program(self, call: Call, named: list) -> int:
        if self.wanted.program is None and named:
            named = sorted(named, key=lambda finding: finding.severity != "error")
            return Wanted(tuple(named[0].programs[0])).number(call.grid)
        return self.wanted.number(call.grid)


def constants_of(call: Call) -> list[Value]:
    """Return the numbers that Triton compiled into a kernel, constants and arguments that are 1."""
    kernel, _, constants, *_ = call.lowered
    numbers = {
        kernel.arg_names[at]: value
        for (at, *deep), value in constants.items()
        if not deep and isinstance(value, int | float)
    }
    return [Value(name, "constant", (), np.asarray(value), None) for name, value in numbers.items()]


def record(checked: Checked, again: Again, program: int, texts: bool = False) -> Recording:
    """Runs a checked launch once more, and keeps what one program does."""
    call, kernel = again.call, again.call.module.kernel
    first, source = source_of(call.file, call.kernel, kernel.line)
    recording = Recording(call.kernel, call.file, first, source, call.grid, program)
    lines = {op.line for function in call.module.functions.values() for op in operations(function.blocks)}
    recording.called = called_at(call.file, lines - set(range(first, first + len(source))))
    recording.values = constants_of(call)
    recording.findings = [finding.as_dict() for finding in checked.findings]
    recording.texts = texts_of(call.lowered, call.file, CAPABILITY) if texts else []
    recording.places = [
        Place(t.name, NAMES[t.elements.dtype], t.base, t.itemsize, t.extent, tuple(t.shape), tuple(t.strides))
        for t in again.tensors.stored
    ]
    words = variables(kernel, [line for _, line in recording.listing])
    again(launch=Recorder(recording, words).launch)
    return recording
