"""Draw the inputs of *backward*, and set its budgets."""

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Budget, Case, Tensor
from grader.questions.draws import ROUNDING, SMALLEST, between, log_uniform, odd, spread
from grader.questions.timed import timed
from grader.questions.work import work as every_kind
from grader.topics.flash_attention.shared import (
    ANY_SCALE,
    BEYOND_FP16,
    DOT,
    OUTPUT,
    ROWS,
    SUMS,
    WEIGHT_ROUNDING,
    WORK,
    case,
    causal,
    draw,
    few_pairs,
    heads_side_by_side,
    in_tiles,
    large_scale,
    light,
    narrow,
    operands,
    shape_of,
    small_scale,
)
from kernels.flash_attention import cost, reference

TINY_WEIGHTS = "keys of tiny weight that matter"
FAR_BELOW = 13.0, 15.5  # of their scores below the others, and so fp16 holds their weights with few bits
VALUE = 40.0  # of theirs and of do
CANCELLING = "sums beyond fp16 that cancel"
FEW, SIZE = 12_000.0, 8192.0  # of do, in heads where two keys have all weight, and where all have the same


def around(each: dict, c: Case, rng: np.random.Generator) -> dict:
    """Draw tensors of these rows around these centers, with this deviation relative to them."""
    b, h, d = (c.sizes[x] for x in "BHD")
    return {
        name: draw(rng, (b, h, rows, d), c, spread * np.abs(center), center)
        for name, (rows, center, spread) in each.items()
    }


def cancelling(c: Case, rng: np.random.Generator) -> dict:
    """Draw heads whose gradients are small, though parts of their sums are beyond fp16. In one half of the heads, two keys
    that all rows see have all the weight, and the gradient of the output turns its sign in the middle: dk and dv cancel
    over the rows. In the other half, all keys weigh the same and V turns its sign: dq cancels over the keys."""
    h, m, n, d = (c.sizes[x] for x in "HMND")
    two = (np.arange(h) % 2 == 0)[:, None, None]
    row, key = np.arange(m)[:, None], np.arange(n)[:, None]
    first = key < min(2, n - m + 1)
    peak = 32 / (
        c.scalars["scale"] * d
    )  # of a score, so far above those of other keys that they weigh 0 in fp16
    each = {
        "q": (m, 1.0, 0.02),
        "k": (n, np.where(two, np.where(first, peak, -peak / 2), 1.0), 0.02),
        "v": (
            n,
            np.where(
                two, np.where(first, np.where(key, -1, 1), 0) * 2 / d, np.where(key < n // 2, 8.0, -8.0)
            ),
            0.01,
        ),
        "do": (m, np.where(two, np.where(row < m // 2, FEW, -FEW), np.where(row % 2, SIZE, -SIZE)), 0.01),
    }
    return around(each, c, rng)


def tiny_weights(c: Case, rng: np.random.Generator) -> dict:
    """Draw keys of tiny weight that all rows see, whose gradients are large because their values are."""
    m, n, d = (c.sizes[x] for x in "MND")
    tiny = light(n)[::-1, None]
    away = rng.uniform(*FAR_BELOW) / (2 * c.scalars["scale"] * d)  # q is near 1
    each = {
        "q": (m, 1.0, 0.02),
        "k": (n, np.where(tiny, -away, away), 0.02),
        "v": (n, np.where(tiny, VALUE, 0.02), 0.1),
        "do": (m, VALUE, 0.1),
    }
    return around(each, c, rng)


def backward_operands(c: Case, rng: np.random.Generator) -> dict:
    drawn = {CANCELLING: cancelling, TINY_WEIGHTS: tiny_weights}.get(c.values, operands)(c, rng)
    inputs = {x: drawn[x] for x in "qkv"}
    q, k, v = (inputs[x] for x in "qkv")
    o, lse = reference.attention(q, k, v, causal=True, scale=c.scalars["scale"])
    large = BEYOND_FP16 if c.values == "beyond fp16" else 1.0
    return inputs | {
        "do": drawn.get("do", draw(rng, q.shape, c, large, 3.0 if c.values == "flat" else 0.0)),
        "o": o.astype(DTYPES[c.dtype]),
        "lse": lse.astype(np.float32),
    }


GRADIENTS = ("q", "k", "v", "o", "do", "lse", "dq", "dk", "dv")


def sized(**sizes: int) -> Case:
    """Return a case of these sizes, with a key head per query head, and at least one key per query."""
    b, m, n, d = (sizes[name] for name in "BMND")
    heads = max(sizes["H"], sizes["G"])
    return case(b, heads, heads, m, max(m, n), d)


def crossed(c: Case) -> Case | None:
    """Leave out gradients that cancel, which are within fp16 at their own sizes alone."""
    return None if c.values == CANCELLING else few_pairs(1 << 20)(c)


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
        case(1, 2, 2, 60, 70, 32, values=ANY_SCALE, scale=small_scale(rng), kind="a small scale"),
        case(1, 1, 1, 60, 70, 32, values=ANY_SCALE, scale=large_scale(rng), kind="a large scale"),
        case(1, 2, 2, 260, 268, 32, values=CANCELLING, kind=CANCELLING),
        case(
            between(rng, 11, 13),
            100,
            100,
            2,
            3,
            32,
            layout=spread(rng, *GRADIENTS),
            kind="a thousand heads, no stride of 1",
        ),
        case(1, 2, 2, 60, between(rng, 120, 160), 64, values=TINY_WEIGHTS, kind=TINY_WEIGHTS),
    ]


def gradients(inputs: dict, c: Case) -> dict:
    found = reference.attention_backward(
        *(inputs[x] for x in ("do", "q", "k", "v")), causal=True, scale=c.scalars["scale"]
    )
    return dict(zip(("dq", "dk", "dv"), found, strict=True))


def weights(inputs: dict, c: Case, seen, normal=True, scale=None) -> np.ndarray:
    """Compute the probabilities that a backward pass gets again from the saved log-sum-exp."""
    s = reference.scores(*(inputs[x].astype(np.float64) for x in "qk"), scale or c.scalars["scale"])
    with np.errstate(over="ignore"):
        return np.where(seen, np.exp(s - normal * inputs["lse"].astype(np.float64)[..., None]), 0)


def gradient_within(inputs: dict, c: Case, want: dict) -> dict:
    """Allow the rounding of weights and dS before their products, delta from a rounded output, and sums in fp32."""
    unit, scale, seen = WEIGHT_ROUNDING[c.dtype], abs(c.scalars["scale"]), causal(c)
    off = {name: np.zeros(w.shape) for name, w in want.items()}
    for at in np.ndindex(*inputs["q"].shape[:2]):  # one head at a time, because pairs take much memory
        one = {name: array[at] for name, array in inputs.items()}
        q, k, v, do, o = (np.abs(one[x].astype(np.float64)) for x in ("q", "k", "v", "do", "o"))
        p, delta = weights(one, c, seen), (o * do).sum(-1, keepdims=True)
        share = unit + SUMS + 2.0**-16 * scale * (q @ k.T)  # of a weight, with its score's own error
        ds = scale * p * (share * (do @ v.T + delta) + unit * delta)
        small = SMALLEST[c.dtype] / 2  # a step of weights and of dS that fp16 holds with few bits
        ds, dp = ds + small * seen, p * share + small * seen
        off["dq"][at], off["dk"][at], off["dv"][at] = ds @ k, ds.T @ q, dp.T @ do
    return {name: ROUNDING[c.dtype] * (np.abs(w) + off[name]) + off[name] + 1e-5 for name, w in want.items()}


def metered_backward(rng: np.random.Generator) -> Case:
    """Near 750 rows: the largest tiles add two fifths to the causal half, a pass over all pairs three."""
    n = between(rng, 740, 768)
    return case(1, 2, 2, n, n, 64, sm_count=between(rng, 14, 20), kind="the metered size")


TILE_32 = cost.Tiling(32, 32)
BEST, USUAL = 5, 7  # products with dq added up by atomics, and with dq in a pass of its own


def backward_useful(c: Case) -> float:
    return cost.backward_flops(shape_of(c))


def backward(c: Case) -> list[Budget]:
    """Seven products over the tiles up to the diagonal, and the loads of tiles of 32 x 32."""
    s, product = c.sizes, backward_useful(c) / BEST
    rows, pairs = s["B"] * s["H"] * s["M"], cost.pairs(shape_of(c))
    out = 2 * s["D"] * s["B"] * s["H"] * (s["M"] + 2 * s["N"])
    sums = 4 * s["D"] * rows * -(-s["N"] // 32)
    again = "which tiles each pass walks over: rows that see a tile of keys, keys that a tile of rows sees"
    return [
        Budget(
            what="FLOP in tl.dot, at least",
            count="dot",
            least=BEST * product,
            look=DOT,
            model=f"{BEST} products over {pairs:,} pairs that are seen, in {s['H']} heads",
        ),
        Budget(
            what="FLOP in tl.dot",
            count="dot",
            most=USUAL * 2 * s["D"] * s["B"] * s["H"] * in_tiles(c),
            exact=True,
            look=again,
            model=f"{USUAL} products over all tiles of 128 x 256 or 256 x 128 that hold a seen pair, + 5%",
        ),
        Budget(
            what="operations outside tl.dot",
            count="operations",
            most=3 * WORK * product / (2 * s["D"]),
            look=DOT,
            model=f"{3 * WORK} for each of {pairs:,} pairs that are seen, in {s['H']} heads",
        ),
        every_kind(
            5 * WORK + 2 * s["D"], product / (2 * s["D"]), f"{pairs:,} pairs that are seen, in {s['H']} heads"
        ),
        Budget(
            what="all loads",
            most=1.1 * cost.backward_loads(shape_of(c), TILE_32) + 16 * rows,
            look=again,
            model="two passes over tiles of 32 x 32, + 10%",
        ),
        Budget(
            what="scratch, added to and stored",
            tensor="scratch",
            access="any",
            most=2 * sums,
            look=OUTPUT,
            model=f"dq in fp32, added to by each of {-(-s['N'] // 32)} tiles of 32 keys, and read again",
        ),
        Budget(
            what="all stores",
            access="store",
            most=out + 3 * 4 * s["D"] * rows,
            least=out,
            look=OUTPUT,
            model="dq, dk and dv once, and in scratch three times dq in fp32",
        ),
    ]


CYCLES = 100  # of a lane, a pair: twice through the exponential, in tiles that the diagonal cuts


def backward_reuse(c: Case) -> list[Budget]:
    """Limit, where no clock is, the loads to those of tiles of 64 x 64."""
    most = (
        1.1 * cost.backward_loads(shape_of(c), cost.Tiling(64, 64))
        + 8 * c.sizes["D"] * c.sizes["B"] * c.sizes["H"] * c.sizes["M"]
    )
    return [
        Budget(
            what="all loads",
            most=most,
            look=ROWS,
            model="two passes over tiles of 64 x 64, + 10%, and dq in fp32 once more",
        ),
        narrow(),
        timed(CYCLES, c.sizes["B"] * c.sizes["H"] * cost.pairs(shape_of(c)), "pair that is seen"),
        heads_side_by_side(c, "dk", "N", "keys"),
        heads_side_by_side(c, "dq", "M", "rows"),
        heads_side_by_side(c, "o", "M", "rows", "load"),
    ]


TRAINED = case(4, 16, 16, 2048, 2048, 64, "bf16", sm_count=132)


def backward_bound(c: Case) -> tuple[float, float]:
    return backward_useful(c), 2 * cost.tiled_state_bytes(shape_of(c))


def rows(name: str, role: str = "in") -> Tensor:
    return Tensor(name, "bhmd", ("B", "H", "M", "D"), role=role)


def keys(name: str, role: str = "in") -> Tensor:
    return Tensor(name, "bhnd", ("B", "H", "N", "D"), role=role)
