"""GEMM tiling: reuse counted, traffic modelled, and a tiled kernel that moves what the model says."""

import math

import numpy as np

from grader.questions import (
    Budget,
    Call,
    Case,
    KernelQuestion,
    Mistake,
    NumpyQuestion,
    Part,
    Speed,
    Tensor,
    samples,
)
from kernels.gemm_tiling import cost, reference

LESSON = "course/01_gemm_tiling.ipynb"
FP32_SUM = (
    2.0**-16
)  # of the sum of |a||b|: what any order of an fp32 sum stays within, and a bf16 one does not
ROUNDING = {"fp16": 2.0**-10, "bf16": 2.0**-7, "fp32": 2.0**-22}
SMALLEST = {
    "fp16": 2.0**-24,
    "bf16": 1e-30,
    "fp32": 1e-30,
}  # below its normal numbers fp16 has steps of this size
ODD = (1, 17, 31, 33, 47, 63, 65, 96, 100, 127, 129)


def operands(case: Case, rng: np.random.Generator) -> dict:
    """A and B as the case names them: normal numbers, positive ones near 1, or one that dwarfs the rest."""
    from grader.box.serve.frames import DTYPES

    m, n, k = (case.sizes[s] for s in "MNK")
    found = {}
    for name, shape in (("a", (m, k)), ("b", (k, n))):
        values = rng.standard_normal(shape)
        if case.values == "positive":
            values = 1.0 + 0.25 * rng.random(shape)
        if case.values == "beyond fp16":
            values *= 2.0**18
        if case.values == "outlier":
            values[rng.integers(shape[0]), rng.integers(shape[1])] = 2000.0
        found[name] = values.astype(np.float32).astype(DTYPES[case.dtype])
    return found


def product(inputs: dict, case: Case) -> dict:
    return {"c": reference.gemm(inputs["a"], inputs["b"])}


def within(inputs: dict, case: Case, want: dict) -> dict:
    """Rounding of the output's dtype, and the error of an fp32 sum in any order."""
    terms = np.abs(inputs["a"].astype(np.float64)) @ np.abs(inputs["b"].astype(np.float64))
    out = case.dtypes.get("c", case.dtype)
    return {"c": ROUNDING[out] * np.abs(want["c"]) + FP32_SUM * terms + SMALLEST[out]}


def hidden_products(rng: np.random.Generator) -> list[Case]:
    """Fresh sizes each time: none a multiple of a block, one row, one column, a tail in K, strided views."""

    def odd() -> int:
        return int(rng.choice(ODD))

    def sizes(m, n, k):
        return {"M": m, "N": n, "K": k}

    return [
        Case(sizes(odd(), odd(), odd() + 128), "bf16", kind="odd sizes"),
        Case(sizes(1, odd(), 64), kind="a single row"),
        Case(sizes(odd(), 1, 48), "bf16", kind="a single column"),
        Case(sizes(64, 96, int(rng.integers(1, 16))), kind="K shorter than a block"),
        Case(
            sizes(odd(), odd(), odd()),
            "bf16",
            layout={"a": "transposed", "b": "padded"},
            kind="strided operands",
        ),
        Case(sizes(odd(), odd(), odd()), layout={"b": "transposed", "c": "padded"}, kind="strided operands"),
        Case(sizes(odd(), odd(), odd()), layout={"c": "transposed"}, kind="a transposed C"),
        Case(sizes(int(rng.integers(1100, 1300)), 300, 32), kind="many rows of tiles"),
        Case(sizes(48, 80, 1024), "bf16", {"c": "fp32"}, values="positive", kind="a long sum in fp32"),
        Case(sizes(65, 33, 200), "fp16", {"c": "fp32"}, values="outlier", kind="one large value"),
        Case(sizes(33, 40, 64), "bf16", values="beyond fp16", kind="numbers beyond fp16"),
        Case(
            sizes(int(rng.integers(300, 400)), int(rng.integers(200, 300)), 64), kind="several tiles each way"
        ),
    ]


def traffic_budget(case: Case, plan: dict) -> list[Budget]:
    """The model of a 32 x 32 tile as the most, each operand once as the least."""
    m, n, k = (case.sizes[s] for s in "MNK")
    a, b, c = 2 * m * k, 2 * k * n, 2 * m * n
    look = (
        "which rows of A and columns of B a tile loads: each element once, for the tile's own steps along K"
    )
    return [
        Budget("read of A", "a", "load", "requested", a * math.ceil(n / 32), a, look),
        Budget("read of B", "b", "load", "requested", b * math.ceil(m / 32), b, look),
        Budget(
            "write of C",
            "c",
            "store",
            "requested",
            c,
            c,
            "the store: every element of C once, in C's own dtype",
        ),
    ]


def reuse_budget(case: Case, plan: dict) -> list[Budget]:
    """Where there is no clock, the reuse that speed comes from: at least that of a 128 x 64 tile."""
    m, n, k = (case.sizes[s] for s in "MNK")
    look = "the sides of the tile: reuse is their harmonic mean, so grow the smaller one"
    return [Budget("all loads", "all", "load", "requested", 2 * cost.tile_loads(m, n, k, 128, 64), 0, look)]


def wave_budget(case: Case, plan: dict) -> list[Budget]:
    """Unique bytes a wave reads: at most 1.3 times what a square patch of tiles would need."""
    m, n, k = (case.sizes[s] for s in "MNK")
    programs = math.prod(plan["steps"][0]["grid"])
    waves = math.ceil(programs / case.sm_count)
    patch = 2 * math.sqrt(m * n / waves)
    most = max(1.3 * waves * patch * k * 2, 2 * (m + n) * k)
    look = "the order of the programs: a wave should cover a square patch of tiles, not a long row of them"
    return [Budget("unique bytes per wave, all waves", "all", "load", "wave", most, 0, look)]


def bound(case: Case) -> tuple[float, float]:
    m, n, k = (case.sizes[s] for s in "MNK")
    return 2.0 * m * n * k, 2.0 * (m * k + k * n + m * n)


def _low_precision(inputs, case, got, want) -> bool:
    """Off by a few hundredths everywhere, in a long sum only."""
    error = np.abs(got - want) / np.maximum(np.abs(want), 1e-9)
    return case.sizes["K"] >= 64 and bool(np.isfinite(got).all()) and 1e-5 < float(np.median(error)) < 0.1


def _unmasked_tail(inputs, case, got, want) -> bool:
    return bool(np.isnan(got).any()) and not np.isnan(want).any()


def _beyond_fp16(inputs, case, got, want) -> bool:
    return case.values == "beyond fp16" and not np.isfinite(got).all()


UNMASKED = Mistake("unmasked tail", "NaN came in: is every load masked in both directions, K included, with other=0.0?", shows=_unmasked_tail)  # fmt: skip
GEMM_MISTAKES = (
    Mistake("beyond fp16", "bf16 holds numbers above 65504 and fp16 does not: what is rounded to fp16 on the way?", shows=_beyond_fp16),
    UNMASKED,
    Mistake(
        "transposed stride", "this is what A times the transpose of B's memory gives: are stride_bk and stride_bn the right way round?",
        wrong=lambda i, c: {"c": reference.gemm(i["a"], i["b"].T.copy().reshape(i["b"].shape))},
    ),
    Mistake(
        "one block of K", "this is the product over part of K only: does the loop run to cdiv(K, BLOCK_K)?",
        shows=lambda i, c, got, want: any(
            k < c.sizes["K"] and np.allclose(got, reference.gemm(i["a"][:, :k], i["b"][:k]), rtol=2e-2, atol=1e-2) for k in (16, 32, 64, 128)
        ),
    ),
    Mistake("low precision", "close, but off in the third digit of a long sum: is the accumulator fp32 from first to last?", shows=_low_precision),
)  # fmt: skip


def _sizes(rng, low=1, high=300):
    return tuple(int(v) for v in rng.integers(low, high, 3))


def matrices(rng, m, n, k):
    return rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)


def tiled_product(a, b, bm, bn, bk):
    """What tiled_matmul must return: the product and the elements its tiles loaded."""
    m, k = a.shape
    n = b.shape[1]
    loads = cost.tile_loads(m, n, k, bm, bn)
    return reference.gemm(a, b), loads


REUSE = NumpyQuestion(
    id="gemm_tiling.reuse",
    notebook="concepts",
    asks="reuse(bm, bn): how many FLOPs a bm x bn tile does for each element it loads",
    entry="reuse",
    parts=(Part("values", 2, "calls"),),
    reference=cost.reuse,
    public=(Call((64, 64)), Call((128, 64)), Call((1, 128), "a single row")),
    hidden=lambda rng: [Call(tuple(int(v) for v in rng.integers(1, 512, 2))) for _ in range(6)] + [Call((1, int(rng.integers(2, 9999))), "a single row")],
    where=f"{LESSON}, \"Reuse is a harmonic mean\"",
    hints=(
        "One step along K multiplies a bm x 1 column by a 1 x bn row. Count what it loads and what it computes.",
        "It loads bm + bn elements and does bm * bn multiply-adds, each of which is two FLOPs.",
        "Divide: 2 * bm * bn over (bm + bn).",
    ),
    mistakes=(
        Mistake("one FLOP", "half of what is wanted: a multiply-add counts as two FLOPs", wrong=lambda bm, bn: bm * bn / (bm + bn)),
        Mistake("arithmetic mean", "this is the arithmetic mean of the sides; the loads of both sides add up below the line", wrong=lambda bm, bn: (bm + bn) / 2),
    ),
)  # fmt: skip

TILE_LOADS = NumpyQuestion(
    id="gemm_tiling.tile_loads",
    notebook="concepts",
    asks="tile_loads(m, n, k, bm, bn): elements of A and B that all tiles of C load, ragged tiles counted by what they really hold",
    entry="tile_loads",
    parts=(Part("values", 3, "calls"),),
    reference=cost.tile_loads,
    public=(Call((256, 256, 256, 64, 64)), Call((100, 70, 50, 32, 64), "ragged tiles"), Call((1, 4096, 4096, 64, 64), "a single row")),
    hidden=lambda rng: [Call((*_sizes(rng), *(int(v) for v in rng.choice([16, 32, 64, 128], 2))), "ragged tiles") for _ in range(8)],
    where=f"{LESSON}, \"Count it\"",
    hints=(
        "Every tile of C needs a band of A as wide as K and a band of B as long as K. Who needs the same band?",
        "Each row band of A is loaded once for every column of tiles; each column band of B once for every row of tiles.",
        "A: m * k * ceil(n / bn); B: k * n * ceil(m / bm); the answer is their sum.",
    ),
    mistakes=(
        Mistake("floor", "the last, ragged tile is left out: round the number of tiles up", wrong=lambda m, n, k, bm, bn: m * k * (n // bn) + k * n * (m // bm)),
        Mistake("swapped", "A is re-read for every column of tiles and B for every row of tiles: the two are swapped", wrong=lambda m, n, k, bm, bn: m * k * math.ceil(m / bm) + k * n * math.ceil(n / bn)),
        Mistake(
            "padded tiles", "ragged tiles are counted as full ones: masked lanes load nothing",
            wrong=lambda m, n, k, bm, bn: math.ceil(m / bm) * math.ceil(n / bn) * k * (bm + bn),
        ),
    ),
)  # fmt: skip

GEMM_BYTES = NumpyQuestion(
    id="gemm_tiling.gemm_bytes",
    notebook="concepts",
    asks="gemm_bytes(m, n, k, bm, bn, elem_bytes): bytes a whole tiled GEMM moves: the tiles' loads and C written once",
    entry="gemm_bytes",
    parts=(Part("values", 3, "calls"),),
    reference=cost.gemm_bytes,
    public=(Call((256, 256, 256, 64, 64, 2)), Call((4096, 4096, 4096, 128, 128, 2)), Call((1, 4096, 4096, 16, 128, 2), "a single row")),
    hidden=lambda rng: [Call((*_sizes(rng, 1, 5000), *(int(v) for v in rng.choice([16, 32, 64, 128, 256], 2)), int(rng.choice([1, 2, 4]))), "other sizes") for _ in range(8)],
    where=f"{LESSON}, \"Count it\"",
    hints=(
        "You have the loads already; what is written, and how often?",
        "The tiles' loads and m * n elements written, each of elem_bytes bytes. An answer stands alone: write the loads out again.",
        "(m * k * ceil(n / bn) + k * n * ceil(m / bm) + m * n) * elem_bytes",
    ),
    mistakes=(
        Mistake("no store", "C is written too: m * n elements are missing", wrong=lambda m, n, k, bm, bn, e: cost.tile_loads(m, n, k, bm, bn) * e),
        Mistake("compulsory", "these are the bytes of each matrix once; the tiles read A and B again and again", wrong=lambda m, n, k, bm, bn, e: (m * k + k * n + m * n) * e),
    ),
)  # fmt: skip

TILED_MATMUL = NumpyQuestion(
    id="gemm_tiling.tiled_matmul",
    notebook="concepts",
    asks="tiled_matmul(a, b, bm, bn, bk): the product, tile by tile, and the number of elements that the tiles loaded",
    entry="tiled_matmul",
    parts=(Part("values", 4, "calls"),),
    reference=tiled_product,
    rtol=1e-4,
    atol=1e-3,
    public=(
        Call((*matrices(np.random.default_rng(1), 64, 64, 64), 32, 32, 16)),
        Call((*matrices(np.random.default_rng(2), 70, 50, 33), 32, 16, 16), "ragged tiles"),
    ),
    hidden=lambda rng: [Call((*matrices(rng, *_sizes(rng, 1, 90)), 32, 16, 8), "ragged tiles") for _ in range(4)]
    + [Call((*matrices(rng, 1, 40, 64), 16, 16, 16), "a single row")],
    where=f"{LESSON}, \"The tile walk\"",
    hints=(
        "Three loops: tiles of rows, tiles of columns, and inside them steps along K that add to one accumulator.",
        "numpy slices past the end are simply shorter, so a ragged tile needs no special case; count what a slice holds with .size.",
        "acc += a[i:i+bm, k:k+bk] @ b[k:k+bk, j:j+bn]; loads += both slices' .size; then c[i:i+bm, j:j+bn] = acc",
    ),
    mistakes=(
        Mistake("no count", "the product is right and the count is not: add both slices' .size at every step along K", wrong=lambda a, b, bm, bn, bk: (reference.gemm(a, b), a.size + b.size)),
    ),
)  # fmt: skip

TILED_GEMM = KernelQuestion(
    id="gemm_tiling.tiled_gemm",
    notebook="kernel",
    asks="C = A B in fp16 or bf16 with an fp32 accumulator, for any M, N, K and any strides, grouped for the L2",
    parts=(
        Part("values", 4, "values"),
        Part("traffic", 3, "traffic"),
        Part("grouping", 2, "traffic"),
        Part("compiled", 2, "compiled"),
        Part("speed", 4, "traffic", gpu="speed"),
    ),
    tensors=(
        Tensor("a", "mk", ("M", "K")),
        Tensor("b", "kn", ("K", "N")),
        Tensor("c", "mn", ("M", "N"), role="out"),
    ),
    inputs=operands,
    reference=product,
    tolerance=within,
    public=(
        Case({"M": 64, "N": 64, "K": 64}),
        Case({"M": 100, "N": 70, "K": 50}, kind="ragged in every direction"),
        Case({"M": 64, "N": 128, "K": 96}, "bf16"),
        Case({"M": 33, "N": 65, "K": 40}, layout={"a": "transposed"}, kind="A transposed in memory"),
    ),
    hidden=hidden_products,
    traffic_case=Case({"M": 1024, "N": 4096, "K": 64}, sm_count=32),
    budgets={"traffic": traffic_budget, "grouping": wave_budget, "speed": reuse_budget},
    compile_case=Case({"M": 4096, "N": 4096, "K": 4096}, "bf16", sm_count=132),
    targets=(90, 80),
    instruction={90: "wgmma", 80: "mma.sync"},
    most_spills=64,
    speed=Speed("matmul", Case({"M": 4096, "N": 4096, "K": 4096}, "bf16"), full=1 / 0.7, none=1 / 0.35, bound=bound, sampled=samples.rows("M")),
    where=f"{LESSON}, \"The kernel, line by line\"",
    hints=(
        "Start with one program a tile and no grouping: find the tile's row and column from tl.program_id(0), then loop along K.",
        "offs_m and offs_n say which elements the tile owns; load A and B with a mask in both directions and other=0.0; acc = tl.dot(a, b, acc) in fp32.",
        "For the grouping: group = pid // (GROUP_M * tiles_n), rows = min(tiles_m - group * GROUP_M, GROUP_M), then row = first + pid % (GROUP_M * tiles_n) % rows and column = pid % (GROUP_M * tiles_n) // rows.",
    ),
    mistakes=GEMM_MISTAKES,
)  # fmt: skip

SCALE_BLOCK = 128


def scaled_operands(case: Case, rng: np.random.Generator) -> dict:
    """fp8 codes with a scale for each 1 x 128 piece of A and each 128 x 128 block of B, as DeepSeek-V3 stores them."""
    import ml_dtypes

    m, n, k = (case.sizes[s] for s in "MNK")
    blocks_k, blocks_n = math.ceil(k / SCALE_BLOCK), math.ceil(n / SCALE_BLOCK)
    codes = {name: rng.standard_normal(shape) * 60 for name, shape in (("a", (m, k)), ("b", (k, n)))}
    if case.values == "positive":
        codes = {name: np.abs(v) for name, v in codes.items()}
    return {
        **{name: np.clip(v, -448, 448).astype(ml_dtypes.float8_e4m3fn) for name, v in codes.items()},
        "sa": (2.0 ** rng.uniform(-9, -5, (m, blocks_k))).astype(np.float32),
        "sb": (2.0 ** rng.uniform(-9, -5, (blocks_k, blocks_n))).astype(np.float32),
    }


def scaled_product(inputs: dict, case: Case) -> dict:
    return {"c": reference.block_scaled_gemm(inputs["a"], inputs["b"], inputs["sa"], inputs["sb"])}


def scaled_within(inputs: dict, case: Case, want: dict) -> dict:
    size = {name: np.abs(inputs[name].astype(np.float64)) for name in ("a", "b")}
    terms = reference.block_scaled_gemm(size["a"], size["b"], inputs["sa"], inputs["sb"])
    return {
        "c": ROUNDING["fp32" if case.dtypes.get("c") == "fp32" else "bf16"] * np.abs(want["c"])
        + 2.0**-13 * terms
        + 1e-30
    }


def hidden_scaled(rng: np.random.Generator) -> list[Case]:
    def sizes(m, n, k):
        return {"M": int(m), "N": int(n), "K": int(k)}

    return [
        Case(sizes(rng.choice(ODD), 128, 256), "bf16", kind="odd rows"),
        Case(sizes(64, 128 + rng.choice(ODD), 256), "bf16", kind="a ragged block of columns"),
        Case(sizes(33, 64, 128 + 16 * rng.integers(1, 7)), "bf16", kind="a ragged block of K"),
        Case(sizes(16, 128, 1024), "bf16", {"c": "fp32"}, values="positive", kind="a long sum"),
        Case(
            sizes(40, 300, 200),
            "bf16",
            layout={name: "transposed" for name in ("a", "b", "sa", "sb", "c")},
            kind="everything strided",
        ),
        Case(sizes(rng.integers(300, 400), 300, 128), "bf16", kind="many rows of tiles"),
    ]


BLOCK_SCALED = KernelQuestion(
    id="gemm_tiling.block_scaled_gemm",
    entry="launch_block_scaled",
    notebook="kernel",
    bonus=True,
    asks="C = (A x sa)(B x sb) with fp8 codes, a scale for each 1 x 128 piece of A and 128 x 128 block of B, summed in fp32",
    parts=(Part("values", 4, "values"), Part("traffic", 1, "traffic"), Part("compiled", 1, "compiled")),
    tensors=(
        Tensor("a", "mk", ("M", "K"), "fp8e4nv"),
        Tensor("b", "kn", ("K", "N"), "fp8e4nv"),
        Tensor("sa", "mk", lambda s: (s["M"], math.ceil(s["K"] / SCALE_BLOCK)), "fp32"),
        Tensor("sb", "kn", lambda s: (math.ceil(s["K"] / SCALE_BLOCK), math.ceil(s["N"] / SCALE_BLOCK)), "fp32"),
        Tensor("c", "mn", ("M", "N"), role="out"),
    ),
    inputs=scaled_operands,
    reference=scaled_product,
    tolerance=scaled_within,
    public=(Case({"M": 32, "N": 128, "K": 256}, "bf16"), Case({"M": 40, "N": 70, "K": 200}, "bf16", kind="ragged in every direction")),
    hidden=hidden_scaled,
    traffic_case=Case({"M": 256, "N": 256, "K": 512}, "bf16"),
    budgets={
        "traffic": lambda case, plan: [
            Budget("read of A", "a", "load", "requested", case.sizes["M"] * case.sizes["K"] * math.ceil(case.sizes["N"] / 64)),
            Budget("read of B", "b", "load", "requested", case.sizes["K"] * case.sizes["N"] * math.ceil(case.sizes["M"] / 32)),
        ]
    },
    compile_case=Case({"M": 4096, "N": 4096, "K": 4096}, "bf16", sm_count=132),
    targets=(90,),
    instruction={90: "wgmma"},
    where=f"{LESSON}, \"Eight bits, safely\"",
    hints=(
        "The scales change every 128 steps along K, so take BLOCK_K = 128: then one scale of B and one a row of A serve a whole tl.dot.",
        "Keep the product of one block apart from the running sum: part = tl.dot(a, b), then scale it, then add.",
        "acc += tl.dot(a, b) * sa[:, None] * sb, with sa of shape (BLOCK_M,) and sb a scalar where BLOCK_N divides 128.",
    ),
    mistakes=(
        Mistake("no scales", "this is the product of the bare codes: the scales are missing", wrong=lambda i, c: {"c": reference.gemm(i["a"], i["b"])}),
        UNMASKED,
    ),
)  # fmt: skip

QUESTIONS = (REUSE, TILE_LOADS, GEMM_BYTES, TILED_MATMUL, TILED_GEMM, BLOCK_SCALED)
