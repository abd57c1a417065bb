"""What goes wrong where rows come back to their tokens: the whole result of each mistake, and the sentence that tells of it."""

from collections.abc import Callable

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.draws import rounded
from grader.questions.families import computing, dense, family, one_stride, same_strides, within_limit


def stored(out: np.ndarray, case: Case) -> dict:
    with np.errstate(over="ignore", invalid="ignore"):
        return {"out": rounded(out, case.dtypes.get("out", case.dtype)).astype(np.float64)}


def picked(inputs: dict) -> tuple[np.ndarray, np.ndarray]:
    """(rows of each token (T, K, H), their weights (T, K, 1)) in float64."""
    return inputs["rows"].astype(np.float64)[inputs["place"]], inputs["weights"].astype(np.float64)[..., None]


def would(joined: Callable) -> Callable:
    """`joined(rows, weights)` gives the result."""

    def wrong(inputs: dict, case: Case) -> dict:
        with np.errstate(over="ignore", invalid="ignore"):
            return stored(joined(*picked(inputs)), case)

    return wrong


def as_they_lie(inputs: dict, case: Case) -> dict:
    t, k = inputs["place"].shape
    rows = inputs["rows"].astype(np.float64)[: t * k].reshape(t, k, case.sizes["H"])
    with np.errstate(over="ignore", invalid="ignore"):
        return stored((rows * picked(inputs)[1]).sum(1), case)


def in_rows_dtype(inputs: dict, case: Case) -> dict:
    """A running sum in the dtype of the rows, rounded after every pick."""
    to, total = DTYPES[case.dtype], np.zeros((case.sizes["T"], case.sizes["H"]))
    rows, weights = picked(inputs)
    with np.errstate(over="ignore", invalid="ignore"):
        for slot in range(rows.shape[1]):
            total = (total + rows[:, slot] * weights[:, slot]).astype(to).astype(np.float64)
    return stored(total, case)


def rows_in_fp16(inputs: dict, case: Case) -> dict:
    rows, weights = picked(inputs)
    with np.errstate(over="ignore", invalid="ignore"):
        return stored((rows.astype(np.float16).astype(np.float64) * weights).sum(1), case)


def weights_in_rows_dtype(inputs: dict, case: Case) -> dict:
    rows, weights = picked(inputs)
    with np.errstate(over="ignore", invalid="ignore"):
        return stored((rows * rounded(weights, case.dtype).astype(np.float64)).sum(1), case)


COMBINE = (
    family(
        "no weights", "each row counts by its weight: multiply before you add", would(lambda y, w: y.sum(1))
    ),
    family(
        "a mean", "the weights say how much of each row; this is their mean", would(lambda y, w: y.mean(1))
    ),
    family(
        "made to add up to 1",
        "weights are taken as they are: they need not add up to 1",
        would(lambda y, w: (y * w).sum(1) / w.sum(1)),
    ),
    family(
        "rows as they lie",
        "a token's rows do not lie beside each other: place[token, slot] is the row of each",
        as_they_lie,
    ),
    family(
        "the last pick alone",
        "each pick is added to what is there; here the last one stands alone",
        would(lambda y, w: y[:, -1] * w[:, -1]),
    ),
    family(
        "the first pick alone",
        "a token has K picks: this is the first one alone",
        would(lambda y, w: y[:, 0] * w[:, 0]),
    ),
    family(
        "the first weight for all",
        "every pick has a weight of its own: weights[token, slot]",
        would(lambda y, w: (y * w[:, :1]).sum(1)),
    ),
    family(
        "a sum in the rows' dtype",
        "close, but off: the sum is to be fp32 from first to last, and rounded once",
        in_rows_dtype,
    ),
    family(
        "weights in the rows' dtype",
        "close, but off: the weights are fp32, and lose digits in the dtype of the rows",
        weights_in_rows_dtype,
    ),
)

SHORTCUTS = {
    "rows in fp16": computing(rows_in_fp16),
    **{
        f"{name} up to {most}": within_limit(name, most)
        for name, most in (
            *(("T", most) for most in (1, 32, 128, 256)),
            *(("K", most) for most in (1, 2, 4)),
            *(("H", most) for most in (64, 128, 256, 1024, 4096)),
        )
    },
    "at least one token": lambda question, case: case.sizes["T"] == 0,
    **{
        f"stride {axis} of {name} taken for 1": one_stride(name, axis)
        for name in ("rows", "place", "weights", "out")
        for axis in (0, 1)
    },
    **{f"{name} taken for dense": dense(name) for name in ("rows", "place", "weights", "out")},
    "the strides of the rows for the result": same_strides("rows", "out"),
    "the strides of the places for the weights": same_strides("place", "weights"),
}
