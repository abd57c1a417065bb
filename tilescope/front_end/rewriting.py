"""Replace one operation by a simpler one where constants meet or splats change shape. Triton's canonicaliser
does the same.

It lets constants meet in single numbers alone, not in blocks.
"""

from .nodes import OpState

SUMS = ("arith.addi", "arith.subi")
RESHAPED = ("tt.expand_dims", "tt.broadcast", "tt.reshape")
INVERSE = {0: 1, 1: 0, 2: 5, 3: 4, 4: 3, 5: 2, 6: 9, 7: 8, 8: 7, 9: 6}  # of arith.cmpi's predicates


def rewritten(op, known: dict, constant):
    """Return an operation with the same result, over earlier values or over one new operation outside any
    block. Return None if there is none."""
    for rule in (_sum, _product, _splat, _inverse, _cast, _cut):
        if found := rule(op, known, constant):
            name, operands, attrs = found
            return OpState(name, operands, [op.results[0].type], attrs, loc=op.loc)
    return None


def maker(v, *names: str):
    """Return the operation that makes a value, if its name is among `names`."""
    return v.owner if isinstance(v.owner, OpState) and v.owner.name in names else None


def linear(op, known: dict):
    """Read x + c, x - c or c - x as (sign, x, c)."""
    a, b = op.operands
    left, right = (isinstance(known.get(v), int) for v in (a, b))
    if left == right:
        return None
    sign = -1 if op.name == "arith.subi" else 1
    return (sign, b, known[a]) if left else (1, a, sign * known[b])


def _sum(op, known, constant):
    if op.name not in SUMS or op.results[0].type.shape or not (outer := linear(op, known)):
        return None
    sign, x, number = outer
    if not (inner := maker(x, *SUMS)) or not (found := linear(inner, known)):
        return None
    inner_sign, y, inner_number = found
    total = constant(_wrapped(number + sign * inner_number, y.type), y.type)
    return ("arith.addi", [y, total], {}) if sign * inner_sign == 1 else ("arith.subi", [total, y], {})


def _product(op, known, constant):
    if op.name != "arith.muli" or op.results[0].type.shape or not (outer := _factor(op, known)):
        return None
    x, number = outer
    if not (inner := maker(x, "arith.muli")) or not (found := _factor(inner, known)):
        return None
    y, inner_number = found
    return "arith.muli", [y, constant(_wrapped(number * inner_number, y.type), y.type)], {}


def _factor(op, known):
    a, b = op.operands
    left, right = (isinstance(known.get(v), int) for v in (a, b))
    return None if left == right else (b, known[a]) if left else (a, known[b])


def _wrapped(number: int, type) -> int:
    bits = type.bits
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def _splat(op, known, _constant):
    if op.name in RESHAPED and (inner := maker(op.operands[0], "tt.splat")):
        return "tt.splat", list(inner.operands), {}
    return None


def _cast(op, known, _constant):
    """Convert once where two conversions follow each other and the first loses nothing."""
    if op.name in ("arith.extsi", "arith.extui"):
        inner = maker(op.operands[0], "arith.extui", op.name)
        return (inner.name, list(inner.operands), {}) if inner else None
    if op.name == "arith.trunci" and (inner := maker(op.operands[0], "arith.extsi", "arith.extui")):
        first, last = inner.operands[0].type.bits, op.results[0].type.bits
        if first != last:
            return ("arith.trunci" if first > last else inner.name), list(inner.operands), {}
    return None


def _cut(op, known, _constant):
    """Shift by the number of bits that a later step cuts off.
    The sign never enters, so the shift is unsigned."""
    if op.name != "arith.trunci" or not (inner := maker(op.operands[0], "arith.shrsi")):
        return None
    if known.get(inner.operands[1]) != inner.operands[0].type.bits - op.results[0].type.bits:
        return None
    shift = OpState("arith.shrui", inner.operands, [inner.results[0].type], loc=op.loc)
    return "arith.trunci", [shift.results[0]], {}


def _inverse(op, known, _constant):
    """Turn `not (a < b)` into a >= b, for single truth values."""
    if op.name != "arith.xori" or known.get(op.operands[1]) != -1 or op.results[0].type.text != "i1":
        return None
    if not (inner := maker(op.operands[0], "arith.cmpi")):
        return None
    predicate = INVERSE[int(inner.attrs["predicate"].split()[0])]
    return "arith.cmpi", list(inner.operands), {"predicate": f"{predicate} : i64"}
