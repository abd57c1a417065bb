"""Tidy a built module for printing: inline calls, open block pointers, fold known values, drop unused ones.

No pass here merges two loads. Triton's own way inlines, rewrites block pointers and canonicalises.
"""

from .folding import folded, passes_on
from .kinds import location
from .nodes import OpState, block_argument, function, region, value
from .rewriting import rewritten

PURE_UNLESS = {  # operations that stay even if their results are unused
    "tt.store",
    "tt.atomic_rmw",
    "tt.atomic_cas",
    "tt.descriptor_store",
    "tt.descriptor_reduce",
    "tt.descriptor_scatter",
    "tt.print",
    "tt.assert",
    "ttg.barrier",
    "llvm.intr.assume",
}


def tidied(module) -> list[function]:
    """Return the functions to print, which are the kernel and its callees."""
    todo, done = [module.entry], {}
    while todo:
        old = todo.pop()
        if old.symbol not in done:
            done[old.symbol] = Body(module, old, todo).new
    effects = {}
    for name in done:
        has_effect(done, name, effects)
    for fn in done.values():
        Sweep(effects).function(fn)
    return [done[name] for name in module.functions if name in done]


def is_new(v) -> bool:
    """Return whether a rewriting made a new value whose operation is in no block yet."""
    return isinstance(v.owner, OpState) and v.owner.name == "arith.shrui" and v.owner.block is None


def where_made(v):
    """Return the block that makes a value, or None for a constant that is in no block yet."""
    return v.owner.block if isinstance(v.owner, OpState) else v.owner


def in_order(blocks) -> list:
    """Return the blocks that the first one reaches, each after its dominators."""
    seen, found = set(), []

    def visit(block):
        seen.add(block)
        for one in reversed(block.ops[-1].successors if block.ops else []):
            if one not in seen:
                visit(one)
        found.append(block)

    visit(blocks[0])
    return found[::-1]


def flat_arguments(block) -> list:
    return [part for one in block.args for part in (one.parts or [one])]


def flat_operands(op) -> list:
    return [part for one in op.operands for part in one.flat()]


class Body:
    """One function, rewritten."""

    def __init__(self, module, old: function, called: list):
        self.module, self.called = module, called
        self.instead: dict[value, value] = {}  # old values to new ones
        self.known: dict[value, int | str] = {}  # new values whose elements are all one number
        self.constants: dict[tuple, value] = {}
        self.blocks: dict = {}
        self.new = function(old.symbol, old.type, old.visibility, old.noinline, old.loc)
        self.new.arg_attrs = old.arg_attrs
        self.region(old.regions[0], self.new.regions[0], "")
        entry = self.new.regions[0].blocks[0]
        entry.ops[:0] = [one.owner for one in self.constants.values()]
        for one in self.constants.values():
            one.owner.block = entry
        drop_unreached(self.new.regions[0])

    def of(self, old: value) -> value:
        return self.instead[old]

    def constant(self, number: int | str, type) -> value:
        """Return the constant whose elements are all `number`, made once for each type."""
        if (number, type) not in self.constants:
            text = number if isinstance(number, str) else str(number)
            if type.scalar.text == "i1":
                text = "true" if number else "false"
            text = (
                f"dense<{text}> : {type}"
                if type.shape
                else text
                if text in ("true", "false")
                else f"{text} : {type}"
            )
            new = OpState("arith.constant", outs=[type], attrs={"value": text}).results[0]
            self.constants[number, type] = new
            self.known[new] = number
        return self.constants[number, type]

    def region(self, old: region, new: region, where: str) -> None:
        blocks = in_order(old.blocks) if old.blocks else []
        for block in blocks:
            made = self.blocks[block] = new.add([one.type for one in flat_arguments(block)])
            self.instead |= zip(flat_arguments(block), made.args, strict=True)
        for block in blocks:
            self.ops(block.ops, self.blocks[block], where)

    def ops(self, ops, block, where: str) -> None:
        for op in ops:
            self.op(op, block, where)

    def op(self, op, block, where: str) -> None:
        operands = [self.of(v) for v in flat_operands(op)]
        special = {
            "tt.call": self.call,
            "scf.if": self.branch,
            "scf.for": self.loop,
            "arith.constant": self.number,
        }
        if op.name in special and special[op.name](op, operands, block, where):
            return
        results = [part for one in op.results for part in (one.parts or [one])]
        types = [one.type for one in results]
        if op.regions or op.successors:
            new = self.put(block, op, *self.decided(op, operands), types, where)
            for old, made in zip(op.regions, new.regions, strict=True):
                self.region(old, made, where)
            if op.name == "scf.if" and results:
                self.instead |= zip(results, self.selected(new, block), strict=True)
                return
        else:
            new = self.settled(self.drawn(op, op.attrs, operands, types, where))
            if isinstance(new, value):
                self.instead[results[0]] = new
            if not isinstance(new, OpState):
                return
            for one in (*(v.owner for v in new.operands if is_new(v)), new):
                one.block = block
                block.ops.append(one)
        self.instead |= zip(results, new.results, strict=True)

    def settled(self, op) -> OpState | value | None:
        """Return an operation in its simplest form, or the existing value that equals it,
        or None if nothing changes."""
        while True:
            known = [self.known.get(v) for v in op.operands]
            if op.name in ("tt.load", "tt.store"):
                return masked(op, known)
            if len(op.results) != 1:
                return op
            found = passes_on(op, op.operands, known)
            if found is None and None not in known:
                found = folded(op, [v.type for v in op.operands], known)
            if found is not None:
                return found if isinstance(found, value) else self.constant(found, op.results[0].type)
            simpler = rewritten(op, self.known, self.constant)
            if simpler is None:
                return op
            op = simpler

    def decided(self, op, operands) -> tuple:
        """Return a branch's name, attributes, successors and operands, once a known condition has had its say."""
        successors = [self.blocks[one] for one in op.successors]
        condition = self.known.get(operands[0]) if op.name == "cf.cond_br" else None
        if isinstance(condition, int):
            return "cf.br", {}, [successors[0 if condition else 1]], []
        return op.name, op.attrs, successors, operands

    def drawn(self, op, attrs, operands, types, where: str, regions=0, name="", successors=()) -> OpState:
        place = location(f"callsite({op.loc.text} at {where})") if where else op.loc
        new = OpState(name or op.name, operands, types, attrs, regions, place, successors)
        new.extras = op.extras
        return new

    def put(self, block, op, name, attrs, successors, operands, types, where: str) -> OpState:
        new = self.drawn(op, attrs, operands, types, where, len(op.regions), name, successors)
        new.block = block
        block.ops.append(new)
        return new

    def number(self, op, _operands, _block, _where) -> bool:
        """Keep a constant of one number by that number."""
        text, type = op.attrs["value"], op.results[0].type
        text = {"true": "-1", "false": "0"}.get(text, text.split(" : ")[0])
        self.instead[op.results[0]] = self.constant(int(text) if type.is_whole else text, type)
        return True

    def call(self, op, operands, block, where: str) -> bool:
        """Inline a function of one block. Any other stays a call."""
        callee = self.module.functions[op.attrs["callee"][2:-1]]
        blocks = in_order(callee.regions[0].blocks)
        if len(blocks) > 1 or callee.noinline:
            self.called.append(callee)
            return False
        self.in_line(
            op, blocks[0], operands, block, f"callsite({op.loc.text} at {where})" if where else op.loc.text
        )
        return True

    def in_line(self, op, body, arguments, block, where: str) -> None:
        """Write a block's operations here with these arguments. Its terminator's operands become the results."""
        self.instead |= zip(flat_arguments(body), arguments, strict=True)
        self.ops(body.ops[:-1], block, where)
        results = [part for one in op.results for part in (one.parts or [one])]
        self.instead |= {r: self.of(v) for r, v in zip(results, flat_operands(body.ops[-1]), strict=True)}

    def branch(self, op, operands, block, where: str) -> bool:
        """Keep one side of an `if` whose condition is known."""
        condition = self.known.get(operands[0])
        if not isinstance(condition, int):
            return False
        region = op.regions[0 if condition else 1]
        if region.blocks:
            self.in_line(op, region.blocks[0], [], block, where)
        return True

    def selected(self, op, block) -> list[value]:
        """Return the results of an `if`. A result that both sides take from outside becomes a select before the `if`."""
        inner = [part.blocks[0] for part in op.regions]
        sides = list(zip(*(one.ops[-1].operands for one in inner), strict=True))
        found, kept = [], []
        for result, (yes, no) in zip(op.results, sides, strict=True):
            if any(where_made(v) in inner for v in (yes, no)):
                found.append(result)
                kept.append((result, yes, no))
                continue
            select = OpState("arith.select", [op.operands[0], yes, no], [result.type], loc=op.loc)
            simplest = self.settled(select)
            if isinstance(simplest, OpState):
                block.ops.insert(block.ops.index(op), simplest)
                simplest.block = block
                simplest = simplest.results[0]
            found.append(simplest)
        op.results = [result for result, _, _ in kept]
        for side, one in enumerate(inner, 1):
            one.ops[-1].operands = [row[side] for row in kept]
        return found

    def loop(self, op, operands, block, where: str) -> bool:
        """Write a loop. A loop of one iteration goes inline, and a loop of none disappears.
        Values that no iteration changes aren't carried."""
        bounds, init = operands[:3], operands[3:]
        body = op.regions[0].blocks[0]
        index, *arguments = flat_arguments(body)
        results = [part for one in op.results for part in (one.parts or [one])]
        turns = self.turns(bounds)
        if turns == 0:
            self.instead |= zip(results, init, strict=True)
            return True
        if turns == 1:
            self.in_line(op, body, [bounds[0], *init], block, where)
            return True
        handed = flat_operands(body.ops[-1])
        carried = list(zip(arguments, init, handed, results, strict=True))
        while unchanged := self.turned(op, bounds, index, carried, block, where):
            block.ops.pop()  # written again, without what no turn changes
            self.instead |= {
                one: start for argument, start, _, result in unchanged for one in (argument, result)
            }
            carried = [row for row in carried if row not in unchanged]
        return True

    def turned(self, op, bounds, index, carried, block, where: str) -> list:
        """Write a loop that carries these rows. Return the rows that each iteration hands on unchanged."""
        starts = [row[1] for row in carried]
        new = self.put(block, op, op.name, op.attrs, (), [*bounds, *starts], [v.type for v in starts], where)
        made = new.regions[0].add([index.type, *(v.type for v in starts)])
        self.instead |= zip([index, *(row[0] for row in carried)], made.args, strict=True)
        self.instead |= zip((row[3] for row in carried), new.results, strict=True)
        end = op.regions[0].blocks[0].ops[-1]
        self.ops(op.regions[0].blocks[0].ops[:-1], made, where)
        handed = [self.of(row[2]) for row in carried]
        self.put(made, end, end.name, end.attrs, (), handed, [], where)
        inside = zip(carried, handed, made.args[1:], strict=True)
        return [row for row, v, argument in inside if v is argument or v is row[1]]

    def turns(self, bounds) -> int | None:
        """Return 0 or 1 if a loop is known to iterate that often."""
        low, high, step = (self.known.get(v) for v in bounds)
        if bounds[0] is bounds[1]:
            return 0
        if isinstance(low, int) and isinstance(high, int):
            if high <= low:
                return 0
            if isinstance(step, int) and high - low <= step:
                return 1
        return None


def masked(op, known: list):
    """Return a load or store, without its mask if that is always true.
    An access that is always masked off becomes `other`, or nothing."""
    mask = {"tt.load": 1, "tt.store": 2}[op.name]
    if len(known) <= mask or not isinstance(known[mask], int):
        return op
    if known[mask]:
        op.operands = op.operands[:mask]
        op.attrs |= {"operandSegmentSizes": "array<i32: 1, 0, 0>"} if op.name == "tt.load" else {}
        return op
    if op.name == "tt.store":
        return None
    return op.operands[2] if len(known) == 3 and op.attrs["isVolatile"] == "false" else op


def drop_unreached(region: region) -> None:
    reached = set(in_order(region.blocks))
    region.blocks = [block for block in region.blocks if block in reached]


def every(fn: function):
    """Yield each operation of a function, at any depth."""
    todo = [block for block in fn.regions[0].blocks]
    while todo:
        for op in todo.pop().ops:
            yield op
            todo += [block for region in op.regions for block in region.blocks]


def has_effect(functions: dict, name: str, effects: dict) -> bool:
    """Return whether a function does more than compute its result."""
    if name not in effects:
        effects[name] = False
        effects[name] = any(
            has_effect(functions, op.attrs["callee"][2:-1], effects) if op.name == "tt.call" else acts(op)
            for op in every(functions[name])
        )
    return effects[name]


def acts(op) -> bool:
    if op.name in ("tt.load", "tt.elementwise_inline_asm"):
        return op.attrs.get("isVolatile") == "true" or op.attrs.get("pure") == "false"
    return op.name in PURE_UNLESS


class Sweep:
    """Remove operations whose results never reach an effect."""

    def __init__(self, effects: dict[str, bool]):
        self.effects, self.needed, self.used = effects, set(), set()
        self.todo: list = []
        self.dropped: dict = {}  # loop -> carried values that are never used

    def function(self, fn: function) -> None:
        self.mark(fn)
        while idle := self.idle(fn):
            self.dropped |= idle
            self.mark(fn)
        for block in fn.regions[0].blocks:
            self.clear(block)

    def mark(self, fn: function) -> None:
        """Find what is needed, and which values are used."""
        self.needed, self.used = set(), set()
        self.todo = [block.ops[-1] for block in fn.regions[0].blocks]
        for op in every(fn):
            if self.effects[op.attrs["callee"][2:-1]] if op.name == "tt.call" else acts(op):
                self.todo.append(op)
        while self.todo:
            one = self.todo.pop()
            (self.use if isinstance(one, value) else self.need)(one)

    def idle(self, fn: function) -> dict:
        """Return the loops with newly found unused carried values:
        neither an iteration nor later code uses them."""
        found = {}
        for op in every(fn):
            if op.name == "scf.for" and op in self.needed:
                pairs = zip(op.get_body(0).args[1:], op.results, strict=True)
                unused = {i for i, pair in enumerate(pairs) if not self.used & set(pair)}
                if unused != self.dropped.get(op, set()):
                    found[op] = unused
        return found

    def handed(self, op) -> list:
        """Return the operands that an operation needs.
        For carried values of a loop, return only the used ones."""
        loop, first = (op, 3) if op.name == "scf.for" else (op.block.parent.owner, 0)
        if op.name not in ("scf.for", "scf.yield") or loop not in self.dropped:
            return op.operands
        return [v for i, v in enumerate(op.operands, -first) if i not in self.dropped[loop]]

    def need(self, op) -> None:
        if op in self.needed:
            return
        self.needed.add(op)
        if not isinstance(op.block.parent.owner, function):
            self.todo.append(op.block.parent.owner)
        if not (op.name == "scf.yield" and op.block.parent.owner.name == "scf.if"):
            self.todo += self.handed(op)
        self.todo += [block.ops[-1] for region in op.regions for block in region.blocks]

    def use(self, v: value) -> None:
        """Mark a value's operation as needed. An `if` hands on only its used results."""
        if v in self.used:
            return
        self.used.add(v)
        if isinstance(v, block_argument):
            return
        self.todo.append(v.owner)
        if v.owner.name == "scf.if":
            at = v.owner.results.index(v)
            self.todo += [block.ops[-1].operands[at] for region in v.owner.regions for block in region.blocks]

    def clear(self, block) -> None:
        block.ops = [op for op in block.ops if op in self.needed]
        for op in block.ops:
            for part in op.regions:
                for inner in part.blocks:
                    self.clear(inner)
            if op in self.dropped:
                (body,), kept = (
                    op.regions[0].blocks,
                    [i for i in range(len(op.results)) if i not in self.dropped[op]],
                )
                body.ops[-1].operands = self.handed(body.ops[-1])
                op.operands = self.handed(op)
                body.args = [body.args[0], *(body.args[1 + i] for i in kept)]
                op.results = [op.results[i] for i in kept]
            if op.name == "scf.if":
                kept = [i for i, v in enumerate(op.results) if v in self.used]
                op.results = [op.results[i] for i in kept]
                for part in op.regions:
                    for inner in part.blocks:
                        inner.ops[-1].operands = [inner.ops[-1].operands[i] for i in kept]
                if not kept and all(len(inner.ops) == 1 for inner in op.regions[1].blocks):
                    op.regions[1].blocks = []
