"""A layout of one's own: the answer packs the codes itself, before any activation exists, and its kernel reads what it made."""

import math
from collections.abc import Callable

import numpy as np

from grader.questions import Budget, Case, KernelQuestion, Part, Prepare
from grader.questions.draws import between, odd, spread
from grader.questions.families import family
from grader.questions.work import filled, work
from grader.topics.quantization_layouts import budgets_kbit, mistakes_kbit, wanted
from grader.topics.quantization_layouts.budgets import beside_dot, in_dot, read_of_x, written
from grader.topics.quantization_layouts.cases import EXACT, FP32, groups_of, sizes_at_random
from grader.topics.quantization_layouts.cases_kbit import (
    BITS,
    codebook,
    every_width,
    rows_of_x,
    scales,
    sizes,
)
from grader.topics.quantization_layouts.kbit import LEVELS, SHOWN, X, Y
from grader.topics.quantization_layouts.mistakes_sums import SUMS
from grader.topics.quantization_layouts.wanted import BLOCK
from kernels import require
from kernels.quantization_layouts import cost

LESSON = "course/02_quantization_layouts"
GAPS = 16 / 15  # thirty bits of a word in use: ten codes of three bits, six of five
UNPACKING = 11  # on whole numbers, a weight: fields of whole bits take 4 to 9, planes 12, 16 and 20
LAYOUT = (
    "how many shifts, ANDs and ORs a code takes: which layout puts whole codes, or most of one, side by side?"
)
TWICE = "what a program loads of the packed arrays: every code is needed once, by one program"


def bare(case: Case, rng: np.random.Generator) -> dict:
    """What `pack` is given: codes, a scale for each 32 of a row, and how many bits a code has."""
    bits, n, k = (case.sizes[s] for s in ("BITS", "N", "K"))
    blocks = groups_of(k, BLOCK)
    require.one_of(BITS, BITS=bits)
    codes = rng.integers(0, 2**bits, (n, k)).astype(np.uint8)
    return {"codes": codes, "scales": scales(case, rng, (n, blocks)), "bits": bits}


def met(case: Case, rng: np.random.Generator) -> dict:
    """What the kernels are given beside: the codebook and the rows of X."""
    return {"c": codebook(case, rng), "x": rows_of_x(case, rng)}


def most_packed(case: Case) -> int:
    """The tuned kernels' own layout, rows and columns padded to whole tiles, and a fifteenth more for words with gaps."""
    bits, n, k = (case.sizes[s] for s in ("BITS", "N", "K"))
    return math.floor(GAPS * cost.packed_bytes(n, k, bits, BLOCK))


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
        case(few(), any_n(), 4, values="a NaN", kind="a NaN"),
        *(
            case(few(), odd(rng, 17, 69), 2, dtype, **FP32, values=EXACT, kind="a result in fp32")
            for dtype in ("fp16", "bf16")
        ),
    ]


def metered(rng: np.random.Generator) -> Case:
    """Near 12 x 600 x 1300 with more than two bits: planes of three cost the most that is still worth mending."""
    n, k = 128 * between(rng, 4, 5), 256 * between(rng, 4, 6)
    drawn = sizes(between(rng, 3, 5), n, k, between(rng, 9, 16))
    return Case(drawn, sm_count=between(rng, 6, 9), kind="the metered size")


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
        *in_dot(budgets_kbit.useful(c), filled((m, 2 * budgets_kbit.TILE)), n, k),
    ]


def unpacking(c: Case) -> list[Budget]:
    """What a layout is chosen for where bytes are as few as they can be: the instructions between a word and a number."""
    n, k = c.sizes["N"], c.sizes["K"]
    return [
        Budget(
            what="operations on whole numbers",
            count="integers",
            most=UNPACKING * n * k,
            look=LAYOUT,
            model=f"{UNPACKING} for each of {n} x {k} weights",
        ),
        beside_dot(budgets_kbit.OPERATIONS, n, k),
        work(budgets_kbit.ALL_WORK, n * k, f"{n} x {k} weights"),
    ]


def turned(size: int) -> Callable:
    """Each `size` neighbours in the opposite order."""

    def code(codes: np.ndarray) -> np.ndarray:
        n, k = codes.shape
        whole = k // size * size
        back = codes[:, :whole].reshape(n, -1, size)[:, :, ::-1].reshape(n, whole)
        return np.concatenate([back, codes[:, whole:]], 1)

    return code


def top_bit_lost(codes: np.ndarray) -> np.ndarray:
    return codes & (1 << max(1, int(codes.max()).bit_length() - 1)) - 1


would = mistakes_kbit.would
MISTAKES = (
    family(
        "neighbours turned round",
        "codes come out in another order than pack put them in: the first of a word's must be the first of its columns",
        *(would(code=turned(size)) for size in (8, 16, 32)),
    ),
    family(
        "the top bit lost",
        "a code has all of its bits, the top one too: here it does not come back",
        would(code=top_bit_lost),
    ),
    *(one for one in mistakes_kbit.CODES if one.name in mistakes_kbit.OF_ANY_LAYOUT),
    *SUMS,
)

OWN = KernelQuestion(
    id="quantization_layouts.own_layout",
    notebook="kernel",
    entry="launch_own",
    bonus=True,
    asks="Y = X W.T for any number of rows of X: pack(codes, scales, bits) makes arrays of your own of W's codes, once, and the kernel reads them; the weight is c[code] times the scale of its 32 columns",
    parts=(
        Part(
            "values",
            2,
            "values",
            asks="right for {public} that you can see and more that you can't, as in section 8; at most four packed arrays, no larger together than what the course's own layout takes (rows padded to 128, columns to vectors of 16 bytes) and a fifteenth",
        ),
        Part(
            "traffic",
            1,
            "traffic",
            asks="what `pack` made is loaded once, with a tenth for gaps between codes, scales at most twice; X, Y and scratch as in section 8; all products in `tl.dot`",
        ),
        Part(
            "unpacking",
            2,
            "traffic",
            asks=f"at most {UNPACKING} operations on whole numbers a weight, those for addresses and masks among them, and at most {budgets_kbit.OPERATIONS} on floats beside `tl.dot`",
        ),
        Part(
            "compiled",
            1,
            "compiled",
            asks="compiles for {targets} at {compiled[N]} × {compiled[K]} with {compiled[BITS]} bits and M = {compiled[M]}, {spills}, on tensor cores",
        ),
    ),
    prepare=Prepare("pack", bare, most_packed),
    tensors=(
        LEVELS,
        X,
        Y,
    ),
    inputs=met,
    reference=wanted.layer,
    tolerance=wanted.within,
    public=(
        *SHOWN,
        Case(sizes(5, 33, 192, 20), layout={"x": "transposed"}, kind="X column by column"),
    ),
    hidden=hidden,
    metered=metered,
    budgets={"traffic": traffic, "unpacking": unpacking},
    useful=budgets_kbit.useful,
    most_launches=2,
    compile_case=Case(sizes(5, 512, 1024, 16), "bf16", sm_count=132),
    targets=(90, 80),
    instruction={80: "mma.sync"},
    most_spills=256,
    where=f'{LESSON}/c_packing.ipynb, "Packing: where the bits lie"',
    hints=(
        "Planes take one bit at a time. Which widths divide a word, and how can three bits be put together from such pieces, or five?",
        "Three bits are two and one, five are four and one: keep the low bits in a field of their own, 16 or 8 codes a word, and the top bit in a plane. Then a code is two shifts, two ANDs, a shift and an OR, whatever its bits.",
        "words = [field of low bits | plane of the top bit] along each row, K * bits / 32 words of 32 bits; in the kernel: code = tl.reshape((low[:, :, None] >> (LOW * tl.arange(0, 32 // LOW))[None, None, :]) & (2**LOW - 1), (BLOCK_N, BLOCK_K)); if BITS % 2 == 1: code |= tl.reshape((high[:, :, None] >> tl.arange(0, 32)[None, None, :]) & 1, (BLOCK_N, BLOCK_K)) << LOW",
    ),
    mistakes=MISTAKES,
)

QUESTIONS = (OWN,)
SHORTCUTS = {
    OWN.id: {
        **mistakes_kbit.limits(
            M=(4, 16, 64, 128), N=(64, 1024, 4096), K=(32, 1024, 4096, 8192), BITS=(2, 3, 4)
        ),
        **mistakes_kbit.strides("xy", ("xy",)),
        "the stride of c taken for 1": mistakes_kbit.one_stride("c", 0),
    }
}
