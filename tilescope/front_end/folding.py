"""Fold operations with known operands, as Triton's canonicaliser does."""

from . import floats
from .kinds import type

COMPARED = {
    0: lambda a, b: a == b,
    1: lambda a, b: a != b,
    2: lambda a, b: a < b,
    3: lambda a, b: a <= b,
    4: lambda a, b: a > b,
    5: lambda a, b: a >= b,
}
UNSIGNED = 4  # the predicates from 6 to 9 are those from 2 to 5 on unsigned integers
EVEN_SHAPES = {"tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.unsplat"}


def signed(n: int, bits: int) -> int:
    n &= (1 << bits) - 1
    return n - (1 << bits) if n >> (bits - 1) else n


def unsigned(n: int, bits: int) -> int:
    return n & ((1 << bits) - 1)


def quotient(a: int, b: int) -> int:
    """Divide toward zero, as a processor does."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


SIGNED = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.divsi": quotient,
    "arith.remsi": lambda a, b: a - b * quotient(a, b),
    "arith.shli": lambda a, b: a << b,
    "arith.shrsi": lambda a, b: a >> b,
}
NATURAL = {
    "arith.maxui": max,
    "arith.minui": min,
    "arith.divui": lambda a, b: a // b,
    "arith.remui": lambda a, b: a % b,
    "arith.shrui": lambda a, b: a >> b,
}
DIVIDES = {f"arith.{name}" for name in ("divsi", "divui", "remsi", "remui")}
SHIFTS = {f"arith.{name}" for name in ("shli", "shrsi", "shrui")}


def folded(op, types: list[type], known: list) -> int | str | None:
    """Return the one number that all elements of the result are, where that is certain. Floats are texts."""
    name = op.name
    if name == "tt.make_range":
        start, end = (int(op.attrs[at].split()[0]) for at in ("start", "end"))
        return start if end == start + 1 else None
    if name in EVEN_SHAPES:
        return known[0]
    if len(op.results) == 1:
        found = floats.folded(op, [t.scalar.text for t in types], known, op.results[0].type.scalar.text)
        if found is not None:
            return found
    if not types or not types[0].is_whole or not all(isinstance(n, int) for n in known):
        return None
    bits = types[0].bits
    if name in SIGNED or name in NATURAL:
        return _two(name, known, bits)
    if name == "arith.cmpi":
        return _compared(int(op.attrs["predicate"].split()[0]), known, bits)
    out = op.results[0].type.bits if len(op.results) == 1 and op.results[0].type.is_whole else 0
    if name in ("arith.extsi", "arith.trunci"):
        return signed(known[0], out)
    if name == "arith.extui":
        return signed(unsigned(known[0], bits), out)
    if name == "math.absi":
        return signed(abs(known[0]), bits)
    return None


def _two(name: str, known: list[int], bits: int) -> int | None:
    a, b = known
    if name in DIVIDES and b == 0 or name in SHIFTS and not 0 <= b < bits:
        return None
    if name in SIGNED:
        return signed(SIGNED[name](a, b), bits)
    return signed(NATURAL[name](unsigned(a, bits), unsigned(b, bits)), bits)


def _compared(predicate: int, known: list[int], bits: int) -> int:
    if predicate > 5:
        predicate, known = predicate - UNSIGNED, [unsigned(n, bits) for n in known]
    return -int(COMPARED[predicate](*known))


ZERO_STAYS = {"arith.muli", "arith.andi"}  # 0 with anything is 0
NEUTRAL = {  # the second operand that changes nothing
    **dict.fromkeys(("arith.addi", "arith.subi", "arith.ori", "arith.xori", "arith.shli", "arith.shrsi"), 0),
    **dict.fromkeys(("arith.muli", "arith.divsi", "arith.divui"), 1),
    "arith.shrui": 0,
    "arith.andi": -1,
    "tt.addptr": 0,
}
EITHER = {"arith.addi", "arith.muli", "arith.andi", "arith.ori", "arith.xori"}
ITSELF = {"arith.andi", "arith.ori", "arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui"}
REMAINS = {"arith.remsi", "arith.remui"}  # of a division by 1
OPPOSITE = {"arith.addi": "arith.subi", "arith.subi": "arith.addi"}
UNDONE_BY = {"arith.truncf": ("arith.extf",), "arith.trunci": ("arith.extsi", "arith.extui")}
TRUE_OF_EQUALS = {0, 3, 5, 7, 9}


def passes_on(op, operands: list, known: list):
    """Return the operand that equals the result, or a number, or None:
    x + 0, x * 0, x - x, select(true, x, y)."""
    name = op.name
    if name == "arith.select":
        if isinstance(known[0], int):
            return operands[1 if known[0] else 2]
        return operands[1] if operands[1] is operands[2] else None
    if name in UNDONE_BY and operands[0].type is not op.results[0].type:
        maker = operands[0].owner
        if getattr(maker, "name", "") in UNDONE_BY[name] and maker.operands[0].type is op.results[0].type:
            return maker.operands[0]
    if len(operands) != 2:
        return None
    a, b = operands
    if a is b:
        if name in ITSELF:
            return a
        if name in ("arith.subi", "arith.xori"):
            return 0
        if name == "arith.cmpi":
            return -int(int(op.attrs["predicate"].split()[0]) in TRUE_OF_EQUALS)
    if name in OPPOSITE and (left := _undone(OPPOSITE[name], a, b, name == "arith.addi")) is not None:
        return left
    if name in ZERO_STAYS and 0 in known or name in REMAINS and known[1] == 1:
        return 0
    if name in NEUTRAL and _is(known[1], NEUTRAL[name], a):
        return a
    if name in EITHER and _is(known[0], NEUTRAL[name], b):
        return b
    return floats.passes_on(op, operands, known)


def _undone(opposite: str, a, b, either: bool):
    """Return x if one operation adds what the other takes away: (x - b) + b, (x + b) - b, (a + x) - a."""
    for whole, part in ((a, b), (b, a))[: 2 if either else 1]:
        maker = whole.owner
        if getattr(maker, "name", "") == opposite:
            x, y = maker.operands
            if y is part:
                return x
            if x is part and opposite == "arith.addi":
                return y
    return None


def _is(known, number: int, other) -> bool:
    """Return whether a known operand is `number`. The truth value -1 counts as all ones."""
    one_bit = number == 1 and other.type.is_whole and other.type.bits == 1
    return isinstance(known, int) and known == (-1 if one_bit else number)
