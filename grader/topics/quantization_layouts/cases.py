"""What packed layers are tried on: words of random codes, scales that no group shares with another, any layout."""

from collections.abc import Callable

import numpy as np

from grader.questions import Case
from grader.questions.draws import between, odd, rounded, spread

GROUPS = (32, 64, 128)
BEYOND_FP16 = 2.0**24  # the scales of "beyond fp16" are so much larger: bf16 holds the weights, fp16 does not
LARGE = 4000.0  # times what x is elsewhere, and scales a sixteenth: fp16 holds x and y, not a group's sum before its scale
EXACT = "exact"  # weights that 16 bits hold, since every scale is a power of two
FP32 = {"dtypes": {"y": "fp32"}}


def sizes(n: int, k: int, group: int, m: int = 0) -> dict:
    return {"N": int(n), "K": int(k), "G": int(group)} | ({"M": int(m)} if m else {})


def words(rng: np.random.Generator, shape: tuple, low: int = 0) -> np.ndarray:
    """Eight codes from `low` to 15 in each."""
    if not low:
        return rng.integers(-(2**31), 2**31, shape, np.int32)
    each = rng.integers(low, 16, (*shape, 8), np.uint32)
    return (each << 4 * np.arange(8, dtype=np.uint32)).sum(-1, dtype=np.uint32).view(np.int32)


def groups_of(k: int, group: int) -> int:
    """How many there are in a row; sizes of one's own come through `run` and may not divide."""
    if k % group:
        raise ValueError(f"K must be a multiple of {group}, got {k}; take {max(group, k // group * group)}")
    return k // group


def powers(case: Case, rng: np.random.Generator, low: int, high: int, shape: tuple) -> np.ndarray:
    """Exponents of scales, whole where weights are to be exact."""
    return (
        np.rint(rng.uniform(low, high, shape))
        if case.values.startswith(EXACT)
        else rng.uniform(low, high, shape)
    )


def packed(case: Case, rng: np.random.Generator) -> dict:
    """A weight and the rows that meet it; with M among the sizes also a zero point for each group."""
    n, k, group, m = (case.sizes.get(s, 0) for s in "NKGM")
    positive = case.values in ("positive", EXACT)
    beyond = BEYOND_FP16 if case.values == "beyond fp16" else 1.0
    x = rng.standard_normal((m, k) if m else k)
    x = (np.abs(x) + 0.5 if positive else x) * beyond
    if case.values == "large":
        x, beyond = x * LARGE, beyond / 16
    if case.values == "a NaN":
        x[..., rng.integers(k)] = np.nan
    scales = beyond * 2.0 ** powers(case, rng, -9, -4, (n, groups_of(k, group)))
    found = {
        "w": words(rng, (n, k // 8), 9 if positive else 0),
        "s": rounded(scales, case.dtype),
        "x": rounded(x, case.dtype),
    }
    if m:
        found["z"] = rng.integers(0, 8 if positive else 16, (n, k // group)).astype(np.uint8)
    return found


def some_group(rng: np.random.Generator) -> int:
    return GROUPS[between(rng, 0, 2)]


def sizes_at_random(rng: np.random.Generator) -> tuple[Callable[[], int], Callable[[], int]]:
    """Two draws: rows of W for a few tiles and a rest, and rows of X that one tile holds."""
    return lambda: between(rng, 17, 70), lambda: between(rng, 5, 16)


def hidden_gemv(rng: np.random.Generator) -> list[Case]:
    """Fresh sizes each time; each case is here for a mistake that no other one is sure to catch."""

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
            any_n(), 3, 64, layout={"w": "transposed", "s": "padded"}, kind="words that lie column by column"
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
        case(any_n(), 3, 32, values="a NaN", kind="a NaN"),
        case(any_n(), odd(rng, 3, 9), some_group(rng), values="large", kind="large numbers in fp16"),
        *(
            case(odd(rng, 17, 69), 2, 32, dtype, **FP32, values=EXACT, kind="a result in fp32")
            for dtype in ("fp16", "bf16")
        ),
        case(between(rng, 28700, 29200), 1, 32, "bf16", kind="more rows than any size that is named"),
    ]


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
        # many rows are where people change the tile: they need a K beyond any block, and strides of their own
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
        case(few(), any_n(), 3, 32, values="a NaN", kind="a NaN"),
        case(few(), any_n(), odd(rng, 3, 9), some_group(rng), values="large", kind="large numbers in fp16"),
        *(
            case(few(), odd(rng, 17, 69), 2, 32, dtype, **FP32, values=EXACT, kind="a result in fp32")
            for dtype in ("fp16", "bf16")
        ),
        case(2, between(rng, 28700, 29200), 1, 32, "bf16", kind="more rows of W than any size that is named"),
        case(between(rng, 700, 1300), 3, 1, 32, kind="hundreds of rows of X"),
    ]
