"""Draw the inputs of *layernorm gelu* and limit their cost."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import ROUNDING, between, log_uniform, odd, rounded, spread, where_finite
from grader.questions.min_programs import side_by_side
from grader.questions.timed import timed
from grader.questions.work import work
from kernels.roofline import cost, reference

CANCELLED = 2.0**-23  # of x, where 1 + erf is next to 0, which shows if all GELUs of a row are
FP32_STEPS = 2.0**-19  # of the row's largest GELU, after scaling, for fp32 sums in any order

SMALL_ONE = "one small number among large ones"
EACH_COLUMN = "a large number in each column"  # of another row, since any of them may be a row's own zero
LARGE_WEIGHT = "a column of large numbers with a large weight"  # whose results fp16 doesn't hold

MANY = 8  # rows of a small case


def operands(case: Case, rng: np.random.Generator) -> dict:
    rows, cols = case.sizes["M"], case.sizes["N"]
    x = rng.standard_normal((rows, cols))
    if case.values == "far from zero":
        x = x + 100.0
    if case.values == "constant rows":
        x = np.broadcast_to(rng.standard_normal((rows, 1)), (rows, cols))
    if case.values == "rows that hardly vary":
        x = rng.uniform(0.5, 2.0, (rows, 1)) + 0.02 * x
    if case.values == "tails":
        x = x * 8
    if case.values == "a large number in each row":
        x[np.arange(rows), rng.integers(0, cols, rows)] = 30_000.0
    if case.values == SMALL_ONE:
        x = 20_000.0 + rng.normal(0, 40, (rows, cols))
        x[np.arange(rows), rng.integers(0, cols, rows)] = rng.choice([-2.0, 0.0, 3.0], rows)
    if case.values == EACH_COLUMN:
        np.fill_diagonal(x, 30_000.0)
    if case.values == "infinities and a NaN":
        for row, special in enumerate((np.nan, np.inf, -np.inf)[:rows], 1):  # each in a row of its own
            x[row % rows, rng.integers(cols)] = special
        x[MANY:, rng.integers(cols)] = np.inf  # so that a second pass over such rows shows in what is loaded
    w = 1 + 0.5 * rng.standard_normal(cols)
    if case.values == LARGE_WEIGHT:
        column = rng.integers(cols)
        x[:, column], w[column] = rng.uniform(20, 40, rows), 1e6
    return {
        "x": rounded(x, case.dtype),
        "w": w.astype(np.float32),
        "b": rng.standard_normal(cols).astype(np.float32),
    }


def fused(inputs: dict, case: Case) -> dict:
    with np.errstate(invalid="ignore"):
        return {"y": reference.layernorm_gelu(inputs["x"], inputs["w"], inputs["b"], case.scalars["eps"])}


def within(inputs: dict, case: Case, want: dict) -> dict:
    """One rounding to y's dtype, and fp32 sums in any order, as large as the norm makes them. The GELU of a number far
    below zero is a small difference, and its error goes with the number."""
    with np.errstate(invalid="ignore"):
        g = reference.gelu(inputs["x"])
        scale = 1 / np.sqrt(g.var(-1, keepdims=True) + case.scalars["eps"])
        terms, lost = (
            np.abs(of).max(-1, keepdims=True) * scale * np.abs(inputs["w"])
            for of in (g, inputs["x"].astype(np.float64))
        )
        computed = FP32_STEPS * terms + CANCELLED * lost + 2.0**-20 * np.abs(inputs["b"]) + 1e-7
        out = ROUNDING[case.dtypes.get("y", case.dtype)]
        return {"y": where_finite(out * (np.abs(want["y"]) + computed) + computed, want["y"])}


def case(m: int, n: int, dtype: str = "fp16", *, eps: float = 1e-5, **more) -> Case:
    return Case({"M": int(m), "N": int(n)}, dtype, scalars={"eps": eps}, **more)


def hidden(rng: np.random.Generator) -> list[Case]:
    def any_size() -> int:
        return between(rng, 3, 140)

    fp32 = {"dtypes": {"y": "fp32"}}
    return [
        case(any_size(), odd(rng, 3, 777), "bf16", kind="odd sizes"),
        case(7, between(rng, 1050, 1500), kind="rows beyond 1024"),
        case(3, between(rng, 2100, 3500), "bf16", kind="rows beyond 2048"),
        case(2, between(rng, 8300, 9500), kind="rows beyond 8192"),
        case(between(rng, 1100, 1300), 5, kind="many rows"),
        case(9, any_size(), layout=spread(rng, "x", "y"), kind="no stride of 1"),
        case(9, 64, layout={"x": "transposed", "y": "padded"}, kind="a transposed input"),
        case(7, 40, layout={"x": "padded", "y": "transposed"}, kind="a transposed output"),
        case(6, between(rng, 150, 250), **fp32, values="far from zero", kind="values far from zero"),
        case(
            4,
            between(rng, 4200, 5000),
            values="a large number in each row",
            kind="a large number in each row",
        ),
        case(3, between(rng, 12_000, 16_000), **fp32, values=SMALL_ONE, kind=SMALL_ONE),
        case(n := between(rng, 380, 420), n, **fp32, values=EACH_COLUMN, kind=EACH_COLUMN),
        case(4, between(rng, 70, 120), **fp32, values="tails", kind="large values"),
        case(3, between(rng, 40, 60), **fp32, values="constant rows", kind="constant rows"),
        case(8, between(rng, 20, 60), **fp32, eps=log_uniform(rng, 0.01, 100), kind="another eps"),
        case(
            8,
            between(rng, 20, 60),
            **fp32,
            eps=log_uniform(rng, 100, 1e4),
            kind="an eps far above all squares",
        ),
        case(
            5,
            between(rng, 30, 90),
            **fp32,
            eps=log_uniform(rng, 3e-5, 1e-2),
            values="rows that hardly vary",
            kind="rows that hardly vary",
        ),
        case(5, between(rng, 30, 60), values="infinities and a NaN", kind="infinities and a NaN"),
        case(1, 1, kind="a single element"),
        case(
            between(rng, 20, 40),
            1,
            values="infinities and a NaN",
            kind="infinities and a NaN in a single column",
        ),
        case(between(rng, 16400, 16900), 3, "bf16", kind="more rows than any size that is named"),
        case(7, any_size(), dtypes={"y": "bf16"}, values=LARGE_WEIGHT, kind="x in fp16, and y in bf16"),
        case(7, any_size(), "bf16", dtypes={"y": "fp16"}, kind="x in bf16, and y in fp16"),
    ]


KEPT = "where the row is kept between the two passes of the norm: in registers, not in memory"
NEIGHBOURS = "which neighbouring lanes read neighbouring addresses: a sector is 32 bytes, used or not"
SECTOR = 16  # elements of 2 bytes in rows of whole sectors, so that no row shares a sector with the next
EDGES = 1.02
ROWS = 8  # the most rows for one program
WORK = 96  # operations an element, where a kernel as it should be takes some 15
FLOP = 20.0  # an element, for GELU, two sums and the norm


def metered(rng: np.random.Generator) -> Case:
    """Near 64 x 960, a row of whole sectors that fills no power of two."""
    return case(between(rng, 56, 72), SECTOR * between(rng, 54, 63), kind="the metered size")


def _tensor(c: Case) -> float:
    return cost.tensor_bytes(c.sizes["M"], c.sizes["N"])


def useful(c: Case) -> float:
    return FLOP * c.sizes["M"] * c.sizes["N"]


def one_pass_traffic(c: Case) -> list[Budget]:
    m, n, size = c.sizes["M"], c.sizes["N"], _tensor(c)
    vector = cost.row_vector_bytes(m, n)
    again = f"{m} rows, each with its {n} numbers of 4 bytes"
    return [
        Budget(
            what="read of x",
            tensor="x",
            most=size,
            least=size,
            look=KEPT,
            model=f"{m} x {n} elements of 2 bytes, once",
        ),
        Budget(
            what="write of y",
            tensor="y",
            access="store",
            most=size,
            least=size,
            look=KEPT,
            model=f"{m} x {n} elements of 2 bytes, once",
        ),
        Budget(
            what="read of w",
            tensor="w",
            most=vector,
            least=4 * n,
            model=again,
            look="how often a row asks for the weight",
        ),
        Budget(
            what="read of b",
            tensor="b",
            most=vector,
            least=4 * n,
            model=again,
            look="how often a row asks for the bias",
        ),
        Budget(
            what="scratch, loaded and stored",
            tensor="scratch",
            access="any",
            most=16 * m,
            look=KEPT,
            model="two sums of 4 bytes a row, out and in",
        ),
    ]


def by_sectors(c: Case) -> list[Budget]:
    """Replace the clock by the sources of speed: whole sectors, and no more arithmetic than loads can hide."""
    m, n, most = c.sizes["M"], c.sizes["N"], EDGES * _tensor(c)
    model = f"{m} rows of {n // SECTOR} sectors of 32 bytes + 2%"
    return [
        Budget(what="sectors of x", tensor="x", count="sectors", most=most, model=model, look=NEIGHBOURS),
        Budget(
            what="sectors of y",
            tensor="y",
            access="store",
            count="sectors",
            most=most,
            model=model,
            look=NEIGHBOURS,
        ),
        Budget(
            what="operations",
            count="operations",
            most=WORK * m * n,
            model=f"{WORK} for each of {m} x {n} elements",
            look="what is computed more than once for an element",
        ),
        work(WORK, m * n, f"{m} x {n} elements"),
        timed(80, m * n, "element"),
        side_by_side("store y", "y", "store", math.ceil(m / ROWS), f"one for every {ROWS} of {m} rows"),
    ]


LESSON = "course/00_roofline/d_fusion.ipynb"
LARGE = Case({"M": 16384, "N": 4096}, "bf16", scalars={"eps": 1e-5}, sm_count=132)


def bound(c: Case) -> tuple[float, float]:
    return useful(c), cost.row_kernel_bytes(c.sizes["M"], c.sizes["N"])
