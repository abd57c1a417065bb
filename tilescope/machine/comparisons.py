"""Find the constants that a kernel compares numbers with.

A cut-off, a clamp and a special case all look like this: a number from memory is compared with one that the text of the
kernel holds. A number that a constant was added to counts as compared with this constant, whatever stands on the
other side. Rounding to whole numbers compares, too.
"""

import math
from dataclasses import dataclass

import numpy as np

from .tree import Op

BETWEEN_TWO = (
    "cmpf",
    "cmpi",
    "maxsi",
    "minsi",
    "maxui",
    "minui",
    "maximumf",
    "minimumf",
    "maxnumf",
    "minnumf",
)
COMPARING = {"tt.clampf", *(f"arith.{name}" for name in BETWEEN_TWO)}
OF_A_LIBRARY = ("fmax", "fmin", "fdim")
ROUNDING = {
    *(f"math.{name}" for name in ("floor", "ceil", "trunc", "rint", "round", "roundeven")),
    *("arith.fptosi", "arith.fptoui"),
}
ROUNDING_OF_A_LIBRARY = (
    "floor",
    "ceil",
    "trunc",
    "rint",
    "round",
    "nearbyint",
    "2int",
    "2uint",
    "2ll",
    "2ull",
)
SHIFTING = {f"arith.{name}" for name in ("addf", "subf", "addi", "subi")}
NOTED = COMPARING | ROUNDING
NOTED_OF_A_LIBRARY = *OF_A_LIBRARY, *ROUNDING_OF_A_LIBRARY
# hands a number on, in another shape or format
KEEPING = {
    *(
        f"tt.{name}"
        for name in ("splat", "broadcast", "expand_dims", "reshape", "trans", "bitcast", "fp_to_fp")
    ),
    *(
        f"arith.{name}"
        for name in ("extf", "truncf", "sitofp", "uitofp", "bitcast", "extsi", "extui", "trunci")
    ),
}
TELLING = "arith.cmpf", "arith.cmpi"  # decide something, where a maximum of two only is one of them
UNKNOWN = "another number"
SCALAR = "a scalar"  # or what is made of scalars and constants alone, such as 5 * softcap
WHOLE = "whole numbers"  # with which rounding compares a number


@dataclass(frozen=True, order=True)
class Comparison:
    """Say that numbers of a tensor, or a scalar, are compared with a constant. `source` is a place among the parameters."""

    line: int
    source: int
    constant: str  # or nothing, where numbers from memory are compared with one another
    reduced: bool = False  # whether a maximum, a sum or a product of many numbers is compared


def of_constant(op: Op) -> str:
    """Return what an arith.constant holds, as text, or nothing for unlike numbers."""
    held = np.atleast_1d(np.asarray(op.attributes.get("value"))).astype(np.float64).ravel()
    first = held[0]
    if math.isnan(first):
        return "nan" if np.isnan(held).all() else ""
    return f"{first + 0.0:g}" if (held == first).all() else ""


class Comparisons:
    """Collect the comparisons of a module. What a loop carries is known only in the end, so each operation adds to what it
    is known to compare, and is looked at when all are."""

    def __init__(self, scalars: frozenset[int] = frozenset()):
        self.known: dict[int, tuple[Op, list]] = {}
        self.scalars = scalars

    def note(self, op: Op, facts: list) -> None:
        """Add what an operation's operands depend on, if it compares them."""
        if op.name in NOTED or of_a_library(op, NOTED_OF_A_LIBRARY):
            before = self.known.get(id(op), (op, [(frozenset(),) * 3] * len(facts)))[1]
            now = [
                (one.sources, frozenset({one.constant} - {""}), frozenset([True] * one.reduced))
                for one in facts
            ]
            both = [
                tuple(a | b for a, b in zip(*pair, strict=True)) for pair in zip(before, now, strict=True)
            ]
            self.known[id(op)] = op, both

    def rows(self) -> list[Comparison]:
        """Return all comparisons of numbers with constants."""
        found = set()
        for op, operands in self.known.values():
            sources, constants, reduced = (frozenset().union(*each) for each in zip(*operands, strict=True))
            if op.name in ROUNDING or of_a_library(op, ROUNDING_OF_A_LIBRARY):
                constants = frozenset([WHOLE])
            elif any(not of and not each for of, each, _ in operands):
                constants |= {UNKNOWN}
            elif any(of and of <= self.scalars for of, _, _ in operands) and not sources <= self.scalars:
                constants |= {SCALAR}
            elif op.name in TELLING and not constants:
                constants = frozenset([""])
            many = bool(reduced) and op.name in TELLING
            found |= {Comparison(op.line, one, constant, many) for one in sources for constant in constants}
        return sorted(found)


def of_a_library(op: Op, names: tuple[str, ...]) -> bool:
    """Return whether an operation calls one of these functions of NVIDIA's library."""
    symbol = str(op.attributes.get("symbol", "")) if op.name == "tt.extern_elementwise" else ""
    return any(name in symbol for name in names)


def constant_of(op: Op, facts: list) -> str:
    """Return the constant that a result is, or that was added to it, or nothing."""
    if op.name == "arith.constant":
        return of_constant(op)
    if op.name in KEEPING and len(facts) == 1:
        return facts[0].constant
    if op.name in SHIFTING and sum(bool(one.sources) for one in facts) == 1:
        return next(one.constant for one in facts if not one.sources)
    return ""
