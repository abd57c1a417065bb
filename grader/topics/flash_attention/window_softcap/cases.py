"""Draw the inputs of *window softcap*, and set its budgets."""

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import between, log_uniform, odd, spread
from grader.topics.flash_attention.shared import (
    ANY_SCALE,
    CLUSTERED,
    DIM,
    DIM_EARLY,
    LARGE_SUMS,
    LIGHT,
    LOUD_SCALE,
    LOWEST,
    RISING,
    SATURATED,
    case,
    dots,
    heads_side_by_side,
    kept,
    keys,
    large_scale,
    narrow,
    scale,
    small_scale,
)
from kernels.flash_attention import reference


def sized(**sizes: int) -> Case:
    """Return a case with these sizes, heads in whole groups, and keys enough for the queries and the window."""
    b, h, g, m, n, d, w = (sizes[name] for name in "BHGMNDW")
    return case(b, max(g, h // g * g), g, m, max(m, n, w + 1), d, w=w, softcap=5)


def hidden_window(rng: np.random.Generator) -> list[Case]:
    n, cap = odd(rng, 41, 199), lambda low=1.0, high=60.0: log_uniform(rng, low, high)
    long = between(rng, 4200, 4700)
    return [
        case(1, 2, 1, n, n, 64, w=between(rng, 5, 30), softcap=cap(), kind="an odd length"),
        case(1, 2, 2, 120, 120, 64, "bf16", w=between(rng, 300, 1000), softcap=cap(2, 8), kind="a window wider than the keys"),
        case(1, 1, 1, 90, 90, 64, w=0, softcap=cap(), kind="a window of the query's own key"),
        case(1, 2, 1, 40, 150, 64, w=between(rng, 20, 50), softcap=cap(2, 20), kind="more keys than queries"),
        case(2, 4, 2, 70, 70, 32, w=between(rng, 15, 40), softcap=cap(2, 20), layout=spread(rng, *"qkvo"), kind="grouped heads, no stride of 1"),
        case(1, 2, 1, 50, 60, 32, w=25, softcap=cap(), layout={"k": "spread 7", "v": "padded", "o": "transposed"}, kind="keys and values laid out apart"),
        case(1, 1, 1, 130, 130, 64, w=between(rng, 60, 100), softcap=cap(30, 90), values="extreme scores", kind="extreme scores"),
        case(1, 1, 1, 40, 40, 32, w=between(rng, 12, 30), softcap=cap(0.5, 2), values="extreme scores", kind="scores far beyond the cap"),
        case(1, 2, 1, 60, 80, 64, w=between(rng, 20, 60), softcap=cap(300, 900), values="far below zero", kind="scores far below zero"),
        case(1, 1, 1, 60, odd(rng, 61, 99), 64, "bf16", w=between(rng, 20, 50), softcap=2.0 ** between(rng, 38, 40), values=LOWEST, kind="scores below -1e9"),
        case(1, 2, 1, 50, 50, 32, w=between(rng, 12, 30), softcap=cap(2, 9), values=ANY_SCALE, scale=scale(rng), kind="another scale"),
        case(1, 2, 1, 33, 70, 32, "bf16", w=20, softcap=cap(), values="beyond fp16", kind="values beyond fp16"),
        case(1, 1, 1, 5, long, 32, w=between(rng, 3000, 4000), softcap=cap(), values="flat", kind="a long row of keys"),
        case(1, 1, 1, between(rng, 600, 700), 700, 32, w=between(rng, 70, 200), softcap=cap(), kind="many tiles of rows"),
        case(1, 2, 1, 40, 70, 32, w=between(rng, 20, 60), softcap=cap(2, 9), values=ANY_SCALE, scale=small_scale(rng), kind="a small scale"),
        case(1, 1, 1, 40, 70, 64, w=between(rng, 20, 60), softcap=cap(2, 9), values=ANY_SCALE, scale=large_scale(rng), kind="a large scale"),
        case(1, 2, 1, 20, between(rng, 150, 300), 32, w=between(rng, 63, 140), softcap=cap(), values=LARGE_SUMS, kind=LARGE_SUMS),
        case(1, 2, 1, 9, between(rng, 300, 400), 32, w=400, softcap=cap(300, 900), values=LIGHT, kind=LIGHT),
        case(1, 2, 1, 9, between(rng, 120, 200), 64, w=400, softcap=cap(600, 900), values=SATURATED, kind=SATURATED),
        case(1, 1, 1, between(rng, 100, 190), 250, 64, w=between(rng, 100, 200), softcap=cap(900, 2000), values=RISING, kind=RISING),
        case(1, 2, 1, 40, 50, 64, w=between(rng, 0, 20), softcap=cap(13.5, 15), values="far below zero", kind="low scores under a small cap"),
        case(1, 2, 1, 40, 50, 64, "bf16", w=between(rng, 0, 20), softcap=cap(43, 60), values="far below zero", kind="low scores under a larger cap"),
        case(1, 1, 1, 40, 130, 64, w=between(rng, 60, 100), softcap=cap(5000, 20_000), values="extreme scores", kind="extreme scores far below the cap"),
        case(1, 1, 1, 128, between(rng, 300, 400), 32, "bf16", w=400, softcap=cap(300, 900), values=DIM, kind=DIM),
        case(1, 1, 1, 128, between(rng, 300, 400), 32, "bf16", w=400, softcap=cap(300, 900), values=DIM_EARLY, kind=DIM_EARLY),
        case(1, 2, 1, 60, between(rng, 60, 150), 64, w=200, softcap=cap(100, 300), values=LOUD_SCALE, scale=small_scale(rng), kind=f"{LOUD_SCALE}, a small one"),
        case(1, 1, 1, 60, 90, 32, w=between(rng, 20, 60), softcap=cap(11.15, 11.8), values="extreme scores", kind="scores near a cap whose exp fp16 does not hold"),
        case(16, 16, 16, 1, between(rng, 20, 30), 32, w=200, softcap=cap(300, 900), values=CLUSTERED, kind=CLUSTERED),
        case(2, 8, 8, 30, 40, 32, w=between(rng, 1, 3), softcap=cap(6.5, 8), values=CLUSTERED, kind=f"{CLUSTERED}, a small one"),
    ]  # fmt: skip


def windowed(inputs: dict, c: Case) -> dict:
    more = {"window": (c.sizes["W"], 0), "softcap": c.scalars["softcap"]}
    q, k, v = (inputs[x] for x in "qkv")
    return {"o": reference.attention(q, k, v, causal=True, scale=c.scalars["scale"], **more)[0]}


START = "the start of the loop over keys: nothing before the first row's window is needed"


def metered_window(rng: np.random.Generator) -> Case:
    """Near 1000 rows at the end of 2000 keys with a window near 100: whole tiles of 128 x 256 compute four times that,
    all keys before them fifteen times, and those from N - M keys too early on ten times."""
    m, before = between(rng, 980, 1040), between(rng, 980, 1040)
    return case(
        1,
        2,
        1,
        m,
        m + before,
        64,
        w=between(rng, 90, 120),
        softcap=30,
        sm_count=between(rng, 14, 20),
        kind="the metered size",
    )


def window(c: Case) -> list[Budget]:
    return [
        *keys(c, START),
        *dots(c, START),
        narrow(),
        *kept(c),
        heads_side_by_side(c, "o", "M", "rows"),
    ]
