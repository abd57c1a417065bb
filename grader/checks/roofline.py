"""Roofline: a fused kernel that reads its input once and writes its output once."""

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Budget, Case, KernelQuestion, Mistake, Part, Speed, Tensor, samples
from kernels.roofline import reference

LESSON = "course/00_roofline.ipynb"
ROUNDING = {"fp16": 2.0**-10, "bf16": 2.0**-7, "fp32": 2.0**-22}
FP32_STEPS = 2.0**-19  # of the row's largest GELU, after scaling: fp32 sums in any order
ODD = (1, 3, 17, 63, 65, 100, 127, 129, 511, 513, 777)


def operands(case: Case, rng: np.random.Generator) -> dict:
    rows, cols = case.sizes["M"], case.sizes["N"]
    x = rng.standard_normal((rows, cols))
    if case.values == "far from zero":
        x = x + 100.0
    if case.values == "constant rows":
        x = np.broadcast_to(rng.standard_normal((rows, 1)), (rows, cols))
    if case.values == "tails":
        x = x * 8
    return {
        "x": x.astype(np.float32).astype(DTYPES[case.dtype]),
        "w": (1 + 0.5 * rng.standard_normal(cols)).astype(np.float32),
        "b": rng.standard_normal(cols).astype(np.float32),
    }


def fused(inputs: dict, case: Case) -> dict:
    return {"y": reference.layernorm_gelu(inputs["x"], inputs["w"], inputs["b"], case.scalars["eps"])}


def within(inputs: dict, case: Case, want: dict) -> dict:
    g = reference.gelu(inputs["x"])
    scale = 1 / np.sqrt(g.var(-1, keepdims=True) + case.scalars["eps"])
    out = case.dtypes.get("y", case.dtype)
    terms = np.abs(g).max(-1, keepdims=True) * scale * np.abs(inputs["w"])
    return {
        "y": ROUNDING[out] * np.abs(want["y"]) + FP32_STEPS * terms + 2.0**-20 * np.abs(inputs["b"]) + 1e-7
    }


def case(m: int, n: int, dtype: str = "fp16", *, eps: float = 1e-5, **more) -> Case:
    return Case({"M": int(m), "N": int(n)}, dtype, scalars={"eps": eps}, **more)


def hidden(rng: np.random.Generator) -> list[Case]:
    def odd() -> int:
        return int(rng.choice(ODD))

    return [
        case(odd(), odd(), "bf16", kind="odd sizes"),
        case(7, int(rng.integers(900, 1100)), kind="rows longer than a block"),
        case(5, odd(), layout={"x": "padded", "y": "padded"}, kind="padded rows"),
        case(9, 64, layout={"x": "transposed"}, kind="a transposed input"),
        case(7, 40, layout={"y": "transposed"}, kind="a transposed output"),
        case(6, 200, "fp16", dtypes={"y": "fp32"}, values="far from zero", kind="values far from zero"),
        case(4, 96, dtypes={"y": "fp32"}, values="tails", kind="large values"),
        case(3, 50, dtypes={"y": "fp32"}, values="constant rows", kind="constant rows"),
        case(8, 33, dtypes={"y": "fp32"}, eps=0.5, kind="a large eps"),
        case(1, 1, kind="a single element"),
    ]


def once(case: Case, plan: dict) -> list[Budget]:
    size = 2 * case.sizes["M"] * case.sizes["N"]
    look = "where the row is kept between the two passes of the norm: in registers, not in memory"
    return [
        Budget("read of x", "x", "load", "requested", size, size, look),
        Budget("write of y", "y", "store", "requested", size, size, look),
    ]


def by_sectors(case: Case, plan: dict) -> list[Budget]:
    size = 2 * case.sizes["M"] * case.sizes["N"]
    look = "which neighbouring lanes read neighbouring addresses: a sector is 32 bytes, used or not"
    return [
        Budget("sectors of x", "x", "load", "sectors", 1.02 * size, 0, look),
        Budget("sectors of y", "y", "store", "sectors", 1.02 * size, 0, look),
    ]


def _would(change):
    """The reference with one thing done wrong."""

    def wrong(inputs: dict, case: Case) -> dict:
        x, w, b, eps = inputs["x"].astype(np.float64), inputs["w"], inputs["b"], case.scalars["eps"]
        return {"y": change(x, w, b, eps)}

    return wrong


def _norm(g, w, b, eps):
    return (g - g.mean(-1, keepdims=True)) / np.sqrt(g.var(-1, keepdims=True) + eps) * w + b


def _tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


MISTAKES = (
    Mistake("no gelu", "this is LayerNorm(x): the GELU is missing", wrong=_would(lambda x, w, b, e: _norm(x, w, b, e))),
    Mistake("gelu last", "this is GELU(LayerNorm(x)): the GELU comes first here", wrong=_would(lambda x, w, b, e: reference.gelu(_norm(x, w, b, e)))),
    Mistake("no bias", "the bias is missing", wrong=_would(lambda x, w, b, e: _norm(reference.gelu(x), w, 0, e))),
    Mistake("no weight", "the weight is missing", wrong=_would(lambda x, w, b, e: _norm(reference.gelu(x), 1, b, e))),
    Mistake("tanh gelu", "this is GELU's tanh approximation; the question asks for the exact one, with erf", wrong=_would(lambda x, w, b, e: _norm(_tanh_gelu(x), w, b, e))),
    Mistake(
        "padding counted", "is the mean taken over the block's masked lanes too? Divide by N, and set masked lanes to 0 after subtracting the mean",
        shows=lambda i, c, got, want: c.sizes["N"] & (c.sizes["N"] - 1) != 0 and bool(np.isfinite(got).all()),
    ),
    Mistake("NaN", "NaN came in: a masked lane without other=0.0, or a variance below zero", shows=lambda i, c, got, want: bool(np.isnan(got).any())),
)  # fmt: skip

LAYERNORM_GELU = KernelQuestion(
    id="roofline.layernorm_gelu",
    notebook="kernel",
    asks="y = LayerNorm(GELU(x)) over rows, with weight w and bias b, in one launch that reads x once and writes y once",
    parts=(
        Part("values", 4, "values"),
        Part("traffic", 4, "traffic"),
        Part("compiled", 2, "compiled"),
        Part("speed", 4, "traffic", gpu="speed"),
    ),
    tensors=(
        Tensor("x", "mn", ("M", "N")),
        Tensor("w", "n", ("N",), "fp32"),
        Tensor("b", "n", ("N",), "fp32"),
        Tensor("y", "mn", ("M", "N"), role="out"),
    ),
    inputs=operands,
    reference=fused,
    tolerance=within,
    public=(case(4, 64), case(3, 100, kind="a row that fills no block"), case(5, 96, "bf16")),
    hidden=hidden,
    traffic_case=case(64, 1024),
    budgets={"traffic": once, "speed": by_sectors},
    compile_case=Case({"M": 16384, "N": 4096}, "bf16", scalars={"eps": 1e-5}, sm_count=132),
    targets=(90, 80, 89, 100),
    speed=Speed("copy", Case({"M": 16384, "N": 4096}, "bf16", scalars={"eps": 1e-5}), full=2.9, none=5.8, bound=lambda c: (20.0 * c.sizes["M"] * c.sizes["N"], 4.0 * c.sizes["M"] * c.sizes["N"]), sampled=samples.rows("M")),
    where=f'{LESSON}, "Fusion counts bytes"',
    hints=(
        "One program a row: what does it have to keep so that it never asks for the row twice?",
        "Load the whole row into one block (tl.arange over the next power of two, masked), apply GELU in fp32, then mean and variance of what you hold.",
        "g = 0.5 * x * (1 + tl.erf(x * 0.70710678)); mean = tl.sum(g) / N; d = tl.where(mask, g - mean, 0.0); var = tl.sum(d * d) / N",
    ),
    mistakes=MISTAKES,
)  # fmt: skip

QUESTIONS = (LAYERNORM_GELU,)
