"""What attention may spend on its metered case, from the topic's cost model for the sizes that were drawn."""

import math

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import between
from grader.questions.side_by_side import side_by_side
from grader.questions.work import work as every_kind
from grader.topics.flash_attention.cases import case, decode_case
from kernels.flash_attention import cost

END = "the end of the loop over keys: a row tile needs no key beyond its own last row"
START = "the start of the loop over keys: nothing before the first row's window is needed"
OUTPUT = "what is stored besides the output: scores and weights live and die in registers"
ROWS = "the rows a program owns: each of them reuses every key that the program loads"
DOT = "do both products go through tl.dot, in a dtype and a tile that tensor cores take?"
WIDENED = "operands go into tl.dot in the dtype of K and V, the weights too: in fp32 they take twice the room and half the rate"
GROUP = "query heads of one group share their keys: load a key tile once and let all of them use it"
SPLIT = "split the keys: with one program a head, most multiprocessors sleep"
LARGEST, SMALLEST_ROWS = cost.Tiling(128, 256), cost.Tiling(16, 256)
HIGHEST = 256  # rows or keys a program
WORK = 26  # operations a pair; a softmax takes some 9, a cap 5, and tiles of 32 keys 4 to rescale their rows


def _shape(c: Case, left=None) -> cost.Shape:
    s = c.sizes
    return cost.Shape(s["M"], s["N"], s["D"], s["H"], s["G"], s["B"], 2, left=left, right=0)


def shape_of(c: Case) -> cost.Shape:
    return _shape(c, c.sizes.get("W"))


def useful(c: Case) -> float:
    return cost.flops(shape_of(c))


def metered_forward(rng: np.random.Generator) -> Case:
    """Near 1100 rows: whole tiles of 128 x 256 add a third to the causal half, all keys double it."""
    n = between(rng, 1060, 1140)
    return case(1, 2, 1, n, n, 64, sm_count=between(rng, 14, 20), kind="the metered size")


def metered_window(rng: np.random.Generator) -> Case:
    """Near 1000 rows at the end of 2000 keys with a window near 100: whole tiles of 128 x 256 compute four times that,
    all keys before them fifteen times, and those from N - M keys too early on ten times."""
    m, before = between(rng, 980, 1040), between(rng, 980, 1040)
    return case(
        1,
        2,
        1,
        m,
        m + before,
        64,
        w=between(rng, 90, 120),
        softcap=30,
        sm_count=between(rng, 14, 20),
        kind="the metered size",
    )


def metered_decode(rng: np.random.Generator) -> Case:
    """Near 5000 keys: tiles of 256 still make more splits than there are multiprocessors."""
    return decode_case(
        1, 8, 2, between(rng, 4800, 5200), 64, sm_count=between(rng, 28, 34), kind="the metered size"
    )


def metered_backward(rng: np.random.Generator) -> Case:
    """Near 750 rows: whole tiles of 128 x 256 add two fifths to the causal half, a pass over all pairs three."""
    n = between(rng, 740, 768)
    return case(1, 2, 2, n, n, 64, sm_count=between(rng, 14, 20), kind="the metered size")


def _dots(c: Case, most: float, model: str, look: str) -> list[Budget]:
    """Both products of the pairs that are seen, of few others, and little work beside them."""
    heads, work = c.sizes["B"] * c.sizes["H"], most / (4 * c.sizes["D"])
    return [
        Budget(
            what="FLOP in tl.dot, at least",
            count="dot",
            least=useful(c),
            look=DOT,
            model=f"4 x {c.sizes['D']} for each of {cost.pairs(shape_of(c)):,} pairs that are seen, in {c.sizes['H']} heads",
        ),
        Budget(what="FLOP in tl.dot", count="dot", most=most, look=look, model=model),
        Budget(
            what="operations beside tl.dot",
            count="operations",
            most=WORK * work,
            look=DOT,
            model=f"{WORK} for each of {work / heads:,.0f} pairs that may be computed, in {heads} heads",
        ),
        every_kind(
            2 * WORK + c.sizes["D"] / 4,
            work,
            f"{work / heads:,.0f} pairs that may be computed, in {heads} heads",
        ),
    ]


def _narrow() -> Budget:
    return Budget(
        what="FLOP in tl.dot on operands widened to fp32",
        count="wide dot",
        most=0,
        look=WIDENED,
        model="every operand of at most 16 bits",
    )


def _kept(c: Case) -> list[Budget]:
    """The output, and next to no scratch: two numbers a row, out and in."""
    s = c.sizes
    rows = s["B"] * s["H"] * s["M"]
    out = 2 * rows * s["D"]
    return [
        Budget(
            what="write of the output",
            tensor="o",
            access="store",
            most=out,
            least=out,
            look=OUTPUT,
            model=f"{rows:,} rows of {s['D']} numbers of 2 bytes, once",
        ),
        Budget(
            what="scratch, loaded and stored",
            tensor="scratch",
            access="any",
            most=16 * rows,
            look=OUTPUT,
            model=f"two numbers of 4 bytes for each of {rows:,} rows, out and in",
        ),
    ]


def _keys(c: Case, look: str) -> list[Budget]:
    most = cost.tiled_traffic(shape_of(c), SMALLEST_ROWS).k
    tiles, _ = cost.tile_counts(shape_of(c), SMALLEST_ROWS)
    model = f"{c.sizes['H']} heads, {tiles} tiles of 16 rows, each with the tiles of 256 keys that it sees"
    return [Budget(what=f"read of {x.upper()}", tensor=x, most=most, look=look, model=model) for x in "kv"]


def forward(c: Case) -> list[Budget]:
    """Keys as tiles of 16 rows would load them, products of the causal half alone, no store but the output's."""
    most = 1.6 * useful(c)
    model = (
        f"the causal half of {c.sizes['M']} x {c.sizes['N']} pairs + 60% for the tiles that the diagonal cuts"
    )
    return [*_keys(c, END), *_dots(c, most, model, END), *_kept(c)]


def forward_reuse(c: Case) -> list[Budget]:
    """Where there is no clock: loads of row tiles of 64."""
    tiling = cost.Tiling(64, 256)
    most = cost.tiled_traffic(shape_of(c), tiling).loads + 16 * c.sizes["B"] * c.sizes["H"] * c.sizes["M"]
    model = f"{c.sizes['H']} heads, {cost.tile_counts(shape_of(c), tiling)[0]} tiles of 64 rows, each with its keys in tiles of 256"
    return [
        Budget(what="all loads", most=most, look=ROWS, model=model),
        _narrow(),
        _side_by_side(c, "o", "M", "rows"),
    ]


def window(c: Case) -> list[Budget]:
    most = 1.3 * cost.tiled_flops(shape_of(c), LARGEST)
    model = f"the windows of {c.sizes['W'] + 1} keys in tiles of 128 x 256, + 30%"
    return [
        *_keys(c, START),
        *_dots(c, most, model, START),
        _narrow(),
        *_kept(c),
        _side_by_side(c, "o", "M", "rows"),
    ]


def decode_of(c: Case) -> cost.Decode:
    s = c.sizes
    return cost.Decode(s["B"], s["N"], s["H"], s["G"], s["D"])


def decode_useful(c: Case) -> float:
    return cost.decode_flops(decode_of(c))


def decode(c: Case) -> list[Budget]:
    """The cache once, by at least as many programs as there are multiprocessors."""
    s = c.sizes
    cache = 2 * s["B"] * s["G"] * s["N"] * s["D"]
    least = min(c.sm_count, s["B"] * s["G"] * math.ceil(s["N"] / HIGHEST))
    model = f"{s['G']} key heads of {s['N']} keys of {2 * s['D']} bytes, once, + 2%"
    return [
        Budget(what="read of K", tensor="k", most=1.02 * cache, least=cache, look=GROUP, model=model),
        Budget(what="read of V", tensor="v", most=1.02 * cache, least=cache, look=GROUP, model=model),
        Budget(
            what="programs that read the cache",
            tensor="k",
            count="programs",
            least=least,
            look=SPLIT,
            model=f"one at least for each of {c.sm_count} multiprocessors, or for every {HIGHEST} keys: {least}",
        ),
        Budget(
            what="write of the output",
            tensor="o",
            access="store",
            most=2 * s["B"] * s["H"] * s["D"],
            least=2 * s["B"] * s["H"] * s["D"],
            look=OUTPUT,
            model=f"{s['H']} heads of {s['D']} numbers of 2 bytes, once",
        ),
    ]


def decode_moved(c: Case) -> list[Budget]:
    """Where there is no clock: everything that moves, the splits' results out and in among it."""
    most = 1.3 * cost.decode_bytes(decode_of(c))
    look = "how much the splits leave in scratch: one maximum, one sum and one output for each query head"
    model = f"the cache, queries and outputs once, {cost.decode_bytes(decode_of(c)):,.0f} bytes, + 30% for what the splits leave"
    moved = Budget(what="everything loaded and stored", access="any", most=most, look=look, model=model)
    s = c.sizes
    numbers = s["B"] * s["G"] * s["N"] * s["D"]
    return [moved, _narrow(), every_kind(CACHED, numbers, f"{numbers:,} numbers of K")]


CACHED = 24  # operations of every kind for a number of K, with its number of V
TILE_32, BEST, USUAL = (
    cost.Tiling(32, 32),
    5,
    7,
)  # products: with dq added up by atomics; and in a pass of its own


def backward_useful(c: Case) -> float:
    return cost.backward_flops(shape_of(c))


def backward(c: Case) -> list[Budget]:
    """Seven products over the causal half, and the loads of tiles of 32 x 32."""
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
            most=1.45 * USUAL * product,
            look=again,
            model=f"{USUAL} products over the causal half, + 45% for the tiles that the diagonal cuts",
        ),
        Budget(
            what="operations beside tl.dot",
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


def backward_reuse(c: Case) -> list[Budget]:
    """Where there is no clock: the loads of tiles of 64 x 64."""
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
        _narrow(),
        _side_by_side(c, "dk", "N", "keys"),
        _side_by_side(c, "dq", "M", "rows"),
    ]


def _side_by_side(c: Case, tensor: str, size: str, what: str) -> Budget:
    heads, tiles = c.sizes["B"] * c.sizes["H"], math.ceil(c.sizes[size] / HIGHEST)
    least = min(heads * tiles, c.sm_count)
    return side_by_side(
        f"store {tensor}",
        tensor,
        "store",
        least,
        f"one for every {HIGHEST} {what} of {heads} heads, {least} of them at least",
    )
