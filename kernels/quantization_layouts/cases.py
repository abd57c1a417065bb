"""List the cases on which the kernels are tested and timed. Each odd case gives a reason."""

from dataclasses import dataclass

import numpy as np

from kernels.quantization_layouts import reference
from kernels.quantization_layouts.kbit_tables import MOE_EXPERTS, SHAPES
from kernels.tensors import DTYPES


@dataclass(frozen=True)
class Case:
    m: int  # rows of X, of each expert
    n: int
    k: int
    bits: int = 4
    kind: str = "int4"  # or "book"
    group: int = 128
    zero_points: bool = False
    dtype: str = "fp16"
    experts: int = 1
    mode: str = "cold"
    quick: bool = False
    why: str = ""

    @property
    def form(self) -> str:
        return (
            f"int4 g{self.group}" + " zero" * self.zero_points
            if self.kind == "int4"
            else f"k{self.bits} b{self.group}"
        )

    @property
    def name(self) -> str:
        many = f"{self.experts} x " if self.experts > 1 else ""
        return f"{many}{self.m} x {self.n} x {self.k} {self.form} {self.dtype}"


def usual_group(form) -> int:
    """Return a form's usual group. Most integers without zero points are packed so."""
    return 128 if form == "int4" else 32


def book(m, n, k, bits, group=32, **more) -> Case:
    return Case(m, n, k, bits, "book", group, **more)


CORRECT = (
    Case(1, 64, 128),
    Case(3, 70, 384, why="N is no multiple of a tile, K of no run"),
    Case(4, 32, 256, group=32, zero_points=True, why="zero points, and several groups in one vector"),
    Case(5, 17, 192, group=64, dtype="bf16", why="one row beyond a brick"),
    Case(2, 130, 96, group=32, why="K ends inside a vector of 64 columns"),
    Case(9, 64, 256, zero_points=True, dtype="bf16", why="more rows than eight columns of a tensor core"),
    book(1, 48, 256, 2),
    book(2, 65, 96, 3, why="a last bit in vectors of 256 columns, K of 96"),
    book(4, 40, 160, 4, dtype="bf16"),
    book(3, 33, 224, 5, group=32),
    book(7, 64, 256, 5, group=128, dtype="bf16"),
    book(2, 24, 128, 3, group=64),
)
MANY_ROWS = (
    Case(33, 70, 192, group=64, why="a ragged tile of either side"),
    Case(20, 130, 96, group=32, zero_points=True, dtype="bf16"),
    book(18, 66, 160, 2),
    book(40, 64, 96, 3, dtype="bf16"),
    book(17, 129, 128, 4, group=128),
    book(65, 32, 64, 5),
)
GROUPED = (
    Case(2, 40, 128, experts=3),
    Case(3, 24, 64, group=32, zero_points=True, dtype="bf16", experts=2),
    book(1, 48, 96, 3, experts=4),
    book(2, 33, 64, 4, dtype="bf16", experts=3),
    book(2, 32, 64, 5, experts=2),
)


def rot(m, shape, bits, **more) -> Case:
    n, k = SHAPES[shape]
    experts = MOE_EXPERTS if shape.startswith("moe") else 1
    return book(m, n, k, bits, experts=experts, mode="rotate", **more)


DENSE = ("gateup", "down", "Q", "O", "KV")
TIMED = (
    *(Case(m, 28672, 8192, dtype="bf16", quick=m in (1, 16)) for m in (1, 4, 16, 64, 256)),
    *(Case(m, 4096, 4096, dtype="bf16") for m in (1, 16)),
    Case(1, 28672, 8192, group=32, zero_points=True, why="four times the scales, and zero points"),
    *(rot(m, shape, 4, quick=shape == "gateup") for shape in DENSE for m in (1, 4, 16, 64)),
    *(rot(m, "gateup", 4) for m in (256, 1024)),
    *(rot(m, shape, 4, quick=m == 1) for shape in ("moe_gu", "moe_dn") for m in (1, 4, 16, 64, 512)),
    *(rot(m, "gateup", bits) for bits in (2, 3, 5) for m in (1, 4)),
    *(rot(1, "moe_gu", bits) for bits in (2, 3, 5)),
)


def quantized(case: Case, seed: int = 0):
    """One quantized weight for each expert."""
    rng = np.random.default_rng(seed)
    for _ in range(case.experts):
        w = rng.standard_normal((case.n, case.k), np.float32)
        if case.kind == "int4":
            yield reference.quantize_int4(w, case.group, case.zero_points, case.dtype)
        else:
            yield reference.quantize_kbit(w, case.bits, case.group, case.dtype)


def activations(case: Case, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed + 1)
    return rng.standard_normal((case.experts * case.m, case.k), np.float32).astype(DTYPES[case.dtype])
