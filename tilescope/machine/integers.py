"""Compute whole numbers: two's complement, shifts past the width, high halves, carries.
A scalar division by zero is reported."""

import numpy as np

from .bounds import ids
from .errors import KernelError, hold
from .meanings import bound, pure
from .numbers_of import integer
from .tree import Op
from .values import unsigned


def truth_or(on_numbers, on_truths):
    """i1 is arithmetic modulo two, which numpy's bool is not."""
    return lambda op: on_truths if op.result_types[0].scalar == "i1" else on_numbers


for names, factory in {
    ("arith.addi",): truth_or(np.add, np.bitwise_xor),
    ("arith.subi",): truth_or(np.subtract, np.bitwise_xor),
    ("arith.muli",): truth_or(np.multiply, np.bitwise_and),
    ("arith.andi",): lambda op: np.bitwise_and,
    ("arith.ori",): lambda op: np.bitwise_or,
    ("arith.xori",): lambda op: np.bitwise_xor,
    ("arith.maxsi",): truth_or(np.maximum, np.bitwise_and),  # a true i1 is -1
    ("arith.minsi",): truth_or(np.minimum, np.bitwise_or),
    ("math.absi",): lambda op: np.abs,
}.items():
    pure(*names)(factory)


OF_TRUTHS = {  # one bit: a quotient by 1 is itself and by 0 all ones, a shift by 1 leaves only the sign
    "arith.divsi": lambda a, b: a | ~b,
    "arith.divui": lambda a, b: a | ~b,
    "arith.remsi": lambda a, b: ~b & (a | ~a),
    "arith.remui": lambda a, b: ~b & (a | ~a),
    "arith.shli": lambda a, b: a & ~b,
    "arith.shrui": lambda a, b: a & ~b,
    "arith.shrsi": lambda a, b: a | (a & b),
}


def over_unsigned(function):
    return lambda op: lambda *x: np.asarray(function(*map(unsigned, x))).view(x[0].dtype)


pure("arith.maxui")(over_unsigned(np.maximum))
pure("arith.minui")(over_unsigned(np.minimum))


def toward_zero(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Divide as C does. The one overflow (the least number by -1) wraps, as on a GPU."""
    if a.size and b.size and a.min() >= 0 and b.min() > 0:
        return a // b
    return (a - np.fmod(a, b)) // b


DIVISIONS = {
    "arith.divsi": toward_zero,
    "arith.remsi": np.fmod,
    "arith.divui": np.floor_divide,
    "arith.remui": np.remainder,
}


@pure(*DIVISIONS)
def division(op: Op):
    """Divide. By zero a lane holds all ones, as on GPUs.
    A scalar division by zero is the answer's mistake, since every lane uses the result."""
    if op.result_types[0].scalar == "i1":
        return OF_TRUTHS[op.name]
    compute, of_unsigned, scalar = DIVISIONS[op.name], op.name.endswith("ui"), not op.result_types[0].shape

    def run(a, b):
        zero = b == 0
        if not zero.any():
            return divided(a, b)
        if scalar:
            hold(KernelError("DivisionByZero", "an integer is divided by zero", op.line))
        return np.where(zero, a.dtype.type(-1), divided(a, np.where(zero, b.dtype.type(1), b)))

    def divided(a, b):
        if of_unsigned:
            return np.asarray(compute(unsigned(a), unsigned(b))).view(a.dtype)
        return compute(a, b)

    return run


@bound(*DIVISIONS)
def division_of_programs(op: Op):
    """Divide outside a reduction, where the program that divides by zero is known."""
    perform, type = division(op), op.result_types[0]

    def run(run, a, b):
        if not type.shape and type.scalar != "i1" and (bad := b == 0).any():
            program = run.frame.first(bad)
            text = f"an integer is divided by zero in program {ids(program, run.grid)}"
            hold(KernelError("DivisionByZero", text, op.line, program=program))
        return perform(a, b)

    return run


def shift(compute, beyond):
    """Shift. A shift by the width or more has no value in LLVM, and GPUs clamp it at the width."""

    def factory(op: Op):
        if op.result_types[0].scalar == "i1":
            return OF_TRUTHS[op.name]

        def run(a, b):
            wide = unsigned(b) >= 8 * a.dtype.itemsize
            found = compute(a, np.where(wide, 0, b).astype(a.dtype))
            return np.where(wide, beyond(a), found).astype(a.dtype) if wide.any() else found

        return run

    return factory


pure("arith.shli")(shift(np.left_shift, lambda a: 0))
pure("arith.shrsi")(shift(np.right_shift, lambda a: np.where(a < 0, -1, 0)))
pure("arith.shrui")(shift(lambda a, b: (unsigned(a) >> unsigned(b)).view(a.dtype), lambda a: 0))

COMPARE = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]


@pure("arith.cmpi")
def compare(op: Op):
    predicate = integer(op, "predicate")  # eq ne slt sle sgt sge ult ule ugt uge
    if predicate >= 6:
        of_unsigned = COMPARE[predicate - 4]
        return lambda a, b: of_unsigned(unsigned(a), unsigned(b))
    if predicate >= 2 and op.operand_types[0].scalar == "i1":  # signed, so true is -1
        function = COMPARE[predicate]
        return lambda a, b: function(b, a)
    return COMPARE[predicate]


@pure("arith.extsi", "arith.trunci", "arith.index_cast", "arith.index_castui")
def signed_width(op: Op):
    to = op.result_types[0].dtype
    if op.operand_types[0].scalar == "i1":
        return lambda x: x if to.kind == "b" else -x.astype(to)
    return (lambda x: (x & 1).astype(bool)) if to.kind == "b" else (lambda x: x.astype(to))


@pure("arith.extui")
def unsigned_width(op: Op):
    to = op.result_types[0].dtype
    return lambda x: unsigned(x).astype(to)


def product_halves(a: np.ndarray, b: np.ndarray, signed: bool) -> tuple[np.ndarray, np.ndarray]:
    """The low and the high half of a whole product, both in the operands' type."""
    kind, width = a.dtype, 8 * a.dtype.itemsize
    if width < 64:
        wide = a.astype(np.int64) * b if signed else (unsigned(a).astype(np.uint64) * unsigned(b))
        return (wide.astype(f"u{kind.itemsize}").view(kind), (wide >> wide.dtype.type(width)).astype(kind))
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    x, y = unsigned(a), unsigned(b)
    xl, xh, yl, yh = x & low, x >> half, y & low, y >> half
    middle = xh * yl + ((xl * yl) >> half)
    other = xl * yh + (middle & low)
    high = xh * yh + (middle >> half) + (other >> half)
    if signed:
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return (x * y).view(kind), high.view(kind)


@pure("tt.mulhiui")
def high_product(op: Op):
    return lambda a, b: product_halves(a, b, signed=False)[1]


@pure("arith.mului_extended", "arith.mulsi_extended")
def whole_product(op: Op):
    signed = "mulsi" in op.name
    return lambda a, b: product_halves(a, b, signed)


@pure("arith.addui_extended")
def sum_and_carry(op: Op):
    def run(a, b):
        total = unsigned(a) + unsigned(b)
        return total.view(a.dtype), total < unsigned(a)

    return run


def population(x: np.ndarray) -> np.ndarray:
    return np.bitwise_count(unsigned(x)).astype(x.dtype)


def leading_zeros(x: np.ndarray) -> np.ndarray:
    width, left, count = 8 * x.dtype.itemsize, unsigned(x).copy(), np.full(x.shape, 8 * x.dtype.itemsize)
    for step in (32, 16, 8, 4, 2, 1):
        if step < width:
            above = left >> left.dtype.type(step)
            count, left = np.where(above > 0, count - step, count), np.where(above > 0, above, left)
    return (count - (left > 0)).astype(x.dtype)


def trailing_zeros(x: np.ndarray) -> np.ndarray:
    lowest = unsigned(x) & (~unsigned(x) + unsigned(x).dtype.type(1))
    return np.where(x == 0, 8 * x.dtype.itemsize, 8 * x.dtype.itemsize - 1 - leading_zeros(lowest)).astype(
        x.dtype
    )
