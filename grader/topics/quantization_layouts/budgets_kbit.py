"""What a codebook layer may spend on its metered case: k bits a weight, once for each sixteen rows that need them."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import between
from grader.questions.work import filled, work
from grader.topics.quantization_layouts.budgets import (
    NEIGHBOURS,
    ONCE,
    beside_dot,
    in_dot,
    programs,
    read_of_x,
    written,
)
from grader.topics.quantization_layouts.cases_kbit import ROWS as ROWS_SAID
from grader.topics.quantization_layouts.cases_kbit import sizes, some_bits, to_experts
from grader.topics.quantization_layouts.wanted import BLOCK
from kernels.quantization_layouts import cost

SCALES = "a word of a plane covers 32 columns, and so does a scale: one belongs to the other"
IDLE = "which weights are read although no row needs them, and which once more for rows that share a tile"
TILE = 16  # rows of X that tensor cores take as one
OPERATIONS = 6  # beside tl.dot, a weight, where a kernel as it should be takes some 3
ALL_WORK = 40  # of every kind, a weight, beside four for each of its levels
SECTOR = 256  # columns whose bits of one plane fill a sector


def metered_kbit(rng: np.random.Generator) -> Case:
    """Near 12 x 600 x 1300: few enough rows of X for one tile, and rows of each plane in whole sectors."""
    n, k = between(rng, 560, 640), SECTOR * between(rng, 4, 6)
    drawn = sizes(some_bits(rng), n, k, between(rng, 9, TILE))
    return Case(drawn, sm_count=between(rng, 6, 9), kind="the metered size")


def metered_experts(rng: np.random.Generator) -> Case:
    """Eight experts near 200 x 1000: two without rows, one with more than a tile of them."""
    counts = [0, 0, between(rng, TILE + 1, 2 * TILE), *(between(rng, 1, TILE) for _ in range(5))]
    n, k = between(rng, 180, 220), SECTOR * between(rng, 3, 5)
    found = rng.permutation(counts).tolist()
    return to_experts(some_bits(rng), n, k, found, sm_count=between(rng, 9, 11), kind="the metered size")


def rows_of_experts(c: Case) -> list[int]:
    """How many rows each expert of a metered or compiled case gets; all of them where there are no experts."""
    return [int(n) for n in c.values.partition(ROWS_SAID)[2].split()] or [c.sizes["M"]]


def useful(c: Case) -> float:
    bits, n, k, m = (c.sizes[s] for s in ("BITS", "N", "K", "M"))
    return cost.linear_cost(m, n, k, bits=bits, group=BLOCK).flops


def read_times(c: Case) -> tuple[int, int]:
    """Weights that have rows, and how often tiles of sixteen rows read one."""
    counts = [n for n in rows_of_experts(c) if n]
    return len(counts), sum(math.ceil(n / TILE) for n in counts)


def traffic(c: Case) -> list[Budget]:
    """Planes and scales of the weights that have rows, X by tiles of 32 rows of W, Y once, and next to no scratch."""
    bits, n, k, m = (c.sizes[s] for s in ("BITS", "N", "K", "M"))
    needed, read = read_times(c)
    one = cost.linear_cost(m, n, k, bits=bits, group=BLOCK)
    of = f"{needed} weights of experts that have rows" if "E" in c.sizes else "the weight"
    times = f"{read} times in all, by tiles of {TILE} rows" if "E" in c.sizes else "once"
    return [
        Budget(
            what="read of the planes",
            tensor="w",
            most=read * one.weight_bytes,
            least=needed * one.weight_bytes,
            look=IDLE if "E" in c.sizes else ONCE,
            model=f"{n} x {k} codes of {bits} bits of {of}, {times}",
        ),
        Budget(
            what="read of the scales",
            tensor="s",
            most=2 * read * one.metadata_bytes,
            least=needed * one.metadata_bytes,
            look=SCALES,
            model=f"a scale of 2 bytes for each {BLOCK} of {n} x {k} codes, twice as often as the codes",
        ),
        read_of_x(m, n, k),
        *written(m, n),
    ]


def flow(c: Case) -> list[Budget]:
    """What speed comes from, counted: products in tl.dot, little work a weight, whole sectors, enough programs."""
    bits, n, k, m = (c.sizes[s] for s in ("BITS", "N", "K", "M"))
    _, read = read_times(c)
    weight_bytes = cost.linear_cost(m, n, k, bits=bits, group=BLOCK).weight_bytes
    return [
        *in_dot(useful(c), sum(filled((rows, 2 * TILE)) for rows in rows_of_experts(c)), n, k),
        work(ALL_WORK + 4 * 2**bits, read * n * k, f"{read} times {n} x {k} weights"),
        beside_dot(OPERATIONS, n, k, read),
        Budget(
            what="sectors of the planes",
            tensor="w",
            count="sectors",
            most=1.02 * read * weight_bytes,
            look=NEIGHBOURS,
            model=f"{read} times {bits} planes of {n} rows of {k // SECTOR} sectors of 32 bytes + 2%",
        ),
        programs("planes", c.sm_count),
    ]
