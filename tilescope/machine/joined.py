"""Find which names of a module may hold one value: what control flow hands on, and pointers into the same tensors."""

from collections import Counter
from dataclasses import dataclass
from math import prod

from .tree import Block, Function, Module, Op

READS = {"tt.load", "tt.atomic_rmw", "tt.atomic_cas"}
WRITES = {"tt.store", "tt.atomic_rmw", "tt.atomic_cas"}
MEMORY = READS | WRITES
MOVES = {"tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.bitcast", "tt.reshape", "tt.trans"}
HANDS_BACK = READS & WRITES | {"tt.call"}  # their results don't come from the operands of all threads
DECIDES = {"scf.if": 1, "scf.for": 3, "scf.condition": 1, "cf.cond_br": 1}  # operands that decide the way


@dataclass(frozen=True)
class Reached:
    """What a kernel does through one of its arguments, if that is a pointer."""

    reads: int = 0  # operations that load there
    writes: int = 0


class Joined:
    """Of a module. A name is (function, value). With `pointers` also those that arithmetic makes of one another."""

    def __init__(self, module: Module, pointers: bool):
        self.module, self.pointers, self.parent = module, pointers, {}
        self.ops: list[tuple[Function, Op]] = []
        for function in module.functions.values():
            for block in function.blocks:
                self.look(function, block, None)
        self.classes = {key: self.root(key) for key in self.parent}

    def root(self, key: tuple) -> tuple:
        while (above := self.parent.setdefault(key, key)) != key:
            self.parent[key] = self.parent[above]
            key = above
        return key

    def join(self, one: tuple, *others: tuple) -> None:
        for other in others:
            self.parent[self.root(other)] = self.root(one)

    def look(self, function: Function, block: Block, outer: Op | None) -> None:
        def key(name: str) -> tuple:
            return function.name, name

        for op in block.ops:
            self.ops.append((function, op))
            if op.name == "tt.call":
                self.call(function, op)
            elif op.name == "scf.for":
                for name, result, inner in zip(
                    op.operands[3:], op.results, op.regions[0][0].arguments[1:], strict=False
                ):
                    self.join(key(result), key(name), key(inner))
            elif op.name == "scf.while":
                for name, inner in zip(op.operands, op.regions[0][0].arguments, strict=False):
                    self.join(key(inner), key(name))
            elif op.name == "scf.condition":
                after = outer.regions[1][0].arguments
                for name, inner, result in zip(op.operands[1:], after, outer.results, strict=False):
                    self.join(key(result), key(name), key(inner))
            elif op.name == "scf.yield":
                handed = outer.regions[0][0].arguments if outer.name == "scf.while" else outer.results
                for name, other in zip(op.operands, handed, strict=False):
                    self.join(key(other), key(name))
            elif op.name in ("cf.br", "cf.cond_br"):
                self.go_on(function, op)
            elif self.pointers and op.name not in READS:
                types = [*op.operand_types, *op.result_types]
                names = [*op.operands, *op.results]
                pointers = [key(n) for n, t in zip(names, types, strict=True) if t.element]
                if pointers:
                    self.join(*pointers)
            for inner in (one for region in op.regions for one in region):
                self.look(function, inner, op)

    def call(self, function: Function, op: Op) -> None:
        callee = self.module.functions.get(op.attributes["callee"])
        if callee is None:
            return
        for name, inner in zip(op.operands, callee.blocks[0].arguments, strict=False):
            self.join((function.name, name), (callee.name, inner))
        for end in (block.ops[-1] for block in callee.blocks if block.ops):
            for result, name in zip(
                op.results, end.operands if end.name == "tt.return" else (), strict=False
            ):
                self.join((function.name, result), (callee.name, name))

    def go_on(self, function: Function, op: Op) -> None:
        blocks = {block.label: block for block in function.blocks}
        handed = [op.operands]
        if op.name == "cf.cond_br":
            first = op.attributes["operandSegmentSizes"][1]
            handed = [op.operands[1 : 1 + first], op.operands[1 + first :]]
        for label, names in zip(op.successors, handed, strict=False):
            if label in blocks:
                for name, inner in zip(names, blocks[label].arguments, strict=False):
                    self.join((function.name, name), (function.name, inner))

    def of(self, function: Function, name: str) -> tuple:
        return self.classes.get((function.name, name), (function.name, name))


def reached(module: Module) -> tuple[Reached, ...]:
    """Return what the kernel does through each of its arguments."""
    kernel = module.kernel
    straight = Straight(kernel) if len(module.functions) == 1 else None
    if straight is not None and straight.clear:
        roots, named = kernel.blocks[0].arguments, straight.named
    else:
        joined = Joined(module, pointers=True)
        roots = [joined.of(kernel, name) for name in kernel.blocks[0].arguments]
        named = [
            (op, joined.of(function, op.operands[0])) for function, op in joined.ops if op.name in MEMORY
        ]
    reads, writes = Counter(), Counter()
    for op, root in named:
        reads[root] += op.name in READS
        writes[root] += op.name in WRITES
    return tuple(Reached(reads[root], writes[root]) for root in roots)


class Straight:
    """Of a kernel whose pointers come from its arguments by arithmetic alone, which takes less time to see."""

    def __init__(self, kernel: Function):
        self.source = {name: name for name in kernel.blocks[0].arguments}
        self.named: list[tuple[Op, str]] = []  # the argument of each access
        self.clear = True
        for block in kernel.blocks:
            self.look(block)

    def look(self, block: Block) -> None:
        for op in block.ops:
            if op.name in MEMORY:
                root = self.source.get(op.operands[0])
                self.clear &= root is not None
                self.named.append((op, root))
            elif op.name in MOVES:
                root = self.source.get(op.operands[0])
                if root is not None:
                    self.source[op.results[0]] = root
            for inner in (one for region in op.regions for one in region):
                self.look(inner)


def of_blocks(op: Op) -> bool:
    """Return whether an operation or one within it works on more than single numbers."""
    if any(prod(t.shape) > 1 for t in (*op.operand_types, *op.result_types)):
        return True
    return any(of_blocks(inner) for region in op.regions for block in region for inner in block.ops)


def spreading(module: Module) -> frozenset[int]:
    """Return the loads of one number, by id, that all threads need: it goes into a block or decides the way."""
    joined, spread = Joined(module, pointers=False), set()
    while True:
        before = len(spread)
        for function, op in joined.ops:
            alone = [n for n, t in zip(op.operands, op.operand_types, strict=True) if prod(t.shape) == 1]
            types = [*op.operand_types, *op.result_types]
            if op.name == "scf.if" and not of_blocks(op):  # one thread's own work decides nothing for others
                handed_on = any(joined.of(function, name) in spread for name in op.results)
                needed = alone[:1] if handed_on else ()
            elif any(prod(t.shape) > 1 for t in types) or any(op.regions):
                needed = alone if not op.regions else alone[: DECIDES.get(op.name, 0)]
            elif op.name in DECIDES:
                needed = op.operands[: DECIDES[op.name]]
            elif op.results and any(joined.of(function, name) in spread for name in op.results):
                needed = op.operands[:1] if op.name == "tt.load" else () if op.name in HANDS_BACK else alone
            else:
                needed = ()
            spread.update(joined.of(function, name) for name in needed)
        if len(spread) == before:
            return frozenset(
                id(op)
                for function, op in joined.ops
                if op.name == "tt.load" and prod(op.result_types[0].shape) == 1
                if joined.of(function, op.results[0]) in spread
            )
