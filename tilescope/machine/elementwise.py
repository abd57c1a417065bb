"""Compute floats lane by lane: arithmetic, comparisons, functions.
Also select or reinterpret lanes of any type."""

import numpy as np

from .erf import erf
from .meanings import pure
from .narrow import in_fp32
from .numbers_of import constant, integer
from .tree import NUMPY, Op

ARITHMETIC = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.negf": np.negative,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "tt.precise_divf": np.divide,
}
FUNCTIONS = {
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.log": np.log,
    "math.log2": np.log2,
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.sqrt": np.sqrt,
    "math.rsqrt": lambda x: 1 / np.sqrt(x),
    "tt.precise_sqrt": np.sqrt,
    "math.absf": np.abs,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.erf": erf,
}


@pure(*ARITHMETIC)
@in_fp32
def arithmetic(op: Op):
    return ARITHMETIC[op.name]


@pure(*FUNCTIONS)
@in_fp32
def function_of_floats(op: Op):
    compute, to = FUNCTIONS[op.name], op.result_types[0].dtype
    return lambda *x: compute(*x).astype(to, copy=False)


@pure("math.fma")
@in_fp32
def fused(op: Op):
    """Round once: fp64 holds the product of two fp32, longdouble nearly that of two fp64."""
    to = op.result_types[0].dtype
    wide = np.longdouble if to == np.float64 else np.float64
    return lambda a, b, c: (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(to)


@pure("tt.clampf")
@in_fp32
def clamp(op: Op):
    """Perform tl.clamp. NaN is dropped, or kept if the operation says so."""
    keeps_nan = integer(op, "propagateNan", 0) != 0
    if keeps_nan:
        return lambda x, low, high: np.minimum(np.maximum(x, low), high)
    return lambda x, low, high: np.fmin(np.fmax(x, low), high)


ORDERED = {1: np.equal, 2: np.greater, 3: np.greater_equal, 4: np.less, 5: np.less_equal}


def _neither(a, b):
    return np.isnan(a) | np.isnan(b)


@pure("arith.cmpf")
@in_fp32
def compare(op: Op):
    """Compare. With a NaN, predicates 1 to 6 are false and 8 to 13 true (oeq ogt oge olt ole one, then ueq
    ugt uge ult ule une)."""
    predicate = integer(op, "predicate")
    if predicate in (0, 15):
        return lambda a, b: np.full(np.broadcast_shapes(a.shape, b.shape), predicate == 15)
    if predicate in ORDERED:
        return ORDERED[predicate]
    if predicate - 7 in ORDERED:
        return lambda a, b: ORDERED[predicate - 7](a, b) | _neither(a, b)
    return {
        6: lambda a, b: (a != b) & ~_neither(a, b),
        7: lambda a, b: ~_neither(a, b),
        13: lambda a, b: (a != b) | _neither(a, b),
        14: _neither,
    }[predicate]


@pure("arith.constant")
def constant_value(op: Op):
    value = constant(op)
    return lambda: value


@pure("ub.poison")
def no_value(op: Op):
    type = op.result_types[0]
    value = np.zeros((1,) * (1 + len(type.shape)), type.dtype)
    return lambda: value


@pure("arith.select")
def select(op: Op):
    return lambda c, a, b: np.where(c.reshape(c.shape + (1,) * (a.ndim - c.ndim)), a, b)


@pure("arith.bitcast", "tt.bitcast")
def same_bits(op: Op):
    to = op.result_types[0]
    if to.element:
        return lambda x: x
    return lambda x: np.ascontiguousarray(x).view(to.dtype)


@pure("tt.ptr_to_int", "tt.int_to_ptr")
def pointer_as_number(op: Op):
    return lambda x: x.astype(np.int64)


@pure("tt.addptr")
def add_to_pointer(op: Op):
    size = NUMPY[op.operand_types[0].element].itemsize
    if size == 1:
        return np.add
    return lambda pointer, offset: pointer + offset.astype(np.int64) * size
