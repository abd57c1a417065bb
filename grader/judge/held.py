"""Tell from a kernel's printed IR how many numbers its blocks and loops hold at a time, which spill beyond the registers of a
lane, whatever the compiler does."""

import re
from dataclasses import dataclass
from functools import lru_cache

from grader.judge.printed import LOOPS, Value, functions, product, read

BLOCK = re.compile(r"tensor<((?:\d+x)+)")
DOT = re.compile(
    r'"tt\.dot"\([^)]*\).*? : \(tensor<(?:\d+x)?(\d+)x\d+x[a-zA-Z]+(\d+)\w*>, tensor<(?:\d+x)?\d+x(\d+)x'
)
# of which every lane makes its number anew where it needs one
FROM_NOTHING = "arith.constant", "tt.make_range", "tt.get_program_id", "tt.get_num_programs"
LOADS = "tt.load", "tt.descriptor_load", "tt.gather", "tt.atomic_rmw", "tt.atomic_cas", "tt.call"
COMPUTED = "an argument", *LOADS, *LOOPS, "scf.if", "tt.dot", "tt.reduce", "tt.scan"
SAME = "tt.bitcast", "tt.trans", "tt.reshape", "tt.expand_dims", "tt.broadcast", "arith.bitcast"  # registers
OPERANDS = "tt.dot", "tt.trans"  # may take their operands from shared memory
AT_ONCE = "tt.dot", "tt.scan", *LOOPS
KEPT = 64  # texts


@dataclass(frozen=True)
class Held:
    """Hold, of one kernel, the elements of its blocks by shape, the most bits of a block whose elements all live at a time,
    as tl.dot and scans make them, the most bits that a loop keeps: what it carries from turn to turn, and what was made
    before it and is needed in it or after it, and the most bits that live at a time in the order of the text, which the
    compiler may change."""

    shapes: dict[str, int]
    by_a_block: int
    by_a_loop: int
    as_written: int
    dots: tuple = ()  # of each tl.dot (rows, columns, bits of an operand)

    @property
    def largest(self) -> int:
        return max(self.shapes.values(), default=1)


@lru_cache(maxsize=KEPT)
def of(text: str) -> Held:
    """Return what a kernel's printed text says of it."""
    shapes = {shape: product(shape) for shape in BLOCK.findall(text)}
    each = [of_function(lines) for lines in functions(text)]
    dots = tuple((int(rows), int(columns), int(size)) for rows, size, columns in DOT.findall(text))
    return Held(shapes, *(max(most) for most in zip(*each, strict=True)), dots)


def of_function(lines: list[str]) -> tuple[int, int, int]:
    """Return the most bits of a block of a function, the most that one of its loops keeps, and the most that live at a
    time."""
    values, loops = read(lines)
    forward(values)
    cheap = made_anew(values)
    stay = [one for name, one in values.items() if one.bits and name not in cheap]
    most = 0
    for begins, ends, carried in loops:
        kept = 0
        for value in stay:
            if value.at < begins:
                later = [op for at, op in value.needed if at > begins]
                inside = [op for at, op in value.needed if begins < at < ends]
                in_registers = any(op not in OPERANDS for op in inside) or len(inside) < len(later)
                kept += value.bits if in_registers else 0
        most = max(most, carried + kept)
    return max((one.bits for one in stay if one.op in AT_ONCE), default=0), most, most_alive(stay)


def most_alive(values: list[Value]) -> int:
    """Return the most bits of values that are made and still needed."""
    changes = [(one.at, one.bits) for one in values]
    changes += [(max(at for at, _ in one.needed), -one.bits) for one in values if one.needed]
    alive = most = 0
    for _, bits in sorted(changes):  # at one place operands end before the result begins
        alive += bits
        most = max(most, alive)
    return most


def forward(values: dict[str, Value]) -> None:
    """Let what needs a block in another form need the block itself, whose registers the form shares."""
    for value in sorted(values.values(), key=lambda one: -one.at):
        if value.op in SAME and value.operands and (source := values.get(value.operands[0])):
            if value.bits <= source.bits:
                source.needed += value.needed
                value.bits = 0


def made_anew(values: dict[str, Value]) -> set[str]:
    """Return the values that depend on no load, and on nothing that a loop carries: they need no register until they are
    used."""
    found: set[str] = set()
    for name, value in values.items():  # operands come first
        fixed = value.op in FROM_NOTHING or not (value.op in COMPUTED and value.bits)
        if fixed and all(one in found for one in value.operands if one in values):
            found.add(name)
    return found
