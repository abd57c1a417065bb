"""Find addresses and comparisons that depend on a division of whole numbers as floats. A GPU's division of fp32 is off by up
to two units in the last place, so a quotient that is whole may fall below its number and lead to the place before."""

from grader.judge.failed import Failed
from grader.judge.kernel_evidence import KernelEvidence
from grader.judge.printed import LOOPS, Value, functions, read

TO_FLOAT, TO_WHOLE = ("arith.sitofp", "arith.uitofp"), ("arith.fptosi", "arith.fptoui")
INEXACT = "arith.divf", "math.rsqrt"
FARTHEST = "tt.load", "tt.descriptor_load", "tt.reduce", "tt.dot"  # what comes before them is another number


def judge(evidence: KernelEvidence) -> None:
    """Raise Failed for an address that such a division makes, or a comparison."""
    for line in evidence.lines_found(lines):
        raise Failed(
            f"line {line} divides whole numbers as floats, and an address or a comparison depends on the quotient",
            "// and % on whole numbers: a GPU's division of floats isn't exact, so 41 / 41 may give less than 1",
            told="an address or a comparison of a quotient of floats",
        )


def lines(text: str) -> list[int]:
    """Return the lines of the cell that divide such numbers for an address, or compare their quotient."""
    found = set()
    for function in functions(text):
        values, _ = read(function)
        whole = of_whole_numbers(values)
        for value in values.values():
            if value.op == "tt.addptr":
                found |= divided(values, value.operands[1:])
            if value.op == "arith.cmpf":
                found |= set().union(*(whole.get(one, ()) for one in value.operands))
    return sorted(found)


def of_whole_numbers(values: dict[str, Value]) -> dict[str, set[int]]:
    """Return the values that are made of whole numbers and constants alone by way of floats, with the lines of the inexact
    operations in each. Operands come before what needs them."""
    found: dict[str, set[int]] = {}
    for name, value in values.items():
        if value.op in TO_FLOAT:
            found[name] = set()
        elif value.op not in (*FARTHEST, "an argument", *LOOPS) and all(
            one in found for one in value.operands
        ):
            inexact = {value.line} if value.op in INEXACT else set()
            found[name] = inexact.union(*(found[one] for one in value.operands))
    return found


def divided(values: dict[str, Value], names: tuple[str, ...]) -> set[int]:
    """Return the lines of inexact operations between a conversion to floats and one back, in what these values are made of."""
    found, left, seen = set(), [(name, False, 0) for name in names], set()
    while left:
        name, in_floats, line = left.pop()
        value = values.get(name)
        if value is None or (name, in_floats, line) in seen:
            continue
        seen.add((name, in_floats, line))
        if in_floats and value.op in TO_FLOAT and line:
            found.add(line)
        if value.op in FARTHEST:
            continue
        in_floats = in_floats and value.op not in TO_FLOAT or value.op in TO_WHOLE
        line = (value.line if value.op in INEXACT and in_floats else line) if in_floats else 0
        left += [(one, in_floats, line) for one in value.operands]
    return found
