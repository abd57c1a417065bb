"""Draw the inputs of *smoothed* and limit their cost."""

from dataclasses import replace

import numpy as np

from grader.questions import Case
from grader.topics.roofline.shared import case


def paced(alpha: float, kind: str = "a plain size", values: str = "normal", **sizes: int) -> Case:
    return replace(case(kind, values, **sizes), scalars={"alpha": float(alpha)})


TOGETHER = 1 << 20  # numbers of a case whose axes are both long: its steps follow one another
IN_PART = 1 << 22  # where a few programs run
ROUNDED = 16  # steps, whose roundings together a sum of fp32 numbers may be off by


def sized(most: int = TOGETHER, **sizes: int) -> Case:
    return paced(0.5, T=min(sizes["T"], max(2, most // sizes["M"])), M=sizes["M"])


def sized_in_part(**sizes: int) -> Case:
    return sized(IN_PART, **sizes)


def smoothed(x: np.ndarray, alpha: float) -> np.ndarray:
    """y[t] = (1 - alpha) y[t - 1] + alpha x[t], from 0 on."""
    y, h = np.empty_like(x), np.zeros(x.shape[1])
    for t, row in enumerate(x):
        y[t] = h = (1 - alpha) * h + alpha * row
    return y


def largest(x: np.ndarray, alpha: float) -> np.ndarray:
    """Return how large the terms of a sum may have been: at a small alpha little of x has come in after a few steps, each of
    which rounds what has."""
    steps = np.arange(1, len(x) + 1)[:, None]
    share = np.minimum(1.0, 2 * alpha * steps * np.maximum(1.0, steps / ROUNDED))
    return share * np.maximum.accumulate(np.abs(x))
