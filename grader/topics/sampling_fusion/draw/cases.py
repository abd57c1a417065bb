"""Draw the inputs of *draw* and limit their cost."""

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import between, odd, spread
from grader.questions.min_programs import side_by_side
from grader.questions.timed import timed
from grader.questions.work import work
from grader.topics.sampling_fusion.shared import (
    ALL_WORK,
    NEIGHBOURS,
    ROWS,
    SECTOR,
    WORK,
    compulsory,
    logits,
    size,
    useful,
)
from grader.topics.sampling_fusion.shared_logits import GREEDY_ZEROS, STRADDLED, TINY
from grader.topics.sampling_fusion.shared_rows import (
    EXACT_TEMPERATURE,
    LATE_NOISE,
    LOW_NOISE,
    OUTNUMBERED,
    TIED_BY_NOISE,
    rising,
)


def hidden_plain(rng: np.random.Generator) -> list[Case]:
    return [
        Case(size(8, odd(rng, 1001, 6001)), "fp32", kind="an odd vocabulary"),
        Case(size(5, between(rng, 250, 350)), "bf16", kind="bf16 logits"),
        Case(size(2, 1), "fp32", kind="a vocabulary of one"),
        Case(size(4, between(rng, 900, 1100)), "fp32", values="large", kind="large logits"),
        Case(size(6, 4200), "fp32", values="equal", kind="equal logits"),
        Case(size(16, between(rng, 3000, 5000)), "fp32", values="pairs", kind="two largest logits far apart"),
        Case(size(6, between(rng, 500, 900)), "fp32", layout=spread(rng, "logits"), kind="no stride of 1"),
        Case(size(24, 200), "fp32", values="fine", kind="logits that fp16 cannot tell apart"),
        Case(size(30, 90), "fp32", layout={"logits": "transposed"}, kind="transposed logits"),
        Case(size(4, 60), "fp32", values="a row banned", kind="logits of -inf"),
        Case(size(6, between(rng, 300, 700)), "fp32", values="far below zero", kind="logits far below zero"),
        Case(
            size(2, odd(rng, 20_001, 70_001)),
            "fp32",
            values="far below zero",
            kind="a large vocabulary far below zero",
        ),
        Case(size(8, between(rng, 300, 700)), "fp32", values=TINY, kind="logits next to zero"),
        Case(
            size(128, between(rng, 900, 1100)),
            "fp32",
            values="close calls",
            kind="scores that lie close together",
        ),
        Case(size(32, between(rng, 60, 90)), "fp32", values="cold close calls", kind="small temperatures"),
        Case(size(32, between(rng, 60, 90)), "fp32", values="hot close calls", kind="large temperatures"),
        Case(size(1, odd(rng, 401, 901)), "fp32", kind="a single row"),
        Case(
            size(40, between(rng, 200, 400)),
            "fp32",
            values="any temperature",
            kind="temperatures from cold to hot",
        ),
        Case(
            size(2, between(rng, 128_300, 136_000)), "fp32", values="a warm tail", kind="a large vocabulary"
        ),
        Case(size(2, between(rng, 200_000, 256_000)), "fp32", values=OUTNUMBERED, kind=OUTNUMBERED),
        Case(size(3, between(rng, 5000, 7000)), "fp32", values=TIED_BY_NOISE, kind=TIED_BY_NOISE),
        Case(size(12, 2), "fp32", values=LOW_NOISE, kind=LOW_NOISE),
        Case(size(16, between(rng, 30, 90)), "fp32", values=GREEDY_ZEROS, kind=GREEDY_ZEROS),
        rising(size(1, between(rng, 40_000, 60_000)), rng),
        Case(size(12, between(rng, 4100, 5000)), "fp32", values=LATE_NOISE, kind=LATE_NOISE),
        Case(size(64, between(rng, 8, 40)), "bf16", values=EXACT_TEMPERATURE, kind=EXACT_TEMPERATURE),
        Case(size(10, between(rng, 34_000, 50_000)), "fp32", values=STRADDLED, kind=STRADDLED),
    ]


def metered_plain(rng: np.random.Generator) -> Case:
    """Near 8500 logits a row, in whole sectors."""
    return Case(size(4, SECTOR * between(rng, 1030, 1100)), "fp32", kind="the metered size")


def by_sectors(case: Case) -> list[Budget]:
    """Replace the clock by the sources of speed: whole sectors, and no more arithmetic than loads can hide."""
    b, v = case.sizes["B"], case.sizes["V"]
    return [
        Budget(
            what="sectors of the logits",
            tensor="logits",
            count="sectors",
            most=1.02 * logits(case),
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
        timed(600, b * v, "logit"),
        side_by_side("read the logits", "logits", "load", -(-b // ROWS), f"one for every {ROWS} of {b} rows"),
    ]


LARGE = Case(size(32, 128256), "fp32", sm_count=132)


def bound(case: Case) -> tuple[float, float]:
    return useful(case), compulsory(case)
