"""List the mistakes of *outer difference*, a row each."""

from collections.abc import Callable

import numpy as np

from grader.questions import Case
from grader.questions.families import within_limit
from grader.topics.roofline.shared_mistakes import GRID_OF_TILES, changed, gives, of_ladder
from tilescope.machine.values import poison


def without_a_number(lanes: int) -> np.ndarray:
    """Return the machine's values for lanes that no load fills."""
    return poison((lanes,), np.dtype(np.float32)).astype(np.float64)


def axes_exchanged(side: int, unset: Callable) -> Callable:
    """Put a along the rows and b down the columns of square tiles. `unset(n)` gives n lanes before they are loaded."""

    def wrong(t: dict, c: Case) -> np.ndarray:
        a, b = (unset(-(-len(t[name]) // side) * side) for name in "ab")
        a[: c.sizes["M"]], b[: c.sizes["N"]] = t["a"], t["b"]
        a, b = a.reshape(-1, side), b.reshape(-1, side)
        tiles = a[:, None, None, :] - b[None, :, :, None]
        return tiles.swapaxes(1, 2).reshape(a.size, b.size)[: c.sizes["M"], : c.sizes["N"]]

    return wrong


MISTAKES = of_ladder(
    ("y",),
    {
        "sign": gives(
            "the sign is reversed: the question asks for a[i] - b[j]",
            lambda t, c: t["b"][None, :] - t["a"][:, None],
            by=[("a[:, None] - b[None, :]", "b[None, :] - a[:, None]")],
        ),
        "sum": gives(
            "this is a[i] + b[j]: subtract b",
            lambda t, c: t["a"][:, None] + t["b"][None, :],
            by=[("a[:, None] - b[None, :]", "a[:, None] + b[None, :]")],
        ),
        "product": gives(
            "this is a[i] b[j]: the question asks for the difference",
            lambda t, c: t["a"][:, None] * t["b"][None, :],
            by=[("a[:, None] - b[None, :]", "a[:, None] * b[None, :]")],
        ),
        "b left out": gives(
            "this is a[i] in every column: b[j] is missing",
            lambda t, c: t["a"][:, None] + 0 * t["b"][None, :],
            by=[("a[:, None] - b[None, :]", "a[:, None] + tl.zeros((1, BLOCK_N), tl.float32)")],
        ),
        "axes exchanged": gives(
            "a runs along the rows of each tile and b down its columns: make a a column, a[:, None], with one element for each row, and b a row, b[None, :]",
            *(
                axes_exchanged(side, unset)
                for side in (16, 32, 64, 128)
                for unset in (without_a_number, np.zeros)
            ),
            by=[
                ("a[:, None] - b[None, :]", "a[None, :] - b[:, None]"),
                ('"BLOCK_N": 32', '"BLOCK_N": 16'),
                ("triton.cdiv(p.N, 32)", "triton.cdiv(p.N, 16)"),
            ],
        ),
        "tiles of 4 by 4": changed(
            (GRID_OF_TILES, "(triton.cdiv(p.M, 4), triton.cdiv(p.N, 4))"),
            ('"BLOCK_M": 16, "BLOCK_N": 32', '"BLOCK_M": 4, "BLOCK_N": 4'),
            part="traffic",
        ),
        "rows of M": changed(("offs_m[:, None] * N", "offs_m[:, None] * M")),
        "rows masked alone": changed((" & (offs_n[None, :] < N)", "")),
        "a beyond its end": changed(("tl.load(a_ptr + offs_m, mask=offs_m < M)", "tl.load(a_ptr + offs_m)")),
        "differences up to 2^24": changed(
            ("a[:, None] - b[None, :]", "tl.minimum(a[:, None] - b[None, :], 16777216.0)")
        ),
        "one axis of programs": changed(("tl.program_id(1)", "tl.program_id(0)")),
        "a's mask for b": changed(("mask=offs_n < N", "mask=offs_n < M")),
    },
)


SHORTCUTS = {
    "M up to 128": within_limit("M", 128),
    "N up to 128": within_limit("N", 128),
}
