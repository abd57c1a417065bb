"""Draw the inputs of *quantize blocks*, and set its budgets."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import between, odd, rounded, spread
from grader.questions.min_programs import side_by_side
from grader.questions.timed import timed
from grader.questions.work import work

BLOCK, TOP = 128, 448.0
FP32 = 2.0**-15  # of a result: a sigmoid, two products and a quotient in fp32, an exponential of the GPU's
NORMAL, BITS = -6, 3  # E4M3's smallest normal exponent, and its mantissa
LOWEST = -75.0  # a gate, as the lab says, so that fp32 holds its sigmoid


def operands(case: Case, rng: np.random.Generator) -> dict:
    m, k = case.sizes["M"], case.sizes["K"]
    g, u = 2 * rng.standard_normal((m, k)), rng.standard_normal((m, k))
    if case.values == "loud columns":
        u[:, rng.integers(k, size=max(1, k // 100))] *= 60
    if case.values == "small":
        g, u = g / 64, u / 4096
    if case.values == "tiny":  # but no block whose scale fp32 holds with few bits
        g, u = (np.copysign(np.maximum(np.abs(one), 1 / 8), one) for one in (g, u))
        g, u = g * 2.0**-45, u * 2.0 ** -rng.uniform(40, 66, (m, 1))
    if case.values == "beyond fp16":
        u *= 2.0**20
    if case.values == "closed gates":  # whole blocks of tiny silu, which large factors make matter
        blocks = -(-k // BLOCK)
        closed = np.repeat(rng.permutation(m * blocks).reshape(m, blocks) % 2 == 1, BLOCK, axis=1)[:, :k]
        lowest = np.repeat(rng.uniform(8, -1 - LOWEST, (m, blocks)), BLOCK, axis=1)[:, :k]
        g, u = np.where(closed, -lowest - rng.random((m, k)), g), np.where(closed, 1000 * u, u)
    if case.values == "blocks of zeros":
        starts = np.arange(0, k, BLOCK)
        for start in starts[rng.permutation(len(starts))[: (len(starts) + 1) // 2]]:
            g[:, start : start + BLOCK] = 0
        u[rng.integers(m)] = 0
    return {"g": rounded(g, case.dtype), "u": rounded(u, case.dtype)}


def gated(inputs: dict) -> np.ndarray:
    """Return silu(g) * u in float64."""
    g, u = (inputs[name].astype(np.float64) for name in "gu")
    with np.errstate(over="ignore"):
        return g / (1 + np.exp(-g)) * u


def in_blocks(h: np.ndarray, block: int = BLOCK) -> np.ndarray:
    """Return (M, blocks, block), padded with zeros at the end."""
    m, k = h.shape
    return np.pad(h, ((0, 0), (0, -k % block))).reshape(m, -1, block)


def divided(h: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return h over the scale of its block of 128, and 0 where the scale is 0."""
    each = np.repeat(scales, BLOCK, 1)[:, : h.shape[1]]
    return np.divide(h, each, out=np.zeros_like(h), where=each != 0)


def quantized(inputs: dict, case: Case) -> dict:
    """Return the exact quotients, which the codes round, and the scales."""
    h = gated(inputs)
    scales = np.abs(in_blocks(h)).max(2) / TOP
    return {"q": divided(h, scales), "s": scales}


def within(inputs: dict, case: Case, want: dict) -> dict:
    """A code is the nearest that E4M3 has, so half a step away at most. A scale has fp32's error."""
    size = np.abs(want["q"])
    exponent = np.floor(np.log2(np.maximum(size * (1 + FP32), 2.0**NORMAL)))
    return {"q": 2.0 ** (exponent - BITS - 1) + FP32 * size, "s": FP32 * want["s"]}


def case(m: int, k: int, dtype: str = "bf16", **more) -> Case:
    return Case({"M": int(m), "K": int(k)}, dtype, **more)


def hidden(rng: np.random.Generator) -> list[Case]:
    def rows() -> int:
        return between(rng, 5, 60)

    def columns() -> int:
        return 128 * between(rng, 1, 4) + between(rng, 1, 127)

    return [
        case(odd(rng, 5, 65), columns(), kind="odd sizes"),
        case(rows(), columns(), "fp16", kind="odd sizes in fp16"),
        case(1, 128 * between(rng, 5, 9), kind="a single row"),
        case(rows(), between(rng, 3, 120), kind="less than a block"),
        case(rows(), 128 * between(rng, 2, 4) + 1, kind="one column beyond a block"),
        case(between(rng, 2100, 2500), 130, kind="many rows"),
        case(2, between(rng, 8300, 9500), kind="long rows"),
        case(rows(), columns(), values="loud columns", kind="loud columns"),
        case(rows(), columns(), values="small", kind="small numbers"),
        *(
            case(rows(), columns(), dtype, values="closed gates", kind="blocks of gates far below zero")
            for dtype in ("fp16", "bf16")
        ),
        case(rows(), columns(), values="tiny", kind="numbers far smaller than any epsilon"),
        case(rows(), columns(), values="beyond fp16", kind="numbers beyond fp16"),
        case(rows(), 128 * between(rng, 3, 5), values="blocks of zeros", kind="blocks of zeros"),
        case(rows(), columns(), layout=spread(rng, "g", "u", "q", "s"), kind="no stride of 1"),
        case(rows(), columns(), layout={"g": "transposed", "u": "padded"}, kind="g column by column"),
        case(rows(), columns(), layout={"q": "transposed", "s": "padded"}, kind="codes column by column"),
        case(rows(), columns(), layout={"q": "padded", "s": "transposed"}, kind="scales block by block"),
    ]


KEPT = "where h is between its two uses, the maximum and the division: in registers, both find it"
NEIGHBOURS = "which neighbouring lanes load neighbouring addresses: a sector is 32 bytes, used or not"
HALF = 2  # bytes of an element of g and u
WORK = 40  # operations an element, where a kernel as it should be takes some 15
CYCLES = 72  # of a lane, an element: an exponential, a quotient and three conversions take most of them
A_PROGRAM = 4096  # elements, a whole row of a small model


def metered(rng: np.random.Generator) -> Case:
    """Near 64 x 1,700: whole sectors of codes, and a last block that is part full."""
    return case(
        between(rng, 56, 72), 128 * between(rng, 11, 14) + 32 * between(rng, 1, 3), kind="the metered size"
    )


TIMED = case(4096, 7168, sm_count=132)  # the rows of a prompt's step, a DeepSeek-V3's hidden size


def elements(c: Case) -> int:
    return c.sizes["M"] * c.sizes["K"]


def useful(c: Case) -> float:
    """Four for silu, a product, a magnitude and its maximum, a quotient."""
    return 8.0 * elements(c)


def bound(c: Case) -> tuple[float, float]:
    return useful(c), 5.0 * elements(c) + 4 * c.sizes["M"] * math.ceil(c.sizes["K"] / BLOCK)


def once(what: str, tensor: str, moved: int, access: str, model: str) -> Budget:
    return Budget(what=what, tensor=tensor, access=access, most=moved, least=moved, look=KEPT, model=model)


def one_pass(c: Case) -> list[Budget]:
    """g and u in, codes and scales out: h is never stored."""
    m, k, blocks = *(c.sizes[s] for s in "MK"), math.ceil(c.sizes["K"] / BLOCK)
    wide = f"{m} x {k} elements of 2 bytes, once"
    return [
        once("read of g", "g", HALF * m * k, "load", wide),
        once("read of u", "u", HALF * m * k, "load", wide),
        once("write of the codes", "q", m * k, "store", f"{m} x {k} codes of a byte, once"),
        once("write of the scales", "s", 4 * m * blocks, "store", f"{m} x {blocks} scales of 4 bytes, once"),
        Budget(
            what="scratch, and all that is read back",
            tensor="scratch",
            access="any",
            most=0,
            look=KEPT,
            model="0 bytes",
        ),
    ]


def flow(c: Case) -> list[Budget]:
    """Whole sectors, little arithmetic, and enough programs."""
    m, k = c.sizes["M"], c.sizes["K"]
    rows = (("g", "load", HALF), ("u", "load", HALF), ("q", "store", 1))
    return [
        *(
            Budget(
                what=f"sectors of {tensor}",
                tensor=tensor,
                access=access,
                count="sectors",
                most=1.02 * size * m * k,
                look=NEIGHBOURS,
                model=f"{m} rows of {size * k // 32} sectors of 32 bytes + 2%",
            )
            for tensor, access, size in rows
        ),
        work(WORK, m * k, f"{m} x {k} elements"),
        timed(CYCLES, m * k, "element"),
        side_by_side(
            "store codes",
            "q",
            "store",
            math.ceil(m * k / A_PROGRAM),
            f"one for every {A_PROGRAM:,} of {m} x {k} elements",
        ),
    ]
