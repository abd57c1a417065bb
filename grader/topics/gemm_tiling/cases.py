"""What GEMMs are tried on: operands, the cases drawn for every check, and how far a right product may be off."""

import math

import numpy as np

from grader.questions import Case
from grader.questions.draws import ROUNDING, SMALLEST, between, odd, rounded, spread, where_finite
from kernels.gemm_tiling import reference

FP32_SUM = 2.0**-16  # of the sum of |a||b|: any order of an fp32 sum stays within, a 16-bit one does not
SCALE_BLOCK = reference.SCALE_BLOCK
LARGEST_BLOCK = 256  # no tile is wider: 256 j + 1 is one more than a multiple of every block


def sizes(m, n, k) -> dict:
    return {"M": int(m), "N": int(n), "K": int(k)}


def operands(case: Case, rng: np.random.Generator) -> dict:
    """A and B as the case names them: normal numbers, positive ones near 1, or one that dwarfs the rest."""
    m, n, k = (case.sizes[s] for s in "MNK")
    found = {}
    for name, shape in (("a", (m, k)), ("b", (k, n))):
        values = rng.standard_normal(shape)
        spot = tuple(rng.integers(shape))
        if case.values == "positive":
            values = 1.0 + 0.25 * rng.random(shape)
        if case.values == "beyond fp16":
            values *= 2.0**18
        if case.values == "outlier":
            values[spot] = 2000.0
        if case.values == "infinity and NaN":
            values[spot] = np.inf if name == "a" else np.nan
        found[name] = rounded(values, case.dtype)
    return found


def product(inputs: dict, case: Case) -> dict:
    with np.errstate(invalid="ignore"):
        return {"c": reference.gemm(inputs["a"], inputs["b"])}


def within(inputs: dict, case: Case, want: dict) -> dict:
    """One rounding to the output's dtype, and the error of an fp32 sum in any order."""
    with np.errstate(invalid="ignore"):
        terms = np.abs(inputs["a"].astype(np.float64)) @ np.abs(inputs["b"].astype(np.float64))
        out = case.dtypes.get("c", case.dtype)
        allowed = (
            ROUNDING[out] * np.abs(want["c"]) + FP32_SUM * (1 + 2 * ROUNDING[out]) * terms + SMALLEST[out]
        )
    return {"c": where_finite(allowed, want["c"])}


def hidden_products(rng: np.random.Generator) -> list[Case]:
    """Fresh sizes each time; each case is here for a mistake that no other one is sure to catch."""

    def any_size() -> int:
        return between(rng, 17, 130)

    def one_more() -> int:
        return LARGEST_BLOCK * between(rng, 1, 2) + 1

    long_k = 8 * between(rng, 560, 700) + 1
    return [
        Case(sizes(odd(rng, 17, 129), odd(rng, 17, 129), odd(rng, 140, 260)), "bf16", kind="odd sizes"),
        # of one row or column people write a kernel apart: it needs a K beyond any block too
        Case(sizes(1, odd(rng, 17, 129), odd(rng, 261, 399)), kind="a single row"),
        Case(sizes(odd(rng, 17, 129), 1, odd(rng, 261, 399)), "bf16", kind="a single column"),
        Case(sizes(64, 96, between(rng, 1, 15)), kind="K shorter than a block"),
        Case(
            sizes(one_more(), one_more(), one_more()),
            "bf16",
            kind="one more than whole tiles in every direction",
        ),
        Case(
            sizes(any_size(), any_size(), any_size()),
            "bf16",
            layout=spread(rng, *"abc"),
            kind="no stride of 1",
        ),
        Case(
            sizes(any_size(), any_size(), any_size()),
            layout={"b": "transposed", "c": "padded"},
            kind="strided operands",
        ),
        Case(
            sizes(any_size(), any_size(), any_size()),
            layout={"a": "padded", "c": "transposed"},
            kind="a transposed C",
        ),
        Case(sizes(between(rng, 4200, 4700), between(rng, 2, 9), 32), kind="a column of many tiles"),
        Case(sizes(between(rng, 2, 9), between(rng, 4200, 4700), 40), "bf16", kind="a row of many tiles"),
        Case(
            sizes(48, 80, between(rng, 1000, 1200)),
            "bf16",
            {"c": "fp32"},
            layout={"c": "transposed"},
            values="positive",
            kind="a long sum in fp32",
        ),
        Case(
            sizes(16, between(rng, 33, 48), long_k),
            "bf16",
            values="positive",
            kind="a long sum, rounded once",
        ),
        Case(
            sizes(16, between(rng, 33, 48), long_k - 5),
            values="positive",
            kind="a long sum in fp16, rounded once",
        ),
        Case(
            sizes(65, 33, 200),
            "fp16",
            {"c": "fp32"},
            layout={"c": "padded"},
            values="outlier",
            kind="one large value",
        ),
        Case(sizes(33, 40, 64), "bf16", values="beyond fp16", kind="numbers beyond fp16"),
        Case(sizes(40, 50, 70), values="infinity and NaN", kind="an infinity and a NaN"),
        Case(sizes(50, 40, 33), "bf16", values="infinity and NaN", kind="an infinity and a NaN in bf16"),
        Case(
            sizes(between(rng, 300, 400), between(rng, 200, 300), 64),
            layout={"a": "transposed", "b": "transposed"},
            kind="several tiles each way, both operands transposed",
        ),
    ]


def scaled_operands(case: Case, rng: np.random.Generator) -> dict:
    """fp8 codes with a scale for each 1 x 128 piece of A and each 128 x 128 block of B, as DeepSeek-V3 stores them."""
    import ml_dtypes

    m, n, k = (case.sizes[s] for s in "MNK")
    blocks_k, blocks_n = math.ceil(k / SCALE_BLOCK), math.ceil(n / SCALE_BLOCK)
    codes = {name: rng.standard_normal(shape) * 60 for name, shape in (("a", (m, k)), ("b", (k, n)))}
    if case.values == "positive":
        codes = {name: np.abs(v) for name, v in codes.items()}
    if case.values == WHOLE:
        codes = {name: rng.integers(-2, 3, v.shape).astype(float) for name, v in codes.items()}
    sa, sb = (2.0 ** rng.uniform(-9, -5, shape) for shape in ((m, blocks_k), (blocks_k, blocks_n)))
    if (
        case.values == "scales far apart"
    ):  # products of 2**-28, 2**-4, 2**-2 and 2**22, each in elements of its own
        sa, sb = (
            sa * 2.0 ** np.where(np.arange(m) % 2, -8, 18)[:, None],
            sb * 2.0 ** np.where(np.arange(blocks_n) % 2, -6, 18),
        )
    return {
        **{name: np.clip(v, -448, 448).astype(ml_dtypes.float8_e4m3fn) for name, v in codes.items()},
        "sa": sa.astype(np.float32),
        "sb": sb.astype(np.float32),
    }


def scaled_product(inputs: dict, case: Case) -> dict:
    return {"c": reference.block_scaled_gemm(inputs["a"], inputs["b"], inputs["sa"], inputs["sb"])}


WHOLE = "small whole numbers"  # which no tensor core rounds: what is lost is lost with the scales
FP8_SUM = 2.0**-9  # of the sum of |a||b|: see scaled_within


def scaled_within(inputs: dict, case: Case, want: dict) -> dict:
    """One rounding to C's dtype, and what a Hopper tensor core loses inside one block of 128.

    It lines the 32 products of an instruction up with the largest number and keeps some 13 bits below it: where all are
    positive and the sum is the largest, each of the four instructions of a block loses half of 2**-13 of the sum for each
    product, 2**-9 of what the block holds by its end. Summed so, right answers reach three quarters of this limit.
    """
    size = {name: np.abs(inputs[name].astype(np.float64)) for name in ("a", "b")}
    terms = reference.block_scaled_gemm(size["a"], size["b"], inputs["sa"], inputs["sb"])
    out = ROUNDING[case.dtypes.get("c", case.dtype)]
    lost = 2.0**-20 if case.values == WHOLE else FP8_SUM
    return {"c": out * np.abs(want["c"]) + lost * terms + 1e-30}


def hidden_scaled(rng: np.random.Generator) -> list[Case]:
    def any_size() -> int:
        return between(rng, 17, 130)

    return [
        Case(sizes(odd(rng, 17, 129), 128, 256), "bf16", kind="odd rows"),
        Case(sizes(64, 128 + any_size(), 256), "bf16", kind="a ragged block of columns"),
        Case(sizes(33, 64, 128 + 16 * between(rng, 1, 7)), "bf16", kind="a ragged block of K"),
        Case(sizes(17, 40, 128 * between(rng, 2, 4) + 1), "bf16", kind="one column of A beyond a block"),
        Case(
            sizes(16, 128, between(rng, 4200, 4700)),
            "bf16",
            {"c": "fp32"},
            layout={"c": "transposed"},
            values="positive",
            kind="a long sum",
        ),
        Case(
            sizes(16, 130, between(rng, 4200, 4700)),
            "bf16",
            values="positive",
            kind="a long sum, rounded once",
        ),
        Case(
            sizes(24, 128 + any_size(), 200),
            "bf16",
            values="scales far apart",
            kind="small scales and large ones",
        ),
        Case(
            sizes(24, 128 + any_size(), 300),
            "bf16",
            {"c": "fp32"},
            layout={"c": "padded"},
            values=WHOLE,
            kind="scales of many digits",
        ),
        Case(
            sizes(40, 300, 200),
            "bf16",
            layout={name: "transposed" for name in ("a", "b", "sa", "sb", "c")},
            kind="everything transposed",
        ),
        Case(
            sizes(any_size(), 128 + any_size(), 128 + any_size()),
            "bf16",
            layout=spread(rng, "a", "b", "sa", "sb", "c"),
            kind="no stride of 1",
        ),
        Case(sizes(between(rng, 4200, 4700), 5, 128), "bf16", kind="a column of many tiles"),
        Case(sizes(5, between(rng, 4200, 4700), 140), "bf16", kind="a row of many tiles"),
        Case(sizes(between(rng, 300, 400), 300, 128), "bf16", kind="several tiles each way"),
    ]
