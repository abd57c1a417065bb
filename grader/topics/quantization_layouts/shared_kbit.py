"""Share sizes, references and costs among the k-bit questions."""

import math
from collections.abc import Callable
from itertools import cycle

import numpy as np

from grader.questions import Budget, Case, Tensor
from grader.questions.draws import OVERSHADOWED, between, overshadowed, rounded
from grader.questions.work import filled, work
from grader.topics.quantization_layouts.shared import (
    EQUAL,
    EXACT,
    NEIGHBOURS,
    ONCE,
    TALLEST,
    beside_dot,
    factors,
    groups_of,
    in_dot,
    one_code,
    powers,
    programs,
    read_of_x,
    written,
)
from grader.topics.quantization_layouts.shared_wanted import BLOCK
from kernels import require
from kernels.quantization_layouts import cost

BITS = (2, 3, 4, 5)
ROWS = " rows "  # in a case's `values`, before the rows of X of each expert


def sizes(bits: int, n: int, k: int, m: int, experts: int = 0) -> dict:
    found = {"BITS": int(bits), "N": int(n), "K": int(k), "M": int(m)}
    return found | ({"E": int(experts)} if experts else {})


def some_bits(rng: np.random.Generator) -> int:
    return between(rng, BITS[0], BITS[-1])


def every_width(rng: np.random.Generator) -> Callable[[], int]:
    """Return numbers of bits in turn, from any start. Every check has each number."""
    return cycle(rng.permutation(BITS).tolist()).__next__


def long_rows(rng: np.random.Generator) -> Case:
    """Draw many levels and many words of a row, for inputs that are regular but for one place."""
    n, words = between(rng, 17, 69), between(rng, 17, 33)
    return Case(sizes(between(rng, *BITS[-2:]), n, BLOCK * words, between(rng, 5, TILE)))


def drawn_as(case: Case) -> str:
    """Return how numbers are drawn, without the rows of experts."""
    return case.values.partition(ROWS)[0]


def codebook(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Ascending levels, never the same and never evenly spread."""
    low = 0.4 if drawn_as(case) in ("positive", EXACT) else -1.0
    size = 2.0 ** between(rng, -3, 3) if drawn_as(case) == "normal" else 1.0  # of all levels
    return rounded(size * np.sort(rng.uniform(low, 1.0, 2 ** case.sizes["BITS"])), case.dtype)


def scales(case: Case, rng: np.random.Generator, shape: tuple) -> np.ndarray:
    _, of_scales = factors(drawn_as(case), case.dtype, shape[-1])
    return rounded(of_scales * 2.0 ** powers(case, rng, -8, -3, shape), case.dtype)


NAN_AMONG_ZEROS = "a NaN among zeros"
NAN_OF_NOTHING = "a NaN where all scales are 0"
STEP = 8  # blocks of 32 columns that a wide step of a kernel takes
NAN_FOR_NOTHING = 0.5  # of the cases with a NaN, where all scales of its columns are 0


def rows_of_x(case: Case, rng: np.random.Generator) -> np.ndarray:
    values, (m, k) = drawn_as(case), (case.sizes[s] for s in "MK")
    x = rng.standard_normal((m, k))
    x = np.abs(x) + 0.5 if values in ("positive", EXACT) else x
    x = x * np.repeat(factors(values, case.dtype, groups_of(k, BLOCK))[0], BLOCK)
    if values == OVERSHADOWED:
        x = x * overshadowed(k, STEP * BLOCK)
    if values in ("a NaN", NAN_AMONG_ZEROS, NAN_OF_NOTHING):
        x = x * (values != NAN_AMONG_ZEROS)
        first = np.repeat(weightless(case), BLOCK).argmax()
        x[:, rng.integers(first, k)] = np.nan
    return rounded(x, case.dtype)


def weightless(case: Case) -> np.ndarray:
    """Return of which blocks of 32 columns all scales are 0: the last step's, or every other step's."""
    blocks = groups_of(case.sizes["K"], BLOCK)
    if drawn_as(case) == NAN_OF_NOTHING:
        return np.arange(blocks) // STEP == (blocks - 1) // STEP
    return (drawn_as(case) == OVERSHADOWED) & (overshadowed(blocks, STEP) > 1)


def planes(case: Case, rng: np.random.Generator) -> dict:
    """Draw a weight in bit planes, or one for each expert, its scales and levels, and the rows to multiply."""
    bits, n, k = (case.sizes[s] for s in ("BITS", "N", "K"))
    many = (case.sizes["E"],) if "E" in case.sizes else ()
    blocks = groups_of(k, BLOCK)
    require.one_of(BITS, BITS=bits)
    found = {
        "w": plane_words(rng, many, bits, n, blocks),
        "s": scales(case, rng, (*many, n, blocks)),
        "c": codebook(case, rng),
        "x": rows_of_x(case, rng),
    }
    spare = np.isnan(found["x"].astype(np.float32)).any(axis=0).reshape(blocks, BLOCK).any(axis=1)
    if rng.random() < NAN_FOR_NOTHING:  # zero times a NaN is a NaN
        found["s"][..., spare] = 0
    found["s"][..., weightless(case)] = 0
    return found | ({"r": np.cumsum([0, *routed(case, rng)]).astype(np.int32)} if many else {})


def plane_words(rng: np.random.Generator, many: tuple, bits: int, n: int, blocks: int) -> np.ndarray:
    """Draw words of planes. In some blocks all 32 codes are equal."""
    w = rng.integers(-(2**31), 2**31, (*many, bits, n, blocks), np.int32)
    code = one_code(rng, (*many, 1, n, blocks), 0, 2**bits - 1)
    equal = rng.random(code.shape) < EQUAL
    return np.where(equal, -(code >> np.arange(bits)[:, None, None] & 1), w).astype(np.int32)


def routed(case: Case, rng: np.random.Generator) -> list[int]:
    """Return how many rows each expert gets, as the case says, or at random if it says nothing that fits."""
    counts = [int(n) for n in case.values.partition(ROWS)[2].split()]
    if len(counts) == case.sizes["E"] and sum(counts) == case.sizes["M"]:
        return counts
    share = rng.dirichlet(np.full(case.sizes["E"], 0.5))
    return rng.multinomial(case.sizes["M"], share).tolist()


SCALES = "a word of a plane covers 32 columns, and so does a scale: one belongs to the other"
IDLE = "which weights are read although no row needs them, and which once more for rows that share a tile"
TILE = 16  # rows of X that tensor cores take as one
OPERATIONS = 6  # outside tl.dot, a weight, where a good kernel takes about 3
ALL_WORK = 24  # of every kind, a weight, plus four for each of its levels
SECTOR = 256  # columns whose bits of one plane fill a sector


def rows_of_experts(c: Case) -> list[int]:
    """Return how many rows each expert of a metered or compiled case gets, or all rows without experts."""
    return [int(n) for n in c.values.partition(ROWS)[2].split()] or [c.sizes["M"]]


def useful(c: Case) -> float:
    bits, n, k, m = (c.sizes[s] for s in ("BITS", "N", "K", "M"))
    return cost.linear_cost(m, n, k, bits=bits, group=BLOCK).flops


def read_times(c: Case) -> tuple[int, int]:
    """Weights that have rows, and how often tiles of sixteen rows read one."""
    counts = [n for n in rows_of_experts(c) if n]
    return len(counts), sum(math.ceil(n / TILE) for n in counts)


def routes(c: Case) -> list[Budget]:
    """Allow every program to search the experts from the first on for its own, whose rows begin and end there."""
    if "E" not in c.sizes:
        return []
    programs = math.ceil(c.sizes["N"] / 32) * (
        math.ceil(c.sizes["M"] / TILE) + min(c.sizes["M"], c.sizes["E"])
    )
    return [
        Budget(
            what="read of r",
            tensor="r",
            most=8 * programs * c.sizes["E"],
            look="how each program finds its expert",
            model=f"two numbers of 4 bytes for each of {c.sizes['E']} experts, by each of {programs} programs",
        )
    ]


def traffic(c: Case) -> list[Budget]:
    """Planes and scales of the weights that have rows, X by tiles of 32 rows of W, Y once, and next to no scratch."""
    bits, n, k, m = (c.sizes[s] for s in ("BITS", "N", "K", "M"))
    needed, read = read_times(c)
    one = cost.linear_cost(m, n, k, bits=bits, group=BLOCK)
    of = f"{needed} weights of experts that have rows" if "E" in c.sizes else "the weight"
    times = f"{read} times in all, by tiles of {TILE} rows" if "E" in c.sizes else "once"
    return [
        Budget(
            what="read of the planes",
            tensor="w",
            most=read * one.weight_bytes,
            least=needed * one.weight_bytes,
            look=IDLE if "E" in c.sizes else ONCE,
            model=f"{n} x {k} codes of {bits} bits of {of}, {times}",
        ),
        Budget(
            what="read of the scales",
            tensor="s",
            most=2 * read * one.metadata_bytes,
            least=needed * one.metadata_bytes,
            look=SCALES,
            model=f"a scale of 2 bytes for each {BLOCK} of {n} x {k} codes, twice as often as the codes",
        ),
        read_of_x(m, n, k),
        *routes(c),
        *written(m, n),
    ]


def flow(c: Case) -> list[Budget]:
    """Count what makes it fast: matmuls in tl.dot, little work a weight, whole sectors, enough programs."""
    bits, n, k, m = (c.sizes[s] for s in ("BITS", "N", "K", "M"))
    needed, read = read_times(c)
    weight_bytes = cost.linear_cost(m, n, k, bits=bits, group=BLOCK).weight_bytes
    return [
        *in_dot(useful(c), sum(filled((rows, 2 * TILE)) for rows in rows_of_experts(c)), n, k),
        work(ALL_WORK + 4 * 2**bits, read * n * k, f"{read} times {n} x {k} weights"),
        beside_dot(OPERATIONS, n, k, read),
        Budget(
            what="sectors of the planes",
            tensor="w",
            count="sectors",
            most=1.02 * read * weight_bytes,
            look=NEIGHBOURS,
            model=f"{read} times {bits} planes of {n} rows of {k // SECTOR} sectors of 32 bytes + 2%",
        ),
        programs("planes", c.sm_count, needed * n, 1 if "E" in c.sizes else max(1, m // TALLEST)),
    ]


LEVELS = Tensor("c", "l", lambda s: (2 ** s["BITS"],))
X, Y = Tensor("x", "mk", ("M", "K")), Tensor("y", "mn", ("M", "N"), role="out")
SHOWN = (
    Case(sizes(4, 64, 256, 16)),
    Case(sizes(3, 50, 160, 7), kind="ragged in every direction"),
    Case(sizes(2, 48, 512, 1), "bf16", kind="a single row of X"),
)
TURNED = {"w": "transposed", "x": "transposed"}
