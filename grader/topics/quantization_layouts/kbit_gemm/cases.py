"""Draw the inputs of *kbit gemm* and limit their cost."""

import numpy as np

from grader.questions import Case
from grader.questions.draws import OVERSHADOWED, between, odd, spread
from grader.topics.quantization_layouts.shared import EXACT, FP32, SMALL_SCALES, sizes_at_random
from grader.topics.quantization_layouts.shared_kbit import (
    BITS,
    NAN_AMONG_ZEROS,
    NAN_OF_NOTHING,
    SECTOR,
    TILE,
    every_width,
    sizes,
    some_bits,
)
from grader.topics.quantization_layouts.shared_wanted import BLOCK


def hidden_kbit(rng: np.random.Generator) -> list[Case]:
    """Draw fresh sizes each time. Each case catches a mistake that no other one is sure to catch."""

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
        case(bits(), few(), any_n(), 8, values=SMALL_SCALES, kind=SMALL_SCALES),
        case(bits(), few(), any_n(), 4, values="a NaN", kind="a NaN"),
        case(bits(), few(), any_n(), 4, values=NAN_AMONG_ZEROS, kind=NAN_AMONG_ZEROS),
        *(
            case(bits(), few(), odd(rng, 17, 69), 2, dtype, **FP32, values=EXACT, kind="a result in fp32")
            for dtype in ("fp16", "bf16")
        ),
        case(bits(), few(), any_n(), 24, values=NAN_OF_NOTHING, kind=NAN_OF_NOTHING),
        case(bits(), few(), any_n(), 24, "bf16", values=OVERSHADOWED, kind=OVERSHADOWED),
    ]


def metered_kbit(rng: np.random.Generator) -> Case:
    """Draw sizes near 12 x 600 x 1300: few enough rows of X for one tile, and rows of each plane in whole sectors."""
    n, k = between(rng, 560, 640), SECTOR * between(rng, 4, 6)
    drawn = sizes(some_bits(rng), n, k, between(rng, 9, TILE))
    return Case(drawn, sm_count=between(rng, 6, 9), kind="the metered size")
