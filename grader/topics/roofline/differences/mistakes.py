"""List the mistakes of *differences*, a row each."""

from collections.abc import Callable

import numpy as np

from grader.questions.families import within_limit
from grader.topics.roofline.shared_mistakes import changed, gives, of_ladder

PIECES = (16, 32, 64, 128, 256, 512, 1024)


def at(values: np.ndarray, place, number: float) -> np.ndarray:
    values = np.array(values)
    values[place] = number
    return values


def restarted(piece: int) -> Callable:
    """The first number of every piece taken for the first of all."""
    return lambda t, c: np.where(np.arange(c.sizes["N"]) % piece == 0, t["x"], np.diff(t["x"], prepend=0.0))


MISTAKES = of_ladder(
    ("y",),
    {
        "sign": gives(
            "the sign is reversed: the question asks for x[i] - x[i - 1]",
            lambda t, c: -np.diff(t["x"], prepend=0.0),
            by=[("x - before", "before - x")],
        ),
        "sums": gives(
            "this adds the element before: subtract it",
            lambda t, c: t["x"] + np.append(0.0, t["x"][:-1]),
            by=[("x - before", "x + before")],
        ),
        "0 at first": gives(
            "y[0] is x[0]: the element before the first counts as 0",
            lambda t, c: np.diff(t["x"], prepend=t["x"][:1]),
            by=[("x - before", "tl.where(offs == 0, 0.0, x - before)")],
        ),
        "forward": gives(
            "these are differences from the next element: subtract the one before",
            lambda t, c: np.diff(t["x"], append=0.0),
            lambda t, c: -np.diff(t["x"], append=0.0),
            by=[
                ("x_ptr + offs - 1, mask=(offs > 0) & mask", "x_ptr + offs + 1, mask=offs + 1 < N"),
                ("x - before", "before - x"),
            ],
        ),
        "unset lane": gives(
            "a masked element is undefined unless other= gives it a value, and y[0] needs that value",
            lambda t, c: at(np.diff(t["x"], prepend=0.0), 0, np.nan),
            by=[("(offs > 0) & mask, other=0.0", "(offs > 0) & mask")],
        ),
        "restarted": gives(
            "the first element of every block is treated as the first of x: the mask must test the index in x",
            *map(restarted, PIECES),
            by=[("(offs > 0) & mask", "(tl.arange(0, BLOCK) > 0) & mask")],
        ),
        "a place too late": gives(
            "y[1] lacks x[0]: from offs = 1 on there is an element before, so the mask must test offs > 0",
            lambda t, c: np.where(np.arange(c.sizes["N"]) == 1, t["x"], np.diff(t["x"], prepend=0.0)),
            by=[("offs > 0", "offs > 1")],
        ),
        "before the beginning": changed(("(offs > 0) & mask", "mask")),
        "beyond the end": changed(("tl.load(x_ptr + offs, mask=mask)", "tl.load(x_ptr + offs)")),
        "stored beyond the end": changed(("x - before, mask=mask", "x - before")),
        "one too many": changed(("offs < N", "offs <= N")),
        "grid rounded down": changed(("triton.cdiv(p.N, 64)", "max(1, p.N // 64)")),
        "x three times": changed(
            (
                "    tl.store",
                "    x = (x + tl.load(x_ptr + offs, mask=mask, volatile=True)) / 2\n    tl.store",
            ),
            part="traffic",
        ),
    },
)


SHORTCUTS = {"N up to 1024": within_limit("N", 1024)}
