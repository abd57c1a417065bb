"""Draw the inputs of *grouped gemm*, and set its budgets."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Budget, Case
from grader.questions.draws import (
    OVERSHADOWED,
    ROUNDING,
    SMALLEST,
    between,
    odd,
    overshadowed,
    rounded,
    spread,
    sum_off,
    where_finite,
)
from grader.questions.min_programs import side_by_side
from grader.questions.timed import timed
from grader.questions.work import WHOLE_BLOCKS, filled, work
from grader.topics.moe_routing.shared import (
    HALF,
    SECTOR,
    TILE,
    WIDER,
    WORK,
    drawn_as,
    filled_up,
    loads_of,
    nothing_kept,
    ordered,
    rooms,
    rows,
    sectors,
    some_tile,
    with_loads,
)
from kernels.moe_routing import reference
from kernels.moe_routing.cost_traffic import grouped_traffic


def with_products(loads: list[int], k: int, tile: int, h: int, n: int, dtype="fp16", **more) -> Case:
    """Return with_loads's case with products of h inputs and n outputs each for gate and up. `values` may add kinds."""
    drawn = more.pop("values", "")
    case = with_loads(loads, k, tile, dtype=dtype, **more)
    return replace(case, sizes=case.sizes | {"H": int(h), "N": int(n)}, values=drawn + " " + case.values)


CLOSED, OPENED = "closed gates beside enormous numbers", 1e10
GATES = 18.0, 30.0  # below 0
AMONG_ZEROS = "a NaN among zeros"
ANY_NEGATIVE = "any negative number for an unused tile"
LONG = {"dtypes": {"h": "fp32"}, "values": "positive"}


def products(case: Case, rng: np.random.Generator) -> dict:
    """Draw tokens, the experts' gate and up, each row's pair, and rows of h that hold something already."""
    t, e, h, n = (case.sizes[name] for name in "TEHN")
    if case.sizes["TILE"] not in (16, 32, 64, 128):
        raise ValueError(
            f"TILE must be 16, 32, 64 or 128 here, got {case.sizes['TILE']}; tl.dot takes no other tile"
        )
    values = drawn_as(case)
    x, w = rng.standard_normal((t, h)), rng.standard_normal((e, 2 * n, h)) / h**0.5
    if values == "positive":
        x, w = np.abs(x) + 0.5, np.abs(w) + 0.5 / h**0.5
    if values == "beyond fp16":
        x = x * 2.0**20
    if values == CLOSED:
        x = 1 + 0.05 * x
        w[:, :n] = -rng.uniform(*GATES, (e, n, 1)) / h
        w[:, n:] *= OPENED
    if values == OVERSHADOWED:
        of_x = overshadowed(h, WIDE)
        x, w = x * of_x, np.where(of_x > 1, 0, w)
    if values == AMONG_ZEROS:
        x = x * 0
    if values in ("a NaN", AMONG_ZEROS) and t:
        x[rng.integers(t), rng.integers(h)] = np.nan
    picked, found = ordered(case, rng)
    if values == "a NaN":
        w[found.loads == 0] = np.nan
    expert_ids = filled_up(found.expert_ids, rooms(case.sizes))
    if values == ANY_NEGATIVE:
        unused = np.where(
            rng.random(len(expert_ids)) < 0.5, -(2.0 ** rng.uniform(0, 31, len(expert_ids))), -1
        )
        expert_ids = np.where(expert_ids < 0, unused, expert_ids).astype(np.int32)
    held = rng.standard_normal((rows(case.sizes), n)).astype(DTYPES[case.dtypes.get("h", case.dtype)])
    return {
        "x": rounded(x, case.dtype),
        "w": rounded(w, case.dtype),
        "sorted_token_ids": filled_up(found.sorted_token_ids, rows(case.sizes)),
        "expert_ids": expert_ids,
        "h": held,
    }


def sized(**sizes: int) -> Case:
    """Return a case with these sizes, in which all tokens pick the last experts."""
    k = sizes["K"]
    loads = [0] * (sizes["E"] - k) + [sizes["T"]] * k
    return with_products(loads, k, sizes["TILE"], sizes["H"], sizes["N"])


def hidden_gemm(rng: np.random.Generator) -> list[Case]:
    """Every routing that is allowed, and products with ends that fill no block."""

    def case(loads, k, h, n=0, dtype="fp16", tile=0, **more) -> Case:
        more = {"values": ANY_NEGATIVE} | more
        return with_products(loads, k, tile or some_tile(rng), h, n or between(rng, 17, 70), dtype, **more)

    def some(count: int, low: int = 1, high: int = 9) -> list[int]:
        return rng.integers(low, high + 1, count).tolist()

    def any_h() -> int:
        return odd(rng, 33, 99)

    many, k = between(rng, 9, 15), int(rng.choice([11, 13, 14, 15]))
    names = ("x", "w", "sorted_token_ids", "expert_ids", "h")
    one_of = rng.permutation([between(rng, 40, 60), 0, 0, 0]).tolist()
    return [
        case(some(5), 1, any_h(), kind="tokens for every expert"),
        case([0, 0, *some(4)], 1, any_h(), dtype="bf16", kind="first experts without tokens"),
        case([*some(3), 0, 0], 1, any_h(), kind="last experts without tokens"),
        case([7, 0, between(rng, 3, 7), 7, 0, 7], 1, any_h(), kind="experts without tokens between others"),
        case([6] * 4, 3, any_h(), dtype="bf16", kind="three experts a token"),
        case([between(rng, 8, 15)] * 5, 5, any_h(), kind="every expert for every token"),
        case(one_of, 1, any_h(), kind="one expert has all tokens"),
        case([0, 1, 0, 0], 1, any_h(), dtype="bf16", kind="one token"),
        case([0, 0, 0], 1, any_h(), kind="no tokens"),
        case(
            [0, *[between(rng, 40, 60)] * 3, 0],
            3,
            any_h(),
            tile=16,
            kind="many tokens with the same three experts",
        ),
        case([16, 0, 32, 64], 1, any_h(), tile=16, kind="loads that are whole tiles"),
        case(
            [3, between(rng, 130, 150), 2],
            1,
            40,
            between(rng, 3, 9),
            tile=64,
            kind="many tokens for one expert",
        ),
        case(
            [0, *rng.permutation([0] * 20 + some(20, 1, 3)).tolist()],
            1,
            40,
            between(rng, 3, 9),
            tile=16,
            kind="many experts",
        ),
        case(some(3), 1, between(rng, 7, 13), kind="few numbers along H"),
        *(
            replace(
                sized(T=16_384 - between(rng, 0, 99), K=each, E=each + between(rng, 0, 4), TILE=64, H=2, N=2),
                kind="many pairs of a token",
                crossed=True,
            )
            for each in (k, 16)
        ),
        case([2, 0, 3], 1, between(rng, 17, 40), between(rng, 1100, 1300), tile=16, kind="many columns"),
        case([2, 0, 3], 1, between(rng, 8500, 9400), between(rng, 5, 9), tile=16, **LONG, kind="a long sum"),
        case(
            [2, 0, 3],
            1,
            between(rng, 8500, 9400),
            between(rng, 5, 9),
            "bf16",
            16,
            **LONG,
            kind="a long sum in bf16",
        ),
        case([5, 0, 4, 3], 2, any_h(), layout=spread(rng, *names), kind="no stride of 1"),
        case(
            [5, 0, 4, 3],
            2,
            any_h(),
            layout={"x": "transposed", "w": "transposed"},
            kind="x and weights column by column",
        ),
        case(
            [5, 0, 4, 3],
            2,
            any_h(),
            dtype="bf16",
            layout={"x": "padded", "w": "padded", "h": "transposed"},
            kind="h column by column",
        ),
        case([4, 0, 3], 1, any_h(), dtype="bf16", values="beyond fp16", kind="numbers beyond fp16"),
        case([4, 0, 3, 5], 2, any_h(), values="a NaN", kind="a NaN, and weights of NaN where no token is"),
        case(
            [between(rng, 700, 800), between(rng, 400, 500)],
            1,
            16,
            between(rng, 3, 9),
            tile=64,
            kind="more tokens than any size that is named",
        ),
        case(
            [0, *[between(rng, 1700, 2200)] * many], many, 16, 3, tile=64, kind="many experts for many tokens"
        ),
        case(
            [0, *rng.permutation([0] * 40 + some(40, 1, 2)).tolist()],
            1,
            16,
            between(rng, 3, 9),
            tile=16,
            kind="more experts than any size that is named",
        ),
        case([4, 0, 3], 1, WIDE * between(rng, 3, 4), dtype="bf16", values=OVERSHADOWED, kind=OVERSHADOWED),
        case([4, 0, 17], 1, any_h(), between(rng, 40, 70), dtype="bf16", values=CLOSED, kind=CLOSED),
        case([3, 0, 2], 1, between(rng, 129, 300), values=AMONG_ZEROS, kind=AMONG_ZEROS),
        case(
            [1] * between(rng, 16, 40),
            1,
            between(rng, 17, 40),
            between(rng, 3, 9),
            tile=16,
            kind="a token for each expert",
        ),
    ]


NARROW, WIDE = 32, 128  # columns of h that a program owns at least, and at most
SILU = 16  # operations on a number of h outside tl.dot, where SiLU and a product take some 5
GEMM_ALL = 1.2  # of every kind, a product with gate and up
IDLE = "which weights are read although no row of theirs is there, and which once more for rows that share a tile"
ROWS = "the columns of h that a program owns: all of them share what it loads of x; padding loads nothing"
DOT = "do the products go through tl.dot, in a dtype and a tile that tensor cores take?"


def metered_gemm(rng: np.random.Generator) -> Case:
    """Draw eight experts near 150 x 400, two without tokens and one with more than a tile."""
    loads = [0, 0, between(rng, TILE + 1, 2 * TILE), *(between(rng, 1, TILE) for _ in range(5))]
    found = rng.permutation(loads).tolist()
    h, n = SECTOR * between(rng, 22, 28), between(rng, 130, 170)
    return with_products(found, 1, TILE, h, n, sm_count=between(rng, 9, 13), kind="the metered size")


def routing(c: Case) -> tuple[int, int, int]:
    """(experts with tokens, tiles, rows that are real) of a case that says its loads."""
    loads = [n for n in loads_of(c) if n]
    return len(loads), sum(math.ceil(n / c.sizes["TILE"]) for n in loads), sum(loads)


def useful_gemm(c: Case) -> float:
    pairs = c.sizes["T"] * c.sizes["K"]
    return 4.0 * pairs * c.sizes["N"] * c.sizes["H"]


def gemm(c: Case) -> list[Budget]:
    """Weights of experts with tokens once for each of their tiles, x by strips of columns, h once, and nothing else."""
    active, tiles, real = routing(c)
    h, n = c.sizes["H"], c.sizes["N"]
    one = grouped_traffic(1, 1, n, h, tile=TILE, block_n=n, gated=True).weights
    tokens = grouped_traffic(1, 1, n, h, tile=1, block_n=NARROW).rows  # of one row, by all strips of columns
    out = HALF * real * n
    return [
        Budget(
            what="read of the weights",
            tensor="w",
            most=tiles * one,
            least=active * one,
            look=IDLE,
            model=f"gate and up, {2 * n} x {h} weights of 2 bytes, for each of {tiles} tiles of {active} experts with tokens",
        ),
        Budget(
            what="read of x",
            tensor="x",
            most=real * tokens,
            least=HALF * real * h,
            look=ROWS,
            model=f"{real} rows of {h} numbers of 2 bytes for every {NARROW} of {n} columns",
        ),
        Budget(
            what="write of h",
            tensor="h",
            access="store",
            most=out,
            least=out,
            look=WIDER,
            model=f"{real} rows of {n} numbers of 2 bytes, once",
        ),
        nothing_kept(),
    ]


def gemm_flow(c: Case) -> list[Budget]:
    """Limit the counts that speed comes from, products in tl.dot, whole sectors, enough programs, little else."""
    _, tiles, _ = routing(c)
    h, n, tile = (c.sizes[name] for name in ("H", "N", "TILE"))
    flop = useful_gemm(c)
    least = min(c.sm_count, tiles * math.ceil(n / WIDE))
    beside = (SILU + 2 * h // SECTOR) * tiles * tile * math.ceil(n / NARROW) * NARROW
    return [
        Budget(
            what="FLOP in tl.dot",
            count="dot",
            least=flop,
            most=4 * tiles * tile * filled((n, 128), (h, 128)),
            look=DOT,
            over=WHOLE_BLOCKS,
            model=f"4 T K N H = {flop:,.0f} at least; with {tiles} tiles of {tile} rows, N and H rounded up to 128, at most",
        ),
        Budget(
            what="FLOP in tl.dot on operands widened to fp32",
            count="wide dot",
            most=0,
            look=DOT,
            model="every operand of at most 16 bits",
        ),
        work(GEMM_ALL, tiles * tile * n * h, f"{tiles} x {tile} x {n} x {h} products"),
        timed(0.15, tiles * tile * n * h, "product"),
        Budget(
            what="operations outside tl.dot",
            count="operations",
            most=2 * beside,
            look=WORK,
            model=f"twice {SILU + 2 * h // SECTOR} for each number of {tiles} tiles of {tile} rows of h",
        ),
        sectors("w", "weights", tiles * 2 * n * h),
        side_by_side(
            "read the weights",
            "w",
            "load",
            least,
            f"one at least for each of {c.sm_count} multiprocessors, or for {WIDE} columns of each tile: {least}",
        ),
    ]


def bound_gemm(c: Case) -> tuple[float, float]:
    """Weights of every expert once: where the timed routing reaches them all."""
    t, k, e, h, n = (c.sizes[name] for name in "TKEHN")
    return useful_gemm(c), HALF * (2 * e * n * h + t * h + t * k * n)


Pair = tuple[np.ndarray, np.ndarray]


def halves(w: np.ndarray) -> Pair:
    return tuple(np.split(w, 2, axis=-2))


def products_of(
    inputs: dict,
    case: Case,
    some: slice = slice(None),
    split: Callable = halves,
    expert_of: Callable = lambda e, experts: e,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows that are real, their gate, their up), over some of the numbers along H, by whatever expert is named."""
    sorted_token_ids, tile = inputs["sorted_token_ids"], case.sizes["TILE"]
    rows = np.flatnonzero(sorted_token_ids != reference.EMPTY)
    expert_ids = np.minimum(
        expert_of(inputs["expert_ids"][rows // tile], case.sizes["E"]), case.sizes["E"] - 1
    )
    x = inputs["x"].astype(np.float64)[sorted_token_ids[rows] // case.sizes["K"]][:, some]
    gate, up = split(inputs["w"].astype(np.float64))
    found = np.zeros((2, len(rows), case.sizes["N"]))
    with np.errstate(invalid="ignore", over="ignore"):
        for e in np.unique(expert_ids):
            mine = expert_ids == e
            found[0][mine], found[1][mine] = x[mine] @ gate[e][:, some].T, x[mine] @ up[e][:, some].T
    return rows, *found


def gated(gate: np.ndarray, up: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return reference.silu(gate) * up


STEEPEST = 1.1  # how much SiLU changes at most where its argument does
FLAT = -20.0  # below, by how much it changes falls with each number
FUNCTIONS = 2.0**-18  # of h: an exponential, a division and two products in fp32


def wanted(inputs: dict, case: Case) -> dict:
    """Take each real row through gate and up of its tile's expert, and leave all other rows of h as they were."""
    found, gate, up = products_of(inputs, case)
    h = inputs["h"].astype(np.float64)
    h[found] = gated(gate, up)
    return {"h": h}


def steepest(gate: np.ndarray) -> np.ndarray:
    """Return how steep SiLU is at most at these numbers and below: hardly at all far below 0."""
    return np.where(gate < FLAT, np.abs(gate) * np.exp(np.minimum(gate, 0)), STEEPEST)


def within(inputs: dict, case: Case, want: dict) -> dict:
    """Allow one rounding of h, and the effect of errors in two fp32 sums."""
    found, gate, up = products_of(inputs, case)
    size = {name: np.abs(inputs[name].astype(np.float64)) for name in "xw"}
    _, of_gate, of_up = products_of(inputs | size, case)
    out, allowed = case.dtypes.get("h", case.dtype), np.zeros(want["h"].shape)
    with np.errstate(invalid="ignore", over="ignore"):
        off = sum_off(case.sizes["H"])
        off_gate, off_up = off * of_gate, off * of_up
        sums = (
            steepest(gate + off_gate) * off_gate * (np.abs(up) + off_up)
            + np.abs(reference.silu(gate)) * off_up
        )
        allowed[found] = sums + (ROUNDING[out] + FUNCTIONS) * np.abs(want["h"][found]) + SMALLEST[out]
    return {"h": where_finite(allowed, want["h"])}


TIMED = with_products([64] * 64, 4, 64, 2048, 768, "bf16", sm_count=132)
