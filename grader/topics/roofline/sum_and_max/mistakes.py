"""List the mistakes of *sum and max*, a row each."""

from collections.abc import Callable

import numpy as np

from grader.questions import Case
from grader.questions.families import within_limit
from grader.topics.roofline.shared_mistakes import block_of, changed, gives, of_ladder


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


LAST_ROW = "row = tl.program_id(0)"


MISTAKES = of_ladder(
    (
        "s",
        "m",
    ),
    {
        "0 in the maximum": gives(
            "a masked element's 0 is larger than every element of the row: for the maximum it must hold minus infinity",
            *with_block(
                lambda block: (
                    lambda t, c: (
                        t["x"].sum(1),
                        np.maximum(t["x"].max(1), 0 if c.sizes["N"] < block(c.sizes["N"]) else -np.inf),
                    )
                )
            ),
            by=[('tl.where(mask, x, float("-inf"))', "x")],
        ),
        "a low number in the maximum": gives(
            "a masked element's value is larger than every element of the row: only minus infinity is below them all",
            *map(low, LOW),
            by=[('float("-inf")', "-1000.0")],
        ),
        "infinity in the sum": gives(
            "a masked element holds minus infinity when it is added: for the sum it must hold 0",
            *with_block(lambda block: lambda t, c: (ragged(t["x"].sum(1), c, block, -np.inf), t["x"].max(1))),
            by=[("other=0.0", 'other=float("-inf")')],
        ),
        "unset lanes": gives(
            "a masked element is undefined unless other= gives it a value, and the sum adds that value",
            *with_block(lambda block: lambda t, c: (ragged(t["x"].sum(1), c, block, np.nan), t["x"].max(1))),
            by=[(", other=0.0", "")],
        ),
        "the mean": gives(
            "this is the mean: the question asks for the sum",
            lambda t, c: (t["x"].mean(1), t["x"].max(1)),
            by=[("tl.sum(x, axis=0)", "tl.sum(x, axis=0) / N")],
        ),
        "the largest size": gives(
            "this is the largest magnitude: the maximum keeps the sign",
            lambda t, c: (t["x"].sum(1), np.abs(t["x"]).max(1)),
            by=[('tl.where(mask, x, float("-inf"))', "tl.abs(x)")],
        ),
        "the smallest": gives(
            "this is the smallest element of the row: use tl.max",
            lambda t, c: (t["x"].sum(1), t["x"].min(1)),
            by=[('tl.max(tl.where(mask, x, float("-inf"))', 'tl.min(tl.where(mask, x, float("inf"))')],
        ),
        "changed places": gives(
            "sum and maximum are swapped",
            lambda t, c: (t["x"].max(1), t["x"].sum(1)),
            by=[
                ("s_ptr + row", "?_ptr + row"),
                ("m_ptr + row", "s_ptr + row"),
                ("?_ptr + row", "m_ptr + row"),
            ],
        ),
        "rows as long as the block": changed(("row * N", "row * BLOCK")),
        "rows up to 512": gives(
            "the rest of a long row is left out: a block must hold the longest row, or a loop must go over it",
            *(
                lambda t, c, block=block: (t["x"][:, :block].sum(1), t["x"][:, :block].max(1))
                for block in (512, 256, 128, 64)
            ),
            by=[('"BLOCK": 1024', '"BLOCK": 512')],
        ),
        "every program the first row": changed((LAST_ROW, "row = 0 * tl.program_id(0)")),
        "beyond the row": changed(("mask = offs < N", "mask = offs < BLOCK")),
        "x loaded twice": changed(
            (
                'tl.where(mask, x, float("-inf"))',
                'tl.load(x_ptr + row * N + offs, mask=mask, other=float("-inf"))',
            ),
            part="traffic",
        ),
    },
)


SHORTCUTS = {"N up to 512": within_limit("N", 512), "M up to 64": within_limit("M", 64)}
