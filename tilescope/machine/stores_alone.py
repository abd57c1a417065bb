"""Slice a module to its stores. It stores where its kernel does but computes no stored value, so all programs
of a large grid can show where they write."""

from dataclasses import replace

import numpy as np

from .tree import Block, Function, Module, Op

STORED = {
    "tt.store": 1,
    "tt.descriptor_store": 1,
    "tt.descriptor_scatter": 3,
}  # -> which operand is the value
SAID = {"tt.print", "tt.assert", "llvm.intr.assume", "gpu.barrier", "ttg.barrier"}
EFFECTS = {*STORED, "tt.atomic_rmw", "tt.atomic_cas", "tt.descriptor_reduce"}
ENDS = {"scf.yield", "scf.condition", "cf.br", "cf.cond_br", "tt.return"}
ENDS |= {"tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return"}


def stores_alone(module: Module) -> Module:
    acting = _acting(module)
    return Module({name: _sliced(function, acting) for name, function in module.functions.items()})


def _acting(module: Module) -> set[str]:
    """Functions that write, or call one that does."""
    found: set[str] = set()
    while True:
        new = {
            name
            for name, f in module.functions.items()
            if any(_acts(op, found) for b in f.blocks for op in b.ops)
        }
        if new == found:
            return found
        found = new


def _acts(op: Op, acting: set[str]) -> bool:
    if op.name in EFFECTS or (op.name == "tt.call" and op.attributes["callee"] in acting):
        return True
    return any(_acts(inner, acting) for region in op.regions for block in region for inner in block.ops)


def _sliced(function: Function, acting: set[str]) -> Function:
    needed: set[str] = set()
    while True:  # a block may need what a later one of the text hands back to it
        before = len(needed)
        for block in reversed(function.blocks):
            _need(block, needed, acting)
        if len(needed) == before:
            return replace(function, blocks=[_kept(block, needed, acting) for block in function.blocks])


def _stays(op: Op, needed: set[str], acting: set[str]) -> bool:
    return op.name in ENDS or _acts(op, acting) or any(name in needed for name in op.results)


def _need(block: Block, needed: set[str], acting: set[str]) -> None:
    """Mark what the needed operations work on. For one with regions, mark all that these hand on."""
    for op in reversed(block.ops):
        if op.name in SAID or not _stays(op, needed, acting):
            continue
        value = _value(op)
        needed.update(name for place, name in enumerate(op.operands) if place != value)
        for inner in (one for region in op.regions for one in region):
            _need(inner, needed, acting)


def _value(op: Op) -> int | None:
    """Return the stored operand, if a constant may replace this operand."""
    place = STORED.get(op.name)
    return place if place is not None and not op.operand_types[place].element else None


def _kept(block: Block, needed: set[str], acting: set[str]) -> Block:
    ops = []
    for op in block.ops:
        if op.name in SAID or not _stays(op, needed, acting):
            continue
        if (place := _value(op)) is not None:
            type, name = op.operand_types[place], f"%nothing{id(op)}"
            nothing = {"value": np.zeros((), type.dtype)}
            ops.append(Op("arith.constant", [name], [], nothing, [], [], [type], line=op.line))
            op = replace(op, operands=[*op.operands[:place], name, *op.operands[place + 1 :]])
        regions = [[_kept(inner, needed, acting) for inner in region] for region in op.regions]
        ops.append(replace(op, regions=regions))
    return replace(block, ops=ops)
