"""Count the bytes of the packed layout and of its kernels: padding, and X read again by each program."""

import math
from dataclasses import dataclass

from kernels import require

ROW_STEP, BRICK_ROWS = (
    128,
    16,
)  # rows are padded to whole tiles of the tallest kernel, while a brick is the smallest
SPANS = {2: (128,), 3: (128, 256), 4: (64,), 5: (64, 256)}  # columns that 16 bytes of a lane cover, by field
FIELDS = {2: (2,), 3: (2, 1), 4: (4,), 5: (4, 1)}
# Integer instructions a weight (logic, shifts, byte look-ups) as assembled for sm_90. A test counts them again.
UNPACK = {"int4": 0.9, 2: 1.4, 3: 1.6, 4: 3.0, 5: 5.4}


@dataclass(frozen=True)
class Moved:
    """Hold the bytes that the programs of one launch request. For all but the first program, X comes from the L2."""

    words: float
    scales: float
    x: float
    y: float

    @property
    def weights(self) -> float:
        return self.words + self.scales


def up(size: int, step: int) -> int:
    return math.ceil(size / step) * step


def packed_bytes(
    n: int, k: int, bits: int, group: int, zero_points: bool = False, codebook: bool = False
) -> float:
    """Return the memory of one packed weight, with rows and columns padded to whole tiles and vectors."""
    require.count(n=n, k=k, group=group)
    require.one_of(tuple(SPANS), bits=bits)
    rows = up(n, ROW_STEP)
    words = sum(rows * up(k, span) * field / 8 for span, field in zip(SPANS[bits], FIELDS[bits], strict=True))
    scales = rows * math.ceil(k / group) * (2 + zero_points)
    return words + scales + (2 * 2**bits if codebook else 0)


def stream_bytes(m: int, n: int, k: int, bits: int, group: int, *, bricks: int = 1, cols: int = 8) -> Moved:
    """Count a launch of the streaming kernel for one expert. A program reads 16 rows (or more bricks) of W, and its
    rows of X."""
    require.count(m=m, n=n, k=k, group=group, bricks=bricks, cols=cols)
    require.one_of(tuple(SPANS), bits=bits)
    tiles, passes = math.ceil(n / (BRICK_ROWS * bricks)), math.ceil(m / cols)
    rows = tiles * BRICK_ROWS * bricks
    words = sum(rows * up(k, span) * field / 8 for span, field in zip(SPANS[bits], FIELDS[bits], strict=True))
    scales = rows * (k // group) * 2
    return Moved(words * passes, scales * passes, 2.0 * tiles * m * k, 2.0 * m * n)


def unpack_per_weight(kind: str, bits: int) -> float:
    """Return the integer instructions to unpack one weight. int4 also subtracts, two weights in one fp16 instruction."""
    require.one_of(("int4", "book"), kind=kind)
    if kind == "int4":
        return UNPACK["int4"]
    require.one_of(tuple(SPANS), bits=bits)
    return UNPACK[bits]


def unpack_s(weights: float, per_weight: float, sms: int, clock_hz: float, lanes: int = 64) -> float:
    """Return the seconds of unpacking on all SMs, with 64 lanes of integer arithmetic each from sm_80 on."""
    require.positive(weights=weights, sms=sms, clock_hz=clock_hz, lanes=lanes)
    require.not_negative(per_weight=per_weight)
    return weights * per_weight / (sms * lanes * clock_hz)
