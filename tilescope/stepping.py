"""Record a program of a script's launches: the first that a finding names, or the one that was asked for."""

import ast
import linecache
import re
from dataclasses import dataclass
from math import prod

from .call import Call
from .checking import Checked, Memories, without_promises
from .machine.dtypes import NAMES
from .recorder import Place, Recorder, Recording
from .watching import Seen


@dataclass(frozen=True)
class Wanted:
    """Which program of which launch to record; what is left open is chosen by the findings."""

    program: int | tuple[int, ...] | None = None
    kernel: str = ""
    launch: int | None = None  # counts from 0

    def allows(self, call: Call, number: int) -> bool:
        kernel = self.kernel in ("", call.kernel)
        return kernel and self.launch in (None, number) and self.number(call.grid) is not None

    def number(self, grid: tuple[int, int, int]) -> int | None:
        """The program's number in a grid; None where the grid lacks it."""
        if self.program is None:
            return 0
        if isinstance(self.program, int):
            return self.program if 0 <= self.program < prod(grid) else None
        x, y, z = (*self.program, 0, 0)[:3]
        inside = all(0 <= one < side for one, side in zip((x, y, z), grid, strict=True))
        return x + grid[0] * (y + grid[1] * z) if inside else None


class Stepping(Seen):
    """Collects findings as a watch does, and records one program besides."""

    def __init__(self, wanted: Wanted | None = None):
        super().__init__()
        self.wanted, self.recording, self.before = wanted or Wanted(), None, None
        self.refusals: list[str] = []

    def begin(self, call: Call) -> None:
        self.before = Memories(call) if self.wanted.allows(call, self.launches) else None

    def take(self, call: Call, checked: Checked) -> None:
        super().take(call, checked)
        if self.before is None:
            self.refusals.append(f"{call.kernel} with the grid {call.grid}")
            return
        named = [f for f in checked.findings if f.programs]
        if self.recording is None or (named and not self.recording.findings):
            after = self.before.now()
            self.before.back()
            self.recording = record(call, checked, self.program(call, named))
            self.before.back(after)
        self.before = None

    def program(self, call: Call, named: list) -> int:
        if self.wanted.program is None and named:
            named = sorted(named, key=lambda finding: finding.severity != "error")
            return Wanted(tuple(named[0].programs[0])).number(call.grid)
        return self.wanted.number(call.grid)


def record(call: Call, checked: Checked, program: int) -> Recording:
    """Runs a launch once more from where its memory stands, and keeps what one program does."""
    module, kinds = call.module, {f.kind for f in checked.findings}
    for finding in checked.findings:
        if finding.kind == "hint":
            module = without_promises(module, finding.line)
    tensors = call.tensors("neighbour" in kinds)
    first, source = source_of(call.file, call.kernel, module.kernel.line)
    recording = Recording(call.kernel, call.file, first, source, call.grid, program)
    recording.findings = [finding.as_dict() for finding in checked.findings]
    recording.places = [
        Place(t.name, NAMES[t.elements.dtype], t.base, t.itemsize, t.extent, tuple(t.shape), tuple(t.strides))
        for t in tensors.stored
    ]
    recorder = Recorder(recording, variables(module.kernel.words, source))
    call.run(tensors, module, counting="values", launch=recorder.launch)
    return recording


def source_of(file: str, kernel: str, line: int) -> tuple[int, list[str]]:
    """A kernel's first line and its lines, from its def to its end; no lines where the file can't be read."""
    lines = linecache.getlines(file)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return line, []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef)
            and node.name == kernel
            and node.lineno <= line <= node.end_lineno
        ):
            return node.lineno, [one.rstrip("\n") for one in lines[node.lineno - 1 : node.end_lineno]]
    return line, []


def variables(words: dict[str, str], source: list[str]) -> dict[str, str]:
    """Values by the source's variables: Triton numbers those that share a name."""
    known = set(re.findall(r"[A-Za-z_]\w*", "\n".join(source)))
    found = {}
    for value, word in words.items():
        name = word.lstrip("%")
        plain = re.sub(r"_\d+$", "", name)
        found[value] = name if name in known else plain if plain in known else ""
    return found
