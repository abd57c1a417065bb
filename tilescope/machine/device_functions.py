"""Compute CUDA's device functions (tl.extra.libdevice) in the operands' type or wider, so within the error
that CUDA documents for each. libdevice.py's table lists the symbols and their types."""

import math

import numpy as np

from .elementwise import erf
from .floats import to_integer
from .integers import leading_zeros, population, product_halves, trailing_zeros
from .libdevice import SYMBOLS
from .meanings import pure
from .tree import NUMPY, Op
from .values import unsigned

UP, DOWN = np.inf, -np.inf


def in_fp64(function):
    """Compute what numpy lacks, one number at a time. Overflow gives infinity, and a missing value NaN."""

    def one(*x):
        try:
            return function(*x)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    each = np.vectorize(one, otypes=[np.float64])
    return lambda *x: each(*(v.astype(np.float64) for v in x))


def gamma(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else math.gamma(x)


def log_gamma(x: float) -> float:
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def half_away(x):
    """Halves away from zero, whole numbers as they are."""
    below = np.trunc(x)
    return np.where(np.abs(x - below) >= 0.5, below + np.copysign(1, x), below)


def divided(toward):
    """Return a quotient rounded in one direction:
    the nearest number, or its neighbour if that is on the wrong side."""

    def run(a, b):
        near = np.divide(a, b)
        rest = remainder_sign(a, b, near)
        if toward == 0:
            wrong = rest * np.sign(near) < 0
            return np.where(wrong, np.nextafter(near, near.dtype.type(0)), near)
        wrong = rest < 0 if toward == DOWN else rest > 0
        return np.where(wrong, np.nextafter(near, near.dtype.type(toward)), near)

    return run


def remainder_sign(a, b, near) -> np.ndarray:
    """Return whether the true quotient is above (1), below (-1) or at `near`."""
    wide = np.longdouble if a.dtype == np.float64 else np.float64
    left = a.astype(wide) - near.astype(wide) * b.astype(wide)
    return np.where(np.isfinite(near), np.nan_to_num(np.sign(left) * np.sign(b)), 0)


def exponent(x):
    return np.frexp(x)[1] - 1


def whole_exponent(x):
    special = np.where(x == 0, np.int32(-(2**31) + 1), np.int32(-(2**31)))
    return np.where(np.isinf(x), np.int32(2**31 - 1), np.where((x == 0) | np.isnan(x), special, exponent(x)))


def float_exponent(x):
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), exponent(x), np.abs(x)))


def turned(function):
    """Of a multiple of pi, exact where the result is."""

    def run(x):
        turns = np.fmod(x.astype(np.float64), 2.0)
        found = function(np.pi * turns)
        return np.where(turns * 2 == np.rint(turns * 2), np.rint(found), found)

    return run


def reversed_bits(x):
    left, found = unsigned(x), np.zeros_like(unsigned(x))
    one = left.dtype.type(1)
    for _ in range(8 * x.dtype.itemsize):
        found, left = (found << one) | (left & one), left >> one
    return found.view(x.dtype)


def chosen_bytes(a, b, selector):
    """Pick four of the eight bytes of a (0 to 3) and b (4 to 7): the selector's i-th nibble names byte i."""
    from_a, from_b, which = unsigned(a), unsigned(b), unsigned(selector)
    found = np.zeros(np.broadcast_shapes(a.shape, b.shape, selector.shape), np.uint32)
    for byte in range(4):
        index = (which >> np.uint32(4 * byte)) & np.uint32(7)
        word = np.where(index < 4, from_a, from_b)
        found |= ((word >> (index % 4 * 8)) & np.uint32(255)) << np.uint32(8 * byte)
    return found.view(np.int32)


NUMPYS_OWN = (  # named as numpy names them
    "floor ceil trunc rint sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos "
    "arctan sinh cosh tanh arcsinh arccosh arctanh power arctan2 fmod hypot copysign nextafter fmax "
    "fmin isnan isinf isfinite signbit ldexp"
)
FUNCTIONS = {name: getattr(np, name) for name in NUMPYS_OWN.split()} | {
    "fabs": np.abs,
    "round": half_away,
    "nearbyint": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "logb": float_exponent,
    "sinpi": turned(np.sin),
    "cospi": turned(np.cos),
    "erf": erf,
    "erfc": in_fp64(math.erfc),
    "lgamma": in_fp64(log_gamma),
    "tgamma": in_fp64(gamma),
    "sqrt_rn": np.sqrt,
    "reciprocal_rn": lambda x: 1 / x,
    "remainder": in_fp64(math.remainder),
    "fdim": lambda a, b: np.where(np.isnan(a) | np.isnan(b), np.nan, np.where(a > b, a - b, 0)),
    "divide_rn": np.divide,
    "divide_rz": divided(0),
    "divide_rd": divided(DOWN),
    "divide_ru": divided(UP),
    "add_rn": np.add,
    "subtract_rn": np.subtract,
    "multiply_rn": np.multiply,
    "ilogb": whole_exponent,
    "power_int": lambda x, n: np.power(x.astype(np.float64), n),
    "scalbn": np.ldexp,
    "fast_divide": np.divide,
    "fast_sin": np.sin,
    "fast_cos": np.cos,
    "fast_tan": np.tan,
    "fast_exp": np.exp,
    "fast_exp10": lambda x: np.power(x.dtype.type(10), x),
    "fast_log": np.log,
    "fast_log2": np.log2,
    "fast_log10": np.log10,
    "fast_power": np.power,
    "saturate": lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)),
    "count_leading_zeros": leading_zeros,
    "bitwise_count": population,
    "reverse_bits": reversed_bits,
    "find_first_set": lambda x: np.where(x == 0, 0, trailing_zeros(x) + 1),
    "absolute": np.abs,
    "chosen_bytes": chosen_bytes,
    "multiply_high": lambda a, b: product_halves(a, b, True)[1],
    "multiply_high_unsigned": lambda a, b: product_halves(a, b, False)[1],
    "rint_to_int": lambda x: to_integer(np.rint(x), np.dtype(np.int64), True),
}


def fused(a, b, c):
    """Round once: fp64 holds the product of two fp32, longdouble nearly that of two fp64."""
    wide = np.longdouble if a.dtype == np.float64 else np.float64
    return a.astype(wide) * b.astype(wide) + c.astype(wide)


FUNCTIONS |= {"fma": fused, "fma_rn": fused}


@pure("tt.extern_elementwise")
def extern(op: Op):
    symbol = SYMBOLS[op.attributes["symbol"]]
    to = NUMPY[symbol.result]
    if symbol.function == "bits":
        return lambda x: np.ascontiguousarray(x).view(to)
    compute = FUNCTIONS[symbol.function]
    return lambda *x: np.asarray(compute(*x)).astype(to, copy=False)
