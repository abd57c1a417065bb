"""Draw the inputs of *residual norm*, and set its budgets."""

import math
from dataclasses import replace

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import (
    ROUNDING,
    SMALLEST,
    between,
    log_uniform,
    odd,
    rounded,
    spread,
    where_finite,
)
from grader.questions.min_programs import side_by_side
from grader.questions.timed import timed
from grader.questions.work import work
from kernels.next_bottleneck import cost_step, reference

PLAIN = Case({}).values
USUAL, EPS = 1e-6, (1e-7, 1e4)
FP32_STEPS = 2.0**-18  # of a result: an fp32 sum of squares in any order, and a root of it


def operands(case: Case, rng: np.random.Generator) -> dict:
    m, n = case.sizes["M"], case.sizes["N"]
    x, r, eps = rng.standard_normal((m, n)), rng.standard_normal((m, n)), case.scalars["eps"]
    if case.values == PLAIN and eps != USUAL:  # so that both the squares and eps matter
        size = eps**0.5 * 2.0 ** rng.uniform(0, 3)
        x, r = size * x, size * r
    if case.values == "far apart":
        r *= 2.0 ** rng.uniform(-4, 6, (m, 1))
    if case.kind == METERED:  # a number that outweighs its row, as residual streams have
        r[np.arange(m), rng.integers(n, size=m)] *= 40
    if case.values == "small":
        x, r = 2e-3 * x, 2e-3 * r
    if case.values == "large":
        x, r = 700 * x, 700 * r
    if case.values == "beyond fp16":
        x, r = 2.0**20 * x, 2.0**20 * r
    if case.values == "rows of zeros":
        x, r = x * 0, r * 0
    if case.values == "cancelling":
        x = -r + 0.02 * x
    if case.values == "infinities and a NaN":
        x[1 % m, rng.integers(n)], r[2 % m, rng.integers(n)] = np.nan, np.inf
        x[3 % m, rng.integers(n)], r[4 % m, rng.integers(n)] = np.inf, -np.inf
        x[5 % m, rng.integers(n)] = -np.inf
        x[MANY:, rng.integers(n)] = np.inf  # so that a second pass over such rows shows in what is loaded
        r[6 % m, rng.integers(n)] = np.nan
    w = rng.choice([-1, 1], n, p=[0.1, 0.9]) * rng.uniform(0.3, 2, n)
    if case.values == "beyond fp16":
        w *= 2.0**20
    if case.values == "rows of zeros":  # zero times an infinity is a NaN
        w[rng.permutation(n)[:2]] = (np.inf, np.nan)[:n]
    return {"x": rounded(x, case.dtype), "r": rounded(r, case.dtype), "w": rounded(w, case.dtype)}


def wanted(inputs: dict, case: Case) -> dict:
    with np.errstate(all="ignore"):
        y, r = reference.residual_norm(inputs["x"], inputs["r"], inputs["w"], case.scalars["eps"])
    return {"r": r.astype(np.float64), "y": y}


def within(inputs: dict, case: Case, want: dict) -> dict:
    """Allow one rounded sum for the residual, which all ways of adding give, and for y one rounding after an fp32 sum."""
    out, y = case.dtypes.get("y", case.dtype), np.abs(want["y"])
    with np.errstate(invalid="ignore"):
        allowed = (FP32_STEPS + ROUNDING[out] * (1 + FP32_STEPS)) * y + SMALLEST[out]
    return {"r": np.zeros_like(want["r"]), "y": where_finite(allowed, want["y"])}


def case(m: int, n: int, dtype: str = "fp16", *, eps: float = USUAL, **more) -> Case:
    return Case({"M": int(m), "N": int(n)}, dtype, scalars={"eps": eps}, **more)


METERED = "the metered size"
MANY = 8  # rows of a small case
ANY_EPS = PLAIN, "large", "beyond fp16", "infinities and a NaN"


def hidden(rng: np.random.Generator) -> list[Case]:
    def any_size() -> int:
        return between(rng, 5, 140)

    fp32 = {"dtypes": {"y": "fp32"}}
    cases = [
        case(any_size(), odd(rng, 33, 777), "bf16", kind="odd sizes"),
        case(7, between(rng, 1050, 1500), kind="rows beyond 1024"),
        case(3, between(rng, 2100, 3500), "bf16", kind="rows beyond 2048"),
        case(
            7,
            between(rng, 8300, 9500),
            values="infinities and a NaN",
            kind="rows beyond 8192, some with infinities and a NaN",
        ),
        case(between(rng, 1100, 1300), 5, kind="many rows"),
        case(9, any_size(), layout=spread(rng, "x", "r", "y"), kind="no stride of 1"),
        case(9, 64, layout={"x": "transposed", "r": "padded"}, kind="x column by column"),
        case(7, 40, layout={"r": "transposed", "y": "padded"}, kind="the residual column by column"),
        case(7, 48, layout={"x": "padded", "y": "transposed"}, kind="the result column by column"),
        case(9, any_size(), "bf16", **fp32, values="far apart", kind="rows of all sizes, a result in fp32"),
        case(9, any_size(), **fp32, values="small", eps=log_uniform(rng, 3e-7, 1e-5), kind="small numbers"),
        case(9, any_size(), **fp32, values="large", kind="large numbers"),
        case(9, any_size(), "bf16", values="beyond fp16", kind="numbers beyond fp16"),
        case(9, between(rng, 40, 140), **fp32, values="cancelling", kind="a residual that x takes away"),
        case(8, any_size(), **fp32, kind="another eps"),
        case(
            8,
            any_size(),
            **fp32,
            eps=log_uniform(rng, 100, 1e4),
            values="far apart",
            kind="an eps far above all squares",
        ),
        case(5, any_size(), values="rows of zeros", kind="rows of zeros"),
        case(7, between(rng, 30, 60), values="infinities and a NaN", kind="infinities and a NaN"),
        case(1, 1, **fp32, kind="a single element"),
        case(between(rng, 16400, 16900), 3, "bf16", kind="more rows than any size that is named"),
    ]
    return with_any_eps(cases, rng)


def with_any_eps(cases: list[Case], rng: np.random.Generator) -> list[Case]:
    """Draw an eps for each case whose values need none of their own, every factor as likely as the next, and no two alike."""
    free = [i for i, one in enumerate(cases) if one.scalars["eps"] == USUAL and one.values in ANY_EPS]
    step = (EPS[1] / EPS[0]) ** (1 / len(free))
    for place, i in enumerate(rng.permutation(free)):
        eps = EPS[0] * step ** (place + rng.random())
        cases[i] = replace(cases[i], scalars={"eps": eps})
    return cases


KEPT = "where the sum is between the addition and the norm: in registers, where both find it"
NEIGHBOURS = "which neighbouring lanes read neighbouring addresses: a sector is 32 bytes, used or not"
SECTOR = 16  # elements of 2 bytes
HALF = 2  # bytes of an element
EDGES = 1.02
ROWS = 4  # rows a program at most, because a step has few
WORK = 40  # operations an element, where a kernel as it should be takes some 12
CYCLES = 85  # of a lane, an element: four conversions take most of them
FLOP = 6.0  # an element: the addition, the square and its sum, two products


def metered(rng: np.random.Generator) -> Case:
    """Near 64 x 2,000: a batch's rows, of whole sectors that fill no power of two."""
    return case(between(rng, 56, 72), SECTOR * between(rng, 114, 127), kind=METERED)


def size(c: Case) -> int:
    return HALF * c.sizes["M"] * c.sizes["N"]


def useful(c: Case) -> float:
    return FLOP * c.sizes["M"] * c.sizes["N"]


def plain_spends(c: Case) -> tuple[int, float]:
    """Return launches and bytes of plain.norm, whose operations each read their inputs and write their outputs."""
    return cost_step.LAUNCHES["norm"]["plain"], 46.0 * c.sizes["M"] * c.sizes["N"]


def least_spent(c: Case) -> tuple[int, float]:
    """Return one launch, four passes, and the weight for each row."""
    return 1, 5.0 * size(c)


def once(what: str, tensor: str, c: Case, access: str = "load") -> Budget:
    m, n = c.sizes["M"], c.sizes["N"]
    return Budget(
        what=what,
        tensor=tensor,
        access=access,
        most=size(c),
        least=size(c),
        look=KEPT,
        model=f"{m} x {n} elements of 2 bytes, once",
    )


def four_passes(c: Case) -> list[Budget]:
    """x and the residual in, the residual and y out: two passes fewer than a step that adds first and norms then."""
    m, n = c.sizes["M"], c.sizes["N"]
    return [
        once("read of x", "x", c),
        once("write of the residual", "r", c, "store"),
        once("write of y", "y", c, "store"),
        Budget(
            what="read of w",
            tensor="w",
            most=size(c),
            least=HALF * n,
            look="how often a row asks for the weight",
            model=f"{m} rows, each with its {n} numbers of 2 bytes",
        ),
        Budget(
            what="read of the residual, and all that is read back or kept in scratch",
            tensor="scratch",
            access="any",
            most=size(c) + 16 * m,
            least=size(c),
            look=KEPT,
            model=f"{m} x {n} elements of 2 bytes, once, and two sums of 4 bytes a row, out and in",
        ),
    ]


def by_sectors(c: Case) -> list[Budget]:
    """Limit, where no clock is, the counts that speed comes from, whole sectors, little arithmetic, rows side by side."""
    m, n, most = c.sizes["M"], c.sizes["N"], EDGES * size(c)
    model = f"{m} rows of {n // SECTOR} sectors of 32 bytes + 2%"
    return [
        *(
            Budget(
                what=f"sectors of {words}, {access}",
                tensor=tensor,
                access=access,
                count="sectors",
                most=most,
                model=model,
                look=NEIGHBOURS,
            )
            for words, tensor, access in (
                ("x", "x", "load"),
                ("the residual", "r", "load"),
                ("the residual", "r", "store"),
                ("y", "y", "store"),
            )
        ),
        work(WORK, m * n, f"{m} x {n} elements"),
        timed(CYCLES, m * n, "element"),
        side_by_side("store y", "y", "store", math.ceil(m / ROWS), f"one for every {ROWS} of {m} rows"),
    ]


TIMED = case(64, 2048, "bf16", sm_count=132)


def bound(c: Case) -> tuple[float, float]:
    return useful(c), 4.0 * size(c) + HALF * c.sizes["N"]
