"""Find int32 arithmetic that overflows on its way into an address. A hash that is meant to wrap isn't on that
way, because the result of a remainder, a right shift or a comparison counts as a new number."""

from collections import defaultdict
from zlib import crc32

import numpy as np

from .machine.bounds import ids
from .machine.tree import Block, Function, Module, Op

SIGNS = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "*", "arith.shli": "<<"}
CARRIES = {  # what hands a number on, to the same value or to a part of a sum
    *SIGNS,
    *(f"arith.{name}" for name in ("extsi", "extui", "index_cast", "index_castui", "select")),
    *(
        f"tt.{name}"
        for name in ("splat", "broadcast", "expand_dims", "reshape", "trans", "addptr", "unsplat")
    ),
}
OTHER = 1 << 29  # the bit that a second run flips in a result that overflowed, to see which addresses change


def on_the_way(module: Module) -> set[int]:
    """The operations, by their id, whose whole numbers become part of an address."""
    return {key for function in module.functions.values() for key in of_function(function)}


def of_function(function: Function) -> set[int]:
    sources, made_by, wanted = defaultdict(list), {}, []
    for block in function.blocks:
        edges(block, sources, made_by, wanted)
    seen = set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        wanted += sources[name]
    return {id(op) for name, op in made_by.items() if name in seen and op.name in SIGNS and narrow(op)}


def narrow(op: Op) -> bool:
    return op.result_types[0].scalar in ("i8", "i16", "i32")


def edges(block: Block, sources: dict, made_by: dict, wanted: list) -> None:
    """Notes for each value which others it is made of, and which are wanted as addresses."""
    for op in block.ops:
        made_by.update(dict.fromkeys(op.results, op))
        if op.name in CARRIES:
            sources[op.results[0]] += op.operands
        if op.name == "tt.addptr":
            wanted.append(op.operands[1])
        elif op.name.startswith("tt.descriptor_"):
            wanted += op.operands[1:]
        inner = [one for region in op.regions for one in region]
        for one in inner:
            edges(one, sources, made_by, wanted)
        if op.name.startswith("scf."):
            loop_edges(op, inner, sources)


def loop_edges(op: Op, blocks: list[Block], sources: dict) -> None:
    """Return the values that a loop or a branch carries, from its operands into its blocks and out again."""

    def join(to: list[str], *handed: list[str]) -> None:
        for names in handed:
            for name, source in zip(to, names, strict=False):
                sources[name].append(source)

    ends = [block.ops[-1].operands for block in blocks if block.ops]
    if op.name == "scf.if":
        join(op.results, *ends)
    elif op.name == "scf.for":
        sources[blocks[0].arguments[0]] += op.operands[:3]
        join(blocks[0].arguments[1:], op.operands[3:], ends[0])
        join(op.results, op.operands[3:], ends[0])
    elif op.name == "scf.while":
        join(blocks[0].arguments, op.operands, ends[1])
        join(blocks[1].arguments, ends[0][1:])
        join(op.results, ends[0][1:])


class Overflows:
    """Find which operations overflow in a run. If `changed` names a line, give other results at this line."""

    def __init__(self, module: Module, changed: int | None = None):
        self.wanted, self.changed = on_the_way(module), changed
        self.found: dict[int, dict] = {}  # line -> what happened there first
        # a checksum of each line's addresses, lane by lane, because lanes may swap their order
        self.addresses: dict[tuple, int] = {}

    def around(self, step) -> None:
        """Puts itself around what performs one operation."""
        if id(step.op) not in self.wanted or step.bound:
            return
        perform, op = step.perform, step.op

        def watched(run, *values):
            result = perform(*values)
            bad = overflowed(op, *values, result)
            if bad.any():
                self.note(run, op, values, result, bad)
                if op.line == self.changed:
                    return np.where(bad, result ^ result.dtype.type(OTHER), result)
            return result

        step.perform, step.bound = watched, True

    def asked(self, access, address: np.ndarray) -> None:
        key = access.line, access.kind
        self.addresses[key] = crc32(address.tobytes(), self.addresses.get(key, 0))

    def note(self, run, op: Op, values, result, bad) -> None:
        if op.line in self.found:
            return
        at = tuple(np.argwhere(bad)[0])
        a, b = (int(np.broadcast_to(value, bad.shape)[at]) for value in values)
        row = int(at[0]) if len(bad) == run.frame.size else 0
        kept, program = int(np.broadcast_to(result, bad.shape)[at]), run.frame.place(row)
        who = f"program {ids(program, run.grid)} overflows int32 on the way to an address"
        what = f"{who}: {a} {SIGNS[op.name]} {b} is kept as {kept}"
        self.found[op.line] = {"program": program, "message": what}


def overflowed(op: Op, a: np.ndarray, b: np.ndarray, result: np.ndarray) -> np.ndarray:
    """Return where the stored number isn't the intended one."""
    if op.name == "arith.addi":
        return ((a ^ result) & (b ^ result)) < 0
    if op.name == "arith.subi":
        return ((a ^ b) & (a ^ result)) < 0
    wide, by = a.astype(np.int64), b.astype(np.int64)
    return (wide * by if op.name == "arith.muli" else wide << np.clip(by, 0, 31)) != result


def overflows(module: Module, again) -> list[dict]:
    """Return the overflows that reach an active lane's address, each with line, program and message, and with
    `reaches` also the accesses, by line and kind. `again(probe)` repeats the launch."""
    first = Overflows(module)
    again(first)
    found = []
    for line, row in first.found.items():
        other = Overflows(module, line)
        again(other)
        before, after = first.addresses, other.addresses
        changed = {place for place in before | after if before.get(place) != after.get(place)}
        if changed:
            row |= {"what": row["message"].partition(": ")[2], "reaches": changed}
            found.append({"kind": "Overflow", "stage": "kernel", "line": line, **row})
    return found
