"""Share sizes, references and costs among questions of quantization layouts."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from grader.questions import Budget, Case, Tensor
from grader.questions.draws import between, rounded
from grader.questions.work import WHOLE_BLOCKS, filled
from kernels.quantization_layouts import cost

LESSON = "course/02_quantization_layouts"

GROUPS = (32, 64, 128)


BEYOND_FP16 = 2.0**-32, 2.0**24  # factors on numbers of "beyond fp16", which bf16 holds and fp16 does not


EXACTLY = 2.0**11, 2.0**6  # factors on exact fp16 numbers, with which an fp32 y is larger than any of them
LARGE = 4000.0, 1 / 16  # factors on x and scales: fp16 holds x and y, not a group's bare sum
PLAIN = 1.0, 1.0
SMALL = "small numbers in x"
SMALL_SCALES = "small scales"  # most of them subnormal in fp16
BOTH_SIGNS = "scales of both signs"
NANS = ("a NaN", "a NaN in the middle", "a NaN near the end")  # in a third of K each
EQUAL = 1 / 8  # of all words and groups repeat one code, as padding and saturated weights do
EXACT = "exact"  # weights that 16 bits hold, since every scale is a power of two


FP32 = {"dtypes": {"y": "fp32"}}


def sizes(n: int, k: int, group: int, m: int = 0) -> dict:
    return {"N": int(n), "K": int(k), "G": int(group)} | ({"M": int(m)} if m else {})


def sized(**sizes: int) -> Case:
    """Return a case with these sizes, K in whole groups."""
    group = sizes["G"]
    return Case(sizes | {"K": math.ceil(sizes["K"] / group) * group})


WEIGHTS = 1 << 19  # of a case with a long axis: each weight is computed


def few_weights(c: Case) -> Case:
    """Cut off rows of a W that would have too many weights for a case that is one of many."""
    return replace(c, sizes=c.sizes | {"N": min(c.sizes["N"], max(2, WEIGHTS // c.sizes["K"]))})


def words(rng: np.random.Generator, shape: tuple, low: int = 0) -> np.ndarray:
    """Eight codes from `low` to 15 in each, all equal in some."""
    each = rng.integers(low, 16, (*shape, 8), np.uint32)
    drawn = (each << 4 * np.arange(8, dtype=np.uint32)).sum(-1, dtype=np.uint32).view(np.int32)
    return np.where(rng.random(shape) < EQUAL, equal_words(rng, shape, low), drawn)


def one_code(rng: np.random.Generator, shape: tuple, low: int, most: int) -> np.ndarray:
    """Draw codes for whole words, half of them the lowest or the highest one."""
    ends = rng.choice([low, most], shape)
    return np.where(rng.random(shape) < 0.5, ends, rng.integers(low, most + 1, shape))


def equal_words(rng: np.random.Generator, shape: tuple, low: int) -> np.ndarray:
    """Draw words of one code each."""
    return (one_code(rng, shape, low, 15).astype(np.uint32) * np.uint32(0x11111111)).view(np.int32)


def nan_at(case: Case, rng: np.random.Generator, values: str) -> int:
    """Return the column of the NaN, in the third of K that the case names."""
    k, third = case.sizes["K"], NANS.index(values)
    return between(rng, third * k // 3, (third + 1) * k // 3 - 1)


def groups_of(k: int, group: int) -> int:
    """Return the number of groups in a row. A learner's own sizes come through `run` and may not divide."""
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
    """Draw a packed weight and the rows to multiply. If M is among the sizes, add a zero point for each group."""
    n, k, group, m = (case.sizes.get(s, 0) for s in "NKGM")
    positive = case.values in ("positive", EXACT)
    of_x, of_scales = factors(case.values, case.dtype, groups_of(k, group))
    x = rng.standard_normal((m, k) if m else k)
    x = (np.abs(x) + 0.5 if positive else x) * np.repeat(of_x, group)
    if case.values == SMALL:
        x *= 2.0**-17
    if case.values in NANS:
        x[..., nan_at(case, rng, case.values)] = np.nan
    scales = of_scales * 2.0 ** powers(case, rng, -9, -4, (n, groups_of(k, group)))
    if case.values == BOTH_SIGNS:
        scales = scales * rng.choice([-1, 1], scales.shape)
    if case.values in NANS:  # zero times a NaN is a NaN, also where a whole column of groups is 0
        scales[rng.random(scales.shape) < EQUAL] = 0
        whole = rng.random() < 0.5 or case.values == NANS[1]
        scales[:, np.isnan(x.reshape(-1, k)).any(0).reshape(-1, group).any(1) & whole] = 0
    low = 9 if positive else 0
    w = words(rng, (n, k // 8), low)
    saturated = np.repeat(rng.random((n, k // group)) < EQUAL, group // 8, axis=1)
    found = {
        "w": np.where(saturated, np.repeat(equal_words(rng, (n, k // group), low), group // 8, axis=1), w),
        "s": rounded(scales, case.dtype),
        "x": rounded(x, case.dtype),
    }
    if m:
        found["z"] = rng.integers(0, 8 if positive else 16, (n, k // group)).astype(np.uint8)
    return found


def factors(values: str, dtype: str, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Return factors on x and on the scales for each group along K. Numbers beyond fp16 are small where the scales are
    large, and large where these are small."""
    ones = np.ones(groups)
    if values == "beyond fp16":
        small, large = BEYOND_FP16
        odd = np.arange(groups) % 2
        return np.where(odd, large, small), np.where(odd, small, large)
    of_x, of_scales = {
        "large": LARGE,
        SMALL_SCALES: (1.0, 2.0**-11),
        EXACT: EXACTLY if dtype == "fp16" else PLAIN,
    }.get(values, PLAIN)
    return of_x * ones, of_scales * ones


def some_group(rng: np.random.Generator) -> int:
    return GROUPS[between(rng, 0, 2)]


def sizes_at_random(rng: np.random.Generator) -> tuple[Callable[[], int], Callable[[], int]]:
    """Draw two sizes: rows of W for a few tiles and a rest, and rows of X that one tile holds."""
    return lambda: between(rng, 17, 70), lambda: between(rng, 5, 16)


ONCE = "which words each program reads, and how often: every weight is needed once, by one program"
SCALES = "how far a step reaches along K: a step shorter than a group asks for the group's scale again"
ROWS = "the rows of W that a program owns: all of them share what it loads of X"
WIDER = "what is stored besides Y: an unpacked weight lives in registers from its word to its product"
NEIGHBOURS = "which neighbouring lanes read neighbouring words: a sector is 32 bytes, used or not"
FILL = "the grid: with few programs most multiprocessors have nothing to read"
DOT = "do the products go through tl.dot, in a dtype and a tile that tensor cores take?"
WORK = "what is computed more than once for a weight"
GROUP = 128
PARTS = 4  # sums of a row that several programs may leave in scratch, out and in
NARROW = "operands go into tl.dot in x's dtype: widened to fp32 they take twice the registers and run at half the rate"
GEMV_ALL, GEMM_ALL = 24, 28  # of every kind, a weight


def nkgm(c: Case) -> tuple[int, int, int, int]:
    return *(c.sizes[s] for s in "NKG"), c.sizes.get("M", 1)


def useful(c: Case) -> float:
    n, k, group, m = nkgm(c)
    return cost.linear_cost(m, n, k, bits=4, group=group).flops


def bound(c: Case) -> tuple[float, float]:
    n, k, group, m = nkgm(c)
    zero_bits = 8 if "M" in c.sizes else 0
    return useful(c), cost.linear_cost(m, n, k, bits=4, group=group, zero_bits=zero_bits).bytes_moved


def read_of_x(m: int, n: int, k: int) -> Budget:
    """Limit reads of X to those of tiles of 32 rows of W."""
    x = 2 * m * k
    return Budget(
        what="read of X",
        tensor="x",
        most=x * math.ceil(n / 32),
        least=x,
        look=ROWS,
        model=f"{m} x {k} numbers of 2 bytes for every 32 of {n} rows of W",
    )


def written(m: int, n: int) -> list[Budget]:
    """Y once, and next to no scratch."""
    out = 2 * m * n
    return [
        Budget(
            what="write of Y",
            tensor="y",
            access="store",
            most=out,
            least=out,
            look=WIDER,
            model=f"{m} x {n} numbers of 2 bytes, once",
        ),
        Budget(
            what="scratch, loaded and stored",
            tensor="scratch",
            access="any",
            most=2 * 4 * PARTS * m * n,
            look=WIDER,
            model=f"{PARTS} unfinished sums of 4 bytes for each of {m} x {n} numbers, out and in",
        ),
    ]


def in_dot(flop: float, rows: int, n: int, k: int) -> list[Budget]:
    """Require the matmul in tl.dot on operands of 16 bits. `rows` includes rows that only fill tiles."""
    return [
        Budget(
            what="FLOP in tl.dot",
            count="dot",
            least=flop,
            most=2 * rows * filled((n, 256), (k, 256)),
            look=DOT,
            over=WHOLE_BLOCKS,
            model=f"2 M N K = {flop:,.0f} at least; with {rows} rows, N and K rounded up to 256, at most",
        ),
        Budget(
            what="FLOP in tl.dot on operands widened to fp32",
            count="wide dot",
            most=0,
            look=NARROW,
            model="every operand of at most 16 bits",
        ),
    ]


def beside_dot(each: int, n: int, k: int, times: int | None = None) -> Budget:
    """Allow `each` operations a weight outside tl.dot, `times` if weights are unpacked for several tiles of rows."""
    return Budget(
        what="operations outside tl.dot",
        count="operations",
        most=each * (times or 1) * n * k,
        look=WORK,
        model=f"{each} for each of {n} x {k} weights" + (f", {times} times" if times else ""),
    )


WIDEST = 32  # rows of W that a program may have to itself
TALLEST = 128  # rows of X that it may walk through


def programs(words: str, multiprocessors: int, rows: int, tiles: int = 1) -> Budget:
    """Limit from below the programs that read the words, under whatever name, for this number of rows, and of tiles of rows
    of X."""
    count = min(multiprocessors, math.ceil(rows / WIDEST) * tiles)
    return Budget(
        what=f"programs that read the {words}",
        tensor="w",
        count="programs",
        least=count,
        look=FILL,
        model=f"one at least for each of {multiprocessors} multiprocessors, or for every {WIDEST} rows"
        + f" and each of {tiles} times {TALLEST} rows of X" * (tiles > 1)
        + f": {count}",
    )


TILE = 16  # rows of X that tensor cores take as one


def words_and_scales(c: Case) -> list[Budget]:
    """Words exactly once for each tile of rows of X, scales at most twice, Y once, and next to no scratch."""
    n, k, group, m = nkgm(c)
    tiles = math.ceil(m / TILE)
    whole = cost.linear_cost(m, n, k, bits=4, group=group)
    weights, scales = whole.weight_bytes, whole.metadata_bytes
    return [
        Budget(
            what="read of the words",
            tensor="w",
            most=tiles * weights,
            least=weights,
            look=ONCE,
            model=f"{n} x {k} weights of 4 bits, once" + f" for each {TILE} rows of X" * ("M" in c.sizes),
        ),
        Budget(
            what="read of the scales",
            tensor="s",
            most=2 * tiles * scales,
            least=scales,
            look=SCALES,
            model=f"a scale of 2 bytes for each {group} of {n} x {k} weights, twice",
        ),
        *written(m, n),
    ]


def flow(c: Case, times: int = 1) -> list[Budget]:
    """Words in whole sectors, so many times, and by enough programs."""
    n, k, group, m = nkgm(c)
    weights = math.ceil(m / TILE) * cost.linear_cost(m, n, k, bits=4, group=group).weight_bytes
    return [
        Budget(
            what="sectors of the words",
            tensor="w",
            count="sectors",
            most=times * 1.02 * weights,
            look=NEIGHBOURS,
            model=f"{n} rows of {k // 64} sectors of 32 bytes{f', {times} times' * (times > 1)} + 2%",
        ),
        programs("words", c.sm_count, n, max(1, m // TALLEST)),
    ]


WORDS = Tensor("w", "nk", lambda s: (s["N"], s["K"] // 8), "i32")
SCALE_TENSOR = Tensor("s", "ng", lambda s: (s["N"], s["K"] // s["G"]))
