"""Draw the inputs of *w4a16 gemm* and limit their cost."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import between, odd, spread
from grader.questions.timed import timed
from grader.questions.work import filled, work
from grader.topics.quantization_layouts.shared import (
    EXACT,
    FP32,
    GEMM_ALL,
    GROUP,
    NANS,
    SCALES,
    SMALL_SCALES,
    TILE,
    flow,
    in_dot,
    nkgm,
    read_of_x,
    sizes,
    sizes_at_random,
    some_group,
    useful,
    words_and_scales,
)


def hidden_gemm(rng: np.random.Generator) -> list[Case]:
    """The same with rows of X from one to many, and a zero point for each group."""

    def case(m, n, groups, group, dtype="fp16", **more) -> Case:
        return Case(sizes(n, groups * group, group, m), dtype, **more)

    any_n, few = sizes_at_random(rng)
    return [
        *(
            case(few(), odd(rng, 17, 69), odd(rng, 3, 9), g, d, kind=f"groups of {g}")
            for g, d in ((32, "bf16"), (64, "fp16"), (128, "bf16"))
        ),
        case(1, any_n(), odd(rng, 3, 9), some_group(rng), kind="a single row of X"),
        case(few(), 1, odd(rng, 3, 9), some_group(rng), "bf16", kind="a single row of W"),
        # people change the tile for many rows, so these need a K beyond any block, and strides of their own
        case(
            between(rng, 129, 150),
            between(rng, 3, 9),
            odd(rng, 3, 9),
            64,
            layout={"x": "transposed", "y": "padded"},
            kind="many rows of X",
        ),
        case(odd(rng, 17, 39), any_n(), 3, 64, "bf16", kind="more rows of X than sixteen"),
        case(
            few(), between(rng, 3, 9), 32 * between(rng, 4, 6) + 1, 32, kind="one group more than whole steps"
        ),
        case(5, between(rng, 5, 9), between(rng, 66, 74), 128, **FP32, values="positive", kind="a long sum"),
        case(
            5,
            between(rng, 5, 9),
            between(rng, 66, 74),
            128,
            "bf16",
            **FP32,
            values="positive",
            kind="a long sum in bf16",
        ),
        case(
            few(),
            any_n(),
            odd(rng, 5, 9),
            some_group(rng),
            layout=spread(rng, "w", "s", "z", "x", "y"),
            kind="no stride of 1",
        ),
        case(
            few(),
            any_n(),
            3,
            64,
            layout={"w": "transposed", "x": "transposed", "z": "padded"},
            kind="words and X that lie column by column",
        ),
        case(
            few(),
            any_n(),
            5,
            32,
            "bf16",
            layout={"x": "padded", "s": "transposed", "z": "transposed", "y": "transposed"},
            kind="scales and Y that lie column by column",
        ),
        case(few(), between(rng, 4200, 4700), 1, 32, kind="many rows of W"),
        case(few(), any_n(), 4, 64, "bf16", values="beyond fp16", kind="numbers beyond fp16"),
        case(few(), any_n(), 4, 64, values=SMALL_SCALES, kind=SMALL_SCALES),
        *(case(few(), between(rng, 3, 9), between(rng, 130, 150), 32, values=at, kind=at) for at in NANS),
        case(few(), any_n(), odd(rng, 3, 9), some_group(rng), values="large", kind="large numbers in fp16"),
        *(
            case(few(), odd(rng, 17, 69), 2, 32, dtype, **FP32, values=EXACT, kind="a result in fp32")
            for dtype in ("fp16", "bf16")
        ),
        case(2, between(rng, 28700, 29200), 1, 32, "bf16", kind="more rows of W than any size that is named"),
        case(between(rng, 700, 1300), 3, 1, 32, kind="hundreds of rows of X"),
    ]


GEMM_CYCLES = 34  # of a lane, a weight, 8 with two codes in an OR, 16 if each is converted


def metered_gemm(rng: np.random.Generator) -> Case:
    """Draw sizes near 12 x 600 x 1300: few enough rows of X for one tile, so that one program needs each word."""
    n, k = between(rng, 560, 640), GROUP * between(rng, 9, 11)
    return Case(sizes(n, k, GROUP, between(rng, 9, 16)), sm_count=between(rng, 6, 9), kind="the metered size")


def gemm(c: Case) -> list[Budget]:
    """Allow the packed weight once, with its zero points, and X as often as tiles of 32 rows of W would read it."""
    n, k, group, m = nkgm(c)
    zeros = n * k // group
    return [
        *words_and_scales(c),
        Budget(
            what="read of the zero points",
            tensor="z",
            most=2 * math.ceil(m / TILE) * zeros,
            least=zeros,
            look=SCALES,
            model=f"a zero point of 1 byte for each {group} of {n} x {k} weights, twice",
        ),
        read_of_x(m, n, k),
    ]


SECTOR = 32  # bytes


def gemm_flow(c: Case) -> list[Budget]:
    """Replace the clock by counts: matmuls in tl.dot, little work to unpack a weight, whole sectors, enough programs."""
    n, k, group, m = nkgm(c)
    unpacked = math.ceil(m / TILE) * n * k  # once for each tile of rows of X
    halves = max(
        1, SECTOR // (group // 2)
    )  # an iteration that takes one group may ask for a part of a sector
    return [
        *in_dot(useful(c), filled((m, TILE)), n, k),
        work(GEMM_ALL, unpacked, f"{n} x {k} weights"),
        timed(GEMM_CYCLES, unpacked, "weight"),
        *flow(c, halves),
    ]


FEW_ROWS = Case(sizes(28672, 8192, 128, 16), "bf16", sm_count=132)
