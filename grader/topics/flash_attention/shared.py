"""Share sizes, references and costs among questions of flash attention."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Budget, Case, Tensor, own_numbers
from grader.questions.draws import ROUNDING, between, log_uniform, where_finite
from grader.questions.min_programs import side_by_side
from grader.questions.work import work as every_kind
from kernels.flash_attention import cost, reference


def causal(c: Case) -> np.ndarray:
    return reference.visible(c.sizes["M"], c.sizes["N"], causal=True)


BEYOND_FP16 = 2.0**24  # factor on the values of "beyond fp16", which bf16 holds and fp16 does not


FAR = 8.0  # of each number of a query and, with the other sign, of a key, for scores near -64 times D and the scale
LOUD = 12.0
LOWEST = "one score, lower than any number but minus infinity should stand for"
DEEPEST = "one score, almost the lowest that fp32 holds"
AT_THE_END, DEEP, BEFORE_A_CAP = (
    (57, 59),
    (19, 50),
    (19, 22),
)  # powers of two, so that all sums of such scores are exact in any order


ANY_SCALE = "scores of usual size by another scale"
USUAL = 1.5  # of such scores, the deviation
LOUD_SCALE, LOUDER = "extreme scores by another scale", 50.0  # and their deviation
LARGE_SUMS = "values whose sums are beyond fp16"
LARGE = 20_000.0  # each of them, and so their mean
MIXED = "queries of zeros among loud ones"
LIGHT = "a part of small weight and large values"
DIM = "a part of faint weight and enormous values"
DIM_EARLY = "a first part of faint weight and enormous values"
# of its scores below those of the others, the first such that fp16 holds the weight of each key well
FALLS = {LIGHT: (7.5, 9.3), DIM: (14, 27), DIM_EARLY: (14, 27)}
LARGEST_VALUE = {LIGHT: 55_000.0, DIM: 4 * math.exp(27), DIM_EARLY: 4 * math.exp(27)}
ABOVE = "one key far above thousands"
FAINT = "one key so far above thousands that each weighs less than 2**-16"
GAP = {ABOVE: (9.6, 10.8), FAINT: (11.3, 12)}  # of its score above theirs, which weigh much together
FIRST = 40  # keys that it is one of
TIED = "equal scores of hundreds of millions, many of them early"
EARLY, RARE = 1 / 4, 37  # of the keys, and one of so many of the others, have such a score
QUERY, KEY = 2.0**12, 2.0**13  # their numbers: fp32 has no room for the logarithm of a sum beside such scores
BRINK = "late scores almost 16 powers of two above early ones"
FURTHER = 15.99985 * math.log(2)  # a weight that fp16 rounds to infinity
RISING = "scores that rise from block to block of keys"
STEEPLY = "scores that rise so far from block to block of keys that earlier ones weigh nothing"
STEPS, LENGTHS = {RISING: (11.1, 11.5), STEEPLY: (120, 250)}, (16, 100)  # by so much, and of so many keys
CREEPING = "scores that rise a little with every tile of keys"
SLOPE = 0.65 / 64, 0.9 / 64  # a key: less than 1 for a tile of 64, and far beyond fp16's range over 1500 keys
SATURATED = "scores several times as large as a large cap"
BEFORE, BEYOND = (3.6, 4.6), (6.0, 9.0)  # times the cap, of which half of the keys have the one or the other
CLUSTERED = "scores of about one share of the cap"
SHARES, LOWEST_SHARES = (0.02, 0.9), (0.94, 0.985)  # of the cap, and of a small one
SCORES_APART = 1.5  # from their middle
STEEP = 0.01  # of a score's error is left where its tanh is so flat


def early(keys: int) -> np.ndarray:
    return np.arange(keys) < EARLY * keys


def tied(keys: int) -> np.ndarray:
    """Return which keys have equal scores, the largest: all early ones, and a few of the others."""
    return early(keys) | (np.arange(keys) % RARE == 0)


def light(keys: int) -> np.ndarray:
    """Return which keys are of small weight: the second half, which only some queries of a long prompt see."""
    return np.arange(keys) >= keys // 2


def light_in(c: Case, keys: int) -> np.ndarray:
    """Return which keys of a case are of small weight: those of one half or the other."""
    return light(keys) ^ (c.values == DIM_EARLY)


def constant(rng: np.random.Generator, shape, c: Case, sign: float) -> np.ndarray:
    ends = AT_THE_END if c.values == DEEPEST else BEFORE_A_CAP if "W" in c.sizes else DEEP
    return np.full(shape, sign * 2.0 ** between(rng, *ends), np.float32).astype(DTYPES[c.dtype])


def draw(rng: np.random.Generator, shape, case: Case, scale=1.0, shift=0.0) -> np.ndarray:
    return (shift + scale * rng.standard_normal(shape)).astype(np.float32).astype(DTYPES[case.dtype])


def queries(rng, shape, c: Case) -> np.ndarray:
    if c.values in (LOWEST, DEEPEST):
        return constant(rng, shape, c, 1.0)
    of_scale = 1 / (c.scalars["scale"] * shape[-1] ** 0.5)
    usual = {ANY_SCALE: USUAL * of_scale, LOUD_SCALE: LOUDER * of_scale, LARGE_SUMS: 0.02}
    usual |= {"extreme scores": LOUD, "far below zero": 0.5, "flat": 0.02, MIXED: LOUD}
    if c.values in (TIED, BRINK, CREEPING, *STEPS):
        return draw(rng, shape, c, 0.0, QUERY if c.values == TIED else 1.0)
    if c.values == CLUSTERED:
        return draw(rng, shape, c, 0.0, 1.0)
    if c.values in (*FALLS, *GAP, SATURATED):
        return draw(rng, shape, c, 0.01 if c.values == SATURATED else 0.1, 1.0)
    found = draw(rng, shape, c, usual.get(c.values, 1.0), FAR if c.values == "far below zero" else 0.0)
    if c.values == MIXED:
        found[..., rng.random(shape[-2]) < 1 / 2, :] = 0
    return found


def on_the_brink(shape, c: Case) -> np.ndarray:
    """Return keys for queries of ones. All numbers of a late key but the first are alike, and the first makes up for their
    rounding."""
    late, sum_of_key = light(shape[-2]), FURTHER / c.scalars["scale"]
    each = np.array(sum_of_key / shape[-1]).astype(DTYPES[c.dtype])
    keys = np.where(late[:, None], each, 0.0) * np.ones(shape)
    keys[..., 0] = np.where(late, sum_of_key - (shape[-1] - 1) * float(each), 0.0)
    return keys.astype(np.float32).astype(DTYPES[c.dtype])


def ends_of_blocks(rng, keys: int) -> np.ndarray:
    """Return where blocks of keys end whose scores are alike, the last one with all that are left."""
    ends = np.cumsum(rng.integers(*LENGTHS, size=1 + keys // LENGTHS[0]))
    return ends[ends < keys][:4]


def keys_of(rng, shape, c: Case) -> np.ndarray:
    if c.values in (LOWEST, DEEPEST):
        return constant(rng, shape, c, -1.0)
    if c.values in FALLS:
        away = rng.uniform(*FALLS[c.values]) / (2 * c.scalars["scale"] * shape[-1])  # q is near 1
        return draw(rng, shape, c, away / 5, np.where(light_in(c, shape[-2]), -away, away)[:, None])
    if c.values == TIED:
        return draw(rng, shape, c, 0.0, np.where(tied(shape[-2]), KEY, -KEY)[:, None])
    if c.values == BRINK:
        return on_the_brink(shape, c)
    if c.values in STEPS:
        level = rng.uniform(*STEPS[c.values]) * np.searchsorted(
            ends_of_blocks(rng, shape[-2]), np.arange(shape[-2]), "right"
        )
        return draw(rng, shape, c, 0.0, level[:, None] / (c.scalars["scale"] * shape[-1]))
    if c.values == CREEPING:
        level = rng.uniform(*SLOPE) * np.arange(shape[-2])
        return draw(rng, shape, c, 0.0, level[:, None] / (c.scalars["scale"] * shape[-1]))
    if c.values == SATURATED:
        times = np.where(light(shape[-2]), rng.uniform(*BEYOND), rng.uniform(*BEFORE))[:, None]
        return draw(rng, shape, c, 0.0, c.scalars["softcap"] / (c.scalars["scale"] * shape[-1]) * times)
    if c.values == CLUSTERED:
        return draw(
            rng, shape, c, 0.0, clustered(rng, shape[:-1], c)[..., None] / (c.scalars["scale"] * shape[-1])
        )
    if c.values in GAP:
        away = rng.uniform(*GAP[c.values]) / (2 * c.scalars["scale"] * shape[-1])
        at = rng.integers(min(FIRST, shape[-2]))
        return draw(rng, shape, c, away / 20, np.where(np.arange(shape[-2]) == at, away, -away)[:, None])
    scale = {"extreme scores": LOUD, "far below zero": 0.5}.get(c.values, 1.0)
    return draw(rng, shape, c, scale, -FAR if c.values == "far below zero" else 0.0)


def clustered(rng: np.random.Generator, shape, c: Case) -> np.ndarray:
    """Return scores that are close together once a cap bounds them. Those of a head are about one share of the cap, which all
    heads together go through, of either sign. Under a small cap all are far below zero."""
    cap, heads = c.scalars["softcap"], (*shape[:2], 1)
    small = cap < 10 * SCORES_APART
    share = rng.permutation(np.linspace(*(LOWEST_SHARES if small else SHARES), math.prod(heads))).reshape(
        heads
    )
    share *= -1 if small else rng.choice([-1, 1], heads)
    apart = min(SCORES_APART / cap, 0.12)
    return cap * np.arctanh(np.clip(share + rng.uniform(-apart, apart, shape), -0.999, 0.999))


def values(rng, shape, c: Case) -> np.ndarray:
    if c.values == LARGE_SUMS:
        return draw(rng, shape, c, LARGE / 10, LARGE)
    if c.values in FALLS:
        size = np.where(light_in(c, shape[-2]), LARGEST_VALUE[c.values], 1.0)[:, None]
        return draw(rng, shape, c, 0.02 * size, size)
    large = BEYOND_FP16 if c.values == "beyond fp16" else 1.0
    if c.values == TIED:
        return draw(rng, shape, c, 0.1, np.where(early(shape[-2]), 1.0, -1.0)[:, None])
    if c.values == SATURATED:
        return draw(rng, shape, c, 0.1, np.where(light(shape[-2]), 8.0, 1.0)[:, None])
    found = draw(rng, shape, c, large, 3.0 if c.values in (ANY_SCALE, *GAP, "flat") else 0.0)
    if c.values == ZEROS:
        found[..., : shape[-2] // 2, :] = 0
    return found


def operands(c: Case, rng: np.random.Generator) -> dict:
    b, h, g, m, n, d = (c.sizes[x] for x in ("B", "H", "G", "M", "N", "D"))
    found = {
        "q": queries(rng, (b, h, m, d), c),
        "k": keys_of(rng, (b, g, n, d), c),
        "v": values(rng, (b, g, n, d), c),
    }
    return with_nan(found, c, rng) if c.values == NAN else found


NAN, ZEROS = "a NaN in V", "values of zero in half of V"
LATE = 140  # keys from the end at least, which all queries see: a tile may load keys that its rows don't see


def with_nan(found: dict, c: Case, rng: np.random.Generator) -> dict:
    """Put a NaN into V at the first key, and one at a late key, which weighs nothing: the scores of the second half are far
    below those of the first."""
    m, n, d = c.sizes.get("M", 1), c.sizes["N"], c.sizes["D"]
    q, k, v = draw(rng, found["q"].shape, c, 0.5, FAR), found["k"].copy(), found["v"].copy()
    k[..., n // 2 :, :] = draw(rng, k[..., n // 2 :, :].shape, c, 0.5, -FAR)
    v[0, 0, [0, max(0, n - max(LATE, m))], rng.integers(d, size=2)] = np.nan
    return {"q": q, "k": k, "v": v}


LONGEST, LONGEST_ROW = 1300, 8192  # queries of a case with a long axis, and keys


def few_pairs(most: int) -> Callable:
    """Give a long prompt keys that come before it, a wide window keys that it doesn't reach, and so few heads that a reference of all pairs is affordable."""

    def crossed(c: Case) -> Case:
        m = min(c.sizes["M"], LONGEST)
        n = max(c.sizes["N"], m + m // 8, min(LONGEST_ROW, 9 * c.sizes.get("W", 0) // 8))
        heads = max(1, min(64, most // (m * n)))
        g = min(c.sizes["G"], heads)
        h = max(g, min(c.sizes["H"], heads) // g * g)
        return replace(
            c, sizes=c.sizes | {"B": max(1, min(c.sizes["B"], heads // h)), "H": h, "G": g, "M": m, "N": n}
        )

    return crossed


def case(b, h, g, m, n, d, dtype="fp16", *, w=None, softcap=None, scale=None, **more) -> Case:
    scalars = {"scale": float(d**-0.5 if scale is None else scale)}
    scalars |= {"softcap": float(softcap)} if softcap is not None else {}
    sizes = dict(zip("BHGMND", map(int, (b, h, g, m, n, d)), strict=True))
    return Case(sizes | ({"W": int(w)} if w is not None else {}), dtype, scalars=scalars, **more)


def scale(rng: np.random.Generator) -> float:
    return log_uniform(rng, 0.01, 2)


def small_scale(rng: np.random.Generator) -> float:
    return log_uniform(rng, 1e-3, 0.01)


def large_scale(rng: np.random.Generator) -> float:
    return log_uniform(rng, 2, 30)


WEIGHT_ROUNDING = {"fp16": 2.0**-11, "bf16": 2.0**-8}  # of the softmax weights, which are rounded before P V
UNEVEN = 2.5  # where a few large values count, errors of their weights don't cancel
SUMS = 2.0**-15  # fp32 in tiles: sums, the factors between maxima and the division


def largest_norm(vectors: np.ndarray) -> np.ndarray:
    """Return the largest norm of all vectors of each sequence of a batch, (B,)."""
    norms = np.linalg.norm(vectors.astype(np.float64, copy=False), axis=-1)
    return norms.reshape(len(norms), -1).max(1, initial=0)


ALL_ALIKE = 1.3  # where all keys point one way, and so do the errors of their scores
TANH = 2.0**-22  # of a cap: so far a tanh may be off that is made of exp, where it is next to 0
LARGEST_OF_MANY = 1.5  # times a usual error of a score, since every output counts
FACTORS = {
    LOWEST: 0.0,
    DEEPEST: 0.0,
    TIED: 0.0,
    LIGHT: UNEVEN,
    **dict.fromkeys((DIM, DIM_EARLY), 6.0),  # scores further apart, of which roundings to bf16 point one way
    SATURATED: STEEP,
    CLUSTERED: 5 * STEEP,  # an error of a factor of all scores cancels
    **dict.fromkeys(GAP, ALL_ALIKE),
}  # times the error of a score


def of_each_sequence(case: Case, count: int) -> np.ndarray:
    """Return by which factor the error of scores counts in each sequence of a batch, whose parts may differ in kind."""
    if case.kind == own_numbers.KIND:
        return np.full(count, UNEVEN)
    parts = case.parts or (replace(case, sizes=case.sizes | {"B": count}),)
    factors = [FACTORS.get(part.values, 1.0) for part in parts]
    return np.repeat(factors, [part.sizes["B"] for part in parts])


def within(wanted):
    """Allow the rounding of the output and of each weight, in the sum of the weighted values. A score's own error grows
    with its size, the more so where queries are scaled before they are rounded, as some good kernels do. If all
    scores are one power of two, the score is exact."""

    def limits(inputs: dict, case: Case, want: dict) -> dict:
        terms = wanted(inputs | {"v": np.abs(inputs["v"].astype(np.float64, copy=False))}, case)["o"]
        norms = [largest_norm(inputs[x]) for x in ("q", "k")]
        unit = WEIGHT_ROUNDING[case.dtype]
        size = LARGEST_OF_MANY * abs(case.scalars["scale"]) * norms[0] * norms[1]
        size = size / min(8, case.sizes["D"] ** 0.5) + case.scalars.get("softcap", 0.0) * TANH / unit
        size = size * of_each_sequence(case, len(size))
        share = unit * (1 + np.reshape(size, (-1, *[1] * (terms.ndim - 1)))) + SUMS
        return {
            name: where_finite(ROUNDING[case.dtype] * (np.abs(w) + share * terms) + share * terms + 1e-6, w)
            for name, w in want.items()
        }

    return limits


OUTPUT = "what is stored besides the output: scores and weights live and die in registers"
ROWS = "the rows a program owns: each of them reuses every key that the program loads"
DOT = "do both products go through tl.dot, in a dtype and a tile that tensor cores take?"
WIDENED = "operands go into tl.dot in the dtype of K and V, the weights too: in fp32 they take twice the room and half the rate"
LARGEST = cost.Tiling(128, 256), cost.Tiling(256, 128)  # one or the other, whichever computes more
SMALLEST_ROWS = cost.Tiling(16, 256)
LITTLE = 1.05  # times what the largest tiles compute
HIGHEST = 256  # rows or keys a program
WORK = 26  # operations a pair, where a softmax takes some 9, a cap 5, and tiles of 32 keys 4 to rescale


def shape(c: Case, left=None) -> cost.Shape:
    s = c.sizes
    return cost.Shape(s["M"], s["N"], s["D"], s["H"], s["G"], s["B"], 2, left=left, right=0)


def shape_of(c: Case) -> cost.Shape:
    return shape(c, c.sizes.get("W"))


def useful(c: Case) -> float:
    return cost.flops(shape_of(c))


def in_tiles(c: Case) -> float:
    """Return the pairs of one head that the largest tiles compute, and a little more."""
    return LITTLE * max(cost.tiled_pairs(shape_of(c), tiling) for tiling in LARGEST)


def of_tiles(c: Case, tilings: tuple[cost.Tiling, ...], each: Callable) -> Callable:
    """Return the share of what tiles compute or load for all rows that is due to the rows which drawn programs wrote.
    `each` tells it of a row."""

    def share(written: dict[str, np.ndarray]) -> float:
        rows, elements = np.unique(written["o"][:, 2], return_counts=True)
        s = shape_of(c)
        of_rows = [elements @ [each(s, tiling, int(row)) for row in rows] for tiling in tilings]
        of_all = [of_all_rows(s, tiling, each) for tiling in tilings]
        return max(of_rows) / (max(of_all) * c.sizes["B"] * c.sizes["H"] * c.sizes["D"])

    return share


@lru_cache(maxsize=64)
def of_all_rows(s: cost.Shape, tiling: cost.Tiling, each: Callable) -> float:
    """Return what tiles compute or load for all rows of a head."""
    return sum(each(s, tiling, row) for row in range(s.length))


def loaded_for(s: cost.Shape, tiling: cost.Tiling, row: int) -> float:
    """Return a row's part of the keys that its tile loads."""
    first = row // tiling.block_m * tiling.block_m
    return cost.keys_loaded(s, tiling, first) / min(tiling.block_m, s.length - first)


def dots(c: Case, look: str) -> list[Budget]:
    """Limit both matmuls to the tiles that hold a visible pair, with little work around them."""
    heads, work = c.sizes["B"] * c.sizes["H"], c.sizes["B"] * c.sizes["H"] * in_tiles(c)
    most = 4 * c.sizes["D"] * work
    tight = {"exact": True, "share": of_tiles(c, LARGEST, cost.row_pairs)}
    return [
        Budget(
            what="FLOP in tl.dot, at least",
            count="dot",
            least=useful(c),
            look=DOT,
            model=f"4 x {c.sizes['D']} for each of {cost.pairs(shape_of(c)):,} pairs that are seen, in {c.sizes['H']} heads",
        ),
        Budget(
            what="FLOP in tl.dot",
            count="dot",
            most=most,
            look=look,
            model=f"4 x {c.sizes['D']} for each pair of all tiles of 128 x 256 or 256 x 128 that hold a seen pair, + 5%",
            **tight,
        ),
        Budget(
            what="operations outside tl.dot",
            count="operations",
            most=WORK * work,
            look=DOT,
            model=f"{WORK} for each of {work / heads:,.0f} pairs that may be computed, in {heads} heads",
            **tight,
        ),
        replace(
            every_kind(
                2 * WORK + c.sizes["D"] / 4,
                work,
                f"{work / heads:,.0f} pairs that may be computed, in {heads} heads",
            ),
            **tight,
        ),
    ]


def narrow() -> Budget:
    return Budget(
        what="FLOP in tl.dot on operands widened to fp32",
        count="wide dot",
        most=0,
        look=WIDENED,
        model="every operand of at most 16 bits",
    )


def kept(c: Case) -> list[Budget]:
    """Limit scratch to next to nothing: two numbers a row, out and in, besides the output."""
    s = c.sizes
    rows = s["B"] * s["H"] * s["M"]
    out = 2 * rows * s["D"]
    return [
        Budget(
            what="write of the output",
            tensor="o",
            access="store",
            most=out,
            least=out,
            look=OUTPUT,
            model=f"{rows:,} rows of {s['D']} numbers of 2 bytes, once",
        ),
        Budget(
            what="scratch, loaded and stored",
            tensor="scratch",
            access="any",
            most=16 * rows,
            look=OUTPUT,
            model=f"two numbers of 4 bytes for each of {rows:,} rows, out and in",
        ),
    ]


def keys(c: Case, look: str) -> list[Budget]:
    most = cost.tiled_traffic(shape_of(c), SMALLEST_ROWS).k
    tiles, _ = cost.tile_counts(shape_of(c), SMALLEST_ROWS)
    model = f"{c.sizes['H']} heads, {tiles} tiles of 16 rows, each with the tiles of 256 keys that it sees"
    tight = {"exact": True, "share": of_tiles(c, (SMALLEST_ROWS,), loaded_for)}
    return [
        *(
            Budget(what=f"read of {x.upper()}", tensor=x, most=most, look=look, model=model, **tight)
            for x in "kv"
        ),
        rows_of_queries(c),
    ]


def rows_of_queries(c: Case) -> Budget:
    rows, d = c.sizes["B"] * c.sizes["H"] * c.sizes["M"], c.sizes["D"]
    return Budget(
        what="read of Q",
        tensor="q",
        most=2 * rows * d,
        look="whether a tile's queries are loaded once, before the loop over keys",
        model=f"{rows:,} rows of {d} numbers of 2 bytes, once",
    )


def heads_side_by_side(c: Case, tensor: str, size: str, what: str, access: str = "store") -> Budget:
    heads, tiles = c.sizes["B"] * c.sizes["H"], math.ceil(c.sizes[size] / HIGHEST)
    least = min(heads * tiles, c.sm_count)
    return side_by_side(
        f"{access} {tensor}",
        tensor,
        access,
        least,
        f"one for every {HIGHEST} {what} of {heads} heads, {least} of them at least",
    )


LESSON = "course/05_flash_attention"
QKV = (
    Tensor("q", "bhmd", ("B", "H", "M", "D")),
    Tensor("k", "bhnd", ("B", "G", "N", "D")),
    Tensor("v", "bhnd", ("B", "G", "N", "D")),
)
O = Tensor("o", "bhmd", ("B", "H", "M", "D"), role="out")
