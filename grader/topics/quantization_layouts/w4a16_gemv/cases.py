"""Draw the inputs of *w4a16 gemv* and limit their cost."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import between, odd, spread
from grader.questions.min_programs import side_by_side
from grader.questions.timed import timed
from grader.questions.work import work
from grader.topics.quantization_layouts.shared import (
    BOTH_SIGNS,
    EXACT,
    FP32,
    GEMV_ALL,
    GROUP,
    NANS,
    ROWS,
    SMALL,
    SMALL_SCALES,
    flow,
    nkgm,
    sizes,
    sizes_at_random,
    some_group,
    words_and_scales,
)


def hidden_gemv(rng: np.random.Generator) -> list[Case]:
    """Draw fresh sizes each time. Each case catches a mistake that no other one is sure to catch."""

    def case(n, groups, group, dtype="fp16", **more) -> Case:
        return Case(sizes(n, groups * group, group), dtype, **more)

    any_n, _ = sizes_at_random(rng)
    return [
        *(
            case(odd(rng, 17, 69), odd(rng, 3, 9), g, d, kind=f"groups of {g}")
            for g, d in ((32, "bf16"), (64, "fp16"), (128, "bf16"))
        ),
        case(1, odd(rng, 3, 9), some_group(rng), kind="a single row"),
        case(any_n(), 1, some_group(rng), "bf16", kind="a single group"),
        case(between(rng, 3, 9), 32 * between(rng, 4, 6) + 1, 32, kind="one group more than whole steps"),
        case(between(rng, 5, 9), between(rng, 66, 74), 128, **FP32, values="positive", kind="a long sum"),
        case(
            between(rng, 5, 9),
            between(rng, 66, 74),
            128,
            "bf16",
            **FP32,
            values="positive",
            kind="a long sum in bf16",
        ),
        case(
            any_n(),
            odd(rng, 5, 9),
            some_group(rng),
            layout=spread(rng, "w", "s", "x", "y"),
            kind="no stride of 1",
        ),
        case(
            any_n(),
            3,
            64,
            layout={"w": "transposed", "s": "padded"},
            values=BOTH_SIGNS,
            kind="scales of both signs, words that lie column by column",
        ),
        case(
            any_n(),
            5,
            32,
            "bf16",
            layout={"w": "padded", "s": "transposed"},
            kind="scales that lie column by column",
        ),
        case(between(rng, 4200, 4700), 1, 32, kind="many rows"),
        case(any_n(), 4, 64, "bf16", values="beyond fp16", kind="numbers beyond fp16"),
        case(any_n(), 4, 64, values=SMALL_SCALES, kind=SMALL_SCALES),
        *(
            case(between(rng, 1, 3), between(rng, 960, 1024), 32, values=at, kind=f"{at} of a long x")
            for at in NANS
        ),
        case(any_n(), odd(rng, 3, 9), some_group(rng), values="large", kind="large numbers in fp16"),
        *(
            case(odd(rng, 17, 69), 2, 32, dtype, **FP32, values=EXACT, kind="a result in fp32")
            for dtype in ("fp16", "bf16")
        ),
        case(any_n(), odd(rng, 3, 9), some_group(rng), **FP32, values=SMALL, kind=SMALL),
        case(between(rng, 28700, 29200), 1, 32, "bf16", kind="more rows than any size that is named"),
    ]


# cycles of a lane a weight: 13 without conversions, 23 if each number is converted, and a last step that K does not
# fill counts whole
GEMV_CYCLES = 34
ALONE = 1024  # most rows of y that one program stores


def metered_gemv(rng: np.random.Generator) -> Case:
    """Draw sizes near 600 x 1300: rows of whole sectors, and programs of 16 rows still outnumber the SMs."""
    n, k = between(rng, 560, 640), GROUP * between(rng, 9, 11)
    return Case(sizes(n, k, GROUP), sm_count=between(rng, 14, 20), kind="the metered size")


def gemv(c: Case) -> list[Budget]:
    """Allow the packed weight once, and x no more often than programs of four rows would read it."""
    n, k, _, _ = nkgm(c)
    x = 2 * k
    return [
        *words_and_scales(c),
        Budget(
            what="read of x",
            tensor="x",
            most=x * math.ceil(n / 4),
            least=x,
            look=ROWS,
            model=f"{k} numbers of 2 bytes for every 4 of {n} rows",
        ),
    ]


def gemv_flow(c: Case) -> list[Budget]:
    """Replace the clock by the sources of speed: whole sectors, enough programs, and little work a weight."""
    n, k, _, _ = nkgm(c)
    return [
        *flow(c),
        side_by_side(
            "store y",
            "y",
            "store",
            min(c.sm_count, math.ceil(n / ALONE)),
            f"one for every {ALONE:,} of {n:,} rows, or for each of {c.sm_count} multiprocessors",
        ),
        work(GEMV_ALL, n * k, f"{n} x {k} weights"),
        timed(GEMV_CYCLES, n * k, "weight"),
    ]


LARGE = Case(sizes(28672, 8192, 128), "bf16", sm_count=132)
