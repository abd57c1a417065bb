"""Wrong answers to the first kernels: what is changed in the solution, and, where it has a name, what then comes out.

One row feeds both: the report, which says the sentence where the output is just this, and the suite that makes it happen.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grader.questions import Case, Mistake
from grader.questions.draws import rounded
from grader.questions.families import dense, family, one_stride, same_strides, within_limit
from grader.questions.tables import because
from tilescope.machine.values import poison

PIECES = (16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Wrong:
    """`edits` of the solution lose `part`; `gives` (inputs in float64, case) is all that comes out, in any of its forms."""

    edits: list[tuple[str, str]]
    sentence: str = ""
    gives: tuple[Callable, ...] = ()
    part: str = "values"


def gives(sentence: str, *outputs: Callable, by: list[tuple[str, str]]) -> Wrong:
    return Wrong(by, sentence, outputs)


def changed(*edits: tuple[str, str], part: str = "values") -> Wrong:
    return Wrong(list(edits), part=part)


def block_of(n: int) -> int:
    """The power of two that holds n lanes."""
    return 1 << max(0, n - 1).bit_length()


def at(values: np.ndarray, place, number: float) -> np.ndarray:
    values = np.array(values)
    values[place] = number
    return values


# Differences.


def restarted(piece: int) -> Callable:
    """The first number of every piece taken for the first of all."""
    return lambda t, c: np.where(np.arange(c.sizes["N"]) % piece == 0, t["x"], np.diff(t["x"], prepend=0.0))


# A tile of two vectors.


def without_a_number(lanes: int) -> np.ndarray:
    """What the machine puts into lanes that no load fills."""
    return poison((lanes,), np.dtype(np.float32)).astype(np.float64)


def axes_exchanged(side: int, unset: Callable) -> Callable:
    """a along the rows and b down the columns of square tiles; `unset(n)` is what n lanes hold before they are loaded."""

    def wrong(t: dict, c: Case) -> np.ndarray:
        a, b = (unset(-(-len(t[name]) // side) * side) for name in "ab")
        a[: c.sizes["M"]], b[: c.sizes["N"]] = t["a"], t["b"]
        a, b = a.reshape(-1, side), b.reshape(-1, side)
        tiles = a[:, None, None, :] - b[None, :, :, None]
        return tiles.swapaxes(1, 2).reshape(a.size, b.size)[: c.sizes["M"], : c.sizes["N"]]

    return wrong


# Sums of rows.


def ragged(values, case: Case, block: Callable, number: float) -> np.ndarray:
    """`number` where a row does not fill its block."""
    return np.full_like(values, number) if case.sizes["N"] < block(case.sizes["N"]) else values


def with_block(make: Callable) -> tuple[Callable, ...]:
    """The mistake with the smallest block that holds a row, and with 1024 lanes whatever the row."""
    return tuple(make(block) for block in (lambda n: 1024, block_of))


LOW = (-1.0, -1000.0, -1e4, -1e6, -1e9, -1e30, -1e38)


def low(number: float) -> Callable:
    """The maximum with `number` in 1024 lanes that may be masked."""

    def wrong(t: dict, c: Case) -> tuple:
        return t["x"].sum(1), np.maximum(t["x"].max(1), number if c.sizes["N"] < 1024 else -np.inf)

    return wrong


def of_pieces(make: Callable, pieces: tuple = (64, 128, 256, 32, 512, 1024)) -> tuple[Callable, ...]:
    """`make(row, piece, N)` gives the total that is divided by N; one form for each length of a piece."""
    return tuple(
        lambda t, c, piece=piece: make(t["x"], piece, c.sizes["N"]) / c.sizes["N"] for piece in pieces
    )


def first_again(x: np.ndarray, piece: int, n: int) -> np.ndarray:
    """Every turn adds the first piece, as far as that turn's mask lets it."""
    return sum(x[:, : min(piece, n - start)].sum(1) for start in range(0, n, piece))


def first_again_whole(x: np.ndarray, piece: int, n: int) -> np.ndarray:
    """Every turn adds the first piece, under the same mask."""
    return -(-n // piece) * x[:, :piece].sum(1)


def mean_of_means(x: np.ndarray, piece: int, n: int) -> np.ndarray:
    """Each piece's own mean, and the mean of these, as a total that is divided by N."""
    starts = np.arange(0, n, piece)
    return n * (np.add.reduceat(x, starts, axis=1) / np.minimum(piece, n - starts)).mean(1)


def unset(piece: int) -> Callable:
    return lambda t, c: t["x"].mean(1) * (np.nan if c.sizes["N"] % piece else 1)


# Smoothing.


def carried(step: Callable, first: Callable = lambda x, a: 0 * x) -> Callable:
    """h after each step: `step(h, x, alpha)`, from `first(x[0], alpha)` on."""

    def wrong(t: dict, c: Case) -> np.ndarray:
        alpha, y = c.scalars["alpha"], np.empty_like(t["x"])
        h = first(t["x"][0], alpha)
        for i, x in enumerate(t["x"]):
            y[i] = h = step(h, x, alpha)
        return y

    return wrong


def right_step(h, x, alpha):
    return (1 - alpha) * h + alpha * x


def a_step_late(t: dict, c: Case) -> np.ndarray:
    y = carried(right_step)(t, c)
    return np.vstack([0 * y[:1], y[:-1]])


def backwards(t: dict, c: Case) -> np.ndarray:
    return carried(right_step)({"x": t["x"][::-1]}, c)[::-1]


# Products.


def by_element(t: dict, c: Case) -> np.ndarray:
    a, b = (np.pad(v, [(0, 32 - n) for n in v.shape]) for v in (t["a"], t["b"]))
    return (a * b)[: c.sizes["M"], : c.sizes["N"]]


def unset_k(side: Callable) -> Callable:
    """NaN everywhere, where K does not fill its side."""

    def wrong(t: dict, c: Case) -> np.ndarray:
        return t["a"] @ t["b"] * (np.nan if c.sizes["K"] < side(c.sizes["K"]) else 1)

    return wrong


LOAD_A = "mask=(down < M) & (across < K), other=0.0"
LOAD_B = "mask=(down < K) & (across < N), other=0.0"
LAST_ROW = "row = tl.program_id(0)"
GRID_OF_TILES = "(triton.cdiv(p.M, 16), triton.cdiv(p.N, 32))"
GRID_TURNED = "(triton.cdiv(p.M, 32), triton.cdiv(p.N, 16))"
SIZED = '"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64'
GIVEN = '"num_warps": 8, "num_stages": 3'

TABLE = {
    "doubled": {
        "not doubled": gives("this is x itself: each number is to be doubled", lambda t, c: t["x"], by=[("2 * x", "x")]),
        "squared": gives("these are the squares of x: 2 x is asked for", lambda t, c: t["x"] ** 2, by=[("2 * x", "x * x")]),
        "every program the first block": changed(("tl.program_id(0) * BLOCK + ", "")),
        "offsets one apart": changed(("tl.program_id(0) * BLOCK", "tl.program_id(0)")),
        "one program": changed(("(p.N // 64,)", "(1,)")),
        "half of each block": changed(('{"BLOCK": 64}', '{"BLOCK": 32}')),
        "shifted by one": changed(("tl.load(x_ptr + offs)", "tl.load(x_ptr + offs + 1)")),
        "stored into x": changed(("tl.store(y_ptr", "tl.store(x_ptr")),
        "x loaded twice": changed(("    tl.store", "    x = (x + tl.load(x_ptr + offs, volatile=True)) / 2\n    tl.store"), part="traffic"),
        "y stored twice": changed(("    tl.store", "    tl.store(y_ptr + offs, x)\n    tl.store"), part="traffic"),
    },
    "differences": {
        "sign": gives("the sign is turned round: x[i] - x[i - 1] is asked for", lambda t, c: -np.diff(t["x"], prepend=0.0), by=[("x - before", "before - x")]),
        "sums": gives("this adds the number before: it is to be subtracted", lambda t, c: t["x"] + np.append(0.0, t["x"][:-1]), by=[("x - before", "x + before")]),
        "0 at first": gives("y[0] is x[0]: the number before the first counts as 0", lambda t, c: np.diff(t["x"], prepend=t["x"][:1]), by=[("x - before", "tl.where(offs == 0, 0.0, x - before)")]),
        "forward": gives("these are differences to the next number; the one before is asked for", lambda t, c: np.diff(t["x"], append=0.0), by=[("x_ptr + offs - 1, mask=(offs > 0) & mask", "x_ptr + offs + 1, mask=offs + 1 < N"), ("x - before", "before - x")]),
        "unset lane": gives("a masked lane holds no number unless other= gives it one, and y[0] needs it", lambda t, c: at(np.diff(t["x"], prepend=0.0), 0, np.nan), by=[("(offs > 0) & mask, other=0.0", "(offs > 0) & mask")]),
        "restarted": gives("the first number of every block is taken for the first of x: the mask must ask for the place in x", *map(restarted, PIECES), by=[("(offs > 0) & mask", "(tl.arange(0, BLOCK) > 0) & mask")]),
        "a place too late": gives("y[1] lacks x[0]: the place before it is in x from offs = 1 on, so the mask asks for offs > 0", lambda t, c: np.where(np.arange(c.sizes["N"]) == 1, t["x"], np.diff(t["x"], prepend=0.0)), by=[("offs > 0", "offs > 1")]),
        "before the beginning": changed(("(offs > 0) & mask", "mask")),
        "beyond the end": changed(("tl.load(x_ptr + offs, mask=mask)", "tl.load(x_ptr + offs)")),
        "stored beyond the end": changed(("x - before, mask=mask", "x - before")),
        "one too many": changed(("offs < N", "offs <= N")),
        "grid rounded down": changed(("triton.cdiv(p.N, 64)", "max(1, p.N // 64)")),
        "x three times": changed(("    tl.store", "    x = (x + tl.load(x_ptr + offs, mask=mask, volatile=True)) / 2\n    tl.store"), part="traffic"),
    },
    "subtracted": {
        "sign": gives("the sign is turned round: x - z is asked for", lambda t, c: t["z"] - t["x"], by=[("x - z", "z - x")]),
        "sum": gives("this is x + z: z is to be subtracted", lambda t, c: t["x"] + t["z"], by=[("x - z", "x + z")]),
        "x alone": gives("this is x itself: z is missing", lambda t, c: t["x"], by=[("x - z", "x")]),
        "x's strides for z": changed(("offs_m * stride_zm + offs_n * stride_zn", "offs_m * stride_xm + offs_n * stride_xn")),
        "strides of x swapped": changed(("offs_m * stride_xm + offs_n * stride_xn", "offs_m * stride_xn + offs_n * stride_xm")),
        "y taken for dense": changed(("offs_m * stride_ym + offs_n * stride_yn", "offs_m * N + offs_n")),
        "columns without a stride": changed(("offs_n * stride_xn", "offs_n")),
        "rows masked alone": changed((" & (offs_n < N)", "")),
        "columns masked alone": changed(("(offs_m < M) & ", "")),
        "one axis of programs": changed(("tl.program_id(1)", "tl.program_id(0)")),
        "grid rounded down": changed((GRID_OF_TILES, "(max(1, p.M // 16), max(1, p.N // 32))")),
        "grid the other way round": changed((GRID_OF_TILES, GRID_OF_TILES.replace("M", "?").replace("N", "M").replace("?", "N"))),
        "x loaded twice": changed(("    z =", "    x = (x + tl.load(x_ptr + offs_m * stride_xm + offs_n * stride_xn, mask=mask, volatile=True)) / 2\n    z ="), part="traffic"),
    },
    "turned": {
        "a copy": gives("this is x's memory as it was: y[j, i] stands at j * M + i", lambda t, c: t["x"].reshape(t["x"].T.shape), by=[("y_ptr + offs_n * M + offs_m", "y_ptr + offs_m * N + offs_n")]),
        "rows of x a program": changed((GRID_TURNED, "(p.M, triton.cdiv(p.N, 64))"), ('"BLOCK_M": 32, "BLOCK_N": 16', '"BLOCK_M": 1, "BLOCK_N": 64'), part="traffic"),
        "columns of x a program": changed((GRID_TURNED, "(triton.cdiv(p.M, 64), p.N)"), ('"BLOCK_M": 32, "BLOCK_N": 16', '"BLOCK_M": 64, "BLOCK_N": 1'), part="traffic"),
        "four rows": changed((GRID_TURNED, "(triton.cdiv(p.M, 4), triton.cdiv(p.N, 64))"), ('"BLOCK_M": 32, "BLOCK_N": 16', '"BLOCK_M": 4, "BLOCK_N": 64'), part="traffic"),
        "rows of M": changed(("offs_m * N + offs_n", "offs_m * M + offs_n")),
        "rows of y as long as x's": changed(("offs_n * M + offs_m", "offs_n * N + offs_m")),
        "loaded beyond the end": changed(("tl.load(x_ptr + offs_m * N + offs_n, mask=mask)", "tl.load(x_ptr + offs_m * N + offs_n)")),
        "stored beyond the end": changed(("x, mask=mask)", "x)")),
        "tiles of the diagonal": changed(("tl.program_id(1)", "tl.program_id(0)")),
        "grid rounded down": changed((GRID_TURNED, "(max(1, p.M // 32), max(1, p.N // 16))")),
    },
    "outer_difference": {
        "sign": gives("the sign is turned round: a[i] - b[j] is asked for", lambda t, c: t["b"][None, :] - t["a"][:, None], by=[("a[:, None] - b[None, :]", "b[None, :] - a[:, None]")]),
        "sum": gives("this is a[i] + b[j]: b is to be subtracted", lambda t, c: t["a"][:, None] + t["b"][None, :], by=[("a[:, None] - b[None, :]", "a[:, None] + b[None, :]")]),
        "product": gives("this is a[i] b[j]: the difference is asked for", lambda t, c: t["a"][:, None] * t["b"][None, :], by=[("a[:, None] - b[None, :]", "a[:, None] * b[None, :]")]),
        "b left out": gives("this is a[i] in every column: b[j] is missing", lambda t, c: t["a"][:, None] + 0 * t["b"][None, :], by=[("a[:, None] - b[None, :]", "a[:, None] + tl.zeros((1, BLOCK_N), tl.float32)")]),
        "axes exchanged": gives(
            "a runs along the rows of each tile and b down its columns: a[:, None] is a column, a number for each row, and b[None, :] a row",
            *(axes_exchanged(side, unset) for side in (16, 32, 64, 128) for unset in (without_a_number, np.zeros)),
            by=[("a[:, None] - b[None, :]", "a[None, :] - b[:, None]"), ('"BLOCK_N": 32', '"BLOCK_N": 16'), ("triton.cdiv(p.N, 32)", "triton.cdiv(p.N, 16)")],
        ),
        "tiles of 4 by 4": changed((GRID_OF_TILES, "(triton.cdiv(p.M, 4), triton.cdiv(p.N, 4))"), ('"BLOCK_M": 16, "BLOCK_N": 32', '"BLOCK_M": 4, "BLOCK_N": 4'), part="traffic"),
        "rows of M": changed(("offs_m[:, None] * N", "offs_m[:, None] * M")),
        "rows masked alone": changed((" & (offs_n[None, :] < N)", "")),
        "a beyond its end": changed(("tl.load(a_ptr + offs_m, mask=offs_m < M)", "tl.load(a_ptr + offs_m)")),
        "one axis of programs": changed(("tl.program_id(1)", "tl.program_id(0)")),
        "a's mask for b": changed(("mask=offs_n < N", "mask=offs_n < M")),
    },
    "sum_and_max": {
        "0 in the maximum": gives("a masked lane's 0 is larger than every number of the row: for the maximum it must hold minus infinity",
                                  *with_block(lambda block: lambda t, c: (t["x"].sum(1), np.maximum(t["x"].max(1), 0 if c.sizes["N"] < block(c.sizes["N"]) else -np.inf))),
                                  by=[('tl.where(mask, x, float("-inf"))', "x")]),
        "a low number in the maximum": gives(
            "a masked lane's number is larger than every number of the row: only minus infinity is below them all", *map(low, LOW),
            by=[('float("-inf")', "-1000.0")],
        ),
        "infinity in the sum": gives("a masked lane holds minus infinity when it is added: for the sum it must hold 0",
                                     *with_block(lambda block: lambda t, c: (ragged(t["x"].sum(1), c, block, -np.inf), t["x"].max(1))), by=[("other=0.0", 'other=float("-inf")')]),
        "unset lanes": gives("a masked lane holds no number unless other= gives it one, and the sum adds it",
                             *with_block(lambda block: lambda t, c: (ragged(t["x"].sum(1), c, block, np.nan), t["x"].max(1))), by=[(", other=0.0", "")]),
        "the mean": gives("this is the mean: the sum is asked for", lambda t, c: (t["x"].mean(1), t["x"].max(1)), by=[("tl.sum(x, axis=0)", "tl.sum(x, axis=0) / N")]),
        "the largest size": gives("this is the largest number without its sign", lambda t, c: (t["x"].sum(1), np.abs(t["x"]).max(1)), by=[('tl.where(mask, x, float("-inf"))', "tl.abs(x)")]),
        "the smallest": gives("this is the smallest number of the row", lambda t, c: (t["x"].sum(1), t["x"].min(1)), by=[('tl.max(tl.where(mask, x, float("-inf"))', 'tl.min(tl.where(mask, x, float("inf"))')]),
        "changed places": gives("sum and maximum have changed places", lambda t, c: (t["x"].max(1), t["x"].sum(1)), by=[("s_ptr + row", "?_ptr + row"), ("m_ptr + row", "s_ptr + row"), ("?_ptr + row", "m_ptr + row")]),
        "rows as long as the block": changed(("row * N", "row * BLOCK")),
        "rows up to 512": changed(('"BLOCK": 1024', '"BLOCK": 512')),
        "every program the first row": changed((LAST_ROW, "row = 0 * tl.program_id(0)")),
        "beyond the row": changed(("mask = offs < N", "mask = offs < BLOCK")),
        "x loaded twice": changed(('tl.where(mask, x, float("-inf"))', 'tl.load(x_ptr + row * N + offs, mask=mask, other=float("-inf"))'), part="traffic"),
    },
    "long_mean": {
        "the sum": gives("this is the sum: divide it by N", lambda t, c: t["x"].sum(1), by=[("tl.sum(total, axis=0) / N", "tl.sum(total, axis=0)")]),
        "first piece alone": gives("this sums the first piece of the row alone: the loop must go on to N", *of_pieces(lambda x, piece, n: x[:, :piece].sum(1)), by=[("range(0, N, BLOCK)", "range(0, BLOCK, BLOCK)")]),
        "last piece left out": gives("the last piece, which is not full, is left out: range(0, N, BLOCK) reaches it", *of_pieces(lambda x, piece, n: x[:, : n // piece * piece].sum(1), (64, 128, 256, 32)), by=[("range(0, N, BLOCK)", "range(0, N // BLOCK * BLOCK, BLOCK)")]),
        "last piece alone": gives("this is the last piece alone: each turn must add to what is there", *of_pieces(lambda x, piece, n: x[:, (n - 1) // piece * piece :].sum(1)), by=[("total +=", "total =")]),
        "first piece again": gives("every turn loads the first piece again: the addresses must move on with the loop", *of_pieces(first_again), *of_pieces(first_again_whole), by=[("row * N + start + offs, mask", "row * N + offs, mask")]),
        "lanes counted": gives("this divides by all lanes, the masked ones too: divide by N", *of_pieces(lambda x, piece, n: x.sum(1) * n / (-(-n // piece) * piece)), by=[("/ N)", "/ (tl.cdiv(N, BLOCK) * BLOCK))")]),
        "a mean of means": gives("this is the mean of the pieces' means, and the last piece is shorter than the others: add up the pieces and divide by N once", *of_pieces(mean_of_means), by=[("other=0.0)", "other=0.0) / tl.minimum(BLOCK, N - start)"), ("/ N)", "/ tl.cdiv(N, BLOCK))")]),
        "unset lanes": gives("a masked lane holds no number unless other= gives it one, and the sum adds it", *map(unset, (128, 64, 256, 32, 512, 1024)), by=[(", other=0.0", "")]),
        "beyond the row": changed(("start + offs < N, other", "offs < N, other")),
        "rows as long as the block": changed(("row * N + start", "row * BLOCK + start")),
        "sums in fp16": changed(("total += tl.load", "total = total.to(tl.float16).to(tl.float32) + tl.load")),
        "one block for the row": changed(('{"BLOCK": 128}', '{"BLOCK": triton.next_power_of_2(p.N)}'), part="traffic"),
    },
    "smoothed": {
        "weights exchanged": gives("alpha and 1 - alpha have changed places: alpha is the share of x", carried(lambda h, x, a: a * h + (1 - a) * x), by=[("(1 - alpha) * h + alpha * x", "alpha * h + (1 - alpha) * x")]),
        "nothing carried": gives("this is alpha x: nothing of the step before is left in it", carried(lambda h, x, a: a * x), by=[("(1 - alpha) * h + ", "")]),
        "nothing forgotten": gives("the step before keeps its whole weight: it counts (1 - alpha) times", carried(lambda h, x, a: h + a * x), by=[("(1 - alpha) * h", "h")]),
        "x in full": gives("x counts in full: its share is alpha", carried(lambda h, x, a: (1 - a) * h + x), by=[("+ alpha * x", "+ x")]),
        "from the first row": gives("this begins with x[0]: the step before the first is 0", carried(right_step, first=lambda x, a: x), by=[("h = tl.zeros((BLOCK,), tl.float32)", "h = tl.load(x_ptr + offs, mask=mask)")]),
        "a step late": gives("these are the values of the step before: change h first, then store it", a_step_late, by=[("        h = (1 - alpha) * h + alpha * x\n        tl.store(y_ptr + t * M + offs, h, mask=mask)", "        tl.store(y_ptr + t * M + offs, h, mask=mask)\n        h = (1 - alpha) * h + alpha * x")]),
        "backwards": gives("this walks from the last row to the first", backwards, by=[("range(0, T)", "range(T - 1, -1, -1)")]),
        "the last row alone": changed(("        tl.store(y_ptr + t * M + offs, h, mask=mask)", "    tl.store(y_ptr + (T - 1) * M + offs, h, mask=mask)")),
        "rows of T": changed(("x_ptr + t * M", "x_ptr + t * T")),
        "beyond the end": changed(("tl.load(x_ptr + t * M + offs, mask=mask)", "tl.load(x_ptr + t * M + offs)")),
        "sums in fp16": changed(("+ alpha * x", "+ (alpha * x).to(tl.float16)")),
        "x loaded twice": changed(("        h =", "        x = (x + tl.load(x_ptr + t * M + offs, mask=mask, volatile=True)) / 2\n        h ="), part="traffic"),
    },
    "small_product": {
        "element by element": gives("this multiplies element by element: tl.dot multiplies rows with columns", by_element, by=[("c = tl.dot(a, b)", "c = a.to(tl.float32) * b")]),
        "unset lanes": gives("a masked lane holds no number unless other= gives it one, and every sum along K adds some", *map(unset_k, (lambda k: 32, lambda k: max(16, block_of(k)))), by=[(", other=0.0", "")]),
        "B by columns": gives("this reads B column by column: B[k, n] stands at k * N + n", lambda t, c: t["a"] @ t["b"].reshape(t["b"].T.shape).T, by=[("b_ptr + down * N + across", "b_ptr + across * K + down")]),
        "C by columns": gives("this stores C column by column: C[m, n] stands at m * N + n", lambda t, c: (t["a"] @ t["b"]).T.reshape(c.sizes["M"], c.sizes["N"]), by=[("c_ptr + down * N + across", "c_ptr + across * M + down")]),
        "sums in fp16": gives("the sums are rounded to fp16, which ends at 65504: keep tl.dot's fp32", lambda t, c: rounded(t["a"] @ t["b"], "fp16"), by=[("tl.dot(a, b)", "tl.dot(a, b, out_dtype=tl.float16).to(tl.float32)")]),
        "rows of N": changed(("a_ptr + down * K", "a_ptr + down * N")),
        "sides of 16": changed(('{"SIDE": 32}', '{"SIDE": 16}')),
        "A without a mask": changed((LOAD_A, "mask=down < M, other=0.0")),
        "B without a mask": changed((LOAD_B, "mask=across < N, other=0.0")),
        "C without a mask": changed(("c, mask=(down < M) & (across < N)", "c, mask=down < M")),
        "products by the lanes": changed(("tl.dot(a, b)", "tl.sum(a[:, :, None].to(tl.float32) * b[None, :, :], axis=1)"), part="traffic"),
    },
    "tile_settings": {
        "tiles of 64 by 64": changed((SIZED, '"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64'), ("(p.M // 128, p.N // 256)", "(p.M // 64, p.N // 64)"), part="traffic"),
        "tiles of 128 by 128": changed((SIZED, '"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64'), ("(p.M // 128, p.N // 256)", "(p.M // 128, p.N // 128)"), part="traffic"),
        "four warps": changed((GIVEN, '"num_warps": 4, "num_stages": 3'), part="compiled"),
        "five stages": changed((GIVEN, '"num_warps": 8, "num_stages": 5'), part="compiled"),
        "steps of 128": changed(('"BLOCK_K": 64', '"BLOCK_K": 128'), part="compiled"),
        "tiles of 256 by 256": changed((SIZED, '"BLOCK_M": 256, "BLOCK_N": 256, "BLOCK_K": 64'), ("(p.M // 128, p.N // 256)", "(p.M // 256, p.N // 256)"), part="compiled"),
        "grid the other way round": changed(("(p.M // 128, p.N // 256)", "(p.N // 256, p.M // 128)")),
        "one program": changed(("(p.M // 128, p.N // 256)", "(1, 1)")),
        "a program for each element": changed(("(p.M // 128, p.N // 256)", "(p.M, p.N)")),
    },
}  # fmt: skip


def _named(formula: Callable, outputs: tuple[str, ...]) -> Callable:
    """The formula as the recogniser calls it: from the inputs as they are to outputs by their names."""

    def wrong(inputs: dict, case: Case) -> dict:
        with np.errstate(all="ignore"):
            found = formula({name: v.astype(np.float64) for name, v in inputs.items()}, case)
        return dict(zip(outputs, found if isinstance(found, tuple) else (found,), strict=True))

    return wrong


def mistakes(rung: str, outputs: tuple[str, ...]) -> tuple[Mistake, ...]:
    """The rows that have a name, for a question with these outputs."""
    named = {name: row for name, row in TABLE[rung].items() if row.gives}
    return tuple(
        family(name, row.sentence, *(_named(formula, outputs) for formula in row.gives))
        for name, row in named.items()
    )


WRONG = {
    f"roofline.{rung}": {name: (row.part, row.edits, name if row.gives else "") for name, row in rows.items()}
    for rung, rows in TABLE.items()
}

# Answers that hold for some sizes and layouts alone.
SHORTCUTS = {
    "roofline.doubled": {"N up to 256": within_limit("N", 256), "N up to 1024": within_limit("N", 1024)},
    "roofline.differences": {"N up to 1024": within_limit("N", 1024)},
    "roofline.subtracted": {
        **{
            f"stride {axis} of {name} taken for 1": one_stride(name, axis)
            for name in "xzy"
            for axis in (0, 1)
        },
        **{f"{name} taken for dense": dense(name) for name in "xzy"},
        "x's strides for z": same_strides("x", "z"),
        "x's strides for y": same_strides("x", "y"),
        "M up to 128": within_limit("M", 128),
        "N up to 128": within_limit("N", 128),
    },
    "roofline.turned": {"M up to 128": within_limit("M", 128), "N up to 128": within_limit("N", 128)},
    "roofline.outer_difference": {
        "M up to 128": within_limit("M", 128),
        "N up to 128": within_limit("N", 128),
    },
    "roofline.sum_and_max": {"N up to 512": within_limit("N", 512), "M up to 64": within_limit("M", 64)},
    "roofline.long_mean": {"N up to 8192": within_limit("N", 8192), "M up to 16": within_limit("M", 16)},
    "roofline.smoothed": {"M up to 64": within_limit("M", 64), "T up to 16": within_limit("T", 16)},
    "roofline.small_product": {f"{side} up to 16": within_limit(side, 16) for side in "MNK"},
    "roofline.tile_settings": {f"{side} up to 256": within_limit(side, 256) for side in "MNK"},
}

MORE = "more programs than the output needs: the masks leave them nothing to do"
AXIS = "a block of one dimension has one axis"
MEETS_0 = "a masked lane of one operand meets a masked 0 of the other along K; rows and columns beyond C are never stored"
EQUIVALENT = {
    "roofline.differences": because({MORE: ["halved: 64 -> 32 (2)"]}),
    "roofline.subtracted": because({MORE: ["halved: 16 -> 8 (2)", "halved: 32 -> 16 (2)"]}),
    "roofline.turned": because({MORE: ["halved: 32 -> 16 (2)", "halved: 16 -> 8 (2)"]}),
    "roofline.outer_difference": because({MORE: ["halved: 32 -> 16 (2)"]}),
    "roofline.sum_and_max": because(
        {
            AXIS: [
                "no axis: tl.sum(x, axis=0) -> tl.sum(x)",
                "no axis: tl.max(tl.where(mask, x, float('-inf')), axis=0) -> tl.max(tl.where(mask, x, float('-inf')))",
            ]
        }
    ),
    "roofline.long_mean": because(
        {
            AXIS: ["no axis: tl.sum(total, axis=0) -> tl.sum(total)"],
            "another length of the pieces": ["halved: 128 -> 64"],
        }
    ),
    "roofline.smoothed": because({MORE: ["halved: 64 -> 32 (2)"]}),
    "roofline.small_product": because({MEETS_0: ["plus one: 0.0 -> 1.0", "plus one: 0.0 -> 1.0 (2)"]}),
    "roofline.tile_settings": {"halved: 64 -> 32": "another length of the steps along K"},
}
