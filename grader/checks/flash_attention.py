"""Attention without the score matrix: online softmax in numpy, then the causal forward and split-KV decoding."""

import math

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.checks import _flash_attention_backward as backward
from grader.checks import _flash_attention_concepts as concepts
from grader.checks import _flash_attention_mistakes as mistakes
from grader.questions import Budget, Case, KernelQuestion, Part, Speed, Tensor, samples
from kernels.flash_attention import cost, reference

LESSON = "course/05_flash_attention.ipynb"
BEYOND_FP16 = 2.0**18  # how much larger the values of "beyond fp16" are: bf16 holds them, fp16 does not


def _draw(rng: np.random.Generator, shape, case: Case, scale: float = 1.0, shift: float = 0.0) -> np.ndarray:
    drawn = (scale * rng.standard_normal(shape)).astype(np.float32).astype(DTYPES[case.dtype])
    return drawn + np.asarray(shift, DTYPES[case.dtype])


def _loud(case: Case) -> float:
    return 12.0 if case.values == "extreme scores" else 1.0


def _large(case: Case) -> float:
    return BEYOND_FP16 if case.values == "beyond fp16" else 1.0


def operands(case: Case, rng: np.random.Generator) -> dict:
    s = case.sizes
    b, h, g, m, n, d = (s[x] for x in ("B", "H", "G", "M", "N", "D"))
    return {
        "q": _draw(rng, (b, h, m, d), case, _loud(case)),
        "k": _draw(rng, (b, g, n, d), case, _loud(case)),
        "v": _draw(rng, (b, g, n, d), case, _large(case), 3 if case.values == "large values" else 0),
    }


def sizes(b, h, g, m, n, d, **more) -> dict:
    return {"B": int(b), "H": int(h), "G": int(g), "M": int(m), "N": int(n), "D": int(d), **more}


def case(b, h, g, m, n, d, dtype="fp16", *, w=None, softcap=None, **more) -> Case:
    scalars = {"scale": d**-0.5} | ({"softcap": float(softcap)} if softcap is not None else {})
    scalars |= more.pop("scalars", {})
    return Case(
        sizes(b, h, g, m, n, d, **({"W": int(w)} if w is not None else {})), dtype, scalars=scalars, **more
    )


def _odd(rng, low=20, high=200) -> int:
    return int(rng.integers(low // 2, high // 2)) * 2 + 1


def hidden_forward(rng: np.random.Generator) -> list[Case]:
    n = _odd(rng)
    return [
        case(1, 2, 1, n, n, 64, kind="an odd length"),
        case(2, 4, 2, 70, 70, 64, "bf16", kind="grouped heads in a batch"),
        case(1, 3, 1, 1, _odd(rng), 64, kind="a single query"),
        case(1, 2, 2, 33, 150 + _odd(rng, 0, 30), 64, "bf16", kind="more keys than queries"),
        case(1, 2, 1, 96, 96, 128, kind="head dimension 128"),
        case(1, 1, 1, 130, 130, 64, values="extreme scores", kind="extreme scores"),
        case(1, 2, 1, 90, 90, 32, values="large values", scalars={"scale": 0.5}, kind="another scale"),
        case(
            1, 2, 2, 65, 65, 64, layout={"q": "padded", "k": "padded", "o": "padded"}, kind="strided tensors"
        ),
        case(1, 2, 1, 70, 70, 32, layout={x: "transposed" for x in "qkvo"}, kind="transposed tensors"),
        case(1, 2, 1, 33, 70, 32, "bf16", values="beyond fp16", kind="values beyond fp16"),
        case(1, 1, 1, 8, 1600, 64, values="large values", kind="a long row of keys"),
    ]


def forward_budget(c: Case, plan: dict) -> list[Budget]:
    """The causal half in whole tiles, for the row tile that the grid implies; and no store but the output's."""
    s = c.sizes
    programs = math.prod(plan["steps"][0]["grid"])
    rows = max(16, math.ceil(s["M"] / max(1, programs // (s["B"] * s["H"]))))
    shape = cost.Shape(s["M"], s["N"], s["D"], s["H"], s["G"], s["B"], 2, right=0)
    model = cost.tiled_traffic(shape, cost.Tiling(rows, 128))
    out = 2 * s["B"] * s["H"] * s["M"] * s["D"]
    look = "the end of the loop over keys: a row tile needs no key beyond its own last row"
    return [
        Budget("read of K", "k", "load", "requested", model.k, 0, look),
        Budget("read of V", "v", "load", "requested", model.v, 0, look),
        Budget(
            "everything written",
            "all",
            "store",
            "requested",
            out,
            out,
            "what is stored besides the output: scores and weights live and die in registers",
        ),
    ]


def reuse_budget(c: Case, plan: dict) -> list[Budget]:
    """Where there is no clock: K and V asked for at most as often as row tiles of 64 and key tiles of 128 would."""
    s = c.sizes
    shape = cost.Shape(s["M"], s["N"], s["D"], s["H"], s["G"], s["B"], 2, right=0)
    model = cost.tiled_traffic(shape, cost.Tiling(64, 128))
    look = "the rows a program owns: each of them reuses every key that the program loads"
    return [Budget("all loads", "all", "load", "requested", 1.02 * model.loads, 0, look)]


def bound(c: Case) -> tuple[float, float]:
    s = c.sizes
    shape = cost.Shape(s["M"], s["N"], s["D"], s["H"], s["G"], s["B"], 2, right=0)
    return cost.flops(shape), cost.tiled_state_bytes(shape)


QKV = (
    Tensor("q", "bhmd", ("B", "H", "M", "D")),
    Tensor("k", "bhnd", ("B", "G", "N", "D")),
    Tensor("v", "bhnd", ("B", "G", "N", "D")),
)
O = Tensor("o", "bhmd", ("B", "H", "M", "D"), role="out")

FORWARD = KernelQuestion(
    id="flash_attention.forward",
    notebook="kernel",
    asks="causal attention with grouped heads: query head h uses key head h // (H // G), query i sees keys up to i + N - M",
    parts=(Part("values", 5, "values"), Part("traffic", 4, "traffic"), Part("compiled", 2, "compiled"), Part("speed", 5, "traffic", gpu="speed")),
    tensors=(*QKV, O),
    inputs=operands,
    reference=mistakes.attended,
    tolerance=mistakes.within(mistakes.attended),
    public=(
        case(1, 1, 1, 64, 64, 64),
        case(1, 2, 1, 100, 100, 64, kind="a ragged length, two query heads a key head"),
        case(1, 4, 2, 40, 72, 64, "bf16", kind="more keys than queries"),
    ),
    hidden=hidden_forward,
    metered=lambda rng: case(1, 4, 2, 512, 512, 64),
    budgets={"traffic": forward_budget, "speed": reuse_budget},
    compile_case=case(4, 32, 8, 4096, 4096, 128, "bf16", sm_count=132),
    targets=(90, 80),
    instruction={90: "wgmma", 80: "mma.sync"},
    most_spills=64,
    speed=Speed("sdpa_flash", case(4, 32, 8, 4096, 4096, 128, "bf16", sm_count=132), full=1 / 0.9, none=2 / 0.9, bound=bound, sampled=samples.causal_rows),
    where=f'{LESSON}, "The kernel, line by line"',
    hints=(
        "Start without the mask: one program for a tile of rows and one head; loop over tiles of keys with the three running numbers of the concepts lab.",
        "Keep m, l and acc in fp32; scores = tl.dot(q, tl.trans(k)) * scale; set masked ones to -inf before tl.max; cast p to v's dtype for the second tl.dot.",
        "alpha = tl.exp(m - m_new); l = l * alpha + tl.sum(p, 1); acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v); the loop ends at min(N, (row_tile + 1) * BLOCK_M + N - M).",
    ),
    mistakes=mistakes.FORWARD,
)  # fmt: skip


def decode_operands(c: Case, rng: np.random.Generator) -> dict:
    s = c.sizes
    b, h, g, n, d = (s[x] for x in ("B", "H", "G", "N", "D"))
    return {
        "q": _draw(rng, (b, h, d), c, _loud(c)),
        "k": _draw(rng, (b, g, n, d), c, _loud(c)),
        "v": _draw(rng, (b, g, n, d), c, _large(c)),
    }


def one(b, h, g, n, d, dtype="fp16", **more) -> Case:
    scale = more.pop("scale", d**-0.5)
    return Case(
        {"B": int(b), "H": int(h), "G": int(g), "N": int(n), "D": int(d)},
        dtype,
        scalars={"scale": scale},
        **more,
    )


def hidden_decode(rng: np.random.Generator) -> list[Case]:
    return [
        one(1, 4, 1, 500 + _odd(rng), 64, kind="an odd number of keys"),
        one(3, 8, 2, _odd(rng), 64, "bf16", kind="grouped heads in a batch"),
        one(1, 2, 2, 1, 64, kind="a single key"),
        one(2, 3, 1, 300, 128, kind="three query heads a key head"),
        # a single multiprocessor: few splits, each of many tiles, whose maxima lie far apart
        one(1, 8, 1, 700, 64, values="extreme scores", sm_count=1, kind="extreme scores"),
        one(1, 20, 1, 150, 64, kind="twenty query heads a key head"),
        one(1, 4, 2, 200, 32, "bf16", values="beyond fp16", kind="values beyond fp16"),
        one(1, 4, 2, 260, 64, layout={"k": "padded", "v": "padded"}, kind="a strided cache"),
        one(1, 2, 1, 257, 32, scale=0.7, kind="another scale"),
        one(1, 4, 2, 400 + _odd(rng), 64, sm_count=1, kind="a machine with a single multiprocessor"),
        one(1, 2, 1, 90, 64, layout={x: "transposed" for x in "qkvo"}, kind="transposed tensors"),
    ]


def decode_budget(c: Case, plan: dict) -> list[Budget]:
    s = c.sizes
    cache = 2 * s["B"] * s["G"] * s["N"] * s["D"]
    group = "query heads of one group share their keys: load a key tile once and let all of them use it"
    return [
        Budget("read of K", "k", "load", "requested", 1.02 * cache, cache, group),
        Budget("read of V", "v", "load", "requested", 1.02 * cache, cache, group),
        Budget(
            "programs that read the cache",
            "k",
            "",
            "programs",
            1e9,
            c.sm_count,
            "split the keys: with one program a head, most multiprocessors sleep",
        ),
    ]


SPLIT_DECODE = KernelQuestion(
    id="flash_attention.split_decode",
    notebook="kernel",
    entry="launch_decode",
    asks="decoding, one query a sequence over a long cache: keys split over programs, then combined by their log-sum-exp",
    parts=(Part("values", 5, "values"), Part("traffic", 4, "traffic"), Part("compiled", 1, "compiled")),
    tensors=(
        Tensor("q", "bhd", ("B", "H", "D")),
        Tensor("k", "bhnd", ("B", "G", "N", "D")),
        Tensor("v", "bhnd", ("B", "G", "N", "D")),
        Tensor("o", "bhd", ("B", "H", "D"), role="out"),
    ),
    inputs=decode_operands,
    reference=mistakes.decoded,
    tolerance=mistakes.within(mistakes.decoded),
    public=(one(1, 1, 1, 64, 64), one(1, 4, 2, 300, 64, kind="keys that fill no block"), one(2, 8, 2, 128, 64, "bf16")),
    hidden=hidden_decode,
    metered=lambda rng: one(1, 8, 2, 2048, 64, sm_count=32),
    budgets={"traffic": decode_budget},
    most_launches=2,
    compile_case=one(1, 32, 8, 32768, 128, "bf16", sm_count=132),
    targets=(90, 80),
    where=f'{LESSON}, "Decoding: split the keys"',
    hints=(
        "Each program takes one key head and a range of keys and leaves its own maximum, sum and output in scratch; a second launch combines them.",
        "All query heads of a group go into the rows of one tile, padded to 16 rows so that tl.dot takes it.",
        "combine: m = max over splits; weight_s = l_s * exp(m_s - m); o = sum(weight_s * o_s) / sum(weight_s), with o_s already divided by l_s",
    ),
    mistakes=mistakes.DECODE,
)  # fmt: skip


def hidden_window(rng: np.random.Generator) -> list[Case]:
    n = _odd(rng)
    return [
        case(1, 2, 1, n, n, 64, w=16, softcap=20, kind="an odd length"),
        case(1, 2, 2, 120, 120, 64, "bf16", w=1000, softcap=5, kind="a window wider than the keys"),
        case(1, 1, 1, 90, 90, 64, w=0, softcap=30, kind="a window of the query's own key"),
        case(1, 2, 1, 40, 150, 64, w=33, softcap=10, kind="more keys than queries"),
        case(
            2,
            4,
            2,
            70,
            70,
            32,
            w=25,
            softcap=10,
            layout={x: "transposed" for x in "qkvo"},
            kind="grouped heads, transposed",
        ),
        case(1, 1, 1, 130, 130, 64, w=70, softcap=50, values="extreme scores", kind="extreme scores"),
        case(1, 1, 1, 40, 40, 32, w=20, softcap=1, values="extreme scores", kind="scores far beyond the cap"),
    ]


def window_budget(c: Case, plan: dict) -> list[Budget]:
    s = c.sizes
    shape = cost.Shape(s["M"], s["N"], s["D"], s["H"], s["G"], s["B"], 2, left=s["W"], right=0)
    programs = math.prod(plan["steps"][0]["grid"])
    rows = max(16, math.ceil(s["M"] / max(1, programs // (s["B"] * s["H"]))))
    model = cost.tiled_traffic(shape, cost.Tiling(rows, 128))
    look = "the start of the loop over keys: nothing before the first row's window is needed"
    return [
        Budget("read of K", "k", "load", "requested", model.k, 0, look),
        Budget("read of V", "v", "load", "requested", model.v, 0, look),
    ]


WINDOW = KernelQuestion(
    id="flash_attention.window_softcap",
    notebook="kernel",
    entry="launch_window",
    bonus=True,
    asks="causal attention where a query sees its own key and W before it, and scores pass through softcap * tanh(s / softcap)",
    parts=(Part("values", 3, "values"), Part("traffic", 2, "traffic")),
    tensors=(*QKV, O),
    inputs=operands,
    reference=mistakes.windowed,
    tolerance=mistakes.within(mistakes.windowed),
    public=(case(1, 1, 1, 64, 64, 64, w=16, softcap=30), case(1, 2, 1, 100, 100, 64, w=20, softcap=10, kind="a ragged length")),
    hidden=hidden_window,
    metered=lambda rng: case(1, 2, 1, 512, 512, 64, w=64, softcap=30),
    budgets={"traffic": window_budget},
    where=f'{LESSON}, "What else a mask can be"',
    hints=(
        "Take your forward kernel; the cap changes the scores before the mask, the window changes where the loop starts.",
        "tanh(x) = 1 - 2 / (exp(2 x) + 1) keeps fp32 accuracy and never overflows to NaN.",
        "start = max(0, first_row + N - M - W) // BLOCK_N * BLOCK_N; a key is seen where place - W <= key <= place.",
    ),
    mistakes=mistakes.WINDOW,
)  # fmt: skip


def backward_operands(c: Case, rng: np.random.Generator) -> dict:
    inputs = operands(c, rng)
    q, k, v = (inputs[x] for x in "qkv")
    o, lse = reference.attention(q, k, v, causal=True, scale=c.scalars["scale"])
    return inputs | {
        "do": _draw(rng, q.shape, c, _large(c)),
        "o": o.astype(DTYPES[c.dtype]),
        "lse": lse.astype(np.float32),
    }


BACKWARD = KernelQuestion(
    id="flash_attention.backward",
    notebook="kernel",
    entry="launch_backward",
    bonus=True,
    asks="dq, dk and dv of causal attention from do, with the weights computed again from q, k and the log-sum-exp",
    parts=(Part("values", 5, "values"), Part("compiled", 1, "compiled")),
    tensors=(
        Tensor("q", "bhmd", ("B", "H", "M", "D")), Tensor("k", "bhnd", ("B", "H", "N", "D")), Tensor("v", "bhnd", ("B", "H", "N", "D")),
        Tensor("o", "bhmd", ("B", "H", "M", "D")), Tensor("do", "bhmd", ("B", "H", "M", "D")), Tensor("lse", "bhm", ("B", "H", "M"), "fp32"),
        Tensor("dq", "bhmd", ("B", "H", "M", "D"), role="out"), Tensor("dk", "bhnd", ("B", "H", "N", "D"), role="out"), Tensor("dv", "bhnd", ("B", "H", "N", "D"), role="out"),
    ),
    inputs=backward_operands,
    reference=backward.gradients,
    tolerance=backward.gradient_within,
    public=(case(1, 1, 1, 64, 64, 64), case(1, 2, 2, 70, 70, 64, kind="a ragged length")),
    hidden=lambda rng: [
        case(1, 2, 2, _odd(rng, 20, 60), 141, 64, kind="more keys than queries"),
        case(2, 1, 1, 96, 96, 32, "bf16", kind="bf16 in a batch"),
        case(1, 1, 1, 193, 193, 64, scalars={"scale": 0.3}, kind="another scale"),
        case(1, 2, 2, 33, 40, 32, "bf16", values="beyond fp16", kind="values beyond fp16"),
        case(2, 2, 2, 70, 90, 32, layout={x: "transposed" for x in ("q", "k", "v", "o", "do", "lse", "dq", "dk", "dv")}, kind="everything strided"),
    ],
    most_launches=4,
    compile_case=case(4, 16, 16, 2048, 2048, 64, "bf16", sm_count=132),
    targets=(90,),
    most_spills=4096,
    where=f'{LESSON}, "Backward: compute it again"',
    hints=(
        "delta = sum(o * do) over the head dimension, one number a row, is all that softmax's gradient needs of the output.",
        "One kernel owns a tile of keys and walks over rows for dk and dv; another owns a tile of rows and walks over keys for dq: then no two programs write the same element.",
        "p = exp(s - lse); dv += p^T do; dp = do v^T; ds = p * (dp - delta); dk += ds^T q * scale; dq += ds k * scale",
    ),
    mistakes=backward.BACKWARD,
)  # fmt: skip

QUESTIONS = (
    *concepts.QUESTIONS,
    FORWARD,
    SPLIT_DECODE,
    WINDOW,
    BACKWARD,
)
