"""Record a program of a script's launches: the first that a finding names, or the one that was asked for."""

import ast
import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from .call import Call
from .checking import Checked, Memories, again_from, tensors_again
from .launcher import CAPABILITY
from .machine.dtypes import NAMES
from .machine.tree import Block, Function, Op
from .recorder import Place, Recorder, Recording
from .texts import texts_of


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

    def look(self, call: Call, checked: Checked, before: Memories) -> None:
        named = [f for f in checked.findings if f.programs]
        if self.recording is None or (named and not self.recording.findings):
            self.recording = record(call, checked, before, self.program(call, named), self.texts)

    def program(self, call: Call, named: list) -> int:
        if self.wanted.program is None and named:
            named = sorted(named, key=lambda finding: finding.severity != "error")
            return Wanted(tuple(named[0].programs[0])).number(call.grid)
        return self.wanted.number(call.grid)


def record(call: Call, checked: Checked, before: Memories, program: int, texts: bool = False) -> Recording:
    """Runs a launch once more from where its memory began, and keeps what one program does."""
    tensors, kernel = tensors_again(call, checked), call.module.kernel
    first, source = source_of(call.file, call.kernel, kernel.line)
    recording = Recording(call.kernel, call.file, first, source, call.grid, program)
    recording.findings = [finding.as_dict() for finding in checked.findings]
    recording.places = [
        Place(t.name, NAMES[t.elements.dtype], t.base, t.itemsize, t.extent, tuple(t.shape), tuple(t.strides))
        for t in tensors.stored
    ]
    recording.texts = texts_of(call.lowered, call.file, CAPABILITY) if texts else []
    recorder = Recorder(recording, variables(kernel, source))
    again_from(call, checked, before, recorder.launch, tensors)
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


def variables(function: Function, source: list[str]) -> dict[str, str]:
    """Values by the source's variables. Triton numbers those that share a name, and names each part of an expression
    after what the whole is assigned to: of one line, the last one is it."""
    known = set(re.findall(r"[A-Za-z_]\w*", "\n".join(source)))
    found, last = {}, {}
    for value, word in function.words.items():
        name = word.lstrip("%")
        plain = re.sub(r"_\d+$", "", name)
        found[value] = name if name in known else plain if plain in known else ""
    for op in operations(function.blocks):
        for value in op.results:
            earlier = last.get((found[value], op.line))
            if earlier is not None and found[value]:
                found[earlier] = ""
            last[found[value], op.line] = value
    return found


def operations(blocks: list[Block]) -> Iterator[Op]:
    for block in blocks:
        for op in block.ops:
            for region in op.regions:
                yield from operations(region)
            yield op
