"""Share mistakes in running sums among questions of quantization layouts."""

from collections.abc import Callable

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.draws import rounded
from grader.questions.families import family
from grader.topics.quantization_layouts.shared_wanted import product, weights

BLOCKS = (64, 128, 256, 512, 1024)  # columns of a step
PIECES = (32, 64, 128, 256)  # columns that are summed before the running sum is rounded


def stored(y: np.ndarray, case: Case) -> dict:
    return {"y": rounded(y, case.dtypes.get("y", case.dtype)).astype(np.float64)}


def part(k_end: Callable, k_start: Callable = lambda k: 0) -> Callable:
    """The sum over columns `k_start(K)` to `k_end(K)` alone."""

    def wrong(inputs: dict, case: Case) -> dict:
        k = case.sizes["K"]
        kept = slice(k_start(k), max(0, k_end(k)))
        return stored(product(inputs, weights(inputs, case), kept), case)

    return wrong


def last_alone(block: int) -> Callable:
    return part(lambda k: k, k_start=lambda k: (k - 1) // block * block)


def narrow(dtype: str, block: int) -> Callable:
    """Round the running sum to `dtype` after each `block` columns, or to the dtype of x with "x"."""

    def wrong(inputs: dict, case: Case) -> dict:
        to, w, total = DTYPES[case.dtype if dtype == "x" else dtype], weights(inputs, case), 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(0, case.sizes["K"], block):
                total = (total + product(inputs, w, slice(k, k + block))).astype(to).astype(np.float64)
        return stored(total, case)

    return wrong


def weights_in(dtype: str) -> Callable:
    def wrong(inputs: dict, case: Case) -> dict:
        with np.errstate(over="ignore", invalid="ignore"):
            return stored(product(inputs, rounded(weights(inputs, case), dtype).astype(float)), case)

    return wrong


def tail_unset(block: int) -> Callable:
    """Fill masked lanes with anything: NaN everywhere where K fills no block."""

    def wrong(inputs: dict, case: Case) -> dict:
        y = stored(product(inputs, weights(inputs, case)), case)["y"]
        return {"y": np.full_like(y, np.nan) if case.sizes["K"] % block else y}

    return wrong


def in_16_bits(inputs: dict, case: Case) -> dict:
    """The result as x is stored, whatever y is."""
    with np.errstate(over="ignore", invalid="ignore"):
        return stored(rounded(product(inputs, weights(inputs, case)), case.dtype).astype(np.float64), case)


SUMS = (
    family(
        "a result of 16 bits",
        "y may be fp32: convert the sum to y_ptr.dtype.element_ty once, and never to x's dtype",
        in_16_bits,
    ),
    family(
        "low precision",
        "close, but off in a long sum: is the accumulator fp32 from first to last?",
        *(narrow(d, b) for d in ("x", "fp16", "bf16") for b in PIECES),
    ),
    family(
        "beyond fp16",
        "bf16 holds weights above 65504 and fp16 does not: what is rounded to fp16 on the way?",
        weights_in("fp16"),
    ),
    family(
        "unmasked tail",
        "NaN if K is not a multiple of the block: is every load masked along K too, with other=0.0?",
        *map(tail_unset, BLOCKS),
    ),
    family(
        "one block of K",
        "this is the sum over only the first block of K: does the loop run to the end of K, and does each step take its own words, x and scales?",
        *(part(lambda k, b=b: min(k, b)) for b in BLOCKS),
    ),
    family(
        "tail left out",
        "the last, ragged block of K is left out: does the loop run to cdiv(K, block)?",
        *(part(lambda k, b=b: k // b * b) for b in BLOCKS),
    ),
    family(
        "the last block alone",
        "this is only the last block's part: add each part to the sum so far",
        *map(last_alone, BLOCKS),
    ),
)
