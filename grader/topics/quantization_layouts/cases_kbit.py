"""What codebook layers are tried on: codes of 2 to 5 bits in planes, levels that no table holds, experts with any rows."""

from collections.abc import Callable
from itertools import cycle

import numpy as np

from grader.questions import Case
from grader.questions.draws import between, odd, rounded, spread
from grader.topics.quantization_layouts.cases import (
    BEYOND_FP16,
    EXACT,
    FP32,
    groups_of,
    powers,
    sizes_at_random,
    words,
)
from grader.topics.quantization_layouts.wanted import BLOCK
from kernels import require

BITS = (2, 3, 4, 5)
ROWS = " rows "  # in a case's `values`: what follows is how many rows of X each expert gets


def sizes(bits: int, n: int, k: int, m: int, experts: int = 0) -> dict:
    found = {"BITS": int(bits), "N": int(n), "K": int(k), "M": int(m)}
    return found | ({"E": int(experts)} if experts else {})


def some_bits(rng: np.random.Generator) -> int:
    return between(rng, BITS[0], BITS[-1])


def every_width(rng: np.random.Generator) -> Callable[[], int]:
    """Numbers of bits in turn, begun anywhere: each is there in every check."""
    return cycle(rng.permutation(BITS).tolist()).__next__


def drawn_as(case: Case) -> str:
    """How numbers are drawn, without the rows of experts."""
    return case.values.partition(ROWS)[0]


def codebook(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Ascending levels, never the same and never evenly spread."""
    low = 0.4 if drawn_as(case) in ("positive", EXACT) else -1.0
    return rounded(np.sort(rng.uniform(low, 1.0, 2 ** case.sizes["BITS"])), case.dtype)


def scales(case: Case, rng: np.random.Generator, shape: tuple) -> np.ndarray:
    beyond = BEYOND_FP16 if drawn_as(case) == "beyond fp16" else 1.0
    return rounded(beyond * 2.0 ** powers(case, rng, -8, -3, shape), case.dtype)


def rows_of_x(case: Case, rng: np.random.Generator) -> np.ndarray:
    values, (m, k) = drawn_as(case), (case.sizes[s] for s in "MK")
    x = rng.standard_normal((m, k))
    x = np.abs(x) + 0.5 if values in ("positive", EXACT) else x
    x = BEYOND_FP16 * x if values == "beyond fp16" else x
    if values == "a NaN":
        x[:, rng.integers(k)] = np.nan
    return rounded(x, case.dtype)


def planes(case: Case, rng: np.random.Generator) -> dict:
    """A weight in bit planes, or one for each expert, its scales and levels, and the rows that meet it."""
    bits, n, k = (case.sizes[s] for s in ("BITS", "N", "K"))
    many = (case.sizes["E"],) if "E" in case.sizes else ()
    blocks = groups_of(k, BLOCK)
    require.one_of(BITS, BITS=bits)
    found = {
        "w": words(rng, (*many, bits, n, blocks)),
        "s": scales(case, rng, (*many, n, blocks)),
        "c": codebook(case, rng),
        "x": rows_of_x(case, rng),
    }
    return found | ({"r": np.cumsum([0, *routed(case, rng)]).astype(np.int32)} if many else {})


def routed(case: Case, rng: np.random.Generator) -> list[int]:
    """How many rows each expert gets: as the case says, or where it says nothing that fits, at random."""
    counts = [int(n) for n in case.values.partition(ROWS)[2].split()]
    if len(counts) == case.sizes["E"] and sum(counts) == case.sizes["M"]:
        return counts
    share = rng.dirichlet(np.full(case.sizes["E"], 0.5))
    return rng.multinomial(case.sizes["M"], share).tolist()


def to_experts(
    bits: int, n: int, k: int, counts: list[int], dtype: str = "fp16", values="normal", **more
) -> Case:
    """A case in which each expert gets so many rows."""
    said = values + ROWS + " ".join(map(str, counts))
    return Case(sizes(bits, n, k, sum(counts), len(counts)), dtype, values=said, **more)


def hidden_kbit(rng: np.random.Generator) -> list[Case]:
    """Fresh sizes each time; each case is here for a mistake that no other one is sure to catch."""

    bits = every_width(rng)

    def case(bits, m, n, blocks, dtype="fp16", **more) -> Case:
        return Case(sizes(bits, n, BLOCK * blocks, m), dtype, **more)

    any_n, few = sizes_at_random(rng)

    def long_sum(dtype: str, kind: str) -> Case:
        k = 128 * between(rng, 66, 74) // BLOCK
        return case(bits(), 5, between(rng, 5, 9), k, dtype, **FP32, values="positive", kind=kind)

    strided = spread(rng, "w", "s", "c", "x", "y")
    turned = {"w": "transposed", "x": "transposed", "s": "padded"}
    turned_too = {"x": "padded", "s": "transposed", "y": "transposed"}
    return [
        *(
            case(b, few(), odd(rng, 17, 69), odd(rng, 5, 13), ("fp16", "bf16")[b % 2], kind=f"{b} bits")
            for b in BITS
        ),
        case(bits(), 1, any_n(), odd(rng, 5, 9), kind="a single row of X"),
        case(bits(), few(), 1, odd(rng, 5, 9), "bf16", kind="a single row of W"),
        case(bits(), few(), any_n(), 1, kind="a single word a plane"),
        case(
            bits(),
            between(rng, 129, 150),
            between(rng, 3, 9),
            odd(rng, 5, 9),
            layout={"x": "transposed", "y": "padded"},
            kind="many rows of X",
        ),
        case(bits(), odd(rng, 17, 39), any_n(), 6, "bf16", kind="more rows of X than sixteen"),
        case(
            bits(),
            few(),
            between(rng, 3, 9),
            32 * between(rng, 4, 6) + 1,
            kind="a word more than whole steps",
        ),
        long_sum("fp16", "a long sum"),
        long_sum("bf16", "a long sum in bf16"),
        case(bits(), few(), any_n(), odd(rng, 5, 9), layout=strided, kind="no stride of 1"),
        case(bits(), few(), any_n(), 6, layout=turned, kind="words and X that lie column by column"),
        case(
            bits(),
            few(),
            any_n(),
            5,
            "bf16",
            layout=turned_too,
            kind="scales and Y that lie column by column",
        ),
        case(bits(), few(), between(rng, 4200, 4700), 1, kind="many rows of W"),
        case(bits(), few(), any_n(), 8, "bf16", values="beyond fp16", kind="numbers beyond fp16"),
        case(bits(), few(), any_n(), 4, values="a NaN", kind="a NaN"),
        *(
            case(bits(), few(), odd(rng, 17, 69), 2, dtype, **FP32, values=EXACT, kind="a result in fp32")
            for dtype in ("fp16", "bf16")
        ),
    ]


def hidden_experts(rng: np.random.Generator) -> list[Case]:
    """The same kinds of weights, one for each expert, and every routing that is allowed."""

    bits = every_width(rng)

    def case(counts, blocks, dtype="fp16", n=0, **more) -> Case:
        return to_experts(bits(), n or between(rng, 17, 70), BLOCK * blocks, counts, dtype, **more)

    def some(count: int, low: int = 1, high: int = 9) -> list[int]:
        return rng.integers(low, high + 1, count).tolist()

    def with_empty(count: int, *empty: int) -> list[int]:
        return [0 if e in empty else n for e, n in enumerate(some(count))]

    def long_sum(dtype: str, kind: str) -> Case:
        k = 128 * between(rng, 66, 74) // BLOCK
        return case([2, 0, 3], k, dtype, between(rng, 5, 9), **FP32, values="positive", kind=kind)

    strided = spread(rng, "w", "s", "c", "r", "x", "y")
    turned = {"w": "transposed", "x": "transposed", "s": "padded"}
    turned_too = {"w": "padded", "x": "padded", "s": "transposed", "y": "transposed"}
    one_of = rng.permutation([between(rng, 40, 60), 0, 0, 0]).tolist()
    return [
        case(some(5), odd(rng, 5, 9), kind="rows for every expert"),
        case(with_empty(6, 0, 1), odd(rng, 5, 9), "bf16", kind="first experts without rows"),
        case(with_empty(6, 2, 3), odd(rng, 5, 9), kind="experts without rows between others"),
        case(with_empty(5, 3, 4), odd(rng, 5, 9), "bf16", kind="last experts without rows"),
        case(one_of, odd(rng, 5, 9), kind="one expert has all rows"),
        case(rng.permutation([1, 0, 0, 0, 1, 0]).tolist(), 6, kind="fewer rows than experts"),
        case(
            [between(rng, 2, 7), between(rng, 130, 150), 3],
            2,
            n=between(rng, 3, 9),
            kind="many rows for one expert",
        ),
        case([between(rng, 17, 31), between(rng, 33, 47), 0, 7], 5, "bf16", kind="more rows than sixteen"),
        case([between(rng, 3, 12)], odd(rng, 5, 9), kind="a single expert"),
        case(
            [0] + rng.permutation([0] * 20 + some(20, 1, 3)).tolist(),
            2,
            n=between(rng, 3, 9),
            kind="many experts",
        ),
        case(some(3), 32 * between(rng, 4, 6) + 1, n=between(rng, 3, 9), kind="a word more than whole steps"),
        long_sum("fp16", "a long sum"),
        long_sum("bf16", "a long sum in bf16"),
        case(with_empty(4, 2), odd(rng, 5, 9), layout=strided, kind="no stride of 1"),
        case(some(3), 6, layout=turned, kind="words and X that lie column by column"),
        case(some(3), 5, "bf16", layout=turned_too, kind="scales and Y that lie column by column"),
        case([2, 0, 3], 1, n=between(rng, 4200, 4700), kind="many rows of W"),
        case(some(3), 8, "bf16", values="beyond fp16", kind="numbers beyond fp16"),
        case(some(3), 4, values="a NaN", kind="a NaN"),
        *(
            case(some(3), 2, dtype, **FP32, values=EXACT, kind="a result in fp32")
            for dtype in ("fp16", "bf16")
        ),
    ]
