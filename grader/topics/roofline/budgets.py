"""What LayerNorm(GELU(x)) may spend on its metered case: x once, y once, and what every row asks of w and b."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import between
from grader.questions.side_by_side import side_by_side
from grader.questions.work import work
from grader.topics.roofline.cases import case as sized
from kernels.roofline import cost

KEPT = "where the row is kept between the two passes of the norm: in registers, not in memory"
NEIGHBOURS = "which neighbouring lanes read neighbouring addresses: a sector is 32 bytes, used or not"
SECTOR = 16  # elements of 2 bytes; rows of whole sectors, so that no row shares one with the next
EDGES = 1.02
ROWS = 8  # at most as many rows a program
WORK = 96  # operations an element, where a kernel as it should be takes some 15
FLOP = 20.0  # an element: GELU, two sums, the norm


def metered(rng: np.random.Generator) -> Case:
    """Near 64 x 960, a row of whole sectors that fills no power of two."""
    return sized(between(rng, 56, 72), SECTOR * between(rng, 54, 63), kind="the metered size")


def _tensor(c: Case) -> float:
    return cost.tensor_bytes(c.sizes["M"], c.sizes["N"])


def useful(c: Case) -> float:
    return FLOP * c.sizes["M"] * c.sizes["N"]


def one_pass_traffic(c: Case) -> list[Budget]:
    m, n, size = c.sizes["M"], c.sizes["N"], _tensor(c)
    vector = cost.row_vector_bytes(m, n)
    again = f"{m} rows, each with its {n} numbers of 4 bytes"
    return [
        Budget(
            what="read of x",
            tensor="x",
            most=size,
            least=size,
            look=KEPT,
            model=f"{m} x {n} elements of 2 bytes, once",
        ),
        Budget(
            what="write of y",
            tensor="y",
            access="store",
            most=size,
            least=size,
            look=KEPT,
            model=f"{m} x {n} elements of 2 bytes, once",
        ),
        Budget(
            what="read of w",
            tensor="w",
            most=vector,
            least=4 * n,
            model=again,
            look="how often a row asks for the weight",
        ),
        Budget(
            what="read of b",
            tensor="b",
            most=vector,
            least=4 * n,
            model=again,
            look="how often a row asks for the bias",
        ),
        Budget(
            what="scratch, loaded and stored",
            tensor="scratch",
            access="any",
            most=16 * m,
            look=KEPT,
            model="two sums of 4 bytes a row, out and in",
        ),
    ]


def by_sectors(c: Case) -> list[Budget]:
    """Where there is no clock, what speed comes from: whole sectors, and no more arithmetic than hides behind them."""
    m, n, most = c.sizes["M"], c.sizes["N"], EDGES * _tensor(c)
    model = f"{m} rows of {n // SECTOR} sectors of 32 bytes + 2%"
    return [
        Budget(what="sectors of x", tensor="x", count="sectors", most=most, model=model, look=NEIGHBOURS),
        Budget(
            what="sectors of y",
            tensor="y",
            access="store",
            count="sectors",
            most=most,
            model=model,
            look=NEIGHBOURS,
        ),
        Budget(
            what="operations",
            count="operations",
            most=WORK * m * n,
            model=f"{WORK} for each of {m} x {n} elements",
            look="what is computed more than once for an element",
        ),
        work(WORK, m * n, f"{m} x {n} elements"),
        side_by_side("store y", "y", "store", math.ceil(m / ROWS), f"one for every {ROWS} of {m} rows"),
    ]
