"""Draw the inputs of *tiled gemm* and limit their cost."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import ROUNDING, SMALLEST, between, odd, rounded, spread, sum_off, where_finite
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

LARGEST_BLOCK = 256  # no tile is wider, and 256 j + 1 is one more than a multiple of every block


OUTLIER = 2000.0
AMONG_ZEROS = "an infinity and a NaN among zeros"


def operands(case: Case, rng: np.random.Generator) -> dict:
    """Draw A and B of the case's kind, normal numbers, positive ones near 1, or one number that dwarfs all others."""
    m, n, k = (case.sizes[s] for s in "MNK")
    found = {}
    for name, shape in (("a", (m, k)), ("b", (k, n))):
        values = rng.standard_normal(shape)
        spot = tuple(rng.integers(shape))
        if case.values == "positive":
            values = 1.0 + 0.25 * rng.random(shape)
        if case.values == "beyond fp16":
            values *= 2.0**18
        if case.values == "outlier":
            if name == "b" and found["a"][:, spot[0]].max() == OUTLIER:  # fp16 does not hold their product
                spot = (spot[0] + 1) % k, spot[1]
            values[spot] = OUTLIER if k > 1 or name == "a" else 1.0
        if case.values == "infinity and NaN":
            if name == ("b" if case.dtype == "fp16" else "a"):  # the infinity last along K, where a tile ends
                values[(k - 1, spot[1]) if name == "b" else (spot[0], k - 1)] = np.inf
            else:
                values[spot] = np.nan
        if (
            case.values == AMONG_ZEROS
        ):  # the one early along K, the other late, so that tiles of zeros meet them
            values[...], at = 0, rng.integers(1 + (k - 1) // 4)
            values[(spot[0], at) if name == "a" else (k - 1 - at, spot[1])] = (
                np.inf if name == "a" else np.nan
            )
        found[name] = rounded(values, case.dtype)
    return found


def product(inputs: dict, case: Case) -> dict:
    with np.errstate(invalid="ignore"):
        return {"c": reference.gemm(inputs["a"], inputs["b"])}


def within(inputs: dict, case: Case, want: dict) -> dict:
    """One rounding to the output's dtype, and the error of an fp32 sum in any order."""
    with np.errstate(invalid="ignore"):
        terms = np.abs(inputs["a"].astype(np.float64)) @ np.abs(inputs["b"].astype(np.float64))
        out = case.dtypes.get("c", case.dtype)
        allowed = (
            ROUNDING[out] * np.abs(want["c"])
            + sum_off(case.sizes["K"]) * (1 + 2 * ROUNDING[out]) * terms
            + SMALLEST[out]
        )
    return {"c": where_finite(allowed, want["c"])}


def hidden_products(rng: np.random.Generator) -> list[Case]:
    """Draw fresh sizes each time. Each case catches a mistake that no other one is sure to catch."""

    def any_size() -> int:
        return between(rng, 17, 130)

    def one_more() -> int:
        return LARGEST_BLOCK * between(rng, 1, 2) + 1

    long_k = 8 * between(rng, 560, 700) + 1
    return [
        Case(sizes(odd(rng, 17, 129), odd(rng, 17, 129), odd(rng, 140, 260)), "bf16", kind="odd sizes"),
        # people write a separate kernel for one row or column, so this needs a K beyond any block too
        Case(sizes(1, odd(rng, 17, 129), odd(rng, 261, 399)), kind="a single row"),
        Case(sizes(odd(rng, 17, 129), 1, odd(rng, 261, 399)), "bf16", kind="a single column"),
        Case(sizes(64, 96, between(rng, 1, 15)), kind="K shorter than a block"),
        Case(
            sizes(one_more(), one_more(), one_more()),
            "bf16",
            kind="one more than whole tiles in every direction",
        ),
        Case(
            sizes(any_size(), any_size(), any_size()),
            "bf16",
            layout=spread(rng, *"abc"),
            kind="no stride of 1",
        ),
        Case(
            sizes(any_size(), any_size(), any_size()),
            layout={"b": "transposed", "c": "padded"},
            kind="strided operands",
        ),
        Case(
            sizes(any_size(), any_size(), any_size()),
            layout={"a": "padded", "c": "transposed"},
            kind="a transposed C",
        ),
        Case(sizes(between(rng, 4200, 4700), between(rng, 2, 9), 32), kind="a column of many tiles"),
        Case(sizes(between(rng, 2, 9), between(rng, 4200, 4700), 40), "bf16", kind="a row of many tiles"),
        Case(
            sizes(48, 80, between(rng, 1000, 1200)),
            "bf16",
            {"c": "fp32"},
            layout={"c": "transposed"},
            values="positive",
            kind="a long sum in fp32",
        ),
        Case(
            sizes(16, between(rng, 33, 48), long_k),
            "bf16",
            values="positive",
            kind="a long sum, rounded once",
        ),
        Case(
            sizes(16, between(rng, 33, 48), long_k - 5),
            values="positive",
            kind="a long sum in fp16, rounded once",
        ),
        Case(
            sizes(65, 33, 200),
            "fp16",
            {"c": "fp32"},
            layout={"c": "padded"},
            values="outlier",
            kind="one large value",
        ),
        Case(sizes(33, 40, 64), "bf16", values="beyond fp16", kind="numbers beyond fp16"),
        Case(sizes(40, 50, odd(rng, 65, 199)), values="infinity and NaN", kind="an infinity and a NaN"),
        Case(
            sizes(50, 40, odd(rng, 65, 199)),
            "bf16",
            values="infinity and NaN",
            kind="an infinity and a NaN in bf16",
        ),
        Case(
            sizes(40, 50, odd(rng, 65, 199)),
            "bf16",
            {"c": "fp32"},
            values="infinity and NaN",
            kind="an infinity and a NaN, C in fp32",
        ),
        Case(sizes(50, 40, between(rng, 513, 600)), values=AMONG_ZEROS, kind=AMONG_ZEROS),
        Case(
            sizes(between(rng, 300, 400), between(rng, 200, 300), 64),
            layout={"a": "transposed", "b": "transposed"},
            kind="several tiles each way, both operands transposed",
        ),
    ]


ORDER = "the order of the programs: a wave should cover a square patch of tiles, not a long row of them"
PATCH, MARGIN = 64, 1.3  # a wave's patch is made of 64 x 64 tiles, and order at the edges costs up to a third


def metered_product(rng: np.random.Generator) -> Case:
    """Draw sizes near 1000 x 4100 x 80, with long rows of tiles, so that walking along them shows in a wave's bytes."""
    m, n, k = between(rng, 970, 1022), between(rng, 4050, 4110), between(rng, 66, 94)
    return Case(sizes(m, n, k), sm_count=between(rng, 30, 34), kind="the metered size")


def traffic(case: Case) -> list[Budget]:
    """Each operand as often as 32 x 32 tiles would at most, C once, and no more scratch than unfinished tiles need."""
    m, n, k = mnk(case)
    a, b, c = 2 * m * k, 2 * k * n, 2 * m * n
    columns, rows = (math.ceil(side / (32 if side > 32 else 16)) for side in (n, m))  # sixteen for a few rows
    scratch = cost.partial_tile_bytes(case.sm_count)
    return [
        Budget(
            what="read of A",
            tensor="a",
            most=a * columns,
            least=a,
            look=LOADED,
            model=f"A once for each of {columns} columns of tiles, 32 wide, or 16 in a narrow C",
        ),
        Budget(
            what="read of B",
            tensor="b",
            most=b * rows,
            least=b,
            look=LOADED,
            model=f"B once for each of {rows} rows of tiles, 32 high, or 16 in a low C",
        ),
        Budget(
            what="write of C",
            tensor="c",
            access="store",
            most=c,
            least=c,
            look=STORED,
            model=f"{m} x {n} elements of 2 bytes, once",
        ),
        Budget(
            what="scratch, loaded and stored",
            tensor="scratch",
            access="any",
            most=2 * scratch,
            look=KEPT,
            model=f"an unfinished 128 x 128 tile of fp32 for each of {case.sm_count} multiprocessors, out and in",
        ),
    ]


def reuse(case: Case) -> list[Budget]:
    """Replace the clock by the sources of speed: the loads of a 128 x 64 tile, and matmuls in tl.dot."""
    m, n, k = mnk(case)
    loads = 2 * max(cost.tile_loads(m, n, k, *tile) for tile in ((128, 64), (64, 128)))
    return [
        Budget(
            what="all loads",
            most=loads + cost.partial_tile_bytes(case.sm_count),
            look=REUSED,
            model=f"{math.ceil(m / 64)} and {math.ceil(n / 128)} tiles of 64 x 128 each way, and unfinished tiles of sums",
        ),
        *in_dots(case),
        timed(CYCLES, m * n * k, "product"),
        shared_out(case),
    ]


def grouping(case: Case) -> list[Budget]:
    """Limit the unique bytes of all waves to square patches of 64 x 64 tiles, plus 30%."""
    m, n, k = mnk(case)
    most = MARGIN * cost.patch_bytes_per_wave(m, n, k, PATCH, case.sm_count)
    side = PATCH * math.sqrt(case.sm_count)
    return [
        Budget(
            what="unique bytes per wave, all waves",
            count="wave",
            most=most,
            look=ORDER,
            model=f"each wave a patch of {side:.0f} x {side:.0f}: {case.sm_count} tiles of 64 x 64; + 30%",
        )
    ]


def bound(case: Case) -> tuple[float, float]:
    m, n, k = (case.sizes[s] for s in "MNK")
    return cost.flops(m, n, k), cost.compulsory_bytes(m, n, k)
