"""Draw the inputs of *grouped kbit*, and set its budgets."""

from dataclasses import replace

import numpy as np

from grader.questions import Case
from grader.questions.draws import OVERSHADOWED, between, log_uniform, odd, spread
from grader.topics.quantization_layouts.shared import EXACT, FP32
from grader.topics.quantization_layouts.shared_kbit import (
    NAN_AMONG_ZEROS,
    NAN_OF_NOTHING,
    ROWS,
    SECTOR,
    TILE,
    every_width,
    sizes,
    some_bits,
)
from grader.topics.quantization_layouts.shared_wanted import BLOCK

TILES = 1 << 30  # experts times M times N, so that a program for every tile there may be is allowed


def to_experts(
    bits: int, n: int, k: int, counts: list[int], dtype: str = "fp16", values="normal", **more
) -> Case:
    """Return a case in which expert e gets counts[e] rows."""
    said = values + ROWS + " ".join(map(str, counts))
    return Case(sizes(bits, n, k, sum(counts), len(counts)), dtype, values=said, **more)


def sized(**sizes: int) -> Case:
    """A case of these sizes: every other expert has rows, as many as the others. A program may walk over all rows of an
    expert, so one with nearly all of them would leave programs of the others idle, whatever the answer."""
    experts = sizes["E"]
    some = max(1, experts // 2)
    rows = max(some, min(sizes["M"], TILES // (experts * sizes["N"])))
    ends = [rows * e // some for e in range(some + 1)]
    counts = [ends[e // 2 + 1] - ends[e // 2] if e % 2 or experts == 1 else 0 for e in range(experts)]
    return to_experts(sizes["BITS"], sizes["N"], sizes["K"], counts)


def hidden_experts(rng: np.random.Generator) -> list[Case]:
    """The same kinds of weights, one for each expert, and every routing that is allowed."""

    bits = every_width(rng)

    def case(counts, blocks, dtype="fp16", n=0, **more) -> Case:
        return to_experts(bits(), n or between(rng, 17, 64), BLOCK * blocks, counts, dtype, **more)

    def some(count: int, low: int = 1, high: int = 9) -> list[int]:
        return rng.integers(low, high + 1, count).tolist()

    def like_rows(count: int, most: int) -> list[int]:
        """Return numbers of rows that take as many tiles, so that a program may walk over all of an expert's."""
        return rng.integers(most - TILE + 2, most + 1, count).tolist()

    def with_empty(count: int, *empty: int) -> list[int]:
        return [0 if e in empty else n for e, n in enumerate(some(count))]

    def long_sum(dtype: str, kind: str) -> Case:
        k = 128 * between(rng, 66, 74) // BLOCK
        return case([2, 0, 3], k, dtype, between(rng, 5, 9), **FP32, values="positive", kind=kind)

    strided = spread(rng, "w", "s", "c", "r", "x", "y")
    turned = {"w": "transposed", "x": "transposed", "s": "padded"}
    turned_too = {"w": "padded", "x": "padded", "s": "transposed", "y": "transposed"}
    more = TILE * between(rng, 2, 3)
    all_on_one = rng.permutation([between(rng, 1500, 2500), *[0] * between(rng, 40, 80)]).tolist()
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
        case([*like_rows(3, more), 0], 5, "bf16", kind="more rows than sixteen"),
        case([between(rng, 3, 12)], odd(rng, 5, 9), kind="a single expert"),
        case(
            rng.permutation(
                [*like_rows(5, 350), *(int(log_uniform(rng, 20, 90)) for _ in range(3))]
            ).tolist(),
            1,
            n=between(rng, 17, 32),
            kind="tens and hundreds of rows for each expert",
        ),
        case(
            [0] + rng.permutation([0] * 20 + some(20, 1, 3)).tolist(),
            2,
            n=between(rng, 3, 9),
            kind="many experts",
        ),
        case([1] * between(rng, 48, 64), 1, n=between(rng, 3, 9), kind="a row for each of many experts"),
        case(some(3), 32 * between(rng, 4, 6) + 1, n=between(rng, 3, 9), kind="a word more than whole steps"),
        long_sum("fp16", "a long sum"),
        long_sum("bf16", "a long sum in bf16"),
        case(with_empty(4, 2), odd(rng, 5, 9), layout=strided, kind="no stride of 1"),
        case(some(3), 6, layout=turned, kind="words and X that lie column by column"),
        case(some(3), 5, "bf16", layout=turned_too, kind="scales and Y that lie column by column"),
        case([2, 0, 3], 1, n=between(rng, 4200, 4700), kind="many rows of W"),
        case(some(3), 8, "bf16", values="beyond fp16", kind="numbers beyond fp16"),
        case(some(3), 4, values="a NaN", kind="a NaN"),
        case(some(3), 4, values=NAN_AMONG_ZEROS, kind=NAN_AMONG_ZEROS),
        *(
            case(some(3), 2, dtype, **FP32, values=EXACT, kind="a result in fp32")
            for dtype in ("fp16", "bf16")
        ),
        case(some(3), 24, values=NAN_OF_NOTHING, kind=NAN_OF_NOTHING),
        case(some(3), 24, values=OVERSHADOWED, kind=OVERSHADOWED),
        replace(  # judged by its values, since whatever the answer, programs of all other experts are idle
            case(all_on_one, 2, n=between(rng, 17, 40), kind="one expert of dozens has all of many rows"),
            crossed=True,
        ),
        case(
            rng.permutation([1] * 8 + [0] * between(rng, 200, 300)).tolist(),
            between(rng, 8, 12),
            n=between(rng, 65, 100),
            kind="hundreds of experts of which few have a row",
        ),
    ]


def metered_experts(rng: np.random.Generator) -> Case:
    """Draw eight experts near 200 x 1000, two without rows and one with more than a tile."""
    counts = [0, 0, between(rng, TILE + 1, 2 * TILE), *(between(rng, 1, TILE) for _ in range(5))]
    n, k = between(rng, 180, 220), SECTOR * between(rng, 3, 5)
    found = rng.permutation(counts).tolist()
    return to_experts(some_bits(rng), n, k, found, sm_count=between(rng, 7, 9), kind="the metered size")
