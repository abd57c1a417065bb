"""What a packed layer may spend on its metered case: the packed weight once and nothing wider, by the topic's cost model."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import between
from grader.questions.work import filled, work
from grader.topics.quantization_layouts.cases import sizes
from kernels.quantization_layouts import cost

ONCE = "which words each program reads, and how often: every weight is needed once, by one program"
SCALES = "how far a step reaches along K: a step shorter than a group asks for the group's scale again"
ROWS = "the rows of W that a program owns: all of them share what it loads of X"
WIDER = "what is stored besides Y: an unpacked weight lives in registers from its word to its product"
NEIGHBOURS = "which neighbouring lanes read neighbouring words: a sector is 32 bytes, used or not"
FILL = "the grid: with few programs most multiprocessors have nothing to read"
DOT = "do the products go through tl.dot, in a dtype and a tile that tensor cores take?"
WORK = "what is computed more than once for a weight"
GROUP = 128
PARTS = 4  # sums of a row that several programs may leave in scratch, out and in
NARROW = "operands go into tl.dot in x's dtype: widened to fp32 they take twice the registers and run at half the rate"
GEMM_WORK = 6  # beside tl.dot
GEMV_ALL, GEMM_ALL = 24, 28  # of every kind, a weight
# operations a weight: one takes some 3 to 5, and a last step that K does not fill counts whole
GEMV_WORK = 12


def metered_gemv(rng: np.random.Generator) -> Case:
    """Near 600 x 1300: rows of whole sectors, and programs of 16 rows still outnumber the multiprocessors."""
    n, k = between(rng, 560, 640), GROUP * between(rng, 9, 11)
    return Case(sizes(n, k, GROUP), sm_count=between(rng, 14, 20), kind="the metered size")


def _nkgm(c: Case) -> tuple[int, int, int, int]:
    return *(c.sizes[s] for s in "NKG"), c.sizes.get("M", 1)


def useful(c: Case) -> float:
    n, k, group, m = _nkgm(c)
    return cost.linear_cost(m, n, k, bits=4, group=group).flops


def bound(c: Case) -> tuple[float, float]:
    n, k, group, m = _nkgm(c)
    zero_bits = 8 if "M" in c.sizes else 0
    return useful(c), cost.linear_cost(m, n, k, bits=4, group=group, zero_bits=zero_bits).bytes_moved


def read_of_x(m: int, n: int, k: int) -> Budget:
    """No more often than tiles of 32 rows of W would read it."""
    x = 2 * m * k
    return Budget(
        what="read of X",
        tensor="x",
        most=x * math.ceil(n / 32),
        least=x,
        look=ROWS,
        model=f"{m} x {k} numbers of 2 bytes for every 32 of {n} rows of W",
    )


def written(m: int, n: int) -> list[Budget]:
    """Y once, and next to no scratch."""
    out = 2 * m * n
    return [
        Budget(
            what="write of Y",
            tensor="y",
            access="store",
            most=out,
            least=out,
            look=WIDER,
            model=f"{m} x {n} numbers of 2 bytes, once",
        ),
        Budget(
            what="scratch, loaded and stored",
            tensor="scratch",
            access="any",
            most=2 * 4 * PARTS * m * n,
            look=WIDER,
            model=f"{PARTS} unfinished sums of 4 bytes for each of {m} x {n} numbers, out and in",
        ),
    ]


def in_dot(flop: float, rows: int, n: int, k: int) -> list[Budget]:
    """The product in tl.dot on operands of 16 bits; `rows` with those that only fill tiles."""
    return [
        Budget(
            what="FLOP in tl.dot",
            count="dot",
            least=flop,
            most=2 * rows * filled((n, 256), (k, 256)),
            look=DOT,
            model=f"2 M N K = {flop:,.0f} at least; with {rows} rows, N and K rounded up to 256, at most",
        ),
        Budget(
            what="FLOP in tl.dot on operands widened to fp32",
            count="wide dot",
            most=0,
            look=NARROW,
            model="every operand of at most 16 bits",
        ),
    ]


def beside_dot(each: int, n: int, k: int, times: int | None = None) -> Budget:
    """`each` operations a weight; `times` where weights are unpacked for several tiles of rows."""
    return Budget(
        what="operations beside tl.dot",
        count="operations",
        most=each * (times or 1) * n * k,
        look=WORK,
        model=f"{each} for each of {n} x {k} weights" + (f", {times} times" if times else ""),
    )


def programs(words: str, count: int) -> Budget:
    """Enough that read the words, or whatever else they are called."""
    return Budget(
        what=f"programs that read the {words}",
        tensor="w",
        count="programs",
        least=count,
        look=FILL,
        model=f"one at least for each of {count} multiprocessors",
    )


def _packed(c: Case) -> list[Budget]:
    """Words exactly once, scales at most twice, Y once, and next to no scratch."""
    n, k, group, m = _nkgm(c)
    whole = cost.linear_cost(m, n, k, bits=4, group=group)
    weights, scales = whole.weight_bytes, whole.metadata_bytes
    return [
        Budget(
            what="read of the words",
            tensor="w",
            most=weights,
            least=weights,
            look=ONCE,
            model=f"{n} x {k} weights of 4 bits, once",
        ),
        Budget(
            what="read of the scales",
            tensor="s",
            most=2 * scales,
            least=scales,
            look=SCALES,
            model=f"a scale of 2 bytes for each {group} of {n} x {k} weights, twice",
        ),
        *written(m, n),
    ]


def gemv(c: Case) -> list[Budget]:
    """The packed weight once, and x no more often than programs of four rows would read it."""
    n, k, _, _ = _nkgm(c)
    x = 2 * k
    return [
        *_packed(c),
        Budget(
            what="read of x",
            tensor="x",
            most=x * math.ceil(n / 4),
            least=x,
            look=ROWS,
            model=f"{k} numbers of 2 bytes for every 4 of {n} rows",
        ),
    ]


def _flow(c: Case) -> list[Budget]:
    """Words in whole sectors, and by enough programs."""
    n, k, group, m = _nkgm(c)
    weights = cost.linear_cost(m, n, k, bits=4, group=group).weight_bytes
    return [
        Budget(
            what="sectors of the words",
            tensor="w",
            count="sectors",
            most=1.02 * weights,
            look=NEIGHBOURS,
            model=f"{n} rows of {k // 64} sectors of 32 bytes + 2%",
        ),
        programs("words", c.sm_count),
    ]


def gemv_flow(c: Case) -> list[Budget]:
    """Where there is no clock, what speed comes from: whole sectors, enough programs, and little work a weight."""
    n, k, _, _ = _nkgm(c)
    return [
        *_flow(c),
        work(GEMV_ALL, n * k, f"{n} x {k} weights"),
        Budget(
            what="operations",
            count="operations",
            most=GEMV_WORK * n * k,
            look=WORK,
            model=f"{GEMV_WORK} for each of {n} x {k} weights",
        ),
    ]


def metered_gemm(rng: np.random.Generator) -> Case:
    """Near 12 x 600 x 1300: few enough rows of X for one tile, so that every word is needed by one program."""
    n, k = between(rng, 560, 640), GROUP * between(rng, 9, 11)
    return Case(sizes(n, k, GROUP, between(rng, 9, 16)), sm_count=between(rng, 6, 9), kind="the metered size")


def gemm(c: Case) -> list[Budget]:
    """The packed weight once, its zero points with it, and X as often as tiles of 32 rows of W would read it."""
    n, k, group, m = _nkgm(c)
    zeros = n * k // group
    return [
        *_packed(c),
        Budget(
            what="read of the zero points",
            tensor="z",
            most=2 * zeros,
            least=zeros,
            look=SCALES,
            model=f"a zero point of 1 byte for each {group} of {n} x {k} weights, twice",
        ),
        read_of_x(m, n, k),
    ]


def gemm_flow(c: Case) -> list[Budget]:
    """Where there is no clock: products in tl.dot, little work to unpack a weight, whole sectors, enough programs."""
    n, k, _, m = _nkgm(c)
    return [
        *in_dot(useful(c), filled((m, 16)), n, k),
        work(GEMM_ALL, n * k, f"{n} x {k} weights"),
        beside_dot(GEMM_WORK, n, k),
        *_flow(c),
    ]
