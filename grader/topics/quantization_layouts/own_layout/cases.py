"""Draw the inputs of *own layout*, and set its budgets."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import OVERSHADOWED, between, odd, spread
from grader.questions.min_programs import side_by_side
from grader.questions.timed import timed
from grader.questions.work import filled, work
from grader.topics.quantization_layouts.shared import (
    EQUAL,
    EXACT,
    FP32,
    NEIGHBOURS,
    SMALL_SCALES,
    TALLEST,
    beside_dot,
    groups_of,
    in_dot,
    one_code,
    read_of_x,
    sizes_at_random,
    written,
)
from grader.topics.quantization_layouts.shared_kbit import (
    ALL_WORK,
    BITS,
    NAN_AMONG_ZEROS,
    NAN_OF_NOTHING,
    OPERATIONS,
    TILE,
    codebook,
    every_width,
    rows_of_x,
    scales,
    sizes,
    useful,
    weightless,
)
from grader.topics.quantization_layouts.shared_wanted import BLOCK
from kernels import require
from kernels.quantization_layouts import cost

LESSON = "course/02_quantization_layouts"
GAPS = 16 / 15  # thirty bits of a word in use: ten codes of three bits, six of five
UNPACKING = 11  # on whole numbers, a weight: fields of whole bits take 4 to 9, planes 12, 16 and 20
WIDEST = 64  # rows of W that a program may have to itself
CYCLES = 10  # of a lane, a weight, and each tile of rows of X: right answers take 4 to 6
LAYOUT = (
    "how many shifts, ANDs and ORs a code takes: which layout puts whole codes, or most of one, side by side?"
)
TWICE = (
    "what a program loads of the packed arrays: every code is needed once, by one program, and padding never"
)


ONE_CODE, ONE_SCALE = "codes that are all the same", "one scale for all of W"


def bare(case: Case, rng: np.random.Generator) -> dict:
    """What `pack` is given: codes, a scale for each 32 of a row, and how many bits a code has."""
    codes, blocks, bits = shapes(case).values()
    require.one_of(BITS, BITS=bits)
    equal = np.repeat(rng.random(blocks) < EQUAL, BLOCK, axis=1)
    one = np.repeat(one_code(rng, blocks, 0, 2**bits - 1), BLOCK, axis=1)
    drawn = np.where(equal, one, rng.integers(0, 2**bits, codes)).astype(np.uint8)
    each = scales(case, rng, blocks)
    each[:, weightless(case)] = 0
    if case.values in (NAN_AMONG_ZEROS, NAN_OF_NOTHING):  # and whole rows of W, which a kernel may skip
        each[rng.integers(len(each)) :] = 0
    if case.kind in (ONE_CODE, ONE_SCALE):
        drawn[:] = drawn[0, 0] if case.kind == ONE_CODE else drawn
        each[:] = each[0, 0]
    return {"codes": drawn, "scales": each, "bits": bits}


def shapes(case: Case) -> dict:
    """Return the shapes of what `pack` is given."""
    bits, n, k = (case.sizes[s] for s in ("BITS", "N", "K"))
    return {"codes": (n, k), "scales": (n, groups_of(k, BLOCK)), "bits": bits}


def met(case: Case, rng: np.random.Generator) -> dict:
    """Draw the kernels' other inputs, the codebook and the rows of X."""
    return {"c": codebook(case, rng), "x": rows_of_x(case, rng)}


def most_packed(case: Case) -> int:
    """Return the bytes of the tuned kernels' own layout, rows and columns padded to whole tiles, a fifteenth more for words
    with gaps, and a word for each row, whose last one may be part full."""
    bits, n, k = (case.sizes[s] for s in ("BITS", "N", "K"))
    return math.floor(GAPS * cost.packed_bytes(n, k, bits, BLOCK)) + 4 * n


def hidden(rng: np.random.Generator) -> list[Case]:
    bits = every_width(rng)

    def case(m, n, blocks, dtype="fp16", **more) -> Case:
        return Case(sizes(bits(), n, BLOCK * blocks, m), dtype, **more)

    any_n, few = sizes_at_random(rng)

    def long_sum(dtype: str, kind: str) -> Case:
        k = 128 * between(rng, 66, 74) // BLOCK
        return case(5, between(rng, 5, 9), k, dtype, **FP32, values="positive", kind=kind)

    return [
        *(
            case(few(), odd(rng, 17, 69), odd(rng, 5, 13), d, kind="another size")
            for d in ("fp16", "bf16") * 2
        ),
        case(1, any_n(), odd(rng, 5, 9), kind="a single row of X"),
        case(few(), 1, odd(rng, 5, 9), "bf16", kind="a single row of W"),
        case(few(), between(rng, 33, 34), between(rng, 300, 320), kind="a few rows of W more than a tile"),
        *(case(few(), any_n(), 1, kind="a single block of 32") for _ in BITS),
        case(
            odd(rng, 129, 150),
            between(rng, 3, 9),
            odd(rng, 5, 9),
            "bf16",
            layout={"x": "transposed", "y": "padded"},
            kind="many rows of X",
        ),
        case(few(), between(rng, 3, 9), 32 * between(rng, 4, 6) + 1, kind="a block more than whole steps"),
        long_sum("fp16", "a long sum"),
        long_sum("bf16", "a long sum in bf16"),
        case(few(), any_n(), odd(rng, 5, 9), layout=spread(rng, "c", "x", "y"), kind="no stride of 1"),
        case(
            few(), any_n(), 6, layout={"x": "transposed", "y": "padded"}, kind="X that lies column by column"
        ),
        case(few(), between(rng, 4200, 4700), 1, kind="many rows of W"),
        *(Case(sizes(one, 256, 256, few()), kind=f"whole tiles of codes of {one} bits") for one in (2, 3)),
        case(few(), any_n(), 8, "bf16", values="beyond fp16", kind="numbers beyond fp16"),
        case(few(), any_n(), 8, values=SMALL_SCALES, kind=SMALL_SCALES),
        case(few(), any_n(), 4, values="a NaN", kind="a NaN"),
        case(few(), any_n(), 4, values=NAN_AMONG_ZEROS, kind=NAN_AMONG_ZEROS),
        *(case(few(), any_n(), 2, kind=kind) for kind in (ONE_CODE, ONE_SCALE)),
        *(
            case(few(), odd(rng, 17, 69), 2, dtype, **FP32, values=EXACT, kind="a result in fp32")
            for dtype in ("fp16", "bf16")
        ),
        case(few(), any_n(), 24, values=NAN_OF_NOTHING, kind=NAN_OF_NOTHING),
        case(few(), any_n(), 24, "bf16", values=OVERSHADOWED, kind=OVERSHADOWED),
    ]


def metered(rng: np.random.Generator) -> Case:
    """Near 12 x 600 x 1300 with more than two bits: planes of three cost the most that is still worth mending."""
    n, k = 128 * between(rng, 4, 5), 256 * between(rng, 4, 6)
    drawn = sizes(between(rng, 3, 5), n, k, between(rng, 9, 16))
    return Case(drawn, sm_count=between(rng, 6, 9), kind="the metered size")


TIMED = Case(sizes(3, 14336, 4096, 16), sm_count=132)  # an up projection of Llama 3 8B, sixteen users


def bound(c: Case) -> tuple[float, float]:
    bits, n, k, m = (c.sizes[s] for s in ("BITS", "N", "K", "M"))
    return useful(c), cost.linear_cost(m, n, k, bits=bits, group=BLOCK).bytes_moved


def traffic(c: Case) -> list[Budget]:
    """All that `pack` made once, X by tiles of 32 rows of W, Y once, next to no scratch, products in tl.dot."""
    bits, n, k, m = (c.sizes[s] for s in ("BITS", "N", "K", "M"))
    whole = cost.linear_cost(m, n, k, bits=bits, group=BLOCK)
    codes, of_blocks = whole.weight_bytes, whole.metadata_bytes
    return [
        Budget(
            what="read of what pack made",
            tensor="packed",
            most=1.1 * codes + 2 * of_blocks,
            least=codes,
            look=TWICE,
            model=f"{n} x {k} codes of {bits} bits + 10%, and a scale of 2 bytes for each {BLOCK}, twice",
        ),
        read_of_x(m, n, k),
        *written(m, n),
        *in_dot(useful(c), filled((m, 2 * TILE)), n, k),
    ]


def sectors(c: Case) -> list[Budget]:
    """Limit sectors, a layout's first concern, to whole ones, as neighbouring lanes load neighbouring words.

    The third more lets rows begin in the middle of a sector, as words with gaps make them do.
    """
    bits, n, k = (c.sizes[s] for s in ("BITS", "N", "K"))
    whole = cost.linear_cost(1, n, k, bits=bits, group=BLOCK)
    return [
        Budget(
            what="sectors of what pack made",
            tensor="packed",
            count="sectors",
            most=4 / 3 * whole.weight_bytes + 4 * whole.metadata_bytes,
            look=NEIGHBOURS,
            model=f"{n} x {k} codes of {bits} bits + a third, and four times a scale of 2 bytes for each {BLOCK}",
        )
    ]


def unpacking(c: Case) -> list[Budget]:
    """Limit the instructions between a word and a number, a layout's concern once bytes are minimal."""
    n, k, times = c.sizes["N"], c.sizes["K"], math.ceil(c.sizes["M"] / TILE)
    tiles = max(1, c.sizes["M"] // TALLEST)
    return [
        Budget(
            what="operations on whole numbers",
            count="integers",
            most=UNPACKING * times * n * k,
            look=LAYOUT,
            model=f"{UNPACKING} for each of {n} x {k} weights",
        ),
        beside_dot(OPERATIONS, times * n, k),
        work(ALL_WORK, times * n * k, f"{n} x {k} weights"),
        timed(CYCLES, times * n * k, "weight"),
        side_by_side(
            "store Y",
            "y",
            "store",
            min(c.sm_count, math.ceil(n / WIDEST) * tiles),
            f"one for every {WIDEST} of {n} rows of W"
            + f" and each of {tiles} times {TALLEST} rows of X" * (tiles > 1)
            + f", or for each of {c.sm_count} multiprocessors",
        ),
    ]
