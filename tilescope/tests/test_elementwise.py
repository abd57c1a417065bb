"""Every operation that works lane by lane, by itself, against numpy's formula on awkward numbers."""

import math

import numpy as np
import pytest

from tilescope.machine import run as everything  # noqa: F401  (registers all operations)
from tilescope.machine.device_functions import FUNCTIONS
from tilescope.machine.errors import KernelError
from tilescope.machine.libdevice import SYMBOLS
from tilescope.machine.meanings import PURE
from tilescope.machine.tree import NUMPY, Op, Type

I32 = np.array([0, 1, -1, 7, -7, 5, 2**31 - 1, -(2**31), 123456789, -98765], np.int32)
J32 = np.array([3, -3, 2, 2, 2, -5, 7, 16, -1000, 31], np.int32)
F32 = np.array([0.0, -0.0, 1.5, -2.5, 3.0, np.inf, -np.inf, np.nan, 1e-40, 6e37], np.float32)
G32 = np.array([1.0, 2.0, -1.5, np.nan, 3.0, 1.0, np.inf, 1.0, 2.0, 10.0], np.float32)
POSITIVE = np.array([1e-30, 0.25, 1.0, 2.0, 3.7, 10.0, 88.0, 1000.0, 2.5, 0.1], np.float32)


def apply(name: str, *values, out=None, **attributes):
    """The operation on vectors (or scalars) of one program, as the machine performs it."""
    scalar_of = {dtype: name for name, dtype in NUMPY.items() if name != "index"}
    types = [Type(scalar_of[np.asarray(v).dtype], np.shape(v)) for v in values]
    result = types[0] if out is None else Type(out, types[0].shape)
    op = Op(name, ["%r"], [f"%{i}" for i in range(len(values))], attributes, [], types, [result], line=3)
    with np.errstate(all="ignore"):
        found = PURE[name](op)(*(np.asarray(v)[None] for v in values))
    return tuple(f[0] for f in found) if isinstance(found, tuple) else found[0]


def same(found, wanted):
    wanted = np.asarray(wanted).astype(found.dtype)
    kind = f"u{found.dtype.itemsize}"
    both_nan = np.isnan(found) & np.isnan(wanted) if found.dtype.kind not in "iub" else False
    assert ((found.view(kind) == wanted.view(kind)) | both_nan).all(), (found, wanted)


def c_divide(a, b):
    return [int(math.trunc(int(x) / int(y))) if abs(int(x)) < 2**52 else 0 for x, y in zip(a, b, strict=True)]


def u(x):
    return x.view(np.uint32)


def wrap(values):
    return np.array([v & 0xFFFFFFFF for v in values], np.uint32).view(np.int32)


INTEGERS = {
    "arith.addi": lambda a, b: wrap(int(x) + int(y) for x, y in zip(a, b, strict=True)),
    "arith.subi": lambda a, b: wrap(int(x) - int(y) for x, y in zip(a, b, strict=True)),
    "arith.muli": lambda a, b: wrap(int(x) * int(y) for x, y in zip(a, b, strict=True)),
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.maxsi": lambda a, b: np.where(a > b, a, b),
    "arith.minsi": lambda a, b: np.where(a < b, a, b),
    "arith.maxui": lambda a, b: np.where(u(a) > u(b), a, b),
    "arith.minui": lambda a, b: np.where(u(a) < u(b), a, b),
    "arith.divsi": lambda a, b: np.array(c_divide(a, b), np.int32),
    "arith.remsi": lambda a, b: a - np.array(c_divide(a, b), np.int64) * b,
    "arith.divui": lambda a, b: (u(a) // u(b)).view(np.int32),
    "arith.remui": lambda a, b: (u(a) % u(b)).view(np.int32),
    "tt.mulhiui": lambda a, b: wrap(int(x) * int(y) >> 32 for x, y in zip(u(a), u(b), strict=True)),
}
FLOATS = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": lambda a, b: a / b,
    "tt.precise_divf": lambda a, b: a / b,
    "arith.remf": np.fmod,
    "arith.maxnumf": lambda a, b: np.where(np.isnan(a), b, np.where(np.isnan(b), a, np.where(a > b, a, b))),
    "arith.minnumf": lambda a, b: np.where(np.isnan(a), b, np.where(np.isnan(b), a, np.where(a < b, a, b))),
    "arith.maximumf": lambda a, b: np.where(np.isnan(a + b - b), a + b, np.where(a > b, a, b)),
    "arith.minimumf": lambda a, b: np.where(np.isnan(a) | np.isnan(b), np.nan, np.where(a < b, a, b)),
}
UNARY = {
    "arith.negf": lambda x: -x,
    "math.absf": abs,
    "math.floor": math.floor,
    "math.ceil": math.ceil,
    "math.exp": math.exp,
    "math.exp2": lambda x: 2.0**x,
    "math.log": math.log,
    "math.log2": math.log2,
    "math.sin": math.sin,
    "math.cos": math.cos,
    "math.sqrt": math.sqrt,
    "tt.precise_sqrt": math.sqrt,
    "math.rsqrt": lambda x: 1 / math.sqrt(x),
    "math.erf": math.erf,
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    same(apply(name, I32, J32), INTEGERS[name](I32, J32))


@pytest.mark.parametrize("name", sorted(FLOATS.keys() - {"arith.maximumf"}))
def test_floats(name):
    with np.errstate(all="ignore"):
        same(apply(name, F32, G32), FLOATS[name](F32, G32))


def test_the_maximum_that_keeps_nan():
    same(apply("arith.maximumf", F32, G32), np.maximum(F32, G32))
    assert np.isnan(apply("arith.maximumf", F32, G32)[[3, 7]]).all()


@pytest.mark.parametrize("name", UNARY)
def test_functions(name):
    x = POSITIVE[POSITIVE < 80] if "exp" in name else POSITIVE
    found, wanted = apply(name, x), [UNARY[name](float(v)) for v in x]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=3e-7, atol=1e-7)


def test_what_has_no_value_is_nan_and_never_an_exception():
    same(apply("math.log", np.float32([-1, 0])), [np.nan, -np.inf])
    same(apply("math.sqrt", np.float32([-1, np.inf])), [np.nan, np.inf])
    same(apply("math.exp", np.float32([1000, -1000])), [np.inf, 0])


def test_fused_rounds_once():
    a, b, c = np.float32([1 + 2**-12]), np.float32([1 + 2**-12]), np.float32([-(1 + 2**-11)])
    assert apply("math.fma", a, b, c)[0] == np.float32(2**-24)  # a product rounded by itself leaves 0


def test_clamp_drops_a_nan_unless_told_to_keep_it():
    x, low, high = np.float32([np.nan, -5, 5, 0.5]), np.zeros(4, np.float32), np.ones(4, np.float32)
    same(apply("tt.clampf", x, low, high, propagateNan=0), [0, 0, 1, 0.5])
    same(apply("tt.clampf", x, low, high, propagateNan=0xFFFF), [np.nan, 0, 1, 0.5])


def test_absolute_of_the_least_integer_wraps():
    same(apply("math.absi", I32), wrap(abs(int(x)) for x in I32))


@pytest.mark.parametrize(
    "name, of",
    [
        ("shli", lambda x, n: x << n),
        ("shrsi", lambda x, n: x >> n),
        ("shrui", lambda x, n: (x & 0xFFFFFFFF) >> n),
    ],
)
def test_shifts_also_of_negatives_and_past_the_width(name, of):
    n = np.array([0, 1, 31, 4, 3, 2, 8, 31, 32, 200], np.int32)
    same(apply(f"arith.{name}", I32, n), wrap(of(int(x), int(k)) for x, k in zip(I32, n, strict=True)))


def test_a_scalar_divided_by_zero_is_told_and_a_lane_holds_all_ones():
    with pytest.raises(KernelError, match=r"divided by zero \(line 3\)"):
        apply("arith.divsi", np.int32(4), np.int32(0))
    same(apply("arith.divsi", np.int32([4, 9]), np.int32([0, 2])), [-1, 4])


SIGNED = [
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
]


@pytest.mark.parametrize("predicate", range(10))
def test_comparisons_of_integers(predicate):
    wanted = SIGNED[predicate](I32, J32) if predicate < 6 else SIGNED[predicate - 4](u(I32), u(J32))
    same(apply("arith.cmpi", I32, J32, out="i1", predicate=predicate), wanted)


def test_true_is_minus_one_where_signs_count():
    a, b = np.array([True, False]), np.array([False, False])
    same(apply("arith.cmpi", a, b, out="i1", predicate=2), [True, False])
    same(apply("arith.extsi", a, out="i32"), [-1, 0])
    same(apply("arith.extui", a, out="i32"), [1, 0])
    same(apply("arith.addi", a, a), [False, False])


@pytest.mark.parametrize(
    "name", "addi subi muli andi ori xori maxsi minsi maxui minui divsi divui remui shli shrui shrsi".split()
)
def test_truth_values_stay_truth_values(name):
    a, b = np.array([True, True, False]), np.array([True, False, True])
    found = apply(f"arith.{name}", a, b)
    assert found.dtype == bool and found.shape == (3,)


@pytest.mark.parametrize("predicate", range(16))
def test_comparisons_of_floats(predicate):
    """As a sum: equal 1, greater 2, less 4, unordered 8; MLIR counts 8 to 14 from "unordered or equal" on."""
    bits = {14: 8, 15: 15}.get(predicate, predicate + (predicate > 7))

    def one(a, b):
        state = 8 if math.isnan(a) or math.isnan(b) else 1 if a == b else 2 if a > b else 4
        return bool(bits & state)

    wanted = [one(float(a), float(b)) for a, b in zip(F32, G32, strict=True)]
    same(apply("arith.cmpf", F32, G32, out="i1", predicate=predicate), wanted)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_both_halves_of_a_product(dtype, signed):
    rng, bits = np.random.default_rng(5), 8 * np.dtype(dtype).itemsize
    a, b = (rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 50, dtype) for _ in range(2))
    low, high = apply("arith.mulsi_extended" if signed else "arith.mului_extended", a, b)
    for x, y, l, h in zip(a, b, low, high, strict=True):
        x, y = (int(v) if signed else int(v) % 2**bits for v in (x, y))
        assert (x * y) % 2**bits == int(l) % 2**bits
        assert (x * y >> bits) % 2**bits == int(h) % 2**bits
        if not signed and bits == 64:
            assert int(
                apply(
                    "tt.mulhiui", np.array([x], np.uint64).view(dtype), np.array([y], np.uint64).view(dtype)
                )[0]
            ) == int(h)


def test_a_sum_and_its_carry():
    total, carry = apply("arith.addui_extended", np.int32([-1, -1, 5]), np.int32([1, -1, 6]))
    same(total, [0, -2, 11])
    same(carry, [True, True, False])


def test_widths_signs_and_bits():
    same(apply("arith.trunci", np.int32([300, -300, 255]), out="i8"), [44, -44, -1])
    same(apply("arith.trunci", np.int32([2, 3]), out="i1"), [False, True])
    same(apply("arith.extsi", np.int8([-1, 5]), out="i64"), [-1, 5])
    same(apply("arith.extui", np.int8([-1, 5]), out="i64"), [255, 5])
    same(apply("arith.index_cast", np.int32([-3]), out="i64"), [-3])
    same(apply("arith.index_castui", np.int32([3]), out="i64"), [3])
    same(apply("arith.bitcast", np.float32([1.0]), out="i32"), [0x3F800000])
    same(apply("tt.bitcast", np.int32([0x40000000]), out="f32"), [2.0])


def test_a_choice_by_lane_and_by_one_condition():
    c = np.array([True, False, True])
    same(apply("arith.select", c, np.int32([1, 2, 3]), np.int32([4, 5, 6]), out="i32"), [1, 5, 3])
    op = Op(
        "arith.select",
        ["%r"],
        ["%c", "%a", "%b"],
        {},
        [],
        [Type("i1"), Type("i32", (2,)), Type("i32", (2,))],
        [Type("i32", (2,))],
    )
    found = PURE["arith.select"](op)(np.array([True, False]), np.int32([[1, 2]]), np.int32([[3, 4]]))
    assert found.tolist() == [[1, 2], [3, 4]]  # two programs


OF_DEVICE = {
    "rint": ([0.5, 1.5, -2.5], [0, 2, -2]),
    "round": ([0.5, -1.5, 2.4999998], [1, -2, 2]),
    "trunc": ([-1.7, 1.7], [-1, 1]),
    "erfc": ([0.0, 1.0], [1, math.erfc(1)]),
    "lgamma": ([0.5, -1.0], [math.lgamma(0.5), math.inf]),
    "tgamma": ([5.0, 0.0], [24, math.inf]),
    "cbrt": ([27.0, -8.0], [3, -2]),
    "rcbrt": ([8.0], [0.5]),
    "exp10": ([2.0, -1.0], [100, 0.1]),
    "logb": ([8.0, 0.3], [3, -2]),
    "sinpi": ([0.5, 1.0, 2.0], [1, 0, 0]),
    "cospi": ([0.5, 1.0], [0, -1]),
    "saturate": ([2.0, -1.0, math.nan, 0.25], [1, 0, 0, 0.25]),
    "isnan": ([math.nan, 1.0], [1, 0]),
    "isinf": ([math.inf, 1.0], [1, 0]),
    "isfinite": ([math.inf, 1.0], [0, 1]),
    "signbit": ([-0.0, 1.0], [1, 0]),
    "ilogb": ([8.0, 0.3], [3, -2]),
    "tanh": ([0.5], [math.tanh(0.5)]),
    "arctanh": ([0.5], [math.atanh(0.5)]),
    "nearbyint": ([2.5], [2]),
    "expm1": ([1e-6], [math.expm1(1e-6)]),
}


def symbol_of(function: str) -> str:
    return next(name for name, s in SYMBOLS.items() if s.function == function and s.operands[0] == "f32")


@pytest.mark.parametrize("function", OF_DEVICE)
def test_device_functions(function):
    x, wanted = OF_DEVICE[function]
    found = apply(
        "tt.extern_elementwise",
        np.float32(x),
        symbol=symbol_of(function),
        out=SYMBOLS[symbol_of(function)].result,
    )
    np.testing.assert_allclose(found.astype(float), wanted, rtol=5e-7, atol=2e-7)


def test_device_functions_of_two_and_three():
    one, three = np.float32([1.0]), np.float32([3.0])
    call = lambda name, *x: apply("tt.extern_elementwise", *x, symbol=f"__nv_{name}")[0]  # noqa: E731
    down, up = call("fdiv_rd", one, three), call("fdiv_ru", one, three)
    assert float(down) < 1 / 3 < float(up) and np.nextafter(down, np.float32(1)) == up
    assert call("fdiv_rz", -one, three) == -down and call("fdiv_rn", one, three) == np.float32(1 / 3)
    assert call("remainderf", np.float32([5.0]), three) == -1 and call("fmodf", np.float32([5.0]), three) == 2
    assert np.isnan(call("remainderf", one, np.float32([0.0])))
    assert call("fdimf", three, one) == 2 and call("fdimf", one, three) == 0
    assert call("powif", three, np.int32([3])) == 27 and call("ldexpf", three, np.int32([4])) == 48
    assert call("fmaf", three, three, one) == 10 and call("hypotf", three, np.float32([4.0])) == 5


def test_device_functions_of_integers():
    call = lambda name, x: apply("tt.extern_elementwise", np.int32([x]), symbol=f"__nv_{name}")[0]  # noqa: E731
    assert [call("clz", x) for x in (0, 1, -1, 255)] == [32, 31, 0, 24]
    assert [call("popc", x) for x in (0, 255, -1)] == [0, 8, 32]
    assert [call("ffs", x) for x in (0, 1, 8, -(2**31))] == [0, 1, 4, 32]
    assert call("brev", 1) == -(2**31) and call("brev", -(2**31)) == 1
    wide = apply("tt.extern_elementwise", np.int32([2**30]), np.int32([8]), symbol="__nv_mulhi")
    assert wide[0] == 2


def test_bytes_chosen_by_nibbles():
    def chosen(*words):
        words = (np.array([w], np.uint32).view(np.int32) for w in words)
        return int(u(apply("tt.extern_elementwise", *words, symbol="__nv_byte_perm"))[0])

    a, b = 0x33221100, 0x77665544
    assert chosen(a, b, 0x3210) == a and chosen(a, b, 0x7654) == b
    assert chosen(a, b, 0x0074) == 0x00007744 and chosen(a, b, 0x5140) == 0x55114400
    assert chosen(a, b, 0xABCD3210) == a, "the upper half of a selector is not looked at"
    assert chosen(a, b, 0xBA98) == a, "nor is the highest bit of a nibble"


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_every_symbol_computes_something(symbol):
    row = SYMBOLS[symbol]
    values = [np.array([2, 3], NUMPY[t]) for t in row.operands]
    found = apply("tt.extern_elementwise", *values, symbol=symbol, out=row.result)
    assert found.dtype == NUMPY[row.result] and found.shape == (2,)
    assert row.function == "bits" or row.function in FUNCTIONS
