"""tl.extra.libdevice: a closed table of CUDA's device functions, by the symbol that the IR calls.

Values are numpy's, computed in the operands' type or wider: within the error that CUDA documents for each.
"""

import math

import numpy as np

from .elementwise import erf
from .floats import to_integer
from .meanings import pure
from .tree import BadIR, Op
from .values import bits


def in_fp64(function):
    """For functions that numpy lacks: one number at a time, NaN where it has no value."""

    def one(*x):
        try:
            return function(*x)
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan

    each = np.vectorize(one, otypes=[np.float64])
    return lambda *x: each(*(v.astype(np.float64) for v in x))


def normal_cdf(x):
    return 0.5 * (1 + erf(x / np.sqrt(2.0)))


def divided_toward_zero(a, b):
    """The largest quotient that is not beyond the true one."""
    near = a / b
    wide = a.astype(np.float64) / b.astype(np.float64)
    beyond = np.isfinite(wide) & (np.abs(near.astype(np.float64)) > np.abs(wide))
    return np.where(beyond, np.nextafter(near, near.dtype.type(0)), near)


def truth(function):
    return lambda *x: function(*x).astype(np.int32)


FLOAT = {  # the name without its type: __nv_NAMEf takes fp32, __nv_NAME fp64
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(x.dtype.type(10), x), "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "logb": lambda x: np.floor(np.log2(np.abs(x))),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sinpi": lambda x: np.sin(np.pi * x.astype(np.float64)),
    "cospi": lambda x: np.cos(np.pi * x.astype(np.float64)),
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt, "rcbrt": lambda x: 1 / np.cbrt(x),
    "pow": np.power, "hypot": np.hypot, "rhypot": lambda a, b: 1 / np.hypot(a, b), "fmod": np.fmod,
    "remainder": np.vectorize(lambda a, b: math.remainder(a, b) if b else math.nan, otypes=[np.float64]),
    "fabs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint,
    "round": lambda x: np.trunc(x + np.copysign(0.5, x)), "copysign": np.copysign, "nextafter": np.nextafter,
    "fdim": lambda a, b: np.where(a > b, a - b, np.where(np.isnan(a) | np.isnan(b), np.nan, 0)),
    "fmax": np.fmax, "fmin": np.fmin, "fma": lambda a, b, c: a.astype(np.float64) * b + c,
    "erf": erf, "erfc": in_fp64(math.erfc), "lgamma": in_fp64(math.lgamma), "tgamma": in_fp64(math.gamma),
    "normcdf": normal_cdf, "ldexp": np.ldexp, "scalbn": np.ldexp,
}  # fmt: skip
SYMBOLS = {f"__nv_{name}{suffix}": f for name, f in FLOAT.items() for suffix in ("", "f")}
SYMBOLS |= {
    "__nv_fast_expf": np.exp, "__nv_fast_exp10f": FLOAT["exp10"], "__nv_fast_logf": np.log, "__nv_fast_log2f": np.log2,
    "__nv_fast_log10f": np.log10, "__nv_fast_sinf": np.sin, "__nv_fast_cosf": np.cos, "__nv_fast_tanf": np.tan,
    "__nv_fast_powf": np.power, "__nv_fast_fdividef": np.divide, "__nv_fast_tanhf": np.tanh,
    "__nv_powif": lambda x, n: np.power(x.astype(np.float64), n), "__nv_powi": lambda x, n: np.power(x, n),
    "__nv_isnanf": truth(np.isnan), "__nv_isnand": truth(np.isnan), "__nv_isinff": truth(np.isinf),
    "__nv_isinfd": truth(np.isinf), "__nv_finitef": truth(np.isfinite), "__nv_isfinited": truth(np.isfinite),
    "__nv_signbitf": truth(np.signbit), "__nv_signbitd": truth(np.signbit),
    "__nv_saturatef": lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)),
    "__nv_fdiv_rn": np.divide, "__nv_ddiv_rn": np.divide, "__nv_fdiv_rz": divided_toward_zero,
    "__nv_ddiv_rz": divided_toward_zero, "__nv_fsqrt_rn": np.sqrt, "__nv_dsqrt_rn": np.sqrt,
    "__nv_fadd_rn": np.add, "__nv_fsub_rn": np.subtract, "__nv_fmul_rn": np.multiply, "__nv_frcp_rn": lambda x: 1 / x,
    "__nv_abs": np.abs, "__nv_llabs": np.abs, "__nv_float_as_int": lambda x: bits(np.ascontiguousarray(x)).view(np.int32),
    "__nv_int_as_float": lambda x: np.ascontiguousarray(x).view(np.float32),
    "__nv_float2int_rz": lambda x: to_integer(x, np.dtype(np.int32), True),
    "__nv_float2int_rn": lambda x: to_integer(np.rint(x), np.dtype(np.int32), True),
    "__nv_llrintf": lambda x: to_integer(np.rint(x), np.dtype(np.int64), True),
    "__nv_llrint": lambda x: to_integer(np.rint(x), np.dtype(np.int64), True),
}  # fmt: skip


@pure("tt.extern_elementwise")
def extern(op: Op):
    symbol = op.attributes.get("symbol")
    if symbol not in SYMBOLS:
        raise BadIR(f"libdevice's {symbol} is not one of the functions that a kernel may call here", op.line)
    compute, to = SYMBOLS[symbol], op.result_types[0].dtype
    return lambda *x: np.asarray(compute(*x)).astype(to, copy=False)
