"""Draw the inputs of *split decode*, and set its budgets."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import between, odd, spread
from grader.questions.min_programs import side_by_side
from grader.questions.timed import timed
from grader.questions.work import filled
from grader.questions.work import work as every_kind
from grader.topics.flash_attention.shared import (
    ABOVE,
    ANY_SCALE,
    DEEPEST,
    DIM,
    DIM_EARLY,
    FAINT,
    HIGHEST,
    LARGE_SUMS,
    LIGHT,
    LOUD_SCALE,
    LOWEST,
    NAN,
    OUTPUT,
    RISING,
    TIED,
    ZEROS,
    keys_of,
    large_scale,
    narrow,
    queries,
    scale,
    small_scale,
    values,
    with_nan,
)
from kernels.flash_attention import cost, reference


def decode_operands(c: Case, rng: np.random.Generator) -> dict:
    b, h, g, n, d = (c.sizes[x] for x in ("B", "H", "G", "N", "D"))
    found = {
        "q": queries(rng, (b, h, d), c),
        "k": keys_of(rng, (b, g, n, d), c),
        "v": values(rng, (b, g, n, d), c),
    }
    return with_nan(found, c, rng) if c.values == NAN else found


def decode_case(b, h, g, n, d, dtype="fp16", *, scale=None, **more) -> Case:
    """A decode step: one query a sequence."""
    sizes = dict(zip("BHGND", map(int, (b, h, g, n, d)), strict=True))
    return Case(sizes, dtype, scalars={"scale": float(d**-0.5 if scale is None else scale)}, **more)


def sized(**sizes: int) -> Case:
    """Return a case with these sizes, heads in whole groups."""
    b, h, g, n, d = (sizes[name] for name in "BHGND")
    return decode_case(b, max(g, h // g * g), g, n, d)


def hidden_decode(rng: np.random.Generator) -> list[Case]:
    long = between(rng, 8300, 9000)
    return [
        decode_case(1, 4, 1, odd(rng, 501, 799), 64, kind="an odd number of keys"),
        decode_case(3, 8, 2, odd(rng, 21, 199), 64, "bf16", kind="grouped heads in a batch"),
        decode_case(1, 2, 2, 1, 64, kind="a single key"),
        decode_case(2, 6, 2, 300, 128, "bf16", layout=spread(rng, *"qkvo"), kind="three query heads a key head, of dimension 128"),
        # a single multiprocessor means few splits, each of many tiles, with maxima far apart
        decode_case(1, 8, 1, 700, 64, values="extreme scores", sm_count=1, kind="extreme scores"),
        # 601 to 639 keys aren't a power of two of tiles of 32 to 256, so the join has slots without a split
        decode_case(1, 8, 2, between(rng, 601, 639), 64, values="far below zero", kind="scores far below zero"),
        decode_case(1, 4, 2, odd(rng, 201, 399), 64, "bf16", values=LOWEST, kind="scores below -1e9"),
        decode_case(1, 4, 2, odd(rng, 201, 399), 64, "bf16", values=DEEPEST, kind=DEEPEST),
        decode_case(1, 20, 1, 150, 64, kind="twenty query heads a key head"),
        decode_case(1, between(rng, 40, 64), 1, between(rng, 500, 700), 64, sm_count=between(rng, 9, 12), kind="dozens of query heads a key head"),
        decode_case(1, 4, 2, between(rng, 601, 639), 32, values=ZEROS, kind=ZEROS),
        decode_case(1, 4, 2, between(rng, 301, 439), 64, values=RISING, kind=RISING),
        decode_case(1, 4, 2, between(rng, 601, 639), 32, values=NAN, kind=NAN),
        decode_case(1, 4, 2, 200, 32, "bf16", values="beyond fp16", kind="values beyond fp16"),
        decode_case(2, 4, 2, between(rng, 200, 300), 64, layout=spread(rng, *"qkvo"), kind="no stride of 1"),
        decode_case(1, 4, 2, 260, 64, layout={"k": "padded", "v": "transposed"}, kind="keys padded, values transposed"),
        decode_case(1, 2, 1, 90, 64, layout={"q": "transposed", "k": "transposed", "o": "padded"}, kind="keys transposed"),
        decode_case(1, 2, 1, 257, 32, scale=scale(rng), values=ANY_SCALE, kind="another scale"),
        decode_case(1, 4, 2, between(rng, 420, 600), 64, sm_count=1, kind="a machine with a single multiprocessor"),
        decode_case(2, 2, 1, long, 32, values="flat", kind="a long cache"),
        decode_case(1, 2, 1, long - 33, 32, "bf16", values="flat", sm_count=1, kind="a long cache for a single multiprocessor"),
        decode_case(between(rng, 5, 7), 36, 9, between(rng, 3, 9), 32, kind="more heads than any size that is named"),
        decode_case(1, 2, 1, between(rng, 150, 300), 32, scale=small_scale(rng), values=ANY_SCALE, kind="a small scale"),
        decode_case(1, 2, 1, between(rng, 150, 300), 64, scale=large_scale(rng), values=ANY_SCALE, kind="a large scale"),
        decode_case(1, 4, 2, between(rng, 300, 500), 32, values=LARGE_SUMS, kind=LARGE_SUMS),
        decode_case(1, 4, 2, between(rng, 601, 639), 64, values=LIGHT, kind=LIGHT),
        decode_case(1, 2, 1, between(rng, 6000, 30_000), 32, values=ABOVE, sm_count=between(rng, 150, 190), kind=ABOVE),
        decode_case(1, 2, 1, between(rng, 6000, 30_000), 32, "bf16", values=FAINT, sm_count=1, kind=FAINT),
        decode_case(1, 2, 1, between(rng, 2000, 3000), 64, values=TIED, kind=TIED),
        # heads that fill a tile, since the weights of heads that don't exist are neither 0 nor faint
        decode_case(1, 32, 1, between(rng, 601, 639), 32, values=NAN, sm_count=1, kind=f"{NAN}, many query heads a key head"),
        decode_case(1, 32, 1, between(rng, 6000, 15_000), 32, "bf16", values=FAINT, sm_count=1, kind=f"{FAINT}, for many heads"),
        decode_case(1, 32, 1, between(rng, 300, 500), 32, "bf16", values=DIM, sm_count=between(rng, 1, 9), kind=DIM),
        decode_case(1, 32, 1, between(rng, 300, 500), 32, "bf16", values=DIM_EARLY, sm_count=1, kind=DIM_EARLY),
        decode_case(1, 4, 2, between(rng, 300, 500), 64, values=LOUD_SCALE, scale=small_scale(rng), kind=f"{LOUD_SCALE}, a small one"),
        decode_case(1, 2, 1, between(rng, 16_500, 18_000), 32, sm_count=188, kind="many splits of one sequence"),
        decode_case(1, between(rng, 100, 128), 1, between(rng, 3000, 4000), 64, sm_count=between(rng, 9, 12), kind="more than a hundred query heads a key head"),
    ]  # fmt: skip


def decoded(inputs: dict, c: Case) -> dict:
    q, k, v = (inputs[x] for x in "qkv")
    return {"o": reference.decode(q, k, v, scale=c.scalars["scale"])[0]}


GROUP = "query heads of one group share their keys: load a key tile once and let all of them use it"
SPLIT = "split the keys: with one program a head, most multiprocessors sleep"


def metered_decode(rng: np.random.Generator) -> Case:
    """Near 5000 keys: tiles of 256 still make more splits than there are multiprocessors."""
    return decode_case(
        1, 8, 2, between(rng, 4800, 5200), 64, sm_count=between(rng, 28, 34), kind="the metered size"
    )


def decode_of(c: Case) -> cost.Decode:
    s = c.sizes
    return cost.Decode(s["B"], s["N"], s["H"], s["G"], s["D"])


def decode_useful(c: Case) -> float:
    return cost.decode_flops(decode_of(c))


def decode(c: Case) -> list[Budget]:
    """Allow the cache once, by at least one program per multiprocessor."""
    s = c.sizes
    cache = 2 * s["B"] * s["G"] * s["N"] * s["D"]
    least = min(c.sm_count, s["B"] * s["G"] * math.ceil(s["N"] / HIGHEST))
    model = f"{s['G']} key heads of {s['N']} keys of {2 * s['D']} bytes, once, + 2%"
    once = {"most": 1.02 * cache, "least": cache, "look": GROUP, "model": model, "exact": True}
    return [
        Budget(what="read of K", tensor="k", **once),
        Budget(what="read of V", tensor="v", **once),
        Budget(
            what="programs that read the cache",
            tensor="k",
            count="programs",
            least=least,
            look=SPLIT,
            on_any_gpu=True,
            model=f"one at least for each of {c.sm_count} multiprocessors, or for every {HIGHEST} keys: {least}",
        ),
        side_by_side(
            "store the output",
            "o",
            "store",
            min(c.sm_count, s["B"] * s["G"]),
            f"one for each of {s['B']} x {s['G']} key heads, or for each multiprocessor",
            of_work=False,
        ),
        Budget(
            what="write of the output",
            tensor="o",
            access="store",
            most=2 * s["B"] * s["H"] * s["D"],
            least=2 * s["B"] * s["H"] * s["D"],
            look=OUTPUT,
            model=f"{s['H']} heads of {s['D']} numbers of 2 bytes, once",
        ),
    ]


CACHED = 16  # operations of every kind for a number of K, with its number of V and sixteen heads, so many as a tile has


LEAST_KEYS = 16  # of a split that fills a machine
CYCLES = 160  # of a lane, a pair: a tile of sixteen rows may hold one query alone


def decode_moved(c: Case) -> list[Budget]:
    """Limit, where no clock is, everything that moves, including the splits' results out and in."""
    s = c.sizes
    fill = math.ceil(c.sm_count / (s["B"] * s["G"]))  # splits of a key head that fill the machine
    splits = max(2, min(fill, math.ceil(s["N"] / LEAST_KEYS)))
    left = 2 * 4 * splits * s["B"] * s["H"] * (s["D"] + 2)  # their results, out and in
    most = 1.3 * cost.decode_bytes(decode_of(c)) + left
    look = "how much the splits leave in scratch: one maximum, one sum and one output for each query head"
    model = f"the cache, queries and outputs once, {cost.decode_bytes(decode_of(c)):,.0f} bytes, + 30% and {splits} splits' results"
    moved = Budget(what="everything loaded and stored", access="any", most=most, look=look, model=model)
    numbers = s["B"] * s["G"] * s["N"] * s["D"]
    pairs = s["B"] * s["H"] * s["N"]
    tiles = filled((s["H"] // s["G"], 16)) // 16
    return [
        moved,
        narrow(),
        every_kind(CACHED * tiles, numbers, f"{numbers:,} numbers of K"),
        timed(CYCLES, pairs, "pair of a query and a key"),
    ]


LONG_CACHE = decode_case(4, 32, 8, 32768, 128, "bf16", sm_count=132)


def decode_bound(c: Case) -> tuple[float, float]:
    return decode_useful(c), cost.decode_bytes(decode_of(c))
