"""Count the bytes and the arithmetic of each line of a kernel."""

from dataclasses import dataclass, field
from math import prod

from .machine.frame import Frame
from .machine.interpreter import Launch
from .machine.program import Ready, Step
from .machine.traffic import SECTOR_SHIFT, distinct, sectors


@dataclass
class Line:
    """The accesses of one kind that one source line makes, over all programs."""

    file: str
    kernel: str
    line: int
    kind: str  # "load", "store", "atomic"
    requested: int = 0  # bytes that active lanes ask for
    needed: int = 0  # the same, each byte once per access
    fetched: int = 0  # bytes of the 32-byte sectors that hold them
    lanes: int = 0
    lanes_off: int = 0  # that the mask switches off
    tensors: set[str] = field(default_factory=set)

    @property
    def sectors(self) -> int:
        return self.fetched >> SECTOR_SHIFT

    @property
    def useful(self) -> float:
        """The share of the fetched bytes that a lane asked for."""
        return self.needed / self.fetched if self.fetched else 1.0

    @property
    def masked_off(self) -> float:
        """The share of the lanes that the mask switches off, in accesses with at least one active lane."""
        return self.lanes_off / self.lanes if self.lanes else 0.0

    def add(self, other: "Line") -> None:
        for name in ("requested", "needed", "fetched", "lanes", "lanes_off"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.tensors |= other.tensors


@dataclass
class Work:
    """Holds the arithmetic of one source line, over all programs."""

    file: str
    kernel: str
    line: int
    operations: int = 0  # on elements, outside dots, those on addresses included
    flops: int = 0  # of dots

    def add(self, other: "Work") -> None:
        self.operations += other.operations
        self.flops += other.flops


class Counting(Launch):
    """A launch that counts how many programs go through each of its blocks."""

    def __init__(self, blocks: dict[int, list], *given):
        super().__init__(*given)
        self.blocks = blocks  # by its id, a block and that count

    def block(self, block: Ready, frame: Frame) -> Step:
        self.blocks.setdefault(id(block), [block, 0])[1] += frame.size
        return super().block(block, frame)


class Lines:
    """Count one launch's accesses by line. Called for every access."""

    def __init__(self, kernel: str, file: str):
        self.kernel, self.file = kernel, file
        self.rows: dict[tuple[int, str], Line] = {}
        self.blocks: dict[int, list] = {}
        self.program = None  # of the launch

    def launch(self, number: int, program, *given) -> Launch:
        self.program = program
        return Counting(self.blocks, number, program, *given)

    def work(self) -> dict[int, Work]:
        """Return the arithmetic of each line."""
        found: dict[int, Work] = {}
        for block, programs in self.blocks.values():
            for step in block.steps:
                row = found.setdefault(step.line, Work(self.file, self.kernel, step.line))
                for kind, number in step.counts:
                    name = "flops" if kind.startswith("dot ") else "operations"
                    setattr(row, name, getattr(row, name) + number * programs)
        return {line: row for line, row in found.items() if line and row.operations + row.flops}

    def __call__(self, frame, lanes, kind: str, line: int) -> None:
        row = self.rows.setdefault((line, kind), Line(self.file, self.kernel, line, kind))
        key, often = distinct(lanes), lanes.again * lanes.times
        count = prod(lanes.shape)
        row.tensors.add(lanes.tensor.name)
        row.lanes += count * often
        row.lanes_off += (count - lanes.offset.size) * often
        row.requested += lanes.offset.size * lanes.size * often
        row.needed += key.size * lanes.size * lanes.times
        row.fetched += sectors(lanes, key, self.program) * lanes.times << SECTOR_SHIFT
