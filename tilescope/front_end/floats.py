"""Compute with floating-point constants by their bits. Each result is rounded once, as the operation would."""

import math
import struct

FORMS = {"f16": ("e", 2), "f32": ("f", 4), "f64": ("d", 8), "bf16": ("f", 4)}
NAN = {"f16": 0x7E00, "bf16": 0x7FC0, "f32": 0x7FC00000, "f64": 0x7FF8 << 48}
ORDERED = {
    1: lambda a, b: a == b,
    2: lambda a, b: a > b,
    3: lambda a, b: a >= b,
    4: lambda a, b: a < b,
    5: lambda a, b: a <= b,
    6: lambda a, b: a != b,
}
UNORDERED = {8: 1, 9: 2, 10: 3, 11: 4, 12: 5, 13: 6}  # which of the two, or whether either is NaN


def bits_of(v: float, kind: str) -> int:
    """Return the bits of the nearest number of a kind, ties to even.
    Too large gives infinity, and NaN the canonical one."""
    if v != v:
        return NAN[kind]
    form, size = FORMS[kind]
    try:
        raw = struct.pack(f"<{form}", v)
    except OverflowError:
        raw = struct.pack(f"<{form}", math.copysign(math.inf, v))
    bits = int.from_bytes(raw, "little")
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 if kind == "bf16" else bits


def text_of(v: float, kind: str) -> str:
    return f"0x{bits_of(v, kind):0{FORMS[kind][1] * 2 if kind != 'bf16' else 4}X}"


def number_of(text: str, kind: str) -> float:
    """Return the number that a constant's text means."""
    if not text.startswith("0x"):
        return float(text)
    form, size = FORMS[kind]
    bits = int(text, 16) << (16 if kind == "bf16" else 0)
    return struct.unpack(f"<{form}", bits.to_bytes(size, "little"))[0]


def divided(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def larger(a: float, b: float) -> float:
    return (b if math.copysign(1.0, a) < 0 else a) if a == b else max(a, b)


TWO = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": divided,
    "arith.maximumf": larger,
    "arith.maxnumf": larger,
    "arith.minimumf": lambda a, b: -larger(-a, -b),
    "arith.minnumf": lambda a, b: -larger(-a, -b),
}
CONVERTS = {"arith.extf", "arith.truncf", "tt.fp_to_fp"}
ONE_STAYS = {"arith.mulf": 1.0, "arith.divf": 1.0}
ZERO_STAYS = {"arith.addf": -0.0, "arith.subf": 0.0}
EITHER_SIDE = {"arith.addf", "arith.mulf"}


def folded(op, kinds: list[str], known: list, out: str) -> int | str | None:
    """Return the result of an operation on constants as a text or an integer, or None to leave it for later."""
    if op.name in ("arith.sitofp", "arith.uitofp") and isinstance(known[0], int) and out in FORMS:
        number = known[0] if op.name == "arith.sitofp" else known[0] % (1 << int(kinds[0][1:]))
        return text_of(-float(abs(number)) if number < 0 else float(number), out)
    if not all(isinstance(text, str) for text in known):
        return None
    if op.name in CONVERTS and set(known) <= {"0.0", "0x0000", "0x00000000"}:
        return "0.0"
    if not all(kind in FORMS for kind in kinds):
        return None
    values = [number_of(text, kind) for text, kind in zip(known, kinds, strict=True)]
    if any(v != v for v in values):
        return None
    if op.name in TWO:
        v = TWO[op.name](*values)
        return None if v != v else text_of(v, out)
    if op.name in CONVERTS and out in FORMS and "rounding" not in op.attrs:
        return text_of(values[0], out)
    if op.name == "arith.cmpf":
        predicate = int(op.attrs["predicate"].split()[0])
        return -int(ORDERED[UNORDERED.get(predicate, predicate)](*values))
    return None


def passes_on(op, operands: list, known: list):
    """Return the operand that equals the result: x + -0, x - 0, x * 1, x / 1, and the larger of x and x."""
    if len(operands) != 2 or op.name not in TWO:
        return None
    a, b = operands
    if a is b and op.name.startswith(("arith.max", "arith.min")):
        return a
    wanted = ONE_STAYS.get(op.name, ZERO_STAYS.get(op.name))
    if wanted is None:
        return None
    kind = a.type.scalar.text
    for mine, other in ((known[1], a), (known[0], b))[: 2 if op.name in EITHER_SIDE else 1]:
        if (
            isinstance(mine, str)
            and kind in FORMS
            and bits_of(number_of(mine, kind), kind) == bits_of(wanted, kind)
        ):
            return other
    return None
