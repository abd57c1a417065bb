"""Make a module ready to run.
Each operation gets its function, its class for counting, and the values that it is the last to need."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from . import contiguity, dot, hints, joined, reduce, shapes, threads
from .addresses import reaching_memory
from .kinds import EXCHANGED, divides, kind_of, known, weighed
from .meanings import BOUND, PURE
from .module_size import every_op
from .numbers_of import integer
from .tree import BadIR, Block, Function, Module, Op, Type

STRUCTURE = ("scf.for", "scf.if", "scf.while", "tt.call", "tt.map_elementwise")
ENDS = ("scf.yield", "scf.condition", "tt.return", "cf.br", "cf.cond_br", "tt.map_elementwise.return")
A_DOT = 16  # FLOP in tl.dot that take the time of one operation, by the ratio of the chips' rates
WAITING = ("tt.atomic_rmw", "tt.atomic_cas")


@dataclass(slots=True)
class Step:
    """Hold one operation in the form that the run needs."""

    op: Op
    line: int
    perform: Callable | None  # None where control flow decides
    bound: bool  # whether it takes the run as well
    operands: tuple[str, ...]
    results: tuple[str, ...]
    counts: tuple[tuple[str, int], ...]  # (kind, how many a program)
    weight: int  # elements a program works on
    inner: list[list["Ready"]]
    frees: tuple[str, ...] = ()
    orders: bool = False  # all threads of a program wait for one another here
    loaded: bool = False  # lanes exchange what they hold here, and so have loaded it
    shares: bool = False  # an atomic or volatile access, where programs that take turns may switch


@dataclass(slots=True)
class Ready:
    """A block made ready, its `steps` without the terminator."""

    block: Block
    steps: list[Step] = field(default_factory=list)
    end: Step | None = None
    defines: frozenset = frozenset()
    promised: list = field(default_factory=list)  # of its arguments, where it is a loop's body
    work: float = 0.0  # operations of a program that comes by, without those of blocks within


@dataclass
class Program:
    functions: dict[str, list[Ready]]
    kernel: Function
    largest: int  # elements of the largest value
    peak_bytes: int  # most that the values of one program can take at a time
    waits: bool  # whether a program may wait in a loop for what another does
    atomics: bool
    telling: frozenset[int]  # atomics of which nothing needs what they find, by the id of their operation
    ids_read: tuple[int, ...]  # axes of the grid on which programs ask their index
    module: Module

    @cached_property
    def reached(self) -> tuple[joined.Reached, ...]:
        """Return what the kernel does through each of its arguments."""
        return joined.reached(self.module)

    @cached_property
    def spreading(self) -> frozenset[int]:
        """Return the loads of one number that all threads need, by the id of their operation."""
        return joined.spreading(self.module)

    @cached_property
    def of_one_layout(self) -> bool:
        """Return whether nothing in the kernel makes the compiler deal out a block otherwise than a load or a store does."""
        blocks = [block for function in self.module.functions.values() for block in function.blocks]
        return not any(op.name in threads.RELAID for op in every_op(blocks))

    @cached_property
    def dealt_out(self) -> dict[int, tuple[int, int]]:
        """Return how the compiler deals out blocks to threads, by the id of the operation."""
        return contiguity.dealt_out(self.module)


def elements(type: Type) -> int:
    return prod(type.shape)


def prepare(module: Module) -> Program:
    reduce.with_constants(module)
    functions = {
        name: blocks_of(function.blocks, reaching_memory(function), known(function))
        for name, function in module.functions.items()
    }
    steps = [step for blocks in functions.values() for step in every(blocks)]
    telling = set()
    for name, blocks in functions.items():
        given = module.functions[name].blocks[0].arguments if module.functions[name].public else ()
        used = {name for block in blocks for name in used_in(block)}
        ordered = {name for block in blocks for name in used_in(block, ("tt.reduce",))}
        fresh = threads.made_anew((step.op for step in every(blocks)), given)
        for step in every(blocks):
            step.orders, step.loaded = threads.orders(step.op, used, fresh), threads.within_a_warp(step.op)
            if step.op.name in threads.ATOMICS and step.op.results[0] not in used:
                telling.add(id(step.op))
            if shapes.may_reorder(step.op, ordered):
                step.perform = shapes.reordered(step.perform)
    types = [t for step in steps for t in step.op.result_types]
    peaks = Peaks(module, functions)
    return Program(
        functions=functions,
        kernel=module.kernel,
        largest=max([1, *(elements(t) for t in types)]),
        peak_bytes=peaks.of(module.kernel.name),
        waits=waits(functions, functions[module.kernel.name], False, ()),
        atomics=any(step.shares or step.op.name == "tt.descriptor_reduce" for step in steps),
        telling=frozenset(telling),
        ids_read=tuple(sorted({integer(s.op, "axis") for s in steps if s.op.name == "tt.get_program_id"})),
        module=module,
    )


def blocks_of(blocks: list[Block], stored: set[str], fixed: set[str]) -> list[Ready]:
    """Return the blocks made ready. `stored` holds the values that stored data is computed from, `fixed` the constants."""
    ready = [made_ready(block, stored, fixed) for block in blocks]
    here = [set(used_in(block)) for block in ready]
    for place, block in enumerate(ready):
        elsewhere = set().union(*(names for other, names in enumerate(here) if other != place))
        free_at_last_use(block, elsewhere)
    return ready


def made_ready(block: Block, stored: set[str], fixed: set[str]) -> Ready:
    *ops, end = block.ops or [None]
    if end is None or end.name not in ENDS:
        raise BadIR("a block must end in a terminator", end.line if end else 0)
    steps = [step_of(op, stored, fixed) for op in ops]
    defines = frozenset([*block.arguments, *(name for op in ops for name in op.results)])
    last = Step(end, end.line, None, False, tuple(end.operands), (), (), 0, [])
    work = sum(n / A_DOT if kind.startswith("dot") else n for step in steps for kind, n in step.counts)
    return Ready(block, steps, last, defines, work=work)


def step_of(op: Op, stored: set[str], fixed: set[str]) -> Step:
    perform, bound, inner = None, False, []
    if op.name in STRUCTURE:
        inner = [
            blocks_of(region, stored, fixed) if region and region[0].ops else [] for region in op.regions
        ]
        if promised := hints.carried_of(op):
            inner[-1][0].promised = promised
    elif op.name in BOUND:
        perform, bound = BOUND[op.name](op), True
    elif op.name in PURE:
        perform = PURE[op.name](op)
    else:
        raise BadIR(f"the operation {op.name[:60]} is not one of those that a kernel may use here", op.line)
    if perform is not None and op.result_types and any(name in op.attributes for name in hints.WORDS):
        perform, bound = hints.checked(perform, op, bound), True
    counts = counts_of(op, stored, fixed)
    weight = max(1, sum(n for _, n in counts), *(elements(t) for t in [*op.operand_types, *op.result_types]))
    shares = op.name in WAITING or op.attributes.get("isVolatile") is True
    counts = weighed(op, counts, fixed)
    return Step(
        op,
        op.line,
        perform,
        bound,
        tuple(op.operands),
        tuple(op.results),
        counts,
        weight,
        inner,
        shares=shares,
    )


def counts_of(op: Op, stored: set[str], fixed: set[str]) -> tuple[tuple[str, int], ...]:
    if op.name == "tt.dot":
        return ((f"dot {dot.operand_kind(op)}", dot.flop(op)),)
    if op.name in reduce.COMBINING:
        region = reduce.region_weight(op)
        combined = tuple((kind, n) for inner, n in region if (kind := kind_of(inner)))
        return (*combined, ("int", EXCHANGED))
    kind = kind_of(op)
    in_address = not any(name in stored for name in op.results) and not divides_block(op, fixed)
    if kind == "int" and in_address:
        kind = "address"
    return ((kind, elements((op.result_types or op.operand_types)[0])),) if kind else ()


def divides_block(op: Op, fixed: set[str]) -> bool:
    """Return whether an operation is dear even where it only makes an address, because a block's every lane divides."""
    return divides(op, fixed) and elements(op.result_types[0]) > 1


def every(blocks: list[Ready]):
    for block in blocks:
        for step in block.steps:
            yield step
            for region in step.inner:
                yield from every(region)


def used_in(block: Ready, but: tuple[str, ...] = ()):
    """Yield the values that a block's operations take, but for the operations of these names."""
    for step in [*block.steps, block.end]:
        yield from () if step.op.name in but else step.operands
        for region in step.inner:
            for inner in region:
                yield from used_in(inner, but)


def free_at_last_use(block: Ready, elsewhere: set) -> None:
    """Tell every step which of this block's own values it is the last to use.
    Unused results are freed immediately."""
    needed = elsewhere | set(block.end.operands)
    for step in reversed(block.steps):
        used = {*step.operands, *(n for region in step.inner for inner in region for n in used_in(inner))}
        step.frees = tuple(((used & block.defines) | set(step.results)) - needed)
        needed |= used


def waits(functions: dict, blocks: list[Ready], inside: bool, callers: tuple) -> bool:
    """Return whether a loop with an unknown number of iterations holds an atomic or volatile access."""
    for block in blocks:
        for step in block.steps:
            if inside and step.shares:
                return True
            loop = inside or step.op.name == "scf.while"
            if any(waits(functions, region, loop, callers) for region in step.inner):
                return True
            callee = step.op.attributes.get("callee") if step.op.name == "tt.call" else None
            if (
                callee
                and callee not in callers
                and waits(functions, functions[callee], loop, (*callers, callee))
            ):
                return True
    return False


class Peaks:
    """The most bytes that one program's values take at a time, by their types. Broadcasts count in full."""

    def __init__(self, module: Module, functions: dict):
        self.module, self.functions, self.done = module, functions, {}

    def of(self, name: str) -> int:
        if name not in self.functions:
            raise BadIR("a call must name a function of this module")
        if self.done.setdefault(name, None) is None:
            self.done[name] = -1
            self.done[name] = self.region(self.functions[name])
        if self.done[name] == -1:
            raise BadIR("a function must not call itself", self.module.functions[name].line)
        return self.done[name]

    def region(self, blocks: list[Ready]) -> int:
        """Values of several blocks may all live to the end."""
        peaks, kept = [0], 0
        for block in blocks:
            peak, left = self.block(block)
            peaks.append(kept + peak)
            kept += left if len(blocks) > 1 else 0
        return max(peaks)

    def block(self, block: Ready) -> tuple[int, int]:
        sizes = {n: size(t) for n, t in zip(block.block.arguments, block.block.types, strict=True)}
        now = peak = sum(sizes.values())
        for step in block.steps:
            inside = max([0, *(self.region(region) for region in step.inner)])
            if step.op.name == "tt.call":
                inside = self.of(step.op.attributes["callee"])
            for name, type in zip(step.results, step.op.result_types, strict=True):
                sizes[name] = size(type)
                now += sizes[name]
            peak = max(peak, now + inside)
            now -= sum(sizes[name] for name in step.frees)
        return peak, now


def size(type: Type) -> int:
    return elements(type) * (8 if type.scalar in ("ptr", "desc") else type.dtype.itemsize)
