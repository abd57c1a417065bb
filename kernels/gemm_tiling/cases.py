"""List the cases on which the kernels are tested and timed. Each odd case gives a reason."""

import math
from dataclasses import dataclass

import numpy as np

from kernels.tensors import DTYPES

SCALE_BLOCK = 128


@dataclass(frozen=True)
class Case:
    m: int
    n: int
    k: int
    dtype: str = "fp16"
    a: str = "rows"  # its memory layout, see kernels.tensors.laid_out
    b: str = "rows"
    why: str = ""

    @property
    def name(self) -> str:
        return f"{self.m} x {self.n} x {self.k} {self.dtype} {self.a}/{self.b}"


CORRECT = (
    Case(64, 64, 64),
    Case(128, 256, 128, b="columns", why="b as a linear layer stores its weight: contiguous along K"),
    Case(127, 65, 129, why="no side is a multiple of any block"),
    Case(130, 70, 50, "fp32", why="fp32 operands"),
    Case(96, 200, 100, "bf16", "columns", "columns", "both operands transposed in memory"),
    Case(70, 90, 33, a="padded", b="padded", why="rows with a gap between them"),
    Case(66, 66, 40, a="every second", b="every second", why="no dimension is contiguous"),
    Case(100, 100, 1, why="K = 1: an outer product"),
    Case(1, 100, 70, b="columns", why="M = 1: a GEMV over rows of the weight"),
    Case(1, 70, 100, why="M = 1 where the weight is contiguous along N"),
    Case(5, 130, 200, b="columns", why="a few rows: the weight streams through as the tile's rows"),
    Case(130, 3, 65, why="a few columns"),
    Case(1, 1, 1, why="one product"),
    Case(300, 33, 4100, "bf16", why="a long sum: a 16-bit accumulator would show"),
)

BLOCK_SCALED = (
    Case(64, 128, 256, "fp8", b="columns"),
    Case(70, 130, 200, "fp8", b="columns", why="ragged blocks of scales in every direction"),
    Case(33, 64, 128, "fp8", why="b contiguous along N"),
    Case(1, 128, 1024, "fp8", b="columns", why="one row, a long sum"),
)

TIMED = (
    Case(4096, 4096, 4096, "bf16", b="columns"),
    Case(4096, 4096, 4096, "bf16"),
    Case(8192, 8192, 8192, "bf16", b="columns"),
    Case(8192, 8192, 8192, "bf16"),
    Case(512, 14336, 4096, "bf16", b="columns", why="a prefill chunk through an MLP's first matrix"),
    Case(1024, 1024, 1024, "bf16", b="columns", why="32 tiles for 132 multiprocessors"),
    Case(1023, 1023, 1023, "bf16", why="odd everywhere, and hardly worth a copy"),
    Case(2047, 2049, 2051, "bf16", why="odd everywhere: no copy engine, masked loads"),
    Case(16, 28672, 8192, "bf16", b="columns", why="a decode batch of 16"),
    Case(1, 28672, 8192, "bf16", b="columns", why="decode of one sequence: a GEMV"),
)

TIMED_BLOCK_SCALED = (
    Case(4096, 4096, 4096, "fp8", b="columns"),
    Case(8192, 8192, 8192, "fp8", b="columns"),
    Case(4096, 7168, 2048, "fp8", b="columns", why="a projection of DeepSeek-V3"),
    Case(64, 7168, 4096, "fp8", b="columns", why="a decode batch of 64: 56 tiles of 128 columns"),
)


def operands(case: Case, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    dtype = DTYPES[case.dtype]
    a = rng.standard_normal((case.m, case.k), np.float32).astype(dtype)
    b = rng.standard_normal((case.k, case.n), np.float32).astype(dtype)
    return a, b


def scales(case: Case, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """One for each 1 x 128 piece of A and each 128 x 128 block of B, over several powers of two."""
    rng = np.random.default_rng(seed + 1)
    steps, blocks = math.ceil(case.k / SCALE_BLOCK), math.ceil(case.n / SCALE_BLOCK)
    sa = 2.0 ** rng.uniform(-3, 3, (case.m, steps))
    sb = 2.0 ** rng.uniform(-3, 3, (steps, blocks))
    return sa.astype(np.float32), sb.astype(np.float32)
