"""Values of CUDA's device functions (tl.extra.libdevice): computed in the operands' type or wider, so within the error
that CUDA documents for each. Which symbols a kernel may call, and on which types, is libdevice.py's table."""

import math

import numpy as np

from .elementwise import erf
from .floats import to_integer
from .meanings import pure
from .tree import Op


def in_fp64(function):
    """For what numpy lacks: one number at a time; infinite where it overflows, NaN where it has no value."""

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


def divided_toward_zero(a, b):
    """The nearest quotient, or its neighbour where that lies beyond the true one."""
    near = np.divide(a, b)
    wide = np.longdouble if a.dtype == np.float64 else np.float64
    left = a.astype(wide) - near.astype(wide) * b.astype(wide)
    beyond = np.isfinite(near) & (np.sign(left) * np.sign(b) * np.sign(near) < 0)
    return np.where(beyond, np.nextafter(near, near.dtype.type(0)), near)


def float_exponent(x):
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), np.frexp(x)[1] - 1, np.abs(x)))


def turned(function):
    """Of a multiple of pi, exact where the result is."""

    def run(x):
        turns = np.fmod(x.astype(np.float64), 2.0)
        found = function(np.pi * turns)
        return np.where(turns * 2 == np.rint(turns * 2), np.rint(found), found)

    return run


def fused(a, b, c):
    """One rounding: fp64 holds the product of two fp32, longdouble nearly that of two fp64."""
    wide = np.longdouble if a.dtype == np.float64 else np.float64
    return a.astype(wide) * b.astype(wide) + c.astype(wide)


def to_power_of_ten(x):
    return np.power(x.dtype.type(10), x)


def to_whole(kind, nearest: bool):
    return lambda x: to_integer(np.rint(x) if nearest else x, np.dtype(kind), signed=True)


BOTH = {  # of fp32 with an f at its end, of fp64 without
    "fabs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "round": half_away,
    "nearbyint": np.rint, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt,
    "rcbrt": lambda x: 1 / np.cbrt(x), "exp": np.exp, "exp2": np.exp2, "exp10": to_power_of_ten, "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "logb": float_exponent, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "sinpi": turned(np.sin), "cospi": turned(np.cos), "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "erf": erf, "erfc": in_fp64(math.erfc), "lgamma": in_fp64(log_gamma),
    "tgamma": in_fp64(gamma), "normcdf": in_fp64(lambda x: math.erfc(-x / math.sqrt(2)) / 2), "pow": np.power,
    "atan2": np.arctan2, "fmod": np.fmod, "remainder": in_fp64(math.remainder), "hypot": np.hypot,
    "rhypot": lambda a, b: 1 / np.hypot(a, b), "copysign": np.copysign, "nextafter": np.nextafter,
    "fdim": lambda a, b: np.where(np.isnan(a) | np.isnan(b), np.nan, np.where(a > b, a - b, 0)),
    "fmax": np.fmax, "fmin": np.fmin, "fma": fused, "ldexp": np.ldexp, "scalbn": np.ldexp,
}  # fmt: skip
OTHERS = {
    "fast_sinf": np.sin, "fast_cosf": np.cos, "fast_tanf": np.tan, "fast_expf": np.exp, "fast_exp10f": to_power_of_ten,
    "fast_logf": np.log, "fast_log2f": np.log2, "fast_log10f": np.log10, "fast_fdividef": np.divide,
    "fast_powf": np.power, "saturatef": lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)),
    "fsqrt_rn": np.sqrt, "dsqrt_rn": np.sqrt, "frcp_rn": lambda x: 1 / x, "fdiv_rn": np.divide, "ddiv_rn": np.divide,
    "fdiv_rz": divided_toward_zero, "ddiv_rz": divided_toward_zero, "fadd_rn": np.add, "fsub_rn": np.subtract,
    "fmul_rn": np.multiply, "powif": lambda x, n: np.power(x.astype(np.float64), n),
    "powi": lambda x, n: np.power(x, n), "isnanf": np.isnan, "isnand": np.isnan, "isinff": np.isinf, "isinfd": np.isinf,
    "finitef": np.isfinite, "isfinited": np.isfinite, "signbitf": np.signbit, "signbitd": np.signbit,
    "float_as_int": lambda x: np.ascontiguousarray(x).view(np.int32),
    "int_as_float": lambda x: np.ascontiguousarray(x).view(np.float32),
    "float2int_rn": to_whole(np.int32, nearest=True), "float2int_rz": to_whole(np.int32, nearest=False),
    "llrintf": to_whole(np.int64, nearest=True), "llrint": to_whole(np.int64, nearest=True),
    "abs": np.abs, "llabs": np.abs,
}  # fmt: skip
SYMBOLS = {f"__nv_{name}{suffix}": function for name, function in BOTH.items() for suffix in ("f", "")}
SYMBOLS |= {f"__nv_{name}": function for name, function in OTHERS.items()}


@pure("tt.extern_elementwise")
def extern(op: Op):
    compute, to = SYMBOLS[op.attributes["symbol"]], op.result_types[0].dtype
    return lambda *x: np.asarray(compute(*x)).astype(to, copy=False)
