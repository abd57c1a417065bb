"""Find the values of a function that reach its stored data.
All other whole numbers make addresses, masks and loop counts."""

from .tree import Block, Function, Op

VALUES = {  # -> the operands whose numbers go to memory
    "tt.store": (1,),
    "tt.atomic_rmw": (1,),
    "tt.atomic_cas": (1, 2),
    "tt.descriptor_store": (1,),
    "tt.descriptor_reduce": (1,),
    "tt.descriptor_scatter": (3,),
}
HANDED_ON = {
    "tt.call",
    "tt.return",
    "cf.br",
    "cf.cond_br",
    "scf.condition",
}  # its result is not followed
LOADS = {
    "tt.load": 2,
    "tt.descriptor_load": 0,
    "tt.descriptor_gather": 0,
}  # -> where operands follow that are values


def reaching_memory(function: Function) -> set[str]:
    """Return the names of the values that what is stored was computed from, up to the loads."""
    found: set[str] = set()
    while True:  # what a loop hands back may be needed in its next turn
        before = len(found)
        for block in reversed(function.blocks):
            _look(block, found)
        if len(found) == before:
            return found


def _look(block: Block, found: set[str]) -> None:
    for op in reversed(block.ops):
        if op.name in VALUES:
            found.update(op.operands[place] for place in VALUES[op.name] if place < len(op.operands))
        elif op.name in HANDED_ON:
            found.update(op.operands)
        elif op.regions and op.name not in ("tt.reduce", "tt.scan"):
            _into(op, found)
            continue
        if not any(name in found for name in op.results):
            continue
        first = LOADS.get(op.name)
        found.update(op.operands if first is None else op.operands[first:][-1:] if _fills(op) else ())


def _fills(op: Op) -> bool:
    """Return whether a load has an operand that fills its masked lanes."""
    segments = op.attributes.get("operandSegmentSizes")
    return segments is not None and len(segments) > 2 and segments[2] > 0


def _into(op: Op, found: set[str]) -> None:
    """Return what a loop or branch hands on, operand by operand where that is known."""
    carried = op.operands[3:] if op.name == "scf.for" else []
    for block in (one for region in op.regions for one in region):
        end = block.ops[-1] if block.ops else None
        inner = block.arguments[1:] if op.name == "scf.for" else []
        if end is not None and end.name == "scf.yield" and op.name in ("scf.for", "scf.if"):
            for place, name in enumerate(end.operands):
                names = {*op.results[place : place + 1], *inner[place : place + 1]}
                if names & found:
                    found.update([name, *carried[place : place + 1]])
        elif end is not None:
            found.update([*end.operands, *op.operands])
        _look(block, found)
