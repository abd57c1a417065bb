"""Run a plan, the one entry: every step, one after the other, on the same tensors."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import prod

import numpy as np

from . import atomics, descriptors, device_functions, effects, elementwise, floats, integers, shapes  # noqa: F401
from .bounds import decoded
from .dtypes import NAMES
from .errors import KernelError, Mistakes, OverLimit, going_on
from .interpreter import Launch
from .kinds import KINDS
from .limits import Budget, Limits
from .memory import Memory, as_plain
from .order import Order
from .prints import Prints
from .program import Program, every, prepare
from .report import LaunchReport, Report
from .storage import SPAN, Kept, Storage
from .threads import Threads
from .traffic import Traffic
from .tree import NUMPY, BadIR, Module, Type
from .turns import Undecided

COUNTING = ("full", "values", "places")
MOST_PROGRAMS = 1 << 22  # of one grid
MOST_IN_TURNS = 64  # programs that interleave where an order is tried, each a thread
MOST_TO_DRAW_FROM = 1 << 24  # of a grid of which drawn ones run
OURS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class Launching:
    """One step of a plan: its kernel, its grid, and its arguments in the order of the parameters."""

    module: Module
    grid: tuple[int, int, int]
    arguments: list[tuple[str, object]]  # ("tensor", name) or (type, value) like ("i32", 5) or ("fp32", 0.5)


def run(
    steps: list[Launching],
    tensors: list[Storage],
    *,
    wave: int,
    programs: list | None = None,
    counting: str = "full",
    repeatable: bool = True,
    seed: int = 0,
    limits: Limits | None = None,
    poison: int = 0,
    poisoned_lines: tuple[int, ...] = (),
    shuffled: int = 0,
    watcher: Callable | None = None,
    launch: Callable = Launch,
    goes_on: bool = False,
    probe=None,
) -> Report:
    """Run a plan. `programs` selects programs for each step if not all run. `counting` is "full", "values"
    without traffic, or "places", which notes only written elements. Lines of `poisoned_lines` fill masked
    lanes with the other poison. `shuffled` seeds another order of the programs of kernels with atomics, and
    then waves mean nothing. Few programs also take turns at every atomic. `watcher` is called for every access with (frame, lanes, kind, line).
    `launch` replaces Launch in the pass that counts. A run that `goes_on` keeps mistakes in its report and
    does the rest of its work: lanes outside their tensor are left out, and loads give 0 there. `probe.around`
    is shown every step before it runs and may wrap the function that performs it. `probe.asked` gets the
    addresses of every access."""
    if counting not in COUNTING:
        raise ValueError(f"counting must be one of {', '.join(COUNTING)}, got {counting!r}")
    limits = limits or Limits()
    whole = Run(tensors, wave, counting == "full", repeatable, seed, limits)
    whole.memory.watcher, whole.launch, whole.shuffled = watcher, launch, shuffled
    whole.memory.places_alone = counting == "places"
    whole.mistakes, whole.probe = Mistakes() if goes_on else None, probe
    whole.memory.probe = probe
    whole.poison_of = lambda line: poison ^ (line in poisoned_lines)
    started = time.process_time()
    report = whole.report
    try:
        with np.errstate(all="ignore"), going_on(whole.mistakes):
            for number, step in enumerate(steps):
                whole.step(number, step, None if programs is None else programs[number])
    except (KernelError, OverLimit) as error:
        report.error = error.report()
    except BadIR as error:
        report.error = {"stage": "text", "kind": "BadIR", "message": str(error), "line": error.line or None}
    except (MemoryError, RecursionError) as error:
        report.error = OverLimit(
            "bytes", f"the run needs more memory than it may have ({type(error).__name__})"
        ).report()
    except Undecided as reason:
        report.undecided = str(reason)
    except OURS as error:  # a text that verify() let pass should never bring us here
        message = f"the machine met {type(error).__name__}: {error}"[:500]
        report.error = {"stage": "machine", "kind": type(error).__name__, "message": message, "line": None}
    whole.conclude()
    report.seconds = time.process_time() - started
    return report


class Run:
    poison_of: Callable[[int], int]
    launch: Callable
    mistakes: Mistakes | None
    shuffled: int = 0

    def __init__(
        self, tensors: list[Storage], wave: int, full: bool, repeatable: bool, seed: int, limits: Limits
    ):
        self.tensors, self.wave, self.full, self.repeatable, self.seed = tensors, wave, full, repeatable, seed
        self.memory, self.budget = Memory(tensors, full), Budget(limits)
        self.printed, self.report = Prints(limits.prints), Report()
        self.probed: dict[int, Program] = {}
        self.whole = True  # False once only some programs of a grid ran

    def step(self, number: int, step: Launching, chosen) -> None:
        program, grid = self.prepared(step.module), step.grid
        self.report.ids_read.append(list(program.ids_read))
        count = prod(grid)
        most = MOST_PROGRAMS if chosen is None else MOST_TO_DRAW_FROM
        if min(grid) < 1 or count > most:
            raise OverLimit("programs", f"a grid must have 1 to {most:,} programs, got {count:,}")
        arguments = self.bound_arguments(program, step.arguments)
        if chosen is not None and program.waits:
            raise Undecided(
                "programs wait for each other in a loop, so none of them can run without the others"
            )
        self.whole = self.whole and chosen is None
        everyone = np.arange(count) if chosen is None else np.unique(np.asarray(chosen, np.int64))
        if not everyone.size or everyone[0] < 0 or everyone[-1] >= count:
            raise ValueError(f"programs must be among the {count} of the grid, got {everyone[:8].tolist()}")
        if self.shuffled and program.atomics:
            everyone = np.random.default_rng([self.shuffled, number]).permutation(everyone)
        go = OnePass(self, number, program, grid, arguments)
        before = Kept(self.tensors) if self.runs_twice(program, everyone, count) else None
        try:
            if program.atomics:  # order matters: some races show up in one schedule only
                go(everyone[::-1], self.seed + 1, quietly=True, full=False)
                before.back()
                if self.mistakes is not None:
                    self.mistakes.tell_again()
            launch = go(everyone, self.seed, full=self.full)
            idle = everyone[~self.memory.traffic.active[everyone]]
            if before is not None and self.full and 0 < idle.size < everyone.size == count:
                self.count_again(go, launch, everyone, idle, before)
        finally:
            if before is not None:
                before.end()
        self.report.launches.append(launch)

    def prepared(self, module: Module) -> Program:
        """Prepare a module once for all runs. If a probe wraps each operation, prepare it for this run only."""
        if self.probe is None:
            if module.prepared is None:
                module.prepared = prepare(module)
            return module.prepared
        if id(module) not in self.probed:
            program = self.probed[id(module)] = prepare(module)
            for blocks in program.functions.values():
                for one in every(blocks):
                    self.probe.around(one)
        return self.probed[id(module)]

    def runs_twice(self, program: Program, everyone: np.ndarray, count: int) -> bool:
        return program.atomics or (self.full and everyone.size == count > self.wave)

    def count_again(self, go, launch: LaunchReport, everyone, idle, before: Kept) -> None:
        """Count again with the busy programs adjacent, because idle programs don't make a wave longer."""
        busy, after = np.setdiff1d(everyone, idle), before.now()
        before.back()
        again = go(np.concatenate([busy, idle]), self.seed, quietly=True, full=True)
        before.back(after)
        for name, kinds in launch.tensors.items():
            for kind, counts in kinds.items():
                other = again.tensors[name].get(kind, counts)
                counts["wave"], counts["pairs"] = other["wave"], other["pairs"]

    def bound_arguments(self, program: Program, given: list) -> list:
        types = program.kernel.argument_types
        if len(given) != len(types):
            raise KernelError(
                "Arguments", f"the kernel takes {len(types)} arguments, got {len(given)}", program.kernel.line
            )
        return [
            self.argument(n, type, *pair) for n, (type, pair) in enumerate(zip(types, given, strict=True))
        ]

    def argument(self, number: int, type: Type, kind: str, value):
        """Return the kernel's argument, a number or the address of a tensor."""
        if kind == "tensor":
            tensor = self.named(value)
            fits = type.scalar == "ptr" and same_but_for_sign(tensor.elements.dtype, NUMPY[type.element])
            value, wanted = tensor.base, f"{value}, of {NAMES[tensor.elements.dtype]}"
        elif kind == "place":  # a tensor, bytes from its start, and for a descriptor its other numbers
            name, offset, *row = value
            base = self.named(name).base + offset
            fits, wanted = type.scalar == ("desc" if row else "ptr"), f"a place in {name}"
            value = [base, *row] if row else base
        else:
            fits, wanted = not type.element and scalar_fits(kind, type), f"a number of type {kind}"
        if not fits or (type.shape and type.scalar != "desc"):
            raise KernelError("Arguments", f"the kernel's argument {number} is of another type than {wanted}")
        return value

    def named(self, name: str) -> Storage:
        return next(tensor for tensor in self.tensors if tensor.name == name)

    def conclude(self) -> None:
        report = self.report
        report.prints = [asdict(line) for line in self.printed.kept]
        report.prints_left_out = self.printed.left_out
        report.read_unwritten = self.memory.read_unwritten
        report.stored_twice = self.memory.stored_twice
        report.masked_lines = sorted(self.memory.masked)
        report.mistakes = list(self.mistakes.kept.values()) if self.mistakes is not None else []
        for tensor in self.tensors if self.whole else ():
            missing = tensor.unwritten()
            if missing.size:
                place = decoded(tensor, int(missing[0]))
                first = [int(place.get(axis, 0)) for axis in range(len(tensor.shape))]
                report.unwritten[tensor.name] = {"count": int(missing.size), "first": first}


class OnePass:
    """One pass of a launch's programs, in one order."""

    def __init__(self, run: Run, number: int, program: Program, grid, arguments: list):
        self.run, self.number, self.program, self.grid, self.arguments = run, number, program, grid, arguments

    def __call__(self, programs: np.ndarray, seed: int, full: bool, quietly: bool = False) -> LaunchReport:
        run, memory, count = self.run, self.run.memory, prod(self.grid)
        rank = np.full(count, -1, np.int64)
        rank[programs] = np.arange(len(programs))
        memory.traffic = Traffic(run.tensors, run.wave, count, rank, full, not quietly, self.program)
        memory.order = Order(
            self.number,
            run.tensors,
            rank,
            len(programs),
            self.program.atomics,
            run.repeatable,
            self.threads(len(programs)),
            self.program.telling,
        )
        printed = Prints(0) if quietly else run.printed
        made = Launch if quietly else run.launch
        launch = made(self.number, self.program, self.grid, memory, run.budget, printed, run.poison_of)
        launch.in_turns |= bool(run.shuffled and self.program.atomics and len(programs) <= MOST_IN_TURNS)
        try:
            launch.run(self.arguments, programs, run.wave, seed + run.shuffled)
        finally:
            self.tell(memory.order)
        counts = launch.counts
        dots = {kind[4:]: n for kind, n in counts.items() if kind.startswith("dot ")}
        return LaunchReport(
            kernel=self.program.kernel.name,
            grid=list(self.grid),
            programs=len(programs),
            active=int(np.count_nonzero(memory.traffic.active)),
            tensors=as_plain(memory.traffic.finish()),
            flops=sum(dots.values()),
            dots=dots,
            atomics=counts["atomic"],
            operations={kind: counts[kind] for kind in KINDS},
            busiest=float(launch.worked.max()),
        )

    def threads(self, programs: int) -> Threads | None:
        """Follow the threads of each program in the tensors that it may reach twice."""
        reads, writes = Counter(), Counter()
        for value, reached in zip(self.arguments, self.program.reached, strict=True):
            base = value[0] if isinstance(value, list) else value
            for tensor in self.run.tensors if reached.writes + reached.reads else ():
                if tensor.shared and tensor.base <= base < tensor.base + (1 << SPAN):
                    reads[tensor.name] += reached.reads
                    writes[tensor.name] += reached.writes
        twice = {name for name, count in writes.items() if count and count + reads[name] > 1}
        extents = {tensor.name: tensor.extent for tensor in self.run.tensors if tensor.name in twice}
        return Threads(extents, programs, self.program) if extents else None

    def tell(self, order: Order) -> None:
        report = self.run.report
        known = {(r["launch"], r["tensor"], r["how"], r["line"]) for r in report.races}
        report.races += [asdict(r) for r in order.races if (r.launch, r.tensor, r.how, r.line) not in known]
        report.undecided = report.undecided or order.undecided


def same_but_for_sign(stored: np.dtype, read: np.dtype) -> bool:
    """Return a tensor's type as the IR spells it, without the sign of whole numbers."""
    return stored == read or (stored.kind == "u" and read.kind == "i" and stored.itemsize == read.itemsize)


def scalar_fits(kind: str, type: Type) -> bool:
    return {"bool": "i1", "fp16": "f16", "fp32": "f32", "fp64": "f64"}.get(
        kind, kind.replace("u", "i")
    ) == type.scalar
