"""Run the programs of one launch, many at a time. Where programs diverge, each side goes on with its own rows
only, so no operation ever includes an absent program."""

from collections import Counter
from math import prod

import numpy as np

from . import control, hints, turns
from .frame import Frame
from .limits import LOOK_EVERY, Budget
from .narrow import NARROW, converted
from .program import Program, Ready, Step

CHUNK_ELEMENTS = 1 << 19  # programs run together, limited so that the largest value stays within this size
CALLED = {  # of arithmetic a line says more
    f"tt.{name}": f"tl.{name}"
    for name in ("load", "store", "dot", "dot_scaled", "gather", "histogram", "atomic_cas")
}
CHUNK_BYTES = 1 << 29  # and all values of theirs at this


class Launch:
    """One launch: the program, its grid, its tensors and the resources it used."""

    def __init__(
        self, number: int, program: Program, grid: tuple, memory, budget: Budget, printed, poison_of
    ):
        self.number, self.program, self.grid, self.memory = number, program, tuple(grid), memory
        self.budget, self.printed, self.poison_of = budget, printed, poison_of
        self.counts = Counter()  # how many of each kind of operation ran
        self.worked = np.zeros(prod(self.grid))  # the operations of each program
        self.frame: Frame | None = None  # of the operation that runs
        self.turns: turns.Turns | None = None  # chooses the next program where programs take turns
        self.in_turns = program.waits  # whether they do: if they wait for each other, or are asked to
        self.depth = 0  # of calls

    def run(self, arguments: list, programs: np.ndarray, wave: int, seed: int) -> None:
        """Run the programs in the order given. `arguments` are in the order of the kernel's parameters."""
        kernel = self.program.kernel
        self.budget.hold_bytes(self.program.peak_bytes, kernel.line)
        hints.hold_arguments(kernel.argument_attributes, arguments, kernel.line)
        if self.in_turns:
            self.memory.start_chunk(programs)
            turns.run(self, arguments, programs, seed)
            self.memory.end_chunk()
            return
        for part in self.chunks(programs, wave):
            self.memory.start_chunk(part)
            self.some(part, arguments)
            self.memory.end_chunk()

    def some(self, programs: np.ndarray, arguments: list) -> None:
        kernel = self.program.kernel
        frame = Frame(programs, self.grid)
        for name, value, type in zip(
            kernel.blocks[0].arguments, arguments, kernel.argument_types, strict=True
        ):
            frame.values[name] = argument(value, type.dtype)
        control.body(self, self.program.functions[kernel.name], frame)

    def chunks(self, programs: np.ndarray, wave: int) -> list[np.ndarray]:
        """Whole waves where they fit, parts of one wave where they do not."""
        by_bytes = CHUNK_BYTES // max(1, self.program.peak_bytes)
        count = max(1, min(CHUNK_ELEMENTS // self.program.largest, by_bytes))
        if count >= wave:
            count = max(1, min(count // wave, self.memory.most_waves())) * wave
            return [programs[i : i + count] for i in range(0, len(programs), count)]
        waves = [programs[i : i + wave] for i in range(0, len(programs), wave)]
        return [part[i : i + count] for part in waves for i in range(0, len(part), count)]

    def block(self, block: Ready, frame: Frame) -> Step:
        """Perform a block's operations and return its terminator."""
        outer, self.frame = self.frame, frame
        values, size, budget, counts = frame.values, frame.size, self.budget, self.counts
        self.worked[frame.programs] += block.work
        order = self.memory.order
        try:
            for step in block.steps:
                budget.ticks += 1
                budget.spent += step.weight * size
                if budget.ticks % LOOK_EVERY == 0:
                    budget.look(step.line, lambda: self.doing(step))  # noqa: B023
                for kind, number in step.counts:
                    counts[kind] += number * size
                if step.shares and self.turns is not None:
                    self.turns.pass_on(int(frame.programs[0]))
                if step.perform is None:
                    found = control.STRUCTURE[step.op.name](self, step, frame)
                    self.frame = frame
                elif step.bound:
                    found = step.perform(self, *[frame.get(name) for name in step.operands])
                else:
                    found = step.perform(*[frame.get(name) for name in step.operands])
                if step.orders:
                    order.barrier(frame.programs)
                elif step.loaded and order.threads is not None:
                    order.threads.loaded(order.named(frame.programs))
                if type(found) is np.ndarray:
                    values[step.results[0]] = found
                elif step.results:
                    values.update(zip(step.results, found, strict=True))
                for name in step.frees:
                    values.pop(name, None)
        except KeyboardInterrupt as stop:
            if not getattr(stop, "__notes__", []):  # of an inner block, which knows more
                stop.add_note(f"{self.doing(step)} at line {step.line}")
            raise
        finally:
            self.frame = outer
        return block.end

    def turn(self, step: Step) -> None:
        """Charge one iteration of a loop, which costs time even if it is empty."""
        self.budget.ticks += 1
        if self.budget.ticks % LOOK_EVERY == 0:
            self.budget.look(step.line, lambda: self.doing(step))

    def doing(self, step: Step) -> str:
        """Name the running kernel, for the report that it takes too long."""
        count, called = prod(self.grid), CALLED.get(step.op.name, "")
        programs = f"{count:,} program{'s' * (count > 1)}"
        return f"{self.program.kernel.name}, launched as {programs}, was stopped" + f" in {called}" * bool(
            called
        )


def argument(value, dtype: np.dtype) -> np.ndarray:
    """Return one of the kernel's arguments. A number too large for its type keeps its low bits."""
    if dtype.kind != "i" or isinstance(value, list):  # a list is a descriptor's row
        return np.array([value], dtype) if dtype not in NARROW else converted(np.array([value]), dtype)
    return np.array([int(value) & ((1 << 8 * dtype.itemsize) - 1)], f"u{dtype.itemsize}").view(dtype)
