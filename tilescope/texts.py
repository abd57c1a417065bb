"""Show a kernel in other languages,
as its Triton IR, and as the PTX that Triton's compiler makes, with the source line of each line."""

import re
from pathlib import Path

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from .lowering import emitted, front_end, prepared
from .machine.locations import Locations, split
from .machine.tree import BadIR

MOST_LINES = 2_000
LOC = re.compile(r' loc\((#loc\d*|unknown|(?:[^()"]|"[^"]*"|\((?:[^()"]|"[^"]*")*\))*)\)')
DIRECTIVE = re.compile(r"\s*\.loc\s+(\d+) (\d+) \d+(?:.*inlined_at (\d+) (\d+))?")
FILE = re.compile(r'\s*\.file\s+(\d+)\s+(?:"[^"]*"\s+)?"([^"]*)"')
STAGES = ("ttir", "ttgir", "llir", "ptx")


def texts_of(lowered: tuple, file: str, capability: int) -> list[dict]:
    """Return the texts that the view shows next to the source, as far as they can be made here."""
    if not lowered:
        return []
    found = []
    for label, make in (("Triton IR", triton_ir), ("PTX", ptx)):
        try:
            lines, of = make(lowered, file, capability)
        except (
            RuntimeError,
            ValueError,
            AssertionError,
            TypeError,
            KeyError,
            IndexError,
            OSError,
            ImportError,
        ):
            continue  # a text is left out if the compiler is missing or refuses the kernel
        found.append({"label": label, "lines": lines[:MOST_LINES], "of": of[:MOST_LINES]})
    return found


def triton_ir(lowered: tuple, file: str, capability: int) -> tuple[list[str], list[int]]:
    kernel, signature, constants, attributes, options = lowered
    wanted = {"num_warps": options.num_warps}
    module, context, _ = emitted(kernel, signature, constants, attributes, target=capability, **wanted)
    return located(str(module), file)


def located(text: str, file: str) -> tuple[list[str], list[int]]:
    """An MLIR text without its locations, and the line of the source for each of its own."""
    places, rest = split(text)
    where = Locations(places, file)
    lines, of, open_blocks = [], [], []
    for line in rest.split("\n"):
        locations = LOC.findall(line)
        words = LOC.sub("", line).rstrip()
        if not words:
            continue
        number = where.line(f"loc({locations[-1]})") if locations else 0
        closes = words.lstrip().startswith("}")
        if closes and open_blocks:
            opened = open_blocks.pop()
            of[opened] = of[opened] or number  # MLIR writes an operation's location after its regions
            number = 0
        if words.endswith("{"):
            open_blocks.append(len(lines))
        lines.append(words)
        of.append(number)
    return lines, of


def ptx(lowered: tuple, file: str, capability: int) -> tuple[list[str], list[int]]:
    """The same kernel as far as Triton compiles it without an assembler."""
    kernel, signature, constants, attributes, options = lowered
    source = ASTSource(kernel, signature=signature, constexprs=constants, attrs=attributes)
    wanted = {"num_warps": options.num_warps, "num_stages": options.num_stages}
    module, _context = front_end(source, capability, **wanted)
    backend, parsed, _ = prepared(capability, **wanted)
    stages: dict = {}
    backend.add_stages(stages, parsed, source.language)
    noted = {"target": GPUTarget("cuda", capability, 32), **parsed.__dict__}
    for stage in STAGES:
        module = stages[stage](module, noted)
    return instructions(str(module), file)


def instructions(text: str, file: str) -> tuple[list[str], list[int]]:
    """The lines of a PTX text that a GPU performs, with the lines that its .loc directives tell."""
    name, mine = Path(file).name, set()
    for number, path in FILE.findall(text):
        if Path(path).name == name:
            mine.add(number)
    lines, of, now, inside = [], [], 0, False
    for line in text.splitlines():
        if found := DIRECTIVE.match(line):
            pairs = [(found[1], found[2]), (found[3], found[4])]
            now = next((int(number) for index, number in pairs if index in mine), now)
            continue
        inside = inside or ".entry" in line
        words = line.partition("//")[0].strip()
        if (
            not inside
            or not words
            or words.startswith((".", "$L__tmp", "$L__func"))
            and ".entry" not in words
        ):
            continue
        lines.append(words if words.endswith(":") else f"    {words}")
        of.append(now if words.endswith(";") else 0)
        if words == "}":
            break
    if not lines:
        raise BadIR("PTX must hold an entry, got none")
    return lines, of
