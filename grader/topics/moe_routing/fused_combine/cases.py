"""Draw the inputs of *fused combine*, and set its budgets."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import ROUNDING, SMALLEST, between, odd, rounded, spread, where_finite
from grader.questions.min_programs import side_by_side
from grader.questions.timed import timed
from grader.questions.work import work
from grader.topics.moe_routing.shared import (
    INT32,
    SECTOR,
    TILE,
    WIDER,
    WORK,
    drawn_as,
    filled_up,
    no_atomics,
    nothing_kept,
    ordered,
    rows,
    sectors,
    size,
)
from kernels.moe_routing import reference
from kernels.moe_routing.cost_traffic import combine_traffic

BEYOND_FP16 = 20, 110  # powers of two
MANY, STEP = 64, 64  # tokens, and columns
INFINITIES = np.inf, -np.inf, np.inf, -np.inf  # of one number of a row each, the first two with weights of 0


def weighed_rows(case: Case, rng: np.random.Generator) -> dict:
    """Rows as experts leave them, NaN where a row is padding, the row of each pair, and its weight."""
    t, k, h = (case.sizes[name] for name in "TKH")
    _, found = ordered(case, rng)
    held = rng.standard_normal((rows(case.sizes), h))
    if drawn_as(case) == "far apart":
        held *= 2.0 ** rng.uniform(-6, 6, (len(held), 1))
    held[filled_up(found.sorted_token_ids, len(held)) == reference.EMPTY] = np.nan
    topk_weights = rng.dirichlet(np.ones(k), t).reshape(t, k) * rng.uniform(0.4, 2.5)
    if drawn_as(case) == "beyond fp16":  # and the larger a row, the smaller its weight
        size = 2.0 ** rng.uniform(*BEYOND_FP16, (t, k))
        held[found.inv_permuted_idx] *= size[..., None]
        topk_weights *= 2.0 ** BEYOND_FP16[0] / size
    if drawn_as(case) == "infinities" and t:
        tokens = np.resize(rng.permutation(t)[: len(INFINITIES)], len(INFINITIES))
        slots = rng.integers(k, size=len(tokens))
        held[found.inv_permuted_idx[tokens, slots], rng.integers(h)] = INFINITIES
        topk_weights[tokens[:2], slots[:2]] = 0.0
        topk_weights[tokens[0]] = 0.0
        topk_weights[tokens[2:], slots[2:]] += 0.1
        if t >= MANY:  # in every strip of a row, so that a second pass over such rows shows in what is loaded
            held[found.inv_permuted_idx[:, 0], ::STEP] = np.inf
    return {
        "rows": rounded(held, case.dtype),
        "inv_permuted_idx": found.inv_permuted_idx.astype(np.int32),
        "topk_weights": topk_weights.astype(np.float32),
    }


def combined(t, k, e, h, tile=16, dtype="fp16", **more) -> Case:
    return Case(size(t, k, e, tile) | {"H": int(h)}, dtype, **more)


def sized(**sizes: int) -> Case:
    """Return a case with these sizes, and enough experts for a token's choices."""
    return Case(sizes | {"E": max(sizes["E"], sizes["K"])})


def hidden_combine(rng: np.random.Generator) -> list[Case]:
    names = ("rows", "inv_permuted_idx", "topk_weights", "out")
    return [
        combined(odd(rng, 11, 41), 2, between(rng, 4, 9), odd(rng, 33, 199), kind="two experts a token"),
        combined(odd(rng, 11, 41), 3, between(rng, 5, 9), between(rng, 200, 300), dtype="bf16", kind="bf16"),
        combined(
            between(rng, 5, 20), 8, between(rng, 20, 40), odd(rng, 33, 99), kind="eight experts a token"
        ),
        combined(between(rng, 5, 20), 1, 5, odd(rng, 33, 99), kind="one expert a token"),
        combined(0, 2, 4, 40, kind="no tokens"),
        combined(1, 3, 6, odd(rng, 33, 99), kind="one token"),
        combined(between(rng, 20, 40), 1, 4, 50, values="the same experts", kind="all tokens on one expert"),
        combined(between(rng, 300, 400), 2, 6, between(rng, 5, 12), 64, kind="many tokens"),
        combined(3, 2, 5, between(rng, 4200, 4700), dtype="bf16", kind="wide rows"),
        combined(between(rng, 5, 20), 4, 9, 1, kind="rows of a single number"),
        combined(
            between(rng, 10, 20),
            6,
            12,
            odd(rng, 33, 99),
            dtype="bf16",
            dtypes={"out": "fp32"},
            values="far apart",
            kind="rows of all sizes, a result in fp32",
        ),
        combined(
            between(rng, 30, 40), 6, 6, odd(rng, 133, 199), dtypes={"out": "fp32"}, kind="a result in fp32"
        ),
        combined(
            between(rng, 10, 20), 3, 6, odd(rng, 33, 99), layout=spread(rng, *names), kind="no stride of 1"
        ),
        combined(
            between(rng, 10, 20),
            3,
            6,
            40,
            layout={"rows": "transposed", "inv_permuted_idx": "transposed", "out": "padded"},
            kind="rows and their indices column by column",
        ),
        combined(
            between(rng, 10, 20),
            3,
            6,
            40,
            layout={"rows": "padded", "topk_weights": "transposed", "out": "transposed"},
            kind="weights and result column by column",
        ),
        combined(
            between(rng, 10, 20),
            between(rng, 4, 8),
            9,
            odd(rng, 33, 99),
            values="infinities",
            kind="infinities, and weights of 0",
        ),
        combined(
            between(rng, 10, 20),
            2,
            6,
            odd(rng, 33, 99),
            dtype="bf16",
            values="beyond fp16",
            kind="numbers beyond fp16",
        ),
        combined(between(rng, 4200, 5200), 1, 2, 3, 64, kind="more tokens than any size that is named"),
        combined(
            between(rng, 5, 9),
            between(rng, 9, 12),
            between(rng, 130, 160),
            5,
            kind="more experts than are usual",
        ),
    ]


def many_wide_rows(rng: np.random.Generator) -> Case:
    """Draw a few tokens with many experts each, and wide rows."""
    return combined(between(rng, 6, 12), between(rng, 5, 8), between(rng, 9, 16), between(rng, 520, 1100))


STRIP = 256  # columns of out that a program owns at least
COMBINE_ALL = 16  # of every kind, a number of a row
SUMMED = 6  # operations on a number of a row, where a product and a sum take 2
TOKENS = 4  # tokens that one program combines at most
ONCE = "each pair's row is needed once, by its token, and padding by nobody"


def metered_combine(rng: np.random.Generator) -> Case:
    """Near 100 tokens of 700 numbers, three pairs each."""
    sizes = size(between(rng, 90, 110), 3, between(rng, 9, 16), TILE)
    return Case(
        sizes | {"H": SECTOR * between(rng, 40, 48)}, sm_count=between(rng, 6, 9), kind="the metered size"
    )


def useful_combine(c: Case) -> float:
    return 2.0 * c.sizes["T"] * c.sizes["K"] * c.sizes["H"]


def combine(c: Case) -> list[Budget]:
    t, k, h = (c.sizes[name] for name in "TKH")
    moved = combine_traffic(t, k, h, block_h=STRIP)
    table = moved.tables // 2  # rows and weights of pairs have equally many numbers, of the same size
    return [
        Budget(
            what="read of the rows",
            tensor="rows",
            most=moved.rows,
            least=moved.rows,
            look=ONCE,
            model=f"{t} x {k} rows of {h} numbers of 2 bytes, once",
        ),
        *(
            Budget(
                what=f"read of {name}",
                tensor=name,
                most=table,
                least=INT32 * t * k,
                look="the columns that a program owns: it asks for its tokens' rows and weights once",
                model=f"{t} x {k} numbers of 4 bytes for every {STRIP} of {h} columns",
            )
            for name in ("inv_permuted_idx", "topk_weights")
        ),
        Budget(
            what="write of out",
            tensor="out",
            access="store",
            most=moved.written,
            least=moved.written,
            look=WIDER,
            model=f"{t} x {h} numbers of 2 bytes, once",
        ),
        nothing_kept(),
        no_atomics("a token's rows are added up in one program"),
    ]


def combine_flow(c: Case) -> list[Budget]:
    t, k, h = (c.sizes[name] for name in "TKH")
    lanes = 1 << (h - 1).bit_length()
    return [
        sectors("rows", "rows", t * k * h),
        Budget(
            what="operations",
            count="operations",
            most=SUMMED * t * k * lanes,
            look=WORK,
            model=f"{SUMMED} for each of {t} x {k} rows of {lanes} lanes",
        ),
        work(COMBINE_ALL, t * k * lanes, f"{t} x {k} rows of {lanes} lanes"),
        timed(4, t * k * lanes, "number of a row"),
        side_by_side(
            "read the rows", "rows", "load", math.ceil(t / TOKENS), f"one for every {TOKENS} of {t} tokens"
        ),
    ]


def bound_combine(c: Case) -> tuple[float, float]:
    t, k, h = (c.sizes[name] for name in "TKH")
    moved = combine_traffic(t, k, h, block_h=h)
    return useful_combine(c), moved.loaded + moved.written


def picked(inputs: dict) -> tuple[np.ndarray, np.ndarray]:
    """(rows of each token (T, K, H), their weights (T, K, 1)) in float64."""
    rows, topk_weights = (inputs[name].astype(np.float64) for name in ("rows", "topk_weights"))
    return rows[inputs["inv_permuted_idx"]], topk_weights[..., None]


FP32_SUM = 2.0**-20  # of the sum of magnitudes: an fp32 sum of a few


def wanted(inputs: dict, case: Case) -> dict:
    with np.errstate(invalid="ignore"):
        return {
            "out": reference.combine_pairs(
                inputs["rows"].astype(np.float64)[inputs["inv_permuted_idx"]], inputs["topk_weights"]
            )
        }


def within(inputs: dict, case: Case, want: dict) -> dict:
    out, (held, topk_weights) = case.dtypes.get("out", case.dtype), picked(inputs)
    with np.errstate(invalid="ignore"):
        sums = (np.abs(held) * topk_weights).sum(1)
        allowed = FP32_SUM * sums + ROUNDING[out] * np.abs(want["out"]) + SMALLEST[out]
    return {"out": where_finite(allowed, want["out"])}
