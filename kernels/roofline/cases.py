"""List the cases on which LayerNorm(GELU(x)) is tested and timed. Each odd case gives a reason."""

from dataclasses import dataclass

import numpy as np

from kernels.tensors import DTYPES


@dataclass(frozen=True)
class Case:
    rows: int
    cols: int
    dtype: str = "fp32"
    values: str = "normal"
    padded: bool = False  # rows with a gap between them
    why: str = ""

    @property
    def name(self) -> str:
        return f"{self.rows} x {self.cols} {self.dtype} {self.values}" + " padded" * self.padded


CORRECT = (
    Case(4, 128),
    Case(3, 1000, "fp16", why="1000: not a power of two, so lanes past the end must not count"),
    Case(5, 1, why="one column: the variance is 0 and eps alone keeps it finite"),
    Case(1, 4099, "bf16", why="a single row, a prime length"),
    Case(7, 96, padded=True, why="rows with a gap between them"),
    Case(3, 300, values="offset", why="a mean far larger than the spread: sum of squares would cancel"),
    Case(3, 300, values="tails", why="arguments from -30 to 30: GELU's tail is 0, not NaN"),
    Case(2, 64, values="constant", why="all equal: variance 0"),
)

TIMED = (
    Case(16384, 4096, "bf16"),
    Case(8192, 8192, "bf16"),
    Case(13107, 5120, "bf16", why="5120: between two powers of two"),
    Case(5461, 12288, "bf16", why="12288: the same, and long"),
    Case(4096, 14336, "bf16", why="14336: seven pieces of 2048"),
    Case(65536, 1024, "bf16", why="short rows"),
    Case(262144, 256, "bf16", why="rows that a program takes four at a time"),
    Case(2340, 28672, "bf16", why="the longest that one SM's registers hold"),
    Case(2048, 32768, "bf16", why="too long for one SM: spread over a cluster of eight"),
    Case(1024, 65536, "bf16", why="the same, twice as long"),
)


def draw(case: Case, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw x, weight and bias. x may be part of a wider tensor whose gap holds NaN."""
    rng = np.random.default_rng(seed)
    dtype = DTYPES[case.dtype]
    shape = (case.rows, case.cols)
    x = {
        "normal": lambda: 2 * rng.standard_normal(shape),
        "offset": lambda: 1000 + rng.standard_normal(shape),
        "tails": lambda: rng.uniform(-30, 30, shape),
        "constant": lambda: np.full(shape, 0.7),
    }[case.values]()
    home = np.full((case.rows, case.cols + 24 * case.padded), np.nan, np.float32).astype(dtype)
    home[:, : case.cols] = x.astype(np.float32).astype(dtype)
    vectors = rng.standard_normal((2, case.cols)).astype(np.float32).astype(dtype)
    return home[:, : case.cols], vectors[0], vectors[1]
