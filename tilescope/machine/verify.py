"""Check a module against its own types before it runs. Then no value is ever larger than its type says."""

from .dominance import walked
from .operations import ARGUMENT, FUNCTION, OPEN, OPERATIONS, Row, refusal
from .tree import BadIR, Block, Function, Module, Op, Type

MOST_BLOCKS = 512
DEEPEST_CALL = 16
FOLDS = ("tt.reduce", "tt.scan")


def verify(module: Module) -> None:
    """Raises BadIR for the first thing in a module that no kernel may hold."""
    kernel = module.kernel
    if kernel.result_types:
        raise BadIR("a kernel must return nothing", kernel.line)
    for function in module.functions.values():
        _Body(module, function).check()
    _no_recursion(module)


def wrong(op: Op, sentence: str):
    place = f"line {op.line}: " if op.line else ""
    raise BadIR(f"{place}{sentence}", op.line)


class _Body:
    """Hold one function, with the definition of each value and its type from each operation."""

    def __init__(self, module: Module, function: Function):
        self.module, self.function = module, function
        self.types: dict[str, Type] = {}  # the values that may be used here

    def check(self) -> None:
        function = self.function
        if len(function.argument_attributes) != len(function.argument_types):
            raise BadIR("a function must carry attributes for each of its arguments", function.line)
        if function.public and any(type.shape for type in function.argument_types):
            raise BadIR(
                "a kernel must take numbers and pointers; a descriptor is made within it", function.line
            )
        for carried, legal in (
            *((one, ARGUMENT) for one in function.argument_attributes),
            (function.attributes, FUNCTION),
        ):
            for name, value in carried.items():
                if name not in legal or not legal[name].holds(value):
                    raise BadIR(f"a function may not carry {name[:40]} = {str(value)[:40]}", function.line)
        self.region(function.blocks, "tt.func")

    def region(self, blocks: list[Block], around: str) -> None:
        """Check blocks with what encloses them. Their definitions are forgotten afterwards."""
        if len(blocks) > (MOST_BLOCKS if around in OPEN else 1):
            raise BadIR(
                f"a region of {around} must have {MOST_BLOCKS if around in OPEN else 1} blocks at most"
            )
        for entered, block in walked(blocks):
            if entered:
                self.block(block, around, blocks)
            else:
                self.forget(block)

    def block(self, block: Block, around: str, blocks: list[Block]) -> None:
        self.types.update(zip(block.arguments, block.types, strict=True))
        for place, op in enumerate(block.ops):
            row = OPERATIONS.get(op.name)
            if row is None:
                wrong(op, refusal(op.name))
            if row.ends_block != (place == len(block.ops) - 1):
                wrong(op, f"{op.name} must {'' if row.ends_block else 'not '}be the last of its block")
            self.operation(op, row, around, blocks)
            for region in op.regions:
                self.region(region, op.name)
            self.types.update(zip(op.results, op.result_types, strict=True))

    def forget(self, block: Block) -> None:
        for name in (*block.arguments, *(name for op in block.ops for name in op.results)):
            del self.types[name]

    def operation(self, op: Op, row: Row, around: str, blocks: list[Block]) -> None:
        for name, type in zip(op.operands, op.operand_types, strict=True):
            if self.types.get(name) != type:
                wrong(op, f"{op.name} must use values that are defined before it, of the types that it says")
        _counts(op, row)
        _attributes(op, row)
        if sentence := row.rule(op):
            wrong(op, f"{op.name} {sentence}")
        if row.within and around not in row.within:
            wrong(op, f"{op.name} must stand in {' or '.join(row.within)}")
        if around in FOLDS and not row.combines:
            wrong(op, f"{op.name} must not stand in the function of a {around.removeprefix('tt.')}")
        if op.name == "tt.call":
            self.call(op)
        if op.name == "tt.return" and op.operand_types != self.function.result_types:
            wrong(op, "a function must return what its type says")
        if op.successors:
            _branches(op, blocks)

    def call(self, op: Op) -> None:
        callee = self.module.functions[op.attributes["callee"]]
        if (
            callee.public
            or op.operand_types != callee.argument_types
            or op.result_types != callee.result_types
        ):
            wrong(op, "a call must have the arguments and results of what it calls")


def _counts(op: Op, row: Row) -> None:
    for what, many, wanted in (
        ("operands", len(op.operands), row.operands),
        ("results", len(op.results), row.results),
        ("regions", len(op.regions), row.regions),
        ("successors", len(op.successors), row.successors),
    ):
        low, high = wanted if isinstance(wanted, tuple) else (wanted, wanted)
        if not low <= many <= high:
            wrong(op, f"{op.name} must have {low if low == high else f'{low} to {high}'} {what}, got {many}")


def _attributes(op: Op, row: Row) -> None:
    legal = {**row.attributes, **row.extras}
    for name, value in op.attributes.items():
        if name not in legal:
            wrong(op, f"{op.name} may not carry the attribute {name[:40]!r}")
        if not legal[name].holds(value):
            wrong(op, f"{op.name}: {name} must be {legal[name].wanted}, got {str(value)[:60]!r}")
    for name, kind in legal.items():
        if not kind.optional and name not in op.attributes:
            wrong(op, f"{op.name} must carry the attribute {name!r}")


def _branches(op: Op, blocks: list[Block]) -> None:
    """Check that each successor takes its operands,
    and that the first block of a region is entered only from outside."""
    taken, given = 0, op.operand_types
    if op.name == "cf.cond_br":
        taken, (_, yes, no) = 1, op.attributes["operandSegmentSizes"]
        sizes = (yes, no)
    else:
        sizes = (len(given),)
    for label, size in zip(op.successors, sizes, strict=True):
        block = next(block for block in blocks if block.label == label)
        if block is blocks[0] or block.types != given[taken : taken + size]:
            wrong(op, f"{op.name} must hand on what the block takes that it leads to")
        taken += size


def _no_recursion(module: Module) -> None:
    depths: dict[str, int] = {}

    def depth(name: str, above: tuple) -> int:
        if name in above or len(above) > DEEPEST_CALL:
            raise BadIR(f"a function must not call itself, and calls be {DEEPEST_CALL} deep at most")
        if name not in depths:
            called = calls(module.functions[name].blocks)
            depths[name] = 1 + max((depth(one, (*above, name)) for one in called), default=0)
        return depths[name]

    def calls(blocks: list[Block]) -> set[str]:
        found = set()
        for op in (op for block in blocks for op in block.ops):
            found |= {op.attributes["callee"]} if op.name == "tt.call" else set()
            found = found.union(*map(calls, op.regions))
        return found

    for name in module.functions:
        depth(name, ())
