"""List the mistakes of *long mean*, a row each."""

from collections.abc import Callable

import numpy as np

from grader.questions.families import within_limit
from grader.topics.roofline.shared_mistakes import changed, gives, of_ladder


def of_pieces(make: Callable, pieces: tuple = (64, 128, 256, 32, 512, 1024)) -> tuple[Callable, ...]:
    """Return the total, to be divided by N, as `make(row, piece, N)` gives it, one form for each length of a piece."""
    return tuple(
        lambda t, c, piece=piece: make(t["x"], piece, c.sizes["N"]) / c.sizes["N"] for piece in pieces
    )


def first_again(x: np.ndarray, piece: int, n: int) -> np.ndarray:
    """Add the first piece in every iteration, as far as that iteration's mask lets it."""
    return sum(x[:, : min(piece, n - start)].sum(1) for start in range(0, n, piece))


def first_again_whole(x: np.ndarray, piece: int, n: int) -> np.ndarray:
    """Every turn adds the first piece, under the same mask."""
    return -(-n // piece) * x[:, :piece].sum(1)


def mean_of_means(x: np.ndarray, piece: int, n: int) -> np.ndarray:
    """Take the mean of each piece's own mean, as a total to be divided by N."""
    starts = np.arange(0, n, piece)
    return n * (np.add.reduceat(x, starts, axis=1) / np.minimum(piece, n - starts)).mean(1)


def unset(piece: int) -> Callable:
    return lambda t, c: t["x"].mean(1) * (np.nan if c.sizes["N"] % piece else 1)


MISTAKES = of_ladder(
    ("y",),
    {
        "the sum": gives(
            "this is the sum: divide it by N",
            lambda t, c: t["x"].sum(1),
            by=[("tl.sum(total, axis=0) / N", "tl.sum(total, axis=0)")],
        ),
        "first piece alone": gives(
            "this sums only the first piece of the row: the loop must go on to N",
            *of_pieces(lambda x, piece, n: x[:, :piece].sum(1)),
            by=[("range(0, N, BLOCK)", "range(0, BLOCK, BLOCK)")],
        ),
        "by the block": gives(
            "this divides by BLOCK: a mean divides by N, the length of the row",
            *of_pieces(lambda x, piece, n: x.sum(1) * n / piece),
            by=[("axis=0) / N", "axis=0) / BLOCK")],
        ),
        "last piece left out": gives(
            "the last, partly filled piece is left out: range(0, N, BLOCK) reaches it",
            *of_pieces(lambda x, piece, n: x[:, : n // piece * piece].sum(1), (64, 128, 256, 32)),
            by=[("range(0, N, BLOCK)", "range(0, N // BLOCK * BLOCK, BLOCK)")],
        ),
        "last piece alone": gives(
            "this is the sum of the last piece only: each iteration must add to total",
            *of_pieces(lambda x, piece, n: x[:, (n - 1) // piece * piece :].sum(1)),
            by=[("total +=", "total =")],
        ),
        "first piece again": gives(
            "every iteration loads the first piece again: the addresses must move on with the loop",
            *of_pieces(first_again),
            *of_pieces(first_again_whole),
            by=[("row * N + start + offs, mask", "row * N + offs, mask")],
        ),
        "lanes counted": gives(
            "this divides by the number of all elements of the blocks, masked ones included: divide by N",
            *of_pieces(lambda x, piece, n: x.sum(1) * n / (-(-n // piece) * piece)),
            by=[("/ N)", "/ (tl.cdiv(N, BLOCK) * BLOCK))")],
        ),
        "a mean of means": gives(
            "this is the mean of the pieces' means, and the last piece is shorter than the others: add up the pieces and divide by N once",
            *of_pieces(mean_of_means),
            by=[
                ("other=0.0)", "other=0.0) / tl.minimum(BLOCK, N - start)"),
                ("/ N)", "/ tl.cdiv(N, BLOCK))"),
            ],
        ),
        "unset lanes": gives(
            "a masked element is undefined unless other= gives it a value, and the sum adds that value",
            *map(unset, (128, 64, 256, 32, 512, 1024)),
            by=[(", other=0.0", "")],
        ),
        "beyond the row": changed(("start + offs < N, other", "offs < N, other")),
        "rows as long as the block": changed(("row * N + start", "row * BLOCK + start")),
        "sums in fp16": changed(
            ("total += tl.load", "total = total.to(tl.float16).to(tl.float32) + tl.load")
        ),
        "one block for the row": changed(
            ('{"BLOCK": 128}', '{"BLOCK": triton.next_power_of_2(p.N)}'), part="traffic"
        ),
    },
)


SHORTCUTS = {"N up to 8192": within_limit("N", 8192), "M up to 16": within_limit("M", 16)}
