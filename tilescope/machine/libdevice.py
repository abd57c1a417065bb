"""List the functions of NVIDIA's libdevice that a kernel may call, with their types and their computations."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Symbol:
    function: str  # the function that computes it, or the name of numpy's
    operands: tuple[str, ...]
    result: str


def alike(names: str) -> dict[str, str]:
    """Return rows of the functions that libdevice names after their computation,
    with an f at the end for fp32."""
    return {name: f"{name}f {name}" for name in names.split()}


# what it computes -> the name for fp32 and the name for fp64, without __nv_
UNARY = alike(
    "fabs floor ceil trunc rint round nearbyint sqrt rsqrt cbrt rcbrt exp exp2 exp10 expm1 log log2 "
    "log10 log1p logb sin cos tan sinpi cospi sinh cosh tanh erf erfc lgamma tgamma"
) | {
    "arcsin": "asinf asin",
    "arccos": "acosf acos",
    "arctan": "atanf atan",
    "arcsinh": "asinhf asinh",
    "arccosh": "acoshf acosh",
    "arctanh": "atanhf atanh",
    "sqrt_rn": "fsqrt_rn dsqrt_rn",
    "reciprocal_rn": "frcp_rn drcp_rn",
}
BINARY = alike("fmod remainder hypot copysign nextafter fdim fmax fmin") | {
    "power": "powf pow",
    "arctan2": "atan2f atan2",
    "divide_rn": "fdiv_rn ddiv_rn",
    "divide_rz": "fdiv_rz ddiv_rz",
    "divide_rd": "fdiv_rd ddiv_rd",
    "divide_ru": "fdiv_ru ddiv_ru",
    "add_rn": "fadd_rn dadd_rn",
    "subtract_rn": "fsub_rn dsub_rn",
    "multiply_rn": "fmul_rn dmul_rn",
}
TERNARY = {"fma": "fmaf fma", "fma_rn": "fmaf_rn fma_rn"}
TO_INT = {
    "isnan": "isnanf isnand",
    "isinf": "isinff isinfd",
    "isfinite": "finitef isfinited",
    "signbit": "signbitf signbitd",
    "ilogb": "ilogbf ilogb",
}
WITH_INT = {"power_int": "powif powi", "ldexp": "ldexpf ldexp", "scalbn": "scalbnf scalbn"}
# on fp32 only, less exact and quick
FAST = {
    **{f"fast_{name}": (f"fast_{name}f", 1) for name in "sin cos tan exp exp10 log log2 log10".split()},
    "fast_divide": ("fast_fdividef", 2),
    "fast_power": ("fast_powf", 2),
    "saturate": ("saturatef", 1),
}
INTEGERS = {
    "clz": Symbol("count_leading_zeros", ("i32",), "i32"),
    "clzll": Symbol("count_leading_zeros", ("i64",), "i32"),
    "popc": Symbol("bitwise_count", ("i32",), "i32"),
    "popcll": Symbol("bitwise_count", ("i64",), "i32"),
    "brev": Symbol("reverse_bits", ("i32",), "i32"),
    "brevll": Symbol("reverse_bits", ("i64",), "i64"),
    "ffs": Symbol("find_first_set", ("i32",), "i32"),
    "ffsll": Symbol("find_first_set", ("i64",), "i32"),
    "abs": Symbol("absolute", ("i32",), "i32"),
    "llabs": Symbol("absolute", ("i64",), "i64"),
    "mulhi": Symbol("multiply_high", ("i32", "i32"), "i32"),
    "umulhi": Symbol("multiply_high_unsigned", ("i32", "i32"), "i32"),
    "byte_perm": Symbol("chosen_bytes", ("i32", "i32", "i32"), "i32"),
    "llrintf": Symbol("rint_to_int", ("f32",), "i64"),
    "llrint": Symbol("rint_to_int", ("f64",), "i64"),
    "int_as_float": Symbol("bits", ("i32",), "f32"),
    "float_as_int": Symbol("bits", ("f32",), "i32"),
    "uint_as_float": Symbol("bits", ("i32",), "f32"),
    "float_as_uint": Symbol("bits", ("f32",), "i32"),
    "longlong_as_double": Symbol("bits", ("i64",), "f64"),
    "double_as_longlong": Symbol("bits", ("f64",), "i64"),
}


def _pairs(rows: dict, operands: str, result: str = "{0}") -> dict[str, Symbol]:
    """Return a symbol for fp32 and one for fp64 of each row. {0} is replaced by the type."""
    return {
        f"__nv_{name}": Symbol(function, tuple(operands.format(type).split()), result.format(type))
        for function, names in rows.items()
        for name, type in zip(names.split(), ("f32", "f64"), strict=True)
    }


SYMBOLS = {
    **_pairs(UNARY, "{0}"),
    **_pairs(BINARY, "{0} {0}"),
    **_pairs(TERNARY, "{0} {0} {0}"),
    **_pairs(TO_INT, "{0}", "i32"),
    **_pairs(WITH_INT, "{0} i32"),
    **{f"__nv_{name}": Symbol(function, ("f32",) * many, "f32") for function, (name, many) in FAST.items()},
    **{f"__nv_{name}": symbol for name, symbol in INTEGERS.items()},
}
