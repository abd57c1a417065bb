"""Find what steers a kernel: the tensors whose numbers decide which elements it loads, and whether it loads them or
multiplies them by tl.dot.

A number steers a load by its address or its mask, or by a branch or a loop around it. Only sizes, program ids and
scalars steer most kernels, so that they take as long for any numbers.
"""

from dataclasses import dataclass
from typing import NamedTuple

from .comparisons import Comparison, Comparisons, constant_of
from .tree import Block, Function, Module, Op

LOADS = ("tt.load", "tt.descriptor_load", "tt.descriptor_gather")
CHANGES = (
    *("tt.store", "tt.atomic_rmw", "tt.atomic_cas"),
    *("tt.descriptor_store", "tt.descriptor_reduce", "tt.descriptor_scatter"),
)
MASK, OTHER = 1, 2  # the places of a load's mask, and of what fills the lanes that it switches off
REDUCING = "tt.reduce", "tt.scan", "tt.dot"
FLOATS = ("f16", "bf16", "f32", "f64")
DOT = -1  # stands for tl.dot, where a tensor's place among the parameters stands else


@dataclass(frozen=True, order=True)
class Steer:
    """Hold one way in which numbers of a tensor decide about a load or a tl.dot. Tensors are places among the kernel's parameters."""

    line: int
    by: str  # "address", "mask" or "branch"
    target: int
    source: int


@dataclass(frozen=True, order=True)
class Content:
    """Say that what is stored in a tensor depends on numbers of another one, or of itself."""

    tensor: int
    source: int


class Fact(NamedTuple):
    """Say of a value which tensors' numbers it depends on, and into which tensors it points. A scalar of floats is a source,
    too. A constant that it is, or that was added to it last, is known as text."""

    sources: frozenset[int] = frozenset()
    tensors: frozenset[int] = frozenset()
    constant: str = ""
    reduced: bool = False  # whether a maximum, a sum or a product of many numbers is in it


NOTHING = Fact()


def union(facts) -> Fact:
    facts = list(facts)
    return Fact(
        frozenset().union(*(one.sources for one in facts)),
        frozenset().union(*(one.tensors for one in facts)),
        facts[0].constant if len(facts) == 1 else "",
        any(one.reduced for one in facts),
    )


def steers(module: Module) -> tuple[list[Steer], list[Content], list[Comparison]]:
    """Return what steers the kernel, on what the content of its tensors depends, and with which constants it compares
    numbers."""
    walk = Walk(module)
    kernel = module.kernel
    types = kernel.argument_types
    places = [frozenset([place]) for place in range(len(types))]
    facts = [
        Fact(tensors=place) if type.element else Fact(place) if type.scalar in FLOATS else NOTHING
        for place, type in zip(places, types, strict=True)
    ]
    walk.function(kernel, facts, frozenset())
    return sorted(walk.found), sorted(walk.content), walk.comparisons.rows()


class Walk:
    """Follow every value of a module from what it is made of. Whatever a branch decides depends on its condition."""

    def __init__(self, module: Module):
        self.module = module
        self.found: set[Steer] = set()
        self.content: set[Content] = set()
        types = module.kernel.argument_types
        self.comparisons = Comparisons(frozenset(n for n, type in enumerate(types) if not type.element))
        self.loops: dict[int, list[Fact]] = {}  # by operation, what is carried from turn to turn
        self.known: dict = {}  # by function, arguments and conditions around the call: its results

    def function(self, function: Function, facts: list[Fact], around: frozenset) -> list[Fact]:
        key = function.name, tuple(facts), around
        if key not in self.known:
            self.known[key] = [NOTHING] * len(
                function.result_types
            )  # of a call within itself, which is refused
            self.known[key] = self._function(function, facts, around)
        return self.known[key]

    def _function(self, function: Function, facts: list[Fact], around: frozenset) -> list[Fact]:
        values: dict[str, Fact] = dict(zip(function.blocks[0].arguments, facts, strict=True))
        arounds = dict.fromkeys((block.label for block in function.blocks), around)
        results, before = [NOTHING] * len(function.result_types), None
        while before != (values, arounds, results):  # until jumps between blocks tell nothing new
            before = dict(values), dict(arounds), results
            for block in function.blocks:
                here = arounds[block.label]
                ends = self.block(block, values, here)
                end = block.ops[-1]
                if end.name == "tt.return":
                    ends = [union((one, Fact(here))) for one in ends]
                    results = [union(pair) for pair in zip(results, ends, strict=True)]
                elif end.successors:
                    decided = ends.pop(0).sources if end.name == "cf.cond_br" else frozenset()
                    self.jump(function, end, ends, values, arounds, here | decided)
        return results

    def jump(
        self, function: Function, end: Op, ends: list[Fact], values: dict, arounds: dict, around
    ) -> None:
        """Hand values on to the blocks that a jump names. Whatever decides a jump also decides all that comes after it."""
        blocks = {block.label: block for block in function.blocks}
        for label in end.successors:
            arounds[label] |= around
            names = blocks[label].arguments
            for name, fact in zip(names, ends, strict=False):
                values[name] = union((values.get(name, NOTHING), fact, Fact(around)))
            ends = ends[len(names) :]

    def block(self, block: Block, values: dict, around: frozenset) -> list[Fact]:
        """Follow the operations of a block, and return what its last one hands on."""
        for op in block.ops:
            facts = [values.get(name, NOTHING) for name in op.operands]
            results = self.operation(op, facts, values, around)
            values.update(zip(op.results, results, strict=True))
        return [values.get(name, NOTHING) for name in block.ops[-1].operands] if block.ops else []

    def operation(self, op: Op, facts: list[Fact], values: dict, around: frozenset) -> list[Fact]:
        self.comparisons.note(op, facts)
        if op.name in LOADS:
            return [self.load(op, facts, around)]
        if op.name in CHANGES:
            return self.change(facts, around) * len(op.results)
        if op.name == "scf.if":
            return self.branch(op, facts, values, around)
        if op.name == "scf.for":
            return self.loop(op, facts, values, around)
        if op.name == "scf.while":
            return self.while_loop(op, facts, values, around)
        if op.name == "tt.call":
            callee = self.module.functions[op.attributes["callee"]]
            return self.function(callee, facts, around)
        if op.name == "tt.dot":
            self.note(op, {"branch": around}, frozenset([DOT]))
        if op.regions:
            self.combine(op, facts, values, around)
        both = union(facts)
        both = both._replace(constant=constant_of(op, facts), reduced=both.reduced or op.name in REDUCING)
        return [both] * len(op.results)

    def combine(self, op: Op, facts: list[Fact], values: dict, around: frozenset) -> None:
        """Follow how a reduction or a scan combines two numbers of each of its operands."""
        for body in (block for region in op.regions for block in region):
            count = len(body.arguments)
            values.update(zip(body.arguments, (facts * count)[:count], strict=True))
            self.block(body, values, around)

    def load(self, op: Op, facts: list[Fact], around: frozenset) -> Fact:
        """Note what steers a load, and return what its result depends on."""
        apart = (MASK, OTHER) if op.name == "tt.load" else ()
        address = union(fact for place, fact in enumerate(facts) if place not in apart)
        mask = union(facts[place] for place in apart[:1] if place < len(facts))
        ways = {"address": address.sources, "mask": mask.sources, "branch": around}
        self.note(op, ways, address.tensors)
        return Fact(union(facts).sources | around | address.tensors)

    def change(self, facts: list[Fact], around: frozenset) -> list[Fact]:
        """Note what the content of a tensor depends on, and return what an atomic's result depends on."""
        tensors, sources = facts[0].tensors, union(facts).sources | around
        self.content |= {Content(tensor, source) for tensor in tensors for source in sources}
        return [Fact(sources | tensors)]

    def note(self, op: Op, ways: dict[str, frozenset], targets: frozenset) -> None:
        self.found |= {
            Steer(op.line, way, target, source)
            for way, sources in ways.items()
            for source in sources
            for target in targets
        }

    def branch(self, op: Op, facts: list[Fact], values: dict, around: frozenset) -> list[Fact]:
        condition = facts[0].sources
        ends = [self.block(region[0], values, around | condition) for region in op.regions if region]
        return [union((*pair, Fact(condition))) for pair in zip(*ends, strict=True)] if op.results else []

    def loop(self, op: Op, facts: list[Fact], values: dict, around: frozenset) -> list[Fact]:
        bounds = union(facts[:3]).sources
        body, carried = op.regions[0][0], self.carried(op, [union((one, Fact(bounds))) for one in facts[3:]])
        while True:
            values.update(zip(body.arguments, (Fact(bounds), *carried), strict=True))
            ends = self.block(body, values, around | bounds)
            more = [union(pair) for pair in zip(carried, ends, strict=True)]
            if more == carried:
                return carried
            carried = self.carried(op, more)

    def while_loop(self, op: Op, facts: list[Fact], values: dict, around: frozenset) -> list[Fact]:
        (before,), (after,) = op.regions
        carried, condition = self.carried(op, facts), frozenset()
        while True:
            values.update(zip(before.arguments, carried, strict=True))
            decided, *handed = self.block(before, values, around | condition)
            more = condition | decided.sources
            handed = [union((one, Fact(more))) for one in handed]
            values.update(zip(after.arguments, handed, strict=True))
            ends = self.block(after, values, around | more)
            both = [union(pair) for pair in zip(carried, ends, strict=True)]
            if (both, more) == (carried, condition):
                return handed
            carried, condition = self.carried(op, both), more

    def carried(self, op: Op, facts: list[Fact]) -> list[Fact]:
        """Add what a loop was known to carry before, so that loops within loops take no more turns than they need."""
        known = self.loops.get(id(op), [NOTHING] * len(facts))
        self.loops[id(op)] = [union(pair) for pair in zip(known, facts, strict=True)]
        return self.loops[id(op)]
