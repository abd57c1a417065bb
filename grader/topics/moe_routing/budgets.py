"""What the layer's products and its combine may spend on their metered cases, by the topic's cost model."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import between
from grader.questions.side_by_side import side_by_side
from grader.questions.work import filled, work
from grader.topics.moe_routing import cases
from kernels.moe_routing.cost_traffic import combine_traffic, grouped_traffic

INT32 = FP32 = 4  # bytes of a number in a table, and of a weight of a pick
HALF = 2  # bytes of a number of 16 bits
TILE = 16  # rows of a tile where traffic is metered
NARROW = 32  # columns of h that a program owns at least
STRIP = 256  # columns of out that a program owns at least
SECTOR = 16  # numbers of 16 bits
SILU = 16  # operations on a number of h beside tl.dot, where SiLU and a product take some 5
GEMM_ALL = 1.2  # of every kind, a product with gate and up
COMBINE_ALL = 16  # of every kind, a number of a row
SUMMED = 6  # operations on a number of a row, where a product and a sum take 2
TOKENS = 4  # at most as many tokens one program combines

IDLE = "which weights are read although no row of theirs is there, and which once more for rows that share a tile"
ROWS = "the columns of h that a program owns: all of them share what it loads of x; padding loads nothing"
WIDER = (
    "what is stored besides the result: gate, up and single rows live in registers until they are added up"
)
NEIGHBOURS = "which neighbouring lanes read neighbouring numbers: a sector is 32 bytes, used or not"
DOT = "do the products go through tl.dot, in a dtype and a tile that tensor cores take?"
WORK = "what is computed more than once for a number"
ONCE = "each pick's row is needed once, by its token, and padding by nobody"


def no_atomics(reason: str) -> Budget:
    return Budget(
        what="atomics",
        tensor="all",
        access="atomic",
        most=0,
        look="atomics: the same bits must come at every run, whichever program is first",
        model=f"0 bytes: {reason}",
    )


def nothing_kept() -> Budget:
    return Budget(
        what="scratch, loaded and stored",
        tensor="scratch",
        access="any",
        most=0,
        look=WIDER,
        model="0 bytes: one launch needs none",
    )


def sectors(tensor: str, what: str, numbers: int) -> Budget:
    return Budget(
        what=f"sectors of the {what}",
        tensor=tensor,
        count="sectors",
        most=1.02 * HALF * numbers,
        look=NEIGHBOURS,
        model=f"{numbers // SECTOR} sectors of 32 bytes + 2%",
    )


# Gate and up


def metered_gemm(rng: np.random.Generator) -> Case:
    """Eight experts near 150 x 400: two without tokens, one with more than a tile of them."""
    loads = [0, 0, between(rng, TILE + 1, 2 * TILE), *(between(rng, 1, TILE) for _ in range(5))]
    found = rng.permutation(loads).tolist()
    h, n = SECTOR * between(rng, 22, 28), between(rng, 130, 170)
    return cases.with_products(found, 1, TILE, h, n, sm_count=between(rng, 9, 13), kind="the metered size")


def routing(c: Case) -> tuple[int, int, int]:
    """(experts with tokens, tiles, rows that are real) of a case that says its loads."""
    loads = [n for n in cases.loads_of(c) if n]
    return len(loads), sum(math.ceil(n / c.sizes["TILE"]) for n in loads), sum(loads)


def useful_gemm(c: Case) -> float:
    picks = c.sizes["T"] * c.sizes["K"]
    return 4.0 * picks * c.sizes["N"] * c.sizes["H"]


def gemm(c: Case) -> list[Budget]:
    """Weights of experts with tokens once for each of their tiles, x by strips of columns, h once, and nothing else."""
    active, tiles, real = routing(c)
    h, n = c.sizes["H"], c.sizes["N"]
    one = grouped_traffic(1, 1, n, h, tile=TILE, block_n=n, gated=True).weights
    tokens = grouped_traffic(1, 1, n, h, tile=1, block_n=NARROW).rows  # of one row, by all strips of columns
    out = HALF * real * n
    return [
        Budget(
            what="read of the weights",
            tensor="w",
            most=tiles * one,
            least=active * one,
            look=IDLE,
            model=f"gate and up, {2 * n} x {h} weights of 2 bytes, for each of {tiles} tiles of {active} experts with tokens",
        ),
        Budget(
            what="read of x",
            tensor="x",
            most=real * tokens,
            least=HALF * real * h,
            look=ROWS,
            model=f"{real} rows of {h} numbers of 2 bytes for every {NARROW} of {n} columns",
        ),
        Budget(
            what="write of h",
            tensor="h",
            access="store",
            most=out,
            least=out,
            look=WIDER,
            model=f"{real} rows of {n} numbers of 2 bytes, once",
        ),
        nothing_kept(),
    ]


def gemm_flow(c: Case) -> list[Budget]:
    """What speed comes from, counted: products in tl.dot, whole sectors, enough programs, little beside."""
    _, tiles, _ = routing(c)
    h, n = c.sizes["H"], c.sizes["N"]
    flop = useful_gemm(c)
    beside = (SILU + 2 * h // SECTOR) * tiles * TILE * math.ceil(n / NARROW) * NARROW
    return [
        Budget(
            what="FLOP in tl.dot",
            count="dot",
            least=flop,
            most=4 * tiles * TILE * filled((n, 128), (h, 128)),
            look=DOT,
            model=f"4 T K N H = {flop:,.0f} at least; with {tiles} tiles of {TILE} rows, N and H rounded up to 128, at most",
        ),
        work(GEMM_ALL, tiles * TILE * n * h, f"{tiles} x {TILE} x {n} x {h} products"),
        Budget(
            what="operations beside tl.dot",
            count="operations",
            most=2 * beside,
            look=WORK,
            model=f"twice {SILU + 2 * h // SECTOR} for each number of {tiles} tiles of {TILE} rows of h",
        ),
        sectors("w", "weights", tiles * 2 * n * h),
        side_by_side(
            "read the weights",
            "w",
            "load",
            c.sm_count,
            f"one at least for each of {c.sm_count} multiprocessors",
        ),
    ]


def bound_gemm(c: Case) -> tuple[float, float]:
    """Weights of every expert once: where the timed routing reaches them all."""
    t, k, e, h, n = (c.sizes[name] for name in "TKEHN")
    return useful_gemm(c), HALF * (2 * e * n * h + t * h + t * k * n)


# Combine


def metered_combine(rng: np.random.Generator) -> Case:
    """Near 100 tokens of 700 numbers, three picks each."""
    sizes = cases.size(between(rng, 90, 110), 3, between(rng, 9, 16), TILE)
    return Case(
        sizes | {"H": SECTOR * between(rng, 40, 48)}, sm_count=between(rng, 6, 9), kind="the metered size"
    )


def useful_combine(c: Case) -> float:
    return 2.0 * c.sizes["T"] * c.sizes["K"] * c.sizes["H"]


def combine(c: Case) -> list[Budget]:
    t, k, h = (c.sizes[name] for name in "TKH")
    moved = combine_traffic(t, k, h, block_h=STRIP)
    table = moved.tables // 2  # places and weights are as many numbers of as many bytes
    return [
        Budget(
            what="read of the rows",
            tensor="rows",
            most=moved.rows,
            least=moved.rows,
            look=ONCE,
            model=f"{t} x {k} rows of {h} numbers of 2 bytes, once",
        ),
        *(
            Budget(
                what=f"read of the {name}",
                tensor=name,
                most=table,
                least=INT32 * t * k,
                look="the columns that a program owns: it asks for its tokens' places and weights once",
                model=f"{t} x {k} numbers of 4 bytes for every {STRIP} of {h} columns",
            )
            for name in ("place", "weights")
        ),
        Budget(
            what="write of out",
            tensor="out",
            access="store",
            most=moved.written,
            least=moved.written,
            look=WIDER,
            model=f"{t} x {h} numbers of 2 bytes, once",
        ),
        nothing_kept(),
        no_atomics("a token's rows are added up in one program"),
    ]


def combine_flow(c: Case) -> list[Budget]:
    t, k, h = (c.sizes[name] for name in "TKH")
    lanes = 1 << (h - 1).bit_length()
    return [
        sectors("rows", "rows", t * k * h),
        Budget(
            what="operations",
            count="operations",
            most=SUMMED * t * k * lanes,
            look=WORK,
            model=f"{SUMMED} for each of {t} x {k} rows of {lanes} lanes",
        ),
        work(COMBINE_ALL, t * k * lanes, f"{t} x {k} rows of {lanes} lanes"),
        side_by_side(
            "read the rows", "rows", "load", math.ceil(t / TOKENS), f"one for every {TOKENS} of {t} tokens"
        ),
    ]


def bound_combine(c: Case) -> tuple[float, float]:
    t, k, h = (c.sizes[name] for name in "TKH")
    moved = combine_traffic(t, k, h, block_h=h)
    return useful_combine(c), moved.loaded + moved.written
