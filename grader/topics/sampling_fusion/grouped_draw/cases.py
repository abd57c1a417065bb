"""Draw the inputs of *grouped draw* and limit their cost."""

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Budget, Case
from grader.questions.draws import between, odd, spread
from grader.questions.min_programs import side_by_side
from grader.questions.timed import timed
from grader.questions.work import work
from grader.topics.sampling_fusion.shared import ALL_WORK, LEFT, NEIGHBOURS, WORK, compulsory, size, useful
from grader.topics.sampling_fusion.shared_logits import (
    BETTER,
    BLOCKS_FAR_BELOW,
    CLOSE_AND_FAR,
    MANY_TIED,
    RISING,
    TIED,
    TINY,
)
from grader.topics.sampling_fusion.shared_rows import (
    A_BIT_APART,
    HELD_UP,
    JUST,
    gumbel_of,
    in_turn,
    neighbours,
    plain_inputs,
    rising,
    seeds,
    telling_seeds,
    uniform,
)
from kernels.sampling_fusion import cost

MOST = 64  # the largest top-k, and so the most groups that are read again
AGAIN = MOST * cost.GROUP
SECTOR = 8  # fp32 logits
LOW = 50.0  # below zero
BELOW = "apart, below zero"
ZERO_MAXIMA = "groups whose largest logits are zeros of both signs"
MANY_TRIES = 1000  # seeds
FEW = 1 / 4  # of these zeros have one sign, the first ones among them
BESIDE_FAR = "neighbours among the numbers of fp32, beside numbers far below"
OUTNUMBERED_GROUPS = "a best group that many low ones outnumber"
APART = {
    "apart": cost.GROUP,
    BELOW: cost.GROUP,
    "crowded": 1,
    "all warm": 1600,
}  # tokens between the best ones
TOLD = (
    "all warm",
    "apart",
    BELOW,
    "crowded",
    "few tokens",
    "steps",
    "zeros",
    "fine",
    "mostly banned",
    TINY,
    A_BIT_APART,
    BESIDE_FAR,
    CLOSE_AND_FAR,
)  # their seeds are chosen to tell


FEW_GROUPS = BELOW, BLOCKS_FAR_BELOW, A_BIT_APART, BESIDE_FAR  # stay


def inputs(case: Case, rng: np.random.Generator) -> dict:
    b, v = case.sizes["B"], case.sizes["V"]
    drawn = plain_inputs(case, rng)
    if case.values in APART:
        drawn["logits"] = lifted(drawn["logits"], rng, APART[case.values])
    if case.values == "steps":  # at any k there are equals at the border, and larger ones
        level = np.floor(-np.log2(1 - rng.random((b, v))))
        drawn["logits"] = (rng.uniform(0.4, 0.6, (b, 1)) * level).astype(drawn["logits"].dtype)
    k = rng.integers(2, 6, b) if case.values == "zeros" else rng.integers(1, min(MOST, v) + 1, b)
    if case.values == "crowded":  # as many groups as tokens are read again: no row has most of them
        k = rng.integers(MOST // 4, MOST + 1, b)
    if case.values in ("all warm", RISING, CLOSE_AND_FAR):  # the largest k in every row
        k[:] = MOST
    if case.values in ("apart", "fewer", "close calls"):
        k[in_turn(rng, np.arange(b), b)[: -(-b // 2)]] = MOST
    if case.values == BELOW:  # a group that is chosen in error leaves no room for the best one
        drawn["logits"] = (drawn["logits"].astype(np.float32) - LOW).astype(drawn["logits"].dtype)
    if case.values == "apart":
        k[0] = 1  # so few groups are enough for no other row
    if case.values == MANY_TIED:  # some of them stay
        k = rng.integers(8, 13, b)
    if case.values == A_BIT_APART:  # few of the groups, whose maxima are as close
        drawn["logits"] = neighbours(rng, b, v).astype(drawn["logits"].dtype)
    if case.values == BESIDE_FAR:
        drawn["logits"] = neighbours(rng, b, v)
        drawn["logits"][:, -cost.GROUP :] = -(10.0 ** rng.uniform(0, 30, (b, 1)))
    if case.values in FEW_GROUPS:
        k = rng.integers(1, 4, b)
    if case.values == ZERO_MAXIMA:  # of equals the first groups stay, whatever their signs
        k = rng.integers(1, 5, b)
        drawn["logits"] = zero_maxima(drawn["logits"], k, rng)
    if case.values == OUTNUMBERED_GROUPS:
        return outnumbered_groups(drawn, rng)
    drawn["top_k"] = k.astype(np.int32)
    return telling_seeds(drawn, rng) if case.values in TOLD else drawn


def outnumbered_groups(drawn: dict, rng: np.random.Generator) -> dict:
    """Let a token far below the best one win by its noise, in one of as many groups as may be read again. All other tokens are
    lower still."""
    b, v = drawn["logits"].shape
    x, told = np.full((b, v), -float(HELD_UP)), drawn["seed"].copy()
    for i in range(b):
        groups = rng.permutation(-(-v // cost.GROUP))[:MOST]
        at = np.minimum(v - 1, cost.GROUP * groups + rng.integers(cost.GROUP, size=groups.size))
        tries = seeds(rng, MANY_TRIES)
        numbers = gumbel_of(uniform(tries[:, None], at))
        ahead = numbers[:, 1:].max(1, initial=-np.inf) - numbers[:, 0]
        told[i], most = tries[ahead.argmax()], ahead.max()
        x[i, at], x[i, at[0]] = 0.0, max(0.0, most - JUST)
    t = drawn["temperature"].astype(np.float64)[:, None]
    logits = (x * t).astype(np.float32).astype(drawn["logits"].dtype)
    return drawn | {"logits": logits, "seed": told, "top_k": np.full(b, MOST, np.int32)}


def zero_maxima(logits: np.ndarray, k: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Let each group's largest logit be a zero. The first k have the sign that few have, in every other row the minus."""
    x, starts = -np.abs(logits) - 1, np.arange(0, logits.shape[1], cost.GROUP)
    for row, stay, sign in zip(x, k, in_turn(rng, (-1, 1), len(x)), strict=True):
        at = rng.integers(starts, np.minimum(starts + cost.GROUP, row.size))
        few = (rng.random(starts.size) < FEW) | (np.arange(starts.size) < stay)
        row[at] = np.where(few, sign * 0.0, sign * -0.0)
    return x


def lifted(logits: np.ndarray, rng: np.random.Generator, apart: int) -> np.ndarray:
    """Space the best 80 of each row this far apart, nearly equal, each in a group of its own, or in two or three
    groups.

    In every other row the last one is the row's last token. A short row has room for fewer."""
    x = logits.astype(np.float32)
    count = min(80, 1 + (x.shape[1] - 1) // apart)
    for i, row in enumerate(x):
        last = row.size - 1 - (count - 1) * apart
        first = last if i % 2 else between(rng, 0, last)
        at = first + apart * np.arange(count)
        row[at] = row.max() + (1 + rng.permutation(count)) / 4096
    return x.astype(logits.dtype)


def crossed(c: Case) -> Case | None:
    """Leave out best tokens far apart where a vocabulary has no room for 80."""
    tied = cost.GROUP * (TIED + BETTER) if c.values == MANY_TIED else 0
    return None if c.sizes["V"] <= max(80 * APART.get(c.values, 0), tied) else c


def hidden(rng: np.random.Generator) -> list[Case]:
    return [
        Case(size(4, odd(rng, 1001, 6001)), "fp32", kind="an odd vocabulary"),
        Case(size(4, between(rng, 2500, 3500)), "bf16", kind="bf16 logits"),
        Case(size(3, 1), "fp32", kind="a vocabulary of one"),
        Case(size(6, between(rng, 20, 50)), "fp32", values="fewer", kind="fewer tokens than top-k asks for"),
        Case(size(16, between(rng, 6000, 7000)), "fp32", values="apart", kind="the best far apart"),
        Case(size(12, odd(rng, 5001, 7001)), "fp32", values=BELOW, kind="many negative logits"),
        Case(size(12, between(rng, 5000, 7000)), "fp32", values=BLOCKS_FAR_BELOW, kind=BLOCKS_FAR_BELOW),
        Case(size(12, between(rng, 4900, 5900)), "fp32", values=MANY_TIED, kind=MANY_TIED),
        Case(size(8, between(rng, 4098, 4160)), "fp32", values="crowded", kind="the best side by side"),
        Case(size(16, between(rng, 300, 500)), "fp32", values="steps", kind="equal logits at the border"),
        Case(size(12, between(rng, 300, 500)), "fp32", values="zeros", kind="zeros of both signs"),
        Case(size(16, between(rng, 150, 250)), "fp32", values="few tokens", kind="rows of negative logits"),
        Case(size(6, 4200), "fp32", values="equal", kind="equal logits"),
        Case(size(4, between(rng, 900, 1100)), "fp32", values="large", kind="large logits"),
        Case(
            size(12, between(rng, 180, 250)),
            "fp32",
            values="mostly banned",
            kind="few logits that are not -inf",
        ),
        Case(
            size(12, between(rng, 300, 600)),
            "fp32",
            layout={"logits": "transposed"},
            kind="transposed logits",
        ),
        Case(size(6, between(rng, 500, 900)), "fp32", layout=spread(rng, "logits"), kind="no stride of 1"),
        Case(size(12, between(rng, 300, 700)), "fp32", values=TINY, kind="logits next to zero"),
        Case(size(24, 200), "fp32", values="fine", kind="logits that fp16 cannot tell apart"),
        Case(size(12, between(rng, 6000, 8000)), "fp32", values=CLOSE_AND_FAR, kind=CLOSE_AND_FAR),
        Case(size(16, between(rng, 600, 900)), "fp32", values=A_BIT_APART, kind="logits one bit apart"),
        Case(
            size(16, between(rng, 400, 700)),
            "fp32",
            values=BESIDE_FAR,
            kind="logits one bit apart, and far ones",
        ),
        Case(size(6, between(rng, 300, 700)), "fp32", values="far below zero", kind="logits far below zero"),
        Case(
            size(96, between(rng, 80, 160)),
            "fp32",
            values="close calls",
            kind="scores that lie close together",
        ),
        Case(
            size(40, between(rng, 200, 400)),
            "fp32",
            values="any temperature",
            kind="temperatures from cold to hot",
        ),
        Case(size(4, between(rng, 128_300, 134_000)), "fp32", values="all warm", kind="a large vocabulary"),
        Case(
            size(6, between(rng, 100_000, 130_000)),
            "fp32",
            values="apart",
            kind="a large vocabulary whose best tokens lie together",
        ),
        rising(size(2, between(rng, 33_000, 36_000)), rng),
        Case(size(12, between(rng, 6600, 8000)), "fp32", values=ZERO_MAXIMA, kind=ZERO_MAXIMA),
        Case(size(12, between(rng, 4200, 5000)), "fp32", values=OUTNUMBERED_GROUPS, kind=OUTNUMBERED_GROUPS),
    ]


def metered(rng: np.random.Generator) -> Case:
    """Draw sizes near 33,000 logits a row, in whole sectors, so that at most an eighth is read again."""
    return Case(size(2, SECTOR * between(rng, 4000, 4200)), "fp32", kind="the metered size")


ALONE = 1 << 16  # logits that one program may read alone


def read_again(case: Case) -> list[Budget]:
    b, v = case.sizes["B"], case.sizes["V"]
    groups, item = -(-v // cost.GROUP), DTYPES[case.dtype].itemsize
    twice = "how often the logits come from memory: once for the maxima, and then the chosen groups alone"
    return [
        Budget(
            what="read of the logits",
            tensor="logits",
            most=b * (v + AGAIN) * item,
            least=b * v * item,
            look=twice,
            model=f"{b} rows of {v} logits of 4 bytes once, and {MOST} groups of {cost.GROUP} of each again",
        ),
        Budget(
            what="scratch, loaded and stored",
            tensor="scratch",
            access="any",
            most=2 * 8 * b * (groups + MOST),
            look="what goes through memory between launches: a maximum for each group, the numbers of the chosen ones",
            model=f"8 bytes for each of {b} x {groups} groups and {b} x {MOST} chosen ones, out and in",
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


def by_sectors(case: Case) -> list[Budget]:
    """Replace the clock by counts: whole sectors, and arithmetic that loads can hide."""
    b, v = case.sizes["B"], case.sizes["V"]
    return [
        Budget(
            what="sectors of the logits",
            tensor="logits",
            count="sectors",
            most=1.02 * b * (v + AGAIN) * 4,
            look=NEIGHBOURS,
            model=f"{b} rows of {v // SECTOR} sectors of 32 bytes, {AGAIN // SECTOR} of each again, + 2%",
        ),
        Budget(
            what="operations",
            count="operations",
            most=WORK * b * (v + AGAIN),
            look="what is computed for all logits though it concerns the chosen groups alone",
            model=f"{WORK} for each of {b} x ({v} + {AGAIN}) logits",
        ),
        work(ALL_WORK, b * (v + AGAIN), f"{b} x ({v} + {AGAIN}) logits"),
        timed(120, b * (v + AGAIN), "logit"),
        side_by_side(
            "read the logits",
            "logits",
            "load",
            min(b * -(-v // ALONE), max(b, case.sm_count)),
            f"one for every {ALONE:,} of {v} logits in each of {b} rows, or for each multiprocessor",
            of_work=False,
        ),
    ]


def bound(case: Case) -> tuple[float, float]:
    return useful(case), compulsory(case)
