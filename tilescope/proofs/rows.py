"""Turn a text of Triton IR into rows that compare two lowerings, without names or the position of constants."""

from itertools import count

from tilescope.machine.read import read

EITHER_SIDE = {
    *(
        f"arith.{name}"
        for name in ("addi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui")
    ),
    *(f"arith.{name}" for name in ("addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf")),
}  # Triton folds with the constant on the right
SAYS_NOTHING = ("overflowFlags", "none"), ("fastmath", "none")


def difference(one: str, other: str, cell: str = "<answer>", lines: bool = True) -> str:
    """Name the first operation in which two texts differ. Return "" if they run alike, line by line."""
    if one == other:
        return ""
    one, other = (rows_of(text, cell, lines) for text in (one, other))
    for a, b in zip(one, other, strict=False):
        if a != b:
            return f"{a} or {b}"
    return "" if len(one) == len(other) else f"{len(one)} or {len(other)} operations"


def rows_of(text: str, cell: str = "<answer>", lines: bool = True) -> list[tuple]:
    """Return a row for each block and operation,
    with its name, line, operands by number or constant value, and more."""
    found = read(text, cell)
    return [row for _, one in sorted(found.functions.items()) for row in Rows(lines).of(one.blocks)]


class Rows:
    """Numbers the values and labels of one function as they come."""

    def __init__(self, lines: bool):
        self.lines, self.names, self.labels, self.numbers = lines, {}, {}, count()

    def named(self, name: str):
        if name not in self.names:
            self.names[name] = next(self.numbers)
        return self.names[name]

    def label(self, label: str) -> int:
        return self.labels.setdefault(label, len(self.labels))

    def of(self, blocks) -> list[tuple]:
        found = []
        for block in blocks:
            found.append((self.label(block.label), list(map(self.named, block.arguments)), block.types))
            for op in block.ops:
                if op.name == "arith.constant":
                    value = op.attributes["value"]
                    self.names[op.results[0]] = (value.tobytes().hex(), value.shape, op.result_types[0])
                    continue
                found.append(self.row(op))
                for region in op.regions:
                    found += self.of(region)
        return found

    def row(self, op) -> tuple:
        operands = list(map(self.named, op.operands))
        if op.name in EITHER_SIDE:
            operands.sort(key=str)
        attributes = sorted(item for item in op.attributes.items() if item not in SAYS_NOTHING)
        place = (op.line,) if self.lines and op.name != "scf.yield" else ()  # a yield costs nothing
        kinds = op.operand_types, op.result_types
        results, to = list(map(self.named, op.results)), list(map(self.label, op.successors))
        return (op.name, *place, operands, results, attributes, *kinds, to)
