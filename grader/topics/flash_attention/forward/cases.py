"""Draw the inputs of *forward*, and set its budgets."""

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import between, odd, spread
from grader.questions.timed import timed
from grader.topics.flash_attention.shared import (
    ABOVE,
    ANY_SCALE,
    BRINK,
    CREEPING,
    DEEPEST,
    DIM,
    DIM_EARLY,
    FAINT,
    LARGE_SUMS,
    LIGHT,
    LOUD_SCALE,
    LOWEST,
    MIXED,
    NAN,
    RISING,
    ROWS,
    STEEPLY,
    TIED,
    ZEROS,
    case,
    dots,
    heads_side_by_side,
    kept,
    keys,
    large_scale,
    loaded_for,
    narrow,
    of_tiles,
    scale,
    shape_of,
    small_scale,
)
from kernels.flash_attention import cost, reference


def sized(**sizes: int) -> Case:
    """Return a case of these sizes, with heads in whole groups, and at least one key per query."""
    b, h, g, m, n, d = (sizes[name] for name in "BHGMND")
    return case(b, max(g, h // g * g), g, m, max(m, n), d)


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
        case(1, 2, 1, odd(rng, 21, 39), 40, 64, "bf16", values=DEEPEST, kind=DEEPEST),
        case(1, 2, 1, 128, between(rng, 450, 500), 32, values=NAN, kind=NAN),
        case(1, 2, 1, 9, between(rng, 300, 400), 32, values=ZEROS, kind=ZEROS),
        case(1, 2, 1, 90, 90, 32, values=ANY_SCALE, scale=scale(rng), kind="another scale"),
        case(2, 2, 2, between(rng, 40, 70), 90, 64, layout=spread(rng, *"qkvo"), kind="no stride of 1"),
        # not transposed keys: of 32 columns, Triton 3.6 makes code for them that reads beyond shared memory on Hopper
        case(2, 4, 2, 70, 90, 32, layout={"k": "spread 7", "v": "padded", "o": "transposed"}, kind="keys and values laid out apart"),
        case(1, 2, 1, 70, 80, 32, "bf16", layout={"q": "transposed", "v": "transposed", "k": "padded"}, kind="values transposed, keys padded"),
        case(1, 2, 1, 33, 70, 32, "bf16", values="beyond fp16", kind="values beyond fp16"),
        case(1, 1, 1, between(rng, 100, 190), 200, 64, values=RISING, kind=RISING),
        case(1, 1, 1, between(rng, 200, 290), 300, 64, "bf16", values=STEEPLY, kind=STEEPLY),
        case(1, 2, 1, between(rng, 150, 250), between(rng, 260, 400), 32, values=STEEPLY, kind=STEEPLY),
        case(1, 1, 1, 8, long, 64, values="flat", kind="a long row of keys"),
        case(1, 1, 1, 4, long - 7, 32, "bf16", values="flat", kind="a long row of keys in bf16"),
        case(between(rng, 5, 7), 36, 9, 3, 5, 32, kind="more heads than any size that is named"),
        case(1, 2, 1, 40, between(rng, 60, 90), 32, values=ANY_SCALE, scale=small_scale(rng), kind="a small scale"),
        case(1, 1, 1, 40, between(rng, 60, 90), 64, values=ANY_SCALE, scale=large_scale(rng), kind="a large scale"),
        case(1, 2, 1, 20, between(rng, 150, 300), 32, values=LARGE_SUMS, kind=LARGE_SUMS),
        case(1, 2, 1, 9, between(rng, 300, 400), 32, values=LIGHT, kind=LIGHT),
        case(1, 2, 1, 3, between(rng, 4000, 8000), 32, values=ABOVE, kind=ABOVE),
        case(1, 2, 1, 3, between(rng, 6000, 8192), 32, "bf16", values=FAINT, kind=FAINT),
        case(1, 2, 1, between(rng, 300, 400), between(rng, 1500, 1700), 64, values=MIXED, kind=MIXED),
        case(1, 2, 1, 3, between(rng, 1000, 2000), 64, values=TIED, kind=TIED),
        case(1, 2, 1, 9, between(rng, 500, 700), 64, values=BRINK, kind=BRINK),
        # rows that fill tiles, since the weights of rows that don't exist aren't faint
        case(1, 1, 1, 256, between(rng, 4000, 6000), 32, "bf16", values=FAINT, kind=f"{FAINT}, for whole tiles of rows"),
        case(1, 1, 1, 128, between(rng, 300, 500), 32, "bf16", values=DIM, kind=DIM),
        case(1, 1, 1, 128, between(rng, 300, 500), 32, "bf16", values=DIM_EARLY, kind=DIM_EARLY),
        case(1, 2, 1, 60, between(rng, 60, 150), 64, values=LOUD_SCALE, scale=small_scale(rng), kind=f"{LOUD_SCALE}, a small one"),
        # one query of each sequence, on a GPU that has fewer multiprocessors than there are key heads
        case(between(rng, 12, 16), 128, 1, 1, between(rng, 20, 60), 32, kind="all heads on one key head", sm_count=between(rng, 6, 12)),
        case(1, 2, 1, between(rng, 3, 9), between(rng, 1500, 2500), 64, values=CREEPING, kind=CREEPING),
    ]  # fmt: skip


def attended(inputs: dict, c: Case) -> dict:
    q, k, v = (inputs[x] for x in "qkv")
    return {"o": reference.attention(q, k, v, causal=True, scale=c.scalars["scale"])[0]}


END = "the end of the loop over keys: a row tile needs no key beyond its own last row"


def metered_forward(rng: np.random.Generator) -> Case:
    """Draw near 1100 rows, where the largest tiles add two fifths to the causal half, and all keys double that half."""
    n = between(rng, 1060, 1140)
    return case(1, 2, 1, n, n, 64, sm_count=between(rng, 14, 20), kind="the metered size")


def forward(c: Case) -> list[Budget]:
    """Keys as tiles of 16 rows would load them, products of the tiles up to the diagonal, no store but the output's."""
    return [*keys(c, END), *dots(c, END), *kept(c)]


CYCLES = 60  # of a lane, a pair: 16 for each that is computed, 22 where a row is normalised at every step


def all_loaded_for(s: cost.Shape, tiling: cost.Tiling, row: int) -> float:
    """Return the rows of Q, K and V that are loaded for a row."""
    return 1 + 2 * loaded_for(s, tiling, row)


def forward_reuse(c: Case) -> list[Budget]:
    """Limit, where no clock is, the loads to those of row tiles of 64."""
    tiling = cost.Tiling(64, 256)
    most = cost.tiled_traffic(shape_of(c), tiling).loads + 16 * c.sizes["B"] * c.sizes["H"] * c.sizes["M"]
    model = f"{c.sizes['H']} heads, {cost.tile_counts(shape_of(c), tiling)[0]} tiles of 64 rows, each with its keys in tiles of 256"
    return [
        Budget(
            what="all loads", most=most, look=ROWS, model=model, share=of_tiles(c, (tiling,), all_loaded_for)
        ),
        narrow(),
        timed(CYCLES, c.sizes["B"] * c.sizes["H"] * cost.pairs(shape_of(c)), "pair that is seen"),
        heads_side_by_side(c, "o", "M", "rows"),
    ]


LARGE = case(4, 32, 8, 4096, 4096, 128, "bf16", sm_count=132)


def bound(c: Case) -> tuple[float, float]:
    return cost.flops(shape_of(c)), cost.tiled_state_bytes(shape_of(c))
