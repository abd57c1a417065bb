"""What a draw may spend on its metered case: the logits once, little scratch, little arithmetic."""

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Budget, Case
from grader.questions.draws import between
from grader.questions.side_by_side import side_by_side
from grader.questions.work import work
from grader.topics.sampling_fusion.cases import size
from kernels.sampling_fusion import cost

ONCE = "how often the logits come from memory: scale, add noise and keep the best as they pass"
NEIGHBOURS = "which neighbouring lanes read neighbouring logits: a sector is 32 bytes, used or not"
LEFT = "what goes through memory between two launches: a score and a token for each program are enough"
WORK = 48  # operations a logit, where two logarithms, a division, a sum and a comparison take some 10
ALL_WORK = 320  # of every kind, a logit: most of it makes a random number
SECTOR = 8  # fp32 logits
ROWS = 2  # at most as many rows a program


def metered_plain(rng: np.random.Generator) -> Case:
    """Near 8500 logits a row, in whole sectors."""
    return Case(size(4, SECTOR * between(rng, 1030, 1100)), "fp32", kind="the metered size")


def metered_masked(rng: np.random.Generator) -> Case:
    return Case(
        size(4, SECTOR * between(rng, 516, 560), between(rng, 7, 10)), "fp32", kind="the metered size"
    )


def metered_filtered(rng: np.random.Generator) -> Case:
    return Case(size(4, SECTOR * between(rng, 200, 255)), "fp32", kind="the metered size")


def useful(case: Case) -> float:
    return 10.0 * case.sizes["B"] * case.sizes["V"]


def compulsory(case: Case) -> float:
    return cost.compulsory_bytes(case.sizes["B"], case.sizes["V"], DTYPES[case.dtype].itemsize)


def _logits(case: Case) -> int:
    return case.sizes["B"] * case.sizes["V"] * DTYPES[case.dtype].itemsize


def one_read(case: Case) -> list[Budget]:
    b, v = case.sizes["B"], case.sizes["V"]
    every, groups = _logits(case), -(-v // cost.GROUP)
    return [
        Budget(
            what="read of the logits",
            tensor="logits",
            most=every,
            least=every,
            look=ONCE,
            model=f"{b} rows of {v} logits of 4 bytes, once",
        ),
        Budget(
            what="scratch, loaded and stored",
            tensor="scratch",
            access="any",
            most=2 * b * groups * (cost.FP32 + cost.INT32),
            look=LEFT,
            model=f"a score and a token for every {cost.GROUP} of {b} x {v} logits, out and in",
        ),
        Budget(
            what="write of the tokens",
            tensor="token",
            access="store",
            most=cost.TOKENS * b,
            least=cost.TOKENS * b,
            look=LEFT,
            model=f"{b} tokens of 4 bytes, once",
        ),
    ]


def row_by_row(case: Case) -> list[Budget]:
    """One read, by programs side by side."""
    b = case.sizes["B"]
    rows = side_by_side(
        "read the logits", "logits", "load", -(-b // ROWS), f"one for every {ROWS} of {b} rows"
    )
    return [*one_read(case), rows]


def one_read_masked(case: Case) -> list[Budget]:
    b, v, n = (case.sizes[x] for x in "BVL")
    blocks = -(-v // cost.GROUP)
    look = "how often a block of logits asks for its words of the mask, and for the history"
    return [
        *row_by_row(case),
        Budget(
            what="read of the mask",
            tensor="allowed",
            most=cost.INT32 * b * 32 * -(-v // 32),
            least=cost.INT32 * b * -(-v // 32),
            look=look,
            model=f"at most a word of 4 bytes for each of {b} x {v} logits",
        ),
        Budget(
            what="read of the history",
            tensor="history",
            most=cost.INT32 * b * n * blocks,
            least=cost.INT32 * b * n,
            look=look,
            model=f"{b} rows of {n} places of 4 bytes, for every {cost.GROUP} logits",
        ),
    ]


def by_sectors(case: Case) -> list[Budget]:
    """Where there is no clock, what speed comes from: whole sectors, and no more arithmetic than hides behind them."""
    b, v = case.sizes["B"], case.sizes["V"]
    return [
        Budget(
            what="sectors of the logits",
            tensor="logits",
            count="sectors",
            most=1.02 * _logits(case),
            look=NEIGHBOURS,
            model=f"{b} rows of {v // SECTOR} sectors of 32 bytes + 2%",
        ),
        Budget(
            what="operations",
            count="operations",
            most=WORK * b * v,
            look="what is computed more than once for a logit",
            model=f"{WORK} for each of {b} x {v} logits",
        ),
        work(ALL_WORK, b * v, f"{b} x {v} logits"),
        side_by_side("read the logits", "logits", "load", -(-b // ROWS), f"one for every {ROWS} of {b} rows"),
    ]
