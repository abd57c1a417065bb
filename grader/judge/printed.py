"""Read the values of a kernel from its IR as the machine prints it: what makes each, and what needs it."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

LOOPS = "scf.for", "scf.while"
NAME = re.compile(r"%\d+")
OPERATION = re.compile(r'^(?:(%\d+(?:, %\d+)*) = )?"([\w.]+)"\(([^)]*)\)')
LINE = re.compile(r'loc\("[^"]*":(\d+):')
NUMBERS = re.compile(r"^tensor<((?:\d+x)+)[a-zA-Z]+(\d+)\w*>$")  # not of pointers, which the compiler splits
TYPES = re.compile(r"tensor<[^>]*>+|[^,\s()]+")
ARGUMENT = re.compile(r"(%\d+): (tensor<[^>]*>+|[^,)]+)")


@dataclass
class Value:
    """Hold where a value is made, its bits, the operation, and where it is needed."""

    at: int
    bits: int
    op: str
    operands: tuple[str, ...]
    line: int = 0  # of the answer's cell
    needed: list[tuple[int, str]] = field(default_factory=list)


def functions(text: str) -> Iterator[list[str]]:
    """Yield the lines of each function, whose values have names of their own."""
    found: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith('"tt.func"'):
            yield found
            found = []
        found.append(line)
    yield found


def read(lines: list[str]) -> tuple[dict[str, Value], list[tuple[int, int, int]]]:
    """Return the values of a function, and its loops, as the lines where they begin and end and the bits that they carry."""
    values: dict[str, Value] = {}
    opened: list[tuple[int, list[str], str, tuple]] = []
    loops = []
    for at, line in enumerate(lines):
        if line.startswith("^"):
            for name, type in ARGUMENT.findall(line):
                values[name] = Value(at, bits_of(type), "an argument", ())
            continue
        if line.startswith("})") and opened:
            begins, names, op, operands = opened.pop()
            results = results_of(line)
            if op in LOOPS:
                loops.append((begins, at, sum(map(bits_of, results))))
            made(values, names, results, at, op, operands, line)
            continue
        match = OPERATION.match(line)
        if match is None:
            continue
        names = NAME.findall(match[1] or "")
        op, operands = match[2], tuple(NAME.findall(match[3]))
        for name in operands:
            if name in values:
                values[name].needed.append((at, op))
        if line.endswith("({"):
            opened.append((at, names, op, operands))
        else:
            made(values, names, results_of(line), at, op, operands, line)
    return values, loops


def made(
    values: dict, names: list[str], types: list[str], at: int, op: str, operands: tuple, text: str
) -> None:
    place = LINE.search(text)
    for name, type in zip(names, types, strict=False):
        values[name] = Value(at, bits_of(type), op, operands, int(place[1]) if place else 0)


def results_of(line: str) -> list[str]:
    """Return the types of an operation's results."""
    said = line.rpartition(" loc(")[0] or line
    return TYPES.findall(said.rpartition("->")[2])


def bits_of(type: str) -> int:
    """Return the bits of a block of numbers, and 0 of anything else."""
    match = NUMBERS.match(type.strip())
    return product(match[1]) * int(match[2]) if match else 0


def product(shape: str) -> int:
    """Return the numbers of a block such as "64x32x"."""
    return math.prod(map(int, shape.rstrip("x").split("x")))


def root_of(values: dict[str, Value], name: str) -> str:
    """Return the argument from which an address is made, of the kernel or of a loop."""
    while name in values and values[name].operands:
        name = values[name].operands[0]
    return name


def parameters(values: dict[str, Value]) -> list[str]:
    """Return the names of a kernel's parameters."""
    return [name for name, value in values.items() if value.op == "an argument" and value.at == 1]
