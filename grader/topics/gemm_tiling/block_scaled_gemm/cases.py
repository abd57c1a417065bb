"""Draw the inputs of *block scaled gemm* and limit their cost."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import ROUNDING, between, odd, spread, where_finite
from grader.questions.timed import timed
from grader.topics.gemm_tiling.shared import (
    CYCLES,
    KEPT,
    LOADED,
    REUSED,
    STORED,
    in_dots,
    mnk,
    shared_out,
    sizes,
)
from kernels.gemm_tiling import cost, reference

SCALE_BLOCK = reference.SCALE_BLOCK
AMONG_ZEROS = "a NaN in A and one in B, among zeros"
WHOLE = "small whole numbers"  # which no tensor core rounds, so the only losses come from the scales


SMALL_CODES, SMALL_CODE = "small codes and large scales", -6  # a power of two, of the smallest normal number
NANS = "a NaN in some rows of A and columns of B"
ZEROS = 1 / 8  # of the scales, beside NaNs
FOR_NOTHING = (
    1 / 2
)  # of the cases, in which all scales of A are 0 in a block with a NaN, else all of B, either's NaN
FEW = 6  # one of so many rows or columns, so that most of C is a number


def each_piece(rng: np.random.Generator, k: int) -> np.ndarray:
    """Return a place along K in each piece that has one scale, in any order."""
    starts = np.arange(0, k, SCALE_BLOCK)
    return rng.permutation(rng.integers(starts, np.minimum(starts + SCALE_BLOCK, k)))


def in_fp8(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return codes of these numbers. Half of the NaNs are 0x7F, and half are 0xFF."""
    import ml_dtypes

    codes = np.clip(values, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    nan = np.isnan(values)
    codes.view(np.uint8)[nan] = 0x7F + 0x80 * rng.permutation(np.arange(nan.sum()) % 2)
    return codes


def scaled_operands(case: Case, rng: np.random.Generator) -> dict:
    """fp8 codes with a scale for each 1 x 128 piece of A and each 128 x 128 block of B, as DeepSeek-V3 stores them."""
    m, n, k = (case.sizes[s] for s in "MNK")
    blocks_k, blocks_n = math.ceil(k / SCALE_BLOCK), math.ceil(n / SCALE_BLOCK)
    codes = {name: rng.standard_normal(shape) * 60 for name, shape in (("a", (m, k)), ("b", (k, n)))}
    if case.values == "positive":
        codes = {name: np.abs(v) for name, v in codes.items()}
    if case.values == SMALL_CODES:
        codes = {name: v * 2.0**SMALL_CODE / 60 for name, v in codes.items()}
    if case.values == WHOLE:
        codes = {name: rng.integers(-2, 3, v.shape).astype(float) for name, v in codes.items()}
    if case.values == NANS:
        for name, side in (("a", m), ("b", n)):
            for row, at in zip(
                rng.permutation(side), each_piece(rng, k)[: max(1, side // FEW)], strict=False
            ):
                codes[name][(row, at) if name == "a" else (at, row)] = np.nan
    if case.values == AMONG_ZEROS:  # the one early along K, the other late, so that tiles of zeros meet them
        codes = {name: np.zeros(v.shape) for name, v in codes.items()}
        codes["a"][rng.integers(m), rng.integers(1 + (k - 1) // 4)] = np.nan
        codes["b"][k - 1 - rng.integers(1 + (k - 1) // 4), rng.integers(n)] = np.nan
    sa, sb = (2.0 ** rng.uniform(-9, -5, shape) for shape in ((m, blocks_k), (blocks_k, blocks_n)))
    if case.values == SMALL_CODES:
        sa, sb = sa * 2.0**-SMALL_CODE, sb * 2.0**-SMALL_CODE
    if case.values == NANS:  # zero times a NaN is a NaN
        sa[rng.random(sa.shape) < ZEROS], sb[rng.random(sb.shape) < ZEROS] = 0, 0
        name, axis = (
            ("a", 0) if rng.random() < FOR_NOTHING else ("b", 1)
        )  # also where a block of zeros meets no other
        block = rng.choice(np.flatnonzero(np.isnan(codes[name]).any(axis))) // SCALE_BLOCK
        sa[:, block], sb[block] = (0, sb[block]) if rng.random() < FOR_NOTHING else (sa[:, block], 0)
    if (
        case.values == "scales far apart"
    ):  # products of 2**-28, 2**-4, 2**-2 and 2**22, each in elements of its own
        sa, sb = (
            rng.choice([-1, 1], sa.shape) * sa * 2.0 ** np.where(np.arange(m) % 2, -8, 18)[:, None],
            sb * 2.0 ** np.where(np.arange(blocks_n) % 2, -6, 18),
        )
    return {
        **{name: in_fp8(v, rng) for name, v in codes.items()},
        "sa": sa.astype(np.float32),
        "sb": sb.astype(np.float32),
    }


def scaled_product(inputs: dict, case: Case) -> dict:
    return {"c": reference.block_scaled_gemm(inputs["a"], inputs["b"], inputs["sa"], inputs["sb"])}


FP8_SUM = 2.0**-9  # of the sum of |a||b|, see scaled_within


def scaled_within(inputs: dict, case: Case, want: dict) -> dict:
    """One rounding to C's dtype, and what a Hopper tensor core loses inside one block of 128.

    It lines the 32 products of an instruction up with the largest number and keeps some 13 bits below it. If all are
    positive and the sum is the largest, each of the four instructions of a block loses half of 2**-13 of the sum for
    each product, 2**-9 of the sum at the block's end. Summed so, right answers reach three quarters of this limit.
    """
    size = {name: np.abs(inputs[name].astype(np.float64)) for name in ("a", "b")}
    terms = reference.block_scaled_gemm(size["a"], size["b"], np.abs(inputs["sa"]), np.abs(inputs["sb"]))
    out = ROUNDING[case.dtypes.get("c", case.dtype)]
    lost = 2.0**-20 if case.values == WHOLE else FP8_SUM
    return {"c": where_finite(out * np.abs(want["c"]) + lost * terms + 1e-30, want["c"])}


def hidden_scaled(rng: np.random.Generator) -> list[Case]:
    def any_size() -> int:
        return between(rng, 17, 130)

    return [
        Case(sizes(odd(rng, 17, 129), 128, 256), "bf16", kind="odd rows"),
        Case(sizes(odd(rng, 33, 65), 100, odd(rng, 513, 600)), "bf16", values=NANS, kind=NANS),
        Case(sizes(odd(rng, 17, 65), 100, 700), "bf16", values=AMONG_ZEROS, kind=AMONG_ZEROS),
        Case(sizes(64, 128 + any_size(), between(rng, 260, 330)), "bf16", kind="a ragged block of columns"),
        Case(sizes(33, 64, 128 + 16 * between(rng, 1, 7)), "bf16", kind="a ragged block of K"),
        Case(sizes(17, 40, 128 * between(rng, 2, 4) + 1), "bf16", kind="one column of A beyond a block"),
        Case(
            sizes(16, 128, between(rng, 4200, 4700)),
            "bf16",
            {"c": "fp32"},
            layout={"c": "transposed"},
            values="positive",
            kind="a long sum",
        ),
        Case(
            sizes(16, 130, between(rng, 4200, 4700)),
            "bf16",
            values="positive",
            kind="a long sum, rounded once",
        ),
        Case(
            sizes(24, 128 + any_size(), 200),
            "bf16",
            values="scales far apart",
            kind="small scales and large ones",
        ),
        Case(sizes(24, 128 + any_size(), 300), "bf16", values=SMALL_CODES, kind=SMALL_CODES),
        Case(
            sizes(24, 128 + any_size(), 300),
            "bf16",
            {"c": "fp32"},
            layout={"c": "padded"},
            values=WHOLE,
            kind="scales of many digits",
        ),
        Case(
            sizes(40, 300, 200),
            "bf16",
            layout={name: "transposed" for name in ("a", "b", "sa", "sb", "c")},
            kind="everything transposed",
        ),
        Case(
            sizes(any_size(), 128 + any_size(), 128 + any_size()),
            "bf16",
            layout=spread(rng, "a", "b", "sa", "sb", "c"),
            kind="no stride of 1",
        ),
        Case(sizes(between(rng, 4200, 4700), 5, 128), "bf16", kind="a column of many tiles"),
        Case(sizes(5, between(rng, 4200, 4700), 140), "bf16", kind="a row of many tiles"),
        Case(sizes(between(rng, 300, 400), 300, 128), "bf16", kind="several tiles each way"),
    ]


def metered_scaled(rng: np.random.Generator) -> Case:
    """Draw sizes near 540 x 540 x 300, large enough for tiles of 128, and K fills no block of scales."""
    m, n, k = between(rng, 516, 570), between(rng, 516, 570), between(rng, 260, 380)
    return Case(sizes(m, n, k), "bf16", sm_count=between(rng, 14, 20), kind="the metered size")


def scaled_traffic(case: Case) -> list[Budget]:
    """The codes as often as 32 x 64 tiles would, their scales with them, and C once."""
    m, n, k = mnk(case)
    columns, rows = math.ceil(n / 64), math.ceil(m / 32)
    sa, sb = (4 * loads for loads in cost.scale_loads(m, n, k, 32, 64))
    scratch = cost.partial_tile_bytes(case.sm_count, 64, 64)
    return [
        Budget(
            what="read of A",
            tensor="a",
            most=m * k * columns,
            least=m * k,
            look=LOADED,
            model=f"A once for each of {columns} columns of tiles, 64 wide",
        ),
        Budget(
            what="read of B",
            tensor="b",
            most=k * n * rows,
            least=k * n,
            look=LOADED,
            model=f"B once for each of {rows} rows of tiles, 32 high",
        ),
        Budget(
            what="read of the scales of A",
            tensor="sa",
            most=2 * sa,
            least=4 * m * math.ceil(k / 128),
            look=LOADED,
            model=f"a scale for each of {m} rows with each of {columns} columns of tiles, twice a block of 128",
        ),
        Budget(
            what="read of the scales of B",
            tensor="sb",
            most=2 * sb,
            least=4,
            look=LOADED,
            model=f"a scale for each of {n} columns with each of {rows} rows of tiles, twice a block of 128",
        ),
        Budget(
            what="write of C",
            tensor="c",
            access="store",
            most=2 * m * n,
            least=2 * m * n,
            look=STORED,
            model=f"{m} x {n} elements of 2 bytes, once",
        ),
        Budget(
            what="scratch, loaded and stored",
            tensor="scratch",
            access="any",
            most=2 * scratch,
            look=KEPT,
            model=f"an unfinished 64 x 64 tile of fp32 for each of {case.sm_count} multiprocessors, out and in",
        ),
    ]


def scaled_reuse(case: Case) -> list[Budget]:
    """Replace the clock by counts: the loads of 64 x 64 tiles with their scales, and matmuls in tl.dot."""
    m, n, k = mnk(case)
    most = cost.tile_loads(m, n, k, 64, 64) + 4 * 2 * sum(cost.scale_loads(m, n, k, 64, 64))
    return [
        Budget(
            what="all loads",
            most=most + cost.partial_tile_bytes(case.sm_count, 64, 64),
            look=REUSED,
            model=f"{math.ceil(m / 64)} x {math.ceil(n / 64)} tiles of 64 x 64, their scales, and unfinished tiles of sums",
        ),
        *in_dots(case),
        timed(CYCLES, m * n * k, "product"),
        shared_out(case),
    ]


def scaled_bound(case: Case) -> tuple[float, float]:
    m, n, k = (case.sizes[s] for s in "MNK")
    return cost.flops(m, n, k), cost.block_scaled_bytes(m, n, k)
