"""Record every operation of one program,
with the values of each block and the addresses of its lanes."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from .machine import control
from .machine.descriptors import Tile
from .machine.errors import KernelError
from .machine.frame import Frame
from .machine.interpreter import Launch
from .machine.narrow import widened
from .machine.numbers_of import integers
from .machine.program import Ready, Step
from .machine.storage import HALF, SPAN
from .machine.tree import Op, Type

TYPES = {"ptr": "pointer", "desc": "descriptor", "i1": "bool", "f8E4M3FN": "fp8e4nv", "f8E5M2": "fp8e5"}
TYPES |= {f"f{bits}": f"fp{bits}" for bits in (16, 32, 64)} | {
    f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)
}
MOST_BYTES = 256 << 20  # of values that are kept
MOST_OPERATIONS = 100_000
KINDS = {
    "tt.load": "load",
    "tt.descriptor_load": "load",
    "tt.descriptor_gather": "load",
    "tt.store": "store",
    "tt.descriptor_store": "store",
    "tt.descriptor_scatter": "store",
    "tt.atomic_rmw": "atomic",
    "tt.atomic_cas": "atomic",
    "tt.descriptor_reduce": "atomic",
}


@dataclass
class Value:
    """A block or a number that an operation made for one program.
    Axes along which all lanes agree may have length 1."""

    name: str  # the variable of the source, as far as Triton tells it
    type: str  # "fp32", "i32", "pointer"
    shape: tuple[int, ...]
    kept: np.ndarray
    made_by: int | None  # the operation's number, None for an argument of the kernel

    @property
    def lanes(self) -> np.ndarray:
        return np.broadcast_to(self.kept, self.shape)


@dataclass
class Access:
    """The addresses of one load's, store's or atomic's lanes, counted from the machine's own bases."""

    kind: str  # "load", "store", "atomic"
    size: int  # bytes of one lane
    shape: tuple[int, ...]
    address: np.ndarray
    active: np.ndarray | None  # None for every lane
    moved: int | None  # the number of the value that was loaded or stored


@dataclass
class Done:
    """Hold one operation of one program. Values are indices into Recording.values."""

    name: str  # "tt.load"
    line: int
    operands: tuple[int, ...]
    results: tuple[int, ...]
    turns: tuple[tuple[int, int], ...]  # for each loop around it, its line and its iteration from 0 on
    attributes: dict = field(default_factory=dict)
    access: Access | None = None
    error: str = ""  # why the run ended here
    place: int = -1  # which operation of the kernel's text it is, in every turn of a loop


@dataclass
class Place:
    """A tensor that an access may reach."""

    name: str
    type: str
    base: int
    itemsize: int
    extent: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass
class Recording:
    """All that one program of one launch did."""

    kernel: str
    file: str
    first_line: int
    source: list[str]
    grid: tuple[int, int, int]
    program: int
    places: list[Place] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    findings: list[dict] = field(default_factory=list)
    called: list[list] = field(
        default_factory=list
    )  # the first line and the lines of functions that it calls
    texts: list[dict] = field(default_factory=list)  # the same kernel in other texts, by label, lines, of
    cut: str = ""  # why the rest is not recorded

    @property
    def listing(self) -> list[tuple[int, str]]:
        """Return the lines of the kernel and of what it calls in its file, with their numbers."""
        parts = sorted([(self.first_line, self.source), *map(tuple, self.called)])
        return [row for first, lines in parts for row in enumerate(lines, first)]

    @property
    def ids(self) -> list[int]:
        x, y, _ = self.grid
        return [self.program % x, self.program // x % y, self.program // (x * y)]

    def place_of(self, address: int) -> tuple[Place, int] | None:
        """Return the tensor that an address belongs to, as near as the bytes from its start say, or None."""
        number = ((address + HALF) >> SPAN) - 1
        if not 0 <= number < len(self.places):
            return None
        return self.places[number], address - self.places[number].base


@dataclass
class Around:
    """A loop, a branch or a call whose blocks are performed."""

    step: Step
    numbers: list[int]  # of the values that its next block begins with, or that it hands on
    turn: int = -1
    line: int = 0
    entered: bool = False


class Recorder:
    """Fills a recording. `launch` makes the Launch whose program is recorded."""

    def __init__(self, recording: Recording, words: dict[str, str]):
        self.recording, self.words = recording, words
        self.numbers: dict[tuple[int, str], int] = {}  # (depth of calls, value's name) -> number
        self.around: list[Around] = []
        self.rows: list[int] = []  # of the program, in the frames that are open
        self.bytes = 0
        self.watched: dict[int, Ready] = {}
        self.places: dict[int, int] = {}  # operation of the text -> its number

    def launch(self, *given) -> Launch:
        return Watched(self, *given)

    # ---- values

    def keep(self, name: str, type: Type, found: np.ndarray, made_by: int | None) -> int:
        row = self.rows[-1]
        kept = np.array(widened(found[row if len(found) > 1 else 0]))  # bf16 and fp8 as fp32
        self.bytes += kept.nbytes
        word = TYPES.get(type.scalar, type.scalar)
        shape = kept.shape if type.scalar == "desc" else type.shape
        self.recording.values.append(Value(self.words.get(name, ""), word, shape, kept, made_by))
        return len(self.recording.values) - 1

    def number(self, launch: Launch, name: str) -> int:
        return self.numbers.get((launch.depth, name), -1)

    def place(self, step: Step) -> int:
        return self.places.setdefault(id(step.op), len(self.places))

    def numbered(self, launch: Launch, names) -> list[int]:
        return [self.number(launch, name) for name in names]

    # ---- blocks

    def block(self, launch: Launch, ready: Ready, frame: Frame, row: int, go: Callable) -> Step:
        """Performs a block that the program goes through."""
        self.rows.append(row)
        try:
            self.enter(launch, ready, frame)
            end = go(self.told(ready), frame)
            self.leave(launch, end)
        finally:
            self.rows.pop()
        return end

    def enter(self, launch: Launch, ready: Ready, frame: Frame) -> None:
        """Number a block's first values, which are new or carried on by a loop."""
        known, now = [], self.around[-1] if self.around else None
        block, loop = ready.block, now.step.op.name if now else ""
        if loop == "scf.for" or (loop == "scf.while" and ready is now.step.inner[0][0]):
            now.turn += 1
        if loop == "scf.for":
            counter = self.keep(block.arguments[0], block.types[0], frame.get(block.arguments[0]), None)
            known = [counter, *now.numbers]
            made = Done("for", now.step.line, (), (counter,), self.turns(), place=self.place(now.step))
            self.recording.values[counter].made_by = len(self.recording.done)
            self.recording.done.append(made)
        elif loop == "scf.while" or (loop == "tt.call" and not now.entered):
            known = now.numbers
        if now:
            now.entered = True
        for place, name in enumerate(block.arguments):
            number = known[place] if place < len(known) else -1
            if number < 0 and (name in frame.values or frame.outer is not None):
                number = self.keep(name, block.types[place], frame.get(name), None)
            self.numbers[launch.depth, name] = number

    def leave(self, launch: Launch, end: Step) -> None:
        if self.around:
            numbers = self.numbered(launch, end.operands)
            self.around[-1].numbers = numbers[1:] if end.op.name == "scf.condition" else numbers

    def turns(self) -> tuple[tuple[int, int], ...]:
        return tuple((a.line, a.turn) for a in self.around if a.turn >= 0)

    def told(self, ready: Ready) -> Ready:
        """The same block, whose operations are recorded."""
        if id(ready) not in self.watched:
            steps = [replace(step, perform=partial(self.perform, step), bound=True) for step in ready.steps]
            self.watched[id(ready)] = replace(ready, steps=steps)
        return self.watched[id(ready)]

    # ---- operations

    def perform(self, step: Step, launch: Launch, *values):
        frame = launch.frame
        operands = tuple(self.numbered(launch, step.operands))
        if step.perform is None:
            return self.structure(step, launch, frame, operands)
        access = access_of(step.op, [v[self.rows[-1] if len(v) > 1 else 0] for v in values], operands)
        done = Done(step.op.name, step.line, operands, (), self.turns(), plain(step.op), access)
        done.place = self.place(step)
        self.recording.done.append(done)
        try:
            found = step.perform(launch, *values) if step.bound else step.perform(*values)
        except KernelError as error:
            done.error = error.report()["message"]
            raise
        done.results = self.results(launch, step, found, len(self.recording.done) - 1)
        if access is not None and access.kind == "load":
            access.moved = done.results[0]
        return found

    def results(self, launch: Launch, step: Step, found, made_by: int) -> tuple[int, ...]:
        each = [found] if isinstance(found, np.ndarray) else list(found)
        numbers = tuple(
            self.keep(name, type, value, made_by)
            for name, type, value in zip(step.results, step.op.result_types, each, strict=True)
        )
        self.numbers.update(zip(((launch.depth, name) for name in step.results), numbers, strict=True))
        return numbers

    def structure(self, step: Step, launch: Launch, frame: Frame, operands: tuple):
        """Record a loop, a branch or a call. It hands on values that its blocks made."""
        first = {"scf.for": operands[3:], "scf.while": operands, "tt.call": operands}.get(step.op.name, ())
        around = Around(step, list(first), line=step.line)
        self.around.append(around)
        try:
            found = control.STRUCTURE[step.op.name](launch, step, frame)
        finally:
            self.around.pop()
            launch.frame = frame
        if step.op.name == "tt.map_elementwise" or len(around.numbers) != len(step.results):
            self.recording.done.append(
                Done(step.op.name, step.line, operands, (), self.turns(), place=self.place(step))
            )
            numbers = self.results(launch, step, found, len(self.recording.done) - 1)
            self.recording.done[-1].results = numbers
        else:
            for name, number in zip(step.results, around.numbers, strict=True):
                self.numbers[launch.depth, name] = number
        return found

    @property
    def full(self) -> str:
        if self.bytes > MOST_BYTES:
            return f"the values of its operations take more than {MOST_BYTES >> 20} MiB"
        if len(self.recording.done) > MOST_OPERATIONS:
            return f"it performs more than {MOST_OPERATIONS:,} operations"
        return ""


class Watched(Launch):
    """A launch that records one program."""

    def __init__(self, recorder: Recorder, *given):
        super().__init__(*given)
        self.recorder = recorder

    def block(self, block: Ready, frame: Frame) -> Step:
        recorder, go = self.recorder, super().block
        mine = np.flatnonzero(frame.programs == recorder.recording.program)
        if len(mine) != 1 or recorder.recording.cut:
            return go(block, frame)
        if recorder.full:
            recorder.recording.cut = recorder.full
            return go(block, frame)
        return recorder.block(self, block, frame, int(mine[0]), go)


def plain(op: Op) -> dict:
    """Return the facts that decide a lane's way through an operation."""
    return {name: op.attributes[name] for name in ("axis", "order", "predicate") if name in op.attributes}


def access_of(op: Op, values: list[np.ndarray], numbers: tuple[int, ...]) -> Access | None:
    """The addresses of an access's lanes, of one program's values."""
    kind = KINDS.get(op.name)
    if kind is None:
        return None
    stored = None if kind == "load" else numbers[1]
    if op.name.startswith("tt.descriptor"):
        tile, row, where = Tile(op.operand_types[0]), values[0][None], [v[None] for v in values[1:]]
        many = op.name.endswith(("gather", "scatter"))
        if kind != "load":
            where = where[:-1] if op.name.endswith("scatter") else where[1:]
            stored = numbers[-1] if op.name.endswith("scatter") else numbers[1]
        pointer, mask = tile.reach(row, tile.rows(*where) if many else tile.block(where))
        shape = op.result_types[0].shape if op.result_types else tile.shape
        shape = np.broadcast_shapes(shape, pointer.shape[1:], mask.shape[1:])
        active = None if mask.all() else np.broadcast_to(mask[0], shape).copy()
        return Access(kind, tile.size, shape, np.broadcast_to(pointer[0], shape).copy(), active, stored)
    type, mask = op.operand_types[0], None
    if op.name == "tt.load" and integers(op, "operandSegmentSizes")[1]:
        mask = values[1]
    elif op.name in ("tt.store", "tt.atomic_rmw") and len(values) > 2:
        mask = values[2]
    address = np.broadcast_to(values[0], type.shape).copy()
    active = None if mask is None else np.broadcast_to(mask, type.shape).astype(bool)
    size = Type(type.element).dtype.itemsize
    if stored is not None and op.name == "tt.atomic_cas":
        stored = numbers[2]
    return Access(kind, size, type.shape, address, active, stored)
