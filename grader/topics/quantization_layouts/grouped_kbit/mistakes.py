"""List the mistakes of *grouped kbit*, a row each."""

from collections.abc import Callable

import numpy as np

from grader.questions import Case, KernelQuestion
from grader.questions.families import family, one_stride
from grader.questions.rows import edited, of_table
from grader.topics.quantization_layouts.shared_kbit import ROWS
from grader.topics.quantization_layouts.shared_mistakes_kbit import (
    CODES,
    LAST_SCALE,
    codes_by,
    limits,
    of_codes,
    strides,
    would,
)
from grader.topics.quantization_layouts.shared_mistakes_sums import SUMS, stored
from grader.topics.quantization_layouts.shared_wanted import BLOCK
from kernels.quantization_layouts import reference

LAST_SCALE_OF = LAST_SCALE.replace("s_ptr +", "s_ptr + expert * stride_se +")
TILES = (16, 32, 64, 128)  # rows of X in a tile


def first_for_all(of_experts: np.ndarray) -> np.ndarray:
    return np.broadcast_to(of_experts[:1], of_experts.shape)


def by_other_rows(expert_of: Callable) -> Callable:
    """Each row of X meets the weight of the expert that `expert_of(offsets, rows, experts)` names."""

    def wrong(inputs: dict, case: Case) -> dict:
        levels, s = (inputs[name].astype(np.float64) for name in "cs")
        w = levels[codes_by(inputs["w"])] * reference.along_k(s, BLOCK)
        rows = np.arange(case.sizes["M"])
        expert = np.clip(
            expert_of(inputs["r"].astype(np.int64), rows, case.sizes["E"]), 0, case.sizes["E"] - 1
        )
        x, y = inputs["x"].astype(np.float64), np.zeros((case.sizes["M"], case.sizes["N"]))
        for e in np.unique(expert):
            y[expert == e] = x[expert == e] @ w[e].T
        return stored(y, case)

    return wrong


def owner(r: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the owner of each row. Experts without rows own none."""
    return np.searchsorted(r, rows, "right") - 1


def equal_shares(r: np.ndarray, rows: np.ndarray, experts: int) -> np.ndarray:
    return rows // -(-len(rows) // experts)


def without_the_empty(r: np.ndarray, rows: np.ndarray, experts: int) -> np.ndarray:
    return np.unique(owner(r, rows), return_inverse=True)[1]


def first_of_tile(tile: int) -> Callable:
    return lambda r, rows, experts: owner(r, rows // tile * tile)


def most_rows(most: int) -> Callable:
    """Return whether the mistake shows, which needs an expert with more than `most` rows."""

    def shows(question: KernelQuestion, case: Case) -> bool:
        return max(int(n) for n in case.values.partition(ROWS)[2].split()) > most

    return shows


MISTAKES = (
    family(
        "the first expert for all",
        "every expert has its own weight: where does stride_we come in?",
        would(code=first_for_all),
        would(of_expert=first_for_all),
        edits=(("w_ptr + expert * stride_we", "w_ptr"),),
    ),
    family(
        "scales of the first expert",
        "every expert has its own scales: where does stride_se come in?",
        would(scales=first_for_all),
        edits=(("s_ptr + expert * stride_se", "s_ptr"),),
    ),
    family(
        "equal shares",
        "experts don't share the rows evenly: rows r[e] to r[e + 1] - 1 belong to expert e",
        by_other_rows(equal_shares),
        edits=(
            (
                "first = tl.load(r_ptr + expert * stride_re)",
                "each = tl.cdiv(M, E)\n    first = expert * each",
            ),
            ("last = tl.load(r_ptr + (expert + 1) * stride_re)", "last = tl.minimum(first + each, M)"),
            ("y_ptr, N, K,", "y_ptr, M, E, N, K,"),
        ),
    ),
    family(
        "one expert on",
        "rows before r[e + 1] still belong to expert e: this takes the weight of the next expert",
        by_other_rows(lambda r, rows, experts: owner(r, rows) + 1),
        edits=(
            (
                "    row_w = ",
                "    expert = tl.minimum(expert + 1, E - 1)\n    row_w = ",
            ),
            ("y_ptr, N, K,", "y_ptr, E, N, K,"),
        ),
    ),
    family(
        "experts without rows not counted",
        "an expert without rows keeps its number: its r[e] and r[e + 1] are equal",
        by_other_rows(without_the_empty),
        edits=(
            (
                "    row_w = ",
                "    empty = 0\n    for e in range(0, expert):\n        empty += (tl.load(r_ptr + e * stride_re) == tl.load(r_ptr + (e + 1) * stride_re)).to(tl.int32)\n    expert -= empty\n    row_w = ",
            ),
        ),
    ),
    family(
        "a tile for one expert",
        "a tile of rows ends where its expert's rows end: rows from r[e + 1] on belong to another expert",
        *(by_other_rows(first_of_tile(tile)) for tile in TILES),
        edits=(
            (
                "first = tl.load(r_ptr + expert * stride_re)",
                "first = tl.cdiv(tl.load(r_ptr + expert * stride_re), 16) * 16",
            ),
            (
                "last = tl.load(r_ptr + (expert + 1) * stride_re)",
                "last = tl.minimum(tl.cdiv(tl.load(r_ptr + (expert + 1) * stride_re), 16) * 16, M)",
            ),
            ("y_ptr, N, K,", "y_ptr, M, N, K,"),
        ),
    ),
    *CODES,
    *SUMS,
    edited(
        "a result in x's dtype",
        ("y_ptr.dtype.element_ty", "x_ptr.dtype.element_ty"),
        told_as="a result of 16 bits",
    ),
    edited("sixteen rows alone", ("range(first, last, BLOCK_M)", "range(first, first + BLOCK_M, BLOCK_M)")),
    edited(
        "tiles end where they like",
        ("mask_m = offs_m < last", "mask_m = offs_m < M"),
        ("y_ptr, N, K,", "y_ptr, M, N, K,"),
    ),
    edited("offsets taken for dense", ("* stride_re", "* 1")),
    edited(
        "a weight read for nobody",
        (
            "    for top in range(first, last, BLOCK_M):",
            "    for top in range(first, tl.maximum(last, first + 1), BLOCK_M):",
        ),
        part="traffic",
    ),
    edited(
        "eight rows a turn",
        ("range(first, last, BLOCK_M)", "range(first, last, 8)"),
        ("mask_m = offs_m < last", "mask_m = offs_m < tl.minimum(last, top + 8)"),
        part="traffic",
    ),
    *of_table(of_codes(LAST_SCALE_OF, "        ", 256)),
)


SHORTCUTS = {
    **limits(M=(16, 128), N=(64, 1024, 4096), K=(32, 1024, 4096, 8192), BITS=(2, 3, 4), E=(1, 4, 8, 32)),
    **{f"{n} rows an expert": most_rows(n) for n in (1, 16, 32, 64, 128)},
    **strides("wsxy", ("xy",)),
    **{
        f"stride {axis} of {name} taken for 1": one_stride(name, axis)
        for name, axis in (("w", 2), ("w", 3), ("s", 2))
    },
    "the stride of c taken for 1": one_stride("c", 0),
    "the stride of r taken for 1": one_stride("r", 0),
}
