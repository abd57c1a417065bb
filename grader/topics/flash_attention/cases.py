"""What attention is tried on: operands, and the cases drawn for every check of its four kernels."""

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.draws import between, log_uniform, odd, spread
from kernels.flash_attention import reference

BEYOND_FP16 = 2.0**24  # how much larger the values of "beyond fp16" are: bf16 holds them, fp16 does not
FAR = (
    8.0  # of each number of a query and, with the other sign, of a key: scores near -64 times D and the scale
)
LOUD = 12.0
LOWEST = "one score, lower than any number but minus infinity should stand for"
DEEP = 19, 22  # powers of two, so that every product and sum of such scores is exact in any order


def _constant(rng: np.random.Generator, shape, c: Case, sign: float) -> np.ndarray:
    return np.full(shape, sign * 2.0 ** between(rng, *DEEP), np.float32).astype(DTYPES[c.dtype])


def _draw(rng: np.random.Generator, shape, case: Case, scale: float = 1.0, shift: float = 0.0) -> np.ndarray:
    return (shift + scale * rng.standard_normal(shape)).astype(np.float32).astype(DTYPES[case.dtype])


def _queries(rng, shape, c: Case) -> np.ndarray:
    if c.values == LOWEST:
        return _constant(rng, shape, c, 1.0)
    scale = {"extreme scores": LOUD, "far below zero": 0.5, "flat": 0.02}.get(c.values, 1.0)
    return _draw(rng, shape, c, scale, FAR if c.values == "far below zero" else 0.0)


def _keys(rng, shape, c: Case) -> np.ndarray:
    if c.values == LOWEST:
        return _constant(rng, shape, c, -1.0)
    scale = {"extreme scores": LOUD, "far below zero": 0.5}.get(c.values, 1.0)
    return _draw(rng, shape, c, scale, -FAR if c.values == "far below zero" else 0.0)


def _values(rng, shape, c: Case) -> np.ndarray:
    large = BEYOND_FP16 if c.values == "beyond fp16" else 1.0
    return _draw(rng, shape, c, large, 3.0 if c.values in ("large values", "flat") else 0.0)


def operands(c: Case, rng: np.random.Generator) -> dict:
    b, h, g, m, n, d = (c.sizes[x] for x in ("B", "H", "G", "M", "N", "D"))
    return {
        "q": _queries(rng, (b, h, m, d), c),
        "k": _keys(rng, (b, g, n, d), c),
        "v": _values(rng, (b, g, n, d), c),
    }


def decode_operands(c: Case, rng: np.random.Generator) -> dict:
    b, h, g, n, d = (c.sizes[x] for x in ("B", "H", "G", "N", "D"))
    return {
        "q": _queries(rng, (b, h, d), c),
        "k": _keys(rng, (b, g, n, d), c),
        "v": _values(rng, (b, g, n, d), c),
    }


def backward_operands(c: Case, rng: np.random.Generator) -> dict:
    inputs = operands(c, rng)
    q, k, v = (inputs[x] for x in "qkv")
    o, lse = reference.attention(q, k, v, causal=True, scale=c.scalars["scale"])
    large = BEYOND_FP16 if c.values == "beyond fp16" else 1.0
    return inputs | {
        "do": _draw(rng, q.shape, c, large, 3.0 if c.values == "flat" else 0.0),
        "o": o.astype(DTYPES[c.dtype]),
        "lse": lse.astype(np.float32),
    }


def case(b, h, g, m, n, d, dtype="fp16", *, w=None, softcap=None, scale=None, **more) -> Case:
    scalars = {"scale": float(d**-0.5 if scale is None else scale)}
    scalars |= {"softcap": float(softcap)} if softcap is not None else {}
    sizes = dict(zip("BHGMND", map(int, (b, h, g, m, n, d)), strict=True))
    return Case(sizes | ({"W": int(w)} if w is not None else {}), dtype, scalars=scalars, **more)


def decode_case(b, h, g, n, d, dtype="fp16", *, scale=None, **more) -> Case:
    """A decode step: one query a sequence."""
    sizes = dict(zip("BHGND", map(int, (b, h, g, n, d)), strict=True))
    return Case(sizes, dtype, scalars={"scale": float(d**-0.5 if scale is None else scale)}, **more)


def _scale(rng: np.random.Generator) -> float:
    return log_uniform(rng, 0.02, 0.8)


def hidden_forward(rng: np.random.Generator) -> list[Case]:
    n, long = odd(rng, 21, 199), between(rng, 4200, 4700)
    one_more = 256 * between(rng, 1, 2) + 1
    return [
        case(1, 2, 1, n, n, 64, kind="an odd length"),
        case(2, 4, 2, 70, 70, 64, "bf16", kind="grouped heads in a batch"),
        case(3, 6, 2, 20, 40, 32, kind="three query heads a key head, in a batch of three"),
        case(1, 3, 1, 1, odd(rng, 21, 199), 64, kind="a single query"),
        case(1, 2, 2, 33, between(rng, 150, 190), 64, "bf16", kind="more keys than queries"),
        # the size of heads that is met most, and the one whose kernels are written apart
        case(2, 4, 2, between(rng, 60, 90), 96, 128, "bf16", layout=spread(rng, *"qkvo"), kind="head dimension 128"),
        case(1, 1, 1, one_more, one_more, 32, kind="one more than whole tiles"),
        case(1, 1, 1, between(rng, 1100, 1300), 1300, 32, "bf16", kind="many tiles of rows"),
        case(1, 1, 1, 130, 130, 64, values="extreme scores", kind="extreme scores"),
        case(1, 2, 1, 50, between(rng, 60, 120), 64, values="far below zero", kind="scores far below zero"),
        case(1, 2, 1, odd(rng, 41, 79), 80, 64, "bf16", values=LOWEST, kind="scores below -1e9"),
        case(1, 2, 1, 90, 90, 32, values="large values", scale=_scale(rng), kind="another scale"),
        case(2, 2, 2, between(rng, 40, 70), 90, 64, layout=spread(rng, *"qkvo"), kind="no stride of 1"),
        # not transposed keys: of 32 columns, Triton 3.6 makes code for them that reads beyond shared memory on Hopper
        case(2, 4, 2, 70, 90, 32, layout={"k": "spread 7", "v": "padded", "o": "transposed"}, kind="keys and values laid out apart"),
        case(1, 2, 1, 70, 80, 32, "bf16", layout={"q": "transposed", "v": "transposed", "k": "padded"}, kind="values transposed, keys padded"),
        case(1, 2, 1, 33, 70, 32, "bf16", values="beyond fp16", kind="values beyond fp16"),
        case(1, 1, 1, 8, long, 64, values="flat", kind="a long row of keys"),
        case(1, 1, 1, 4, long - 7, 32, "bf16", values="flat", kind="a long row of keys in bf16"),
        case(between(rng, 5, 7), 36, 9, 3, 5, 32, kind="more heads than any size that is named"),
    ]  # fmt: skip


def hidden_decode(rng: np.random.Generator) -> list[Case]:
    long = between(rng, 8300, 9000)
    return [
        decode_case(1, 4, 1, odd(rng, 501, 799), 64, kind="an odd number of keys"),
        decode_case(3, 8, 2, odd(rng, 21, 199), 64, "bf16", kind="grouped heads in a batch"),
        decode_case(1, 2, 2, 1, 64, kind="a single key"),
        decode_case(2, 6, 2, 300, 128, "bf16", layout=spread(rng, *"qkvo"), kind="three query heads a key head, of dimension 128"),
        # a single multiprocessor: few splits, each of many tiles, whose maxima lie far apart
        decode_case(1, 8, 1, 700, 64, values="extreme scores", sm_count=1, kind="extreme scores"),
        # 601 to 639 keys are no power of two of tiles of 32 to 256: the join has places without a split
        decode_case(1, 8, 2, between(rng, 601, 639), 64, values="far below zero", kind="scores far below zero"),
        decode_case(1, 4, 2, odd(rng, 201, 399), 64, "bf16", values=LOWEST, kind="scores below -1e9"),
        decode_case(1, 20, 1, 150, 64, kind="twenty query heads a key head"),
        decode_case(1, 4, 2, 200, 32, "bf16", values="beyond fp16", kind="values beyond fp16"),
        decode_case(2, 4, 2, between(rng, 200, 300), 64, layout=spread(rng, *"qkvo"), kind="no stride of 1"),
        decode_case(1, 4, 2, 260, 64, layout={"k": "padded", "v": "transposed"}, kind="keys padded, values transposed"),
        decode_case(1, 2, 1, 90, 64, layout={"q": "transposed", "k": "transposed", "o": "padded"}, kind="keys transposed"),
        decode_case(1, 2, 1, 257, 32, scale=_scale(rng), values="large values", kind="another scale"),
        decode_case(1, 4, 2, between(rng, 420, 600), 64, sm_count=1, kind="a machine with a single multiprocessor"),
        decode_case(2, 2, 1, long, 32, values="flat", kind="a long cache"),
        decode_case(1, 2, 1, long - 33, 32, "bf16", values="flat", sm_count=1, kind="a long cache for a single multiprocessor"),
        decode_case(between(rng, 5, 7), 36, 9, between(rng, 3, 9), 32, kind="more heads than any size that is named"),
        decode_case(1, 1, 1, between(rng, 32800, 34000), 32, values="flat", kind="a longer cache than any that is named"),
    ]  # fmt: skip


def hidden_window(rng: np.random.Generator) -> list[Case]:
    n, cap = odd(rng, 41, 199), lambda low=1.0, high=60.0: log_uniform(rng, low, high)
    long = between(rng, 4200, 4700)
    return [
        case(1, 2, 1, n, n, 64, w=between(rng, 5, 30), softcap=cap(), kind="an odd length"),
        case(1, 2, 2, 120, 120, 64, "bf16", w=between(rng, 300, 1000), softcap=cap(2, 8), kind="a window wider than the keys"),
        case(1, 1, 1, 90, 90, 64, w=0, softcap=cap(), kind="a window of the query's own key"),
        case(1, 2, 1, 40, 150, 64, w=between(rng, 20, 50), softcap=cap(2, 20), kind="more keys than queries"),
        case(2, 4, 2, 70, 70, 32, w=between(rng, 15, 40), softcap=cap(2, 20), layout=spread(rng, *"qkvo"), kind="grouped heads, no stride of 1"),
        case(1, 2, 1, 50, 60, 32, w=25, softcap=cap(), layout={"k": "spread 7", "v": "padded", "o": "transposed"}, kind="keys and values laid out apart"),
        case(1, 1, 1, 130, 130, 64, w=between(rng, 60, 100), softcap=cap(30, 90), values="extreme scores", kind="extreme scores"),
        case(1, 1, 1, 40, 40, 32, w=between(rng, 12, 30), softcap=cap(0.5, 2), values="extreme scores", kind="scores far beyond the cap"),
        case(1, 2, 1, 60, 80, 64, w=between(rng, 20, 60), softcap=cap(300, 900), values="far below zero", kind="scores far below zero"),
        case(1, 1, 1, 60, odd(rng, 61, 99), 64, "bf16", w=between(rng, 20, 50), softcap=2.0 ** between(rng, 38, 40), values=LOWEST, kind="scores below -1e9"),
        case(1, 2, 1, 50, 50, 32, w=between(rng, 12, 30), softcap=cap(2, 9), scale=_scale(rng), kind="another scale"),
        case(1, 2, 1, 33, 70, 32, "bf16", w=20, softcap=cap(), values="beyond fp16", kind="values beyond fp16"),
        case(1, 1, 1, 5, long, 32, w=between(rng, 3000, 4000), softcap=cap(), values="flat", kind="a long row of keys"),
        case(1, 1, 1, between(rng, 600, 700), 700, 32, w=between(rng, 70, 200), softcap=cap(), kind="many tiles of rows"),
    ]  # fmt: skip


GRADIENTS = ("q", "k", "v", "o", "do", "lse", "dq", "dk", "dv")


def hidden_backward(rng: np.random.Generator) -> list[Case]:
    mixed = {
        "k": "transposed",
        "v": "padded",
        "do": "padded",
        "o": "transposed",
        "dk": "padded",
        "dv": "transposed",
    }
    return [
        case(1, 2, 2, odd(rng, 21, 59), 141, 64, kind="more keys than queries"),
        case(2, 1, 1, 96, 96, 32, "bf16", kind="bf16 in a batch"),
        case(1, 1, 1, 193, 193, 64, scale=log_uniform(rng, 0.02, 0.25), kind="another scale"),
        case(1, 2, 2, 33, 40, 32, "bf16", values="beyond fp16", kind="values beyond fp16"),
        case(2, 2, 2, between(rng, 50, 80), 90, 32, layout=spread(rng, *GRADIENTS), kind="no stride of 1"),
        case(1, 2, 2, 60, 70, 32, layout=mixed, kind="each tensor in a layout of its own"),
        case(1, 1, 1, 257, 257, 32, kind="one more than whole tiles"),
        case(1, 1, 1, between(rng, 520, 640), 650, 32, values="flat", kind="many tiles of rows"),
        case(1, 1, 1, 9, between(rng, 4200, 4700), 32, kind="a long row of keys"),
        case(1, 1, 1, between(rng, 1050, 1100), 1100, 32, "bf16", values="flat", kind="more than 1024 rows"),
        case(1, 2, 2, 30, 50, 64, values="far below zero", kind="scores far below zero"),
        case(1, 1, 1, 60, 60, 32, values="extreme scores", kind="extreme scores"),
        case(between(rng, 5, 6), 18, 18, 5, 7, 32, kind="more heads than any size that is named"),
    ]
