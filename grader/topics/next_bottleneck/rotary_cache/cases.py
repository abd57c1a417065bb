"""Draw the inputs of *rotary cache*, and set its budgets."""

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import (
    ROUNDING,
    SMALLEST,
    between,
    log_uniform,
    rounded,
    spread,
    where_finite,
)
from grader.questions.min_programs import side_by_side
from grader.questions.timed import timed
from grader.questions.work import work
from kernels.next_bottleneck import cost_step, reference

FP32_STEPS = 2.0**-18  # of the two products that a turned number is the sum of
THETA = 1e4
NEGATIVE_ZEROS = 0.1  # of v, which is copied
# sizes of a page for which a position over S isn't the position times 1 / S in fp32, at the second page's start
UNEVEN = [s for s in range(3, 200) if np.float32(s) * (np.float32(1) / np.float32(s)) < 1]
FAR = "positions in the millions, with pages that rows share"


def uneven_far() -> list[int]:
    """Return the same for large pages, at the starts of many pages far away."""
    s, page = np.arange(512, 1024), np.arange(2000, 3200)[:, None]
    found = (s * page).astype(np.float32) * (np.float32(1) / s.astype(np.float32))
    return s[(found < page).mean(axis=0) > 0.4].tolist()


UNEVEN_FAR = uneven_far()


def operands(case: Case, rng: np.random.Generator) -> dict:
    t, h, g, d, s, columns, pages = (case.sizes[name] for name in "THGDSLP")
    x = rng.standard_normal((t, (h + 2 * g) * d))
    if case.values == "heads of all sizes":
        x *= np.repeat(2.0 ** rng.uniform(-6, 6, (t, h + 2 * g)), d, axis=1)
    if case.values == "small":
        x *= 2e-3
    if case.values == "large":
        x *= 700
    if case.values == "beyond fp16":
        x *= 2.0**20
    if case.values == "heads of zeros":
        x[:, : h * d] = 0
    if case.values == "a NaN and an infinity" and t > 1:
        x[0, rng.integers(h * d)], x[1, rng.integers(h * d, (h + g) * d)] = np.nan, np.inf
        x[2 % t, rng.integers(h * d)] = -np.inf
    v = x[:, (h + g) * d :]
    v[rng.random(v.shape) < NEGATIVE_ZEROS] = -0.0
    lens, table = places(case, rng)
    if case.values == "a NaN and an infinity":  # also where nothing turns
        x[lens.argmin(), rng.integers((h + g) * d)] = np.inf
        x[-1, rng.integers(h + g) * d + rng.integers(d // 2, d)] = np.nan  # in a second half
    turns = reference.turns(columns * s, d, THETA)
    found = {
        "x": rounded(x, case.dtype),
        "lens": lens.astype(np.int32),
        "table": table.astype(np.int32),
        "turns": turns.astype(np.float32),
    }
    for name in ("wq", "wk"):
        w = rng.choice([-1, 1], d, p=[0.1, 0.9]) * rng.uniform(0.3, 2, d)
        if case.values == "heads of zeros" and name == "wq":  # zero times an infinity is a NaN
            w[rng.permutation(d)[:2]] = np.inf, np.nan
        found[name] = rounded(w * 2.0**20 if case.values == "beyond fp16" else w, case.dtype)
    for name in "kv":
        found[name] = rounded(rng.standard_normal((pages, g, s, d)), case.dtype)
    return found


def places(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's keys with its own (T,), and the pages of its sequence (T, L). Page 0 belongs to no row. Where pages
    are few, rows share those before their last one."""
    t, s, columns, pages = (case.sizes[name] for name in "TSLP")
    least = 1 + (columns if case.values == "one sequence" else t)
    if pages < least:
        raise ValueError(f"P must be at least {least}, page 0 and a page for each row's key, got {pages}")
    drawn = 1 + rng.permutation(pages - 1)
    if case.values == "one sequence":
        last = between(rng, t, columns * s)
        return np.arange(last - t + 1, last + 1), np.tile(drawn[:columns], (t, 1))
    lens = rng.integers(1, columns * s + 1, t)
    if t > 1:
        page = s * rng.integers(columns, size=t)
        first, last = 1 + page, s + page  # keys of which the last is a page's first or last
        kind = rng.choice(3, t, p=(0.4, 0.4, 0.2))  # np.choose takes no int64 in a tab
        lens = np.where(kind == 0, first, np.where(kind == 1, last, lens))
        lens[rng.permutation(t)[:2]] = 1, columns * s
    if pages > t * columns:
        table = drawn[: t * columns].reshape(t, columns)
    else:
        table = rng.choice(drawn[t:], (t, columns)) if pages > t + 1 else np.zeros((t, columns), int)
        table[np.arange(t), (lens - 1) // s] = drawn[:t]
    return lens, np.where(np.arange(columns) < -(-lens[:, None] // s), table, 0)


def heads_of(inputs: dict, case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, k, v by head, (T, heads, D), in float64, as they come."""
    h, g, d = (case.sizes[name] for name in "HGD")
    x = inputs["x"].astype(np.float64).reshape(len(inputs["x"]), -1, d)
    return x[:, :h], x[:, h : h + g], x[:, h + g :]


def normed(heads, w, eps: float):
    """RMSNorm of each head."""
    return heads / np.sqrt((heads**2).mean(-1, keepdims=True) + eps) * w.astype(np.float64)


def turned(heads, turns, at):
    """Pairs (i, i + D / 2) turned by the angles of position `at`, (T,)."""
    cos, sin = np.split(turns[at].astype(np.float64)[:, None], 2, axis=-1)
    a, b = np.split(heads, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def stored(inputs: dict, case: Case, q, k, v, where=None) -> dict:
    """Return the three outputs, where keys and values go to (page, token of the page), by default to the right ones."""
    found = {"q": q, "k": inputs["k"].astype(np.float64), "v": inputs["v"].astype(np.float64)}
    page, slot = where or reference.place(inputs["lens"], inputs["table"], case.sizes["S"])
    found["k"][page, :, slot], found["v"][page, :, slot] = k, v
    return found


def wanted(inputs: dict, case: Case) -> dict:
    with np.errstate(invalid="ignore"):
        found = reference.rotary(
            inputs["x"],
            inputs["lens"],
            inputs["wq"],
            inputs["wk"],
            inputs["turns"],
            case.sizes["G"],
            case.scalars["eps"],
        )
    return stored(inputs, case, *found)


def within(inputs: dict, case: Case, want: dict) -> dict:
    """Allow turned numbers one rounding, after fp32, while all other numbers of a cache are copied, or left as they were."""
    at, eps = inputs["lens"] - 1, case.scalars["eps"]
    q, k, _ = heads_of(inputs, case)
    page, slot = reference.place(inputs["lens"], inputs["table"], case.sizes["S"])
    sizes = {}
    with np.errstate(invalid="ignore"):
        for name, heads, w in (("q", q, inputs["wq"]), ("k", k, inputs["wk"])):
            sizes[name] = turned_sizes(normed(heads, w, eps), inputs["turns"], at)
        dtype = case.dtypes.get("q", case.dtype)
        allowed_q = allowed(want["q"], sizes["q"], dtype)
        allowed_k = np.zeros_like(want["k"])
        allowed_k[page, :, slot] = allowed(want["k"][page, :, slot], sizes["k"], case.dtype)
    return {"q": allowed_q, "k": allowed_k, "v": np.zeros_like(want["v"])}


def turned_sizes(heads, turns, at):
    """The magnitudes of both products that make each number."""
    cos, sin = np.split(np.abs(turns[at].astype(np.float64))[:, None], 2, axis=-1)
    a, b = np.split(np.abs(heads), 2, axis=-1)
    return np.concatenate([a * cos + b * sin, b * cos + a * sin], axis=-1)


def allowed(want, sizes, dtype: str):
    computed = FP32_STEPS * sizes
    return where_finite(ROUNDING[dtype] * (np.abs(want) + computed) + computed + SMALLEST[dtype], want)


def case(t: int, h: int, g: int, d: int, s=16, columns=2, dtype="fp16", *, eps=1e-6, pages=0, **more) -> Case:
    """`columns` pages for each row of T, and two more than they take, or as many pages as are said."""
    sizes = {"T": t, "H": h, "G": g, "D": d, "S": s, "L": columns, "P": pages or t * columns + 2}
    return Case({name: int(size) for name, size in sizes.items()}, dtype, scalars={"eps": eps}, **more)


def sized(**sizes: int) -> Case:
    """Return a case with these sizes, heads in whole groups, and pages enough for the rows."""
    t, h, g, d, s, columns, pages = (sizes[name] for name in "THGDSLP")
    return case(t, max(g, h // g * g), g, d, s, max(columns, (pages - 2) // t))


def crossed(c: Case) -> Case | None:
    """Leave out a prompt that is longer than its pages."""
    long = c.sizes["T"] > c.sizes["S"] * c.sizes["L"]
    return None if c.values == "one sequence" and long else c


def hidden(rng: np.random.Generator) -> list[Case]:
    def rows() -> int:
        return between(rng, 4, 9)

    fp32 = {"dtypes": {"q": "fp32"}}
    names = ("x", "lens", "table", "turns", "q", "k", "v")
    return [
        case(8 * rows(), 4, 2, 64, between(rng, 3, 20), 3, "bf16", kind="pages of any size"),
        case(3 * rows(), 2, 1, 16, rng.choice(UNEVEN), 3, kind="pages of any size"),
        case(rows(), 6, 2, 64, **fp32, values="heads of all sizes", kind="heads of all sizes, q in fp32"),
        case(rows(), 6, 3, 2 * between(rng, 9, 15), 8, 2, **fp32, kind="heads that fill no block"),
        case(rows(), 4, 4, 16 * between(rng, 1, 16), kind="as many key heads as queries"),
        case(rows(), 9, 1, 48, 4, 5, "bf16", kind="a single key head"),
        case(between(rng, 20, 30), 2, 1, 16, 4, 9, values="one sequence", kind="one sequence's prompt"),
        case(1, 3, 1, 128, 16, 1, **fp32, kind="one row, one page"),
        case(3, 2, 1, 256, 16, 2, "bf16", kind="wide heads"),
        case(2, 40, 8, 32, 4, 2, kind="many heads"),
        case(2, 4, 2, 16, 64, between(rng, 20, 40), **fp32, kind="long sequences"),
        case(2, 1, 1, 4, between(rng, 17, 64), between(rng, 1900, 2048), kind="positions beyond 16 bits"),
        case(24, 1, 1, 2, rng.choice(UNEVEN_FAR), between(rng, 3200, 4096), **fp32, pages=40, kind=FAR),
        case(rows(), 4, 2, 2, 5, 2, **fp32, kind="heads of a single pair"),
        case(rows(), 4, 2, 32, 80, 2, layout=spread(rng, *names), kind="no stride of 1"),
        case(
            rows(),
            4,
            2,
            32,
            8,
            3,
            layout={"x": "transposed", "table": "transposed", "k": "padded", "q": "padded"},
            kind="x and the table column by column",
        ),
        case(
            rows(),
            4,
            2,
            32,
            8,
            3,
            layout={
                "x": "padded",
                "turns": "transposed",
                "v": "transposed",
                "q": "transposed",
                "k": "spread 1",
            },
            kind="turns, v and q column by column",
        ),
        case(
            rows(), 4, 2, 64, **fp32, values="small", eps=log_uniform(rng, 3e-7, 1e-5), kind="small numbers"
        ),
        case(rows(), 4, 2, 64, **fp32, values="large", kind="large numbers"),
        case(rows(), 4, 2, 64, dtype="bf16", values="beyond fp16", kind="numbers beyond fp16"),
        case(rows(), 4, 2, 64, **fp32, eps=log_uniform(rng, 1e-3, 100), kind="another eps"),
        case(rows(), 4, 2, 64, **fp32, eps=log_uniform(rng, 100, 1e4), kind="an eps far above all squares"),
        case(rows(), 4, 2, 64, values="heads of zeros", kind="heads of zeros"),
        case(rows(), 4, 2, 32, values="a NaN and an infinity", kind="a NaN and an infinity"),
        case(between(rng, 70, 90), 2, 1, 4, 2, 2, "bf16", kind="more rows than any size that is named"),
    ]


ONCE = "what is loaded or stored again: a head lives in registers from its load to its store"
NEIGHBOURS = "which neighbouring lanes read neighbouring addresses: a sector is 32 bytes, used or not"
CACHED = "the cache: a step only writes into it, at one place of each row and head"
HALF, INT32, FP32 = 2, 4, 4  # bytes
EDGES = 1.02
HEADS = 16  # of q a program at most, because a step of one row would leave most of a GPU idle
WORK = 64  # operations for a number of x, where a kernel as it should be takes some 20
CYCLES = 48  # of a lane, a number of x
FLOP = 7.0  # a number of q or k: the square and its sum, the norm, the turn


def metered(rng: np.random.Generator) -> Case:
    """Near 16 rows of 32 query heads and 4 key heads of 128, in pages of 16: the real model's heads."""
    return case(between(rng, 12, 20), 32, 4, 128, 16, 2, kind="the metered size")


def numbers(c: Case) -> tuple[int, int]:
    """Return how many there are of q, and of k."""
    t, h, g, d = (c.sizes[name] for name in "THGD")
    return t * h * d, t * g * d


def useful(c: Case) -> float:
    return FLOP * sum(numbers(c))


def plain_spends(c: Case) -> tuple[int, float]:
    """Return launches and bytes of plain.rotary, whose operations each read their inputs and write their outputs."""
    q, k = numbers(c)
    return cost_step.LAUNCHES["rotary"]["plain"], 77.0 * (q + k) + 16.0 * k


def least_spent(c: Case) -> tuple[int, float]:
    """Return one launch, and all that `in_and_out` allows."""
    return 1, sum(budget.most for budget in in_and_out(c))


def exactly(what: str, tensor: str, access: str, most: int, model: str) -> Budget:
    return Budget(what=what, tensor=tensor, access=access, most=most, least=most, look=ONCE, model=model)


def at_most(what: str, tensor: str, most: int, model: str) -> Budget:
    return Budget(
        what=what, tensor=tensor, most=most, look=f"how often a head asks for {tensor}", model=model
    )


def in_and_out(c: Case) -> list[Budget]:
    """Allow each head one load and one store, while each head may ask for tables and weights."""
    t, h, g, d = (c.sizes[name] for name in "THGD")
    q, k = numbers(c)
    heads = f"{t} rows of {h + 2 * g} heads"
    return [
        exactly("read of x", "x", "load", HALF * (q + 2 * k), f"{heads} of {d} numbers of 2 bytes, once"),
        exactly("write of q", "q", "store", HALF * q, f"{t} x {h} x {d} numbers of 2 bytes, once"),
        *(
            exactly(f"write of {name}", name, "store", HALF * k, f"{t} x {g} x {d} numbers of 2 bytes, once")
            for name in "kv"
        ),
        at_most("read of lens", "lens", INT32 * t * (h + 2 * g), f"one of 4 bytes for each of {heads}"),
        at_most("read of the table", "table", INT32 * t * (h + 2 * g), f"one of 4 bytes for each of {heads}"),
        at_most(
            "read of turns",
            "turns",
            FP32 * t * (h + g) * d,
            f"{d} of 4 bytes for each of {t} x {h + g} heads of q and k",
        ),
        at_most("read of wq", "wq", HALF * q, f"{d} of 2 bytes for each of {t} x {h} heads"),
        at_most("read of wk", "wk", HALF * k, f"{d} of 2 bytes for each of {t} x {g} heads"),
        Budget(
            what="scratch, and outputs or the cache read back",
            tensor="scratch",
            access="any",
            most=0,
            look=CACHED,
            model="0 bytes",
        ),
    ]


def flow(c: Case) -> list[Budget]:
    """Limit, where no clock is, the counts that speed comes from, whole sectors, little arithmetic, rows side by side."""
    t, h, g, d = (c.sizes[name] for name in "THGD")
    q, k = numbers(c)
    return [
        *(
            Budget(
                what=f"sectors of {tensor}",
                tensor=tensor,
                access=access,
                count="sectors",
                most=EDGES * HALF * count,
                model="all its bytes in sectors of 32 + 2%",
                look=NEIGHBOURS,
            )
            for tensor, access, count in (
                ("x", "load", q + 2 * k),
                ("q", "store", q),
                ("k", "store", k),
                ("v", "store", k),
            )
        ),
        work(WORK, q + 2 * k, f"{t} x {h + 2 * g} heads of {d}"),
        timed(CYCLES, q + 2 * k, "number of x"),
        side_by_side(
            "store q",
            "q",
            "store",
            t * -(-h // HEADS),
            f"one for every {HEADS} of {h} heads in each of {t} rows",
        ),
        *(
            side_by_side(
                f"store {name}",
                name,
                "store",
                t * -(-g // HEADS),
                f"one for every {HEADS} of {g} heads in each of {t} rows",
                of_work=False,
            )
            for name in "kv"
        ),
    ]


COMPILED = case(16, 32, 4, 128, 64, 2, "bf16", sm_count=132)
TIMED = case(64, 32, 4, 128, 64, 2, "bf16", sm_count=132)


def bound(c: Case) -> tuple[float, float]:
    q, k = numbers(c)
    return useful(c), 2.0 * HALF * (q + 2 * k)
