"""What a GEMM may spend on its metered case, from the topic's cost model for the sizes that were drawn."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import between
from grader.questions.side_by_side import side_by_side
from grader.questions.work import filled, work
from grader.topics.gemm_tiling.cases import sizes
from kernels.gemm_tiling import cost

LOADED = "which rows of A and columns of B a tile loads: each element once, for the tile's own steps along K"
REUSED = "the sides of the tile: reuse is their harmonic mean, so grow the smaller one"
ORDER = "the order of the programs: a wave should cover a square patch of tiles, not a long row of them"
STORED = "the store: every element of C once, in C's own dtype"
KEPT = "what goes through scratch: the sum lives in registers from its first step along K to its last"
DOT = "do the products go through tl.dot, in a dtype and a tile that tensor cores take?"
LOADED_WIDE = "operands go into tl.dot as they were loaded: widened to fp32 they take twice the registers and run at half the rate"
PATCH, MARGIN = 64, 1.3  # a wave's patch is made of 64 x 64 tiles; order at the edges costs up to a third
ALL_WORK = 0.8  # of every kind, a product; addresses and masks take most of what tl.dot leaves
OUTSIDE = 0.25  # operations a product: adding a dot to the sum after every 16 steps takes 1/16


def metered_product(rng: np.random.Generator) -> Case:
    """Near 1000 x 4100 x 80: long rows of tiles, so that walking along them shows in what a wave touches."""
    m, n, k = between(rng, 970, 1022), between(rng, 4050, 4110), between(rng, 66, 94)
    return Case(sizes(m, n, k), sm_count=between(rng, 30, 34), kind="the metered size")


def _mnk(case: Case) -> tuple[int, int, int]:
    return tuple(case.sizes[s] for s in "MNK")


def useful(case: Case) -> float:
    return cost.flops(*_mnk(case))


def traffic(case: Case) -> list[Budget]:
    """Each operand as often as 32 x 32 tiles would at most, C once, and no more scratch than unfinished tiles need."""
    m, n, k = _mnk(case)
    a, b, c = 2 * m * k, 2 * k * n, 2 * m * n
    columns, rows = math.ceil(n / 32), math.ceil(m / 32)
    scratch = cost.partial_tile_bytes(case.sm_count)
    return [
        Budget(
            what="read of A",
            tensor="a",
            most=a * columns,
            least=a,
            look=LOADED,
            model=f"A once for each of {columns} columns of tiles, 32 wide",
        ),
        Budget(
            what="read of B",
            tensor="b",
            most=b * rows,
            least=b,
            look=LOADED,
            model=f"B once for each of {rows} rows of tiles, 32 high",
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
    """Where there is no clock, what speed comes from: the loads of a 128 x 64 tile, and products in tl.dot."""
    m, n, k = _mnk(case)
    loads = 2 * max(cost.tile_loads(m, n, k, *tile) for tile in ((128, 64), (64, 128)))
    return [
        Budget(
            what="all loads",
            most=loads + cost.partial_tile_bytes(case.sm_count),
            look=REUSED,
            model=f"{math.ceil(m / 64)} and {math.ceil(n / 128)} tiles of 64 x 128 each way, and unfinished tiles of sums",
        ),
        *in_dots(case),
        shared_out(case),
    ]


def in_dots(case: Case) -> list[Budget]:
    """The product itself in tl.dot, and next to nothing beside it: a dot whose result is thrown away buys nothing."""
    m, n, k = _mnk(case)
    return [
        Budget(
            what="FLOP in tl.dot",
            count="dot",
            least=useful(case),
            most=2 * filled((m, 256), (n, 256), (k, 128)),
            look=DOT,
            model=f"2 M N K = {2 * m * n * k:,} at least, M, N and K rounded up to 256, 256 and 128 at most",
        ),
        work(ALL_WORK, m * n * k, f"{m} x {n} x {k} products"),
        Budget(
            what="FLOP in tl.dot on operands widened to fp32",
            count="wide dot",
            most=0,
            look=LOADED_WIDE,
            model="every operand of at most 16 bits",
        ),
        Budget(
            what="operations beside tl.dot",
            count="operations",
            most=OUTSIDE * m * n * k,
            look=DOT,
            model=f"0.25 for each of the {m} x {n} x {k} products",
        ),
    ]


def shared_out(case: Case) -> Budget:
    """Tiles side by side: programs for half of the multiprocessors at least, or one for every 256 x 256 numbers of C."""
    m, n, _ = _mnk(case)
    least = min(case.sm_count // 2, math.ceil(m / 256) * math.ceil(n / 256))
    of = f"of {case.sm_count} multiprocessors half, or one for every 256 x 256 numbers of C: {least}"
    return side_by_side("store c", "c", "store", least, of)


def grouping(case: Case) -> list[Budget]:
    """Unique bytes of all waves: square patches of 64 x 64 tiles, and 30%."""
    m, n, k = _mnk(case)
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


def metered_scaled(rng: np.random.Generator) -> Case:
    """Near 540 x 540 x 300: large enough for tiles of 128, and K fills no block of scales."""
    m, n, k = between(rng, 516, 570), between(rng, 516, 570), between(rng, 260, 380)
    return Case(sizes(m, n, k), "bf16", sm_count=between(rng, 14, 20), kind="the metered size")


def scaled_traffic(case: Case) -> list[Budget]:
    """The codes as often as 32 x 64 tiles would, their scales with them, and C once."""
    m, n, k = _mnk(case)
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
    """Where there is no clock: the loads of 64 x 64 tiles with their scales, and products in tl.dot."""
    m, n, k = _mnk(case)
    most = cost.tile_loads(m, n, k, 64, 64) + 4 * 2 * sum(cost.scale_loads(m, n, k, 64, 64))
    return [
        Budget(
            what="all loads",
            most=most + cost.partial_tile_bytes(case.sm_count, 64, 64),
            look=REUSED,
            model=f"{math.ceil(m / 64)} x {math.ceil(n / 64)} tiles of 64 x 64, their scales, and unfinished tiles of sums",
        ),
        *in_dots(case),
        shared_out(case),
    ]
