"""The functions of NVIDIA's libdevice that a kernel may call, each with the types that it takes and gives.

What each computes is device_functions.py's; a test holds the two tables to each other.
"""

from typing import NamedTuple


class Symbol(NamedTuple):
    operands: tuple[str, ...]
    result: str


# names without __nv_; most end in f where they take fp32
UNARY = (
    "fabs floor ceil trunc rint round nearbyint sqrt rsqrt cbrt rcbrt exp exp2 exp10 expm1 log log2 log10 log1p logb "
    "sin cos tan sinpi cospi asin acos atan sinh cosh tanh asinh acosh atanh erf erfc lgamma tgamma normcdf"
)
BINARY = "pow atan2 fmod remainder hypot rhypot copysign nextafter fdim fmax fmin"
OTHER = {
    "f32 -> f32": "fast_sinf fast_cosf fast_tanf fast_expf fast_exp10f fast_logf fast_log2f fast_log10f saturatef "
    "fsqrt_rn frcp_rn",
    "f32 f32 -> f32": "fast_fdividef fast_powf fdiv_rn fdiv_rz fadd_rn fsub_rn fmul_rn",
    "f32 f32 f32 -> f32": "fmaf",
    "f32 i32 -> f32": "powif ldexpf scalbnf",
    "f32 -> i32": "isnanf isinff finitef signbitf float_as_int float2int_rn float2int_rz",
    "f32 -> i64": "llrintf",
    "f64 -> f64": "dsqrt_rn",
    "f64 f64 -> f64": "ddiv_rn ddiv_rz",
    "f64 f64 f64 -> f64": "fma",
    "f64 i32 -> f64": "powi ldexp scalbn",
    "f64 -> i32": "isnand isinfd isfinited signbitd",
    "f64 -> i64": "llrint",
    "i32 -> i32": "abs",
    "i64 -> i64": "llabs",
    "i32 -> f32": "int_as_float",
}


def _table() -> dict[str, Symbol]:
    found = {}
    for names, many in ((UNARY, 1), (BINARY, 2)):
        for name in names.split():
            found[f"__nv_{name}f"] = Symbol(("f32",) * many, "f32")
            found[f"__nv_{name}"] = Symbol(("f64",) * many, "f64")
    for types, names in OTHER.items():
        operands, result = types.split(" -> ")
        found |= {f"__nv_{name}": Symbol(tuple(operands.split()), result) for name in names.split()}
    return found


SYMBOLS = _table()
