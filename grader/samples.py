"""Which rows of a timed case are compared with the float64 reference, where all of them would take minutes.

Each sample is a smaller problem of the same kind: its inputs, its case, and where its outputs lie in the whole.
The rows are drawn after the answer is fixed.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from grader.questions import Case, KernelQuestion

ROWS = 256
Sample = tuple[dict, Case, dict]


def whole(question: KernelQuestion, inputs: dict, case: Case, rng) -> Iterator[Sample]:
    yield inputs, case, {t.name: ... for t in question.tensors if t.role != "in"}


def rows(size: str) -> Callable:
    """Rows along a size whose parts have nothing to do with one another; the first and the last among them."""

    def some(question: KernelQuestion, inputs: dict, case: Case, rng) -> Iterator[Sample]:
        count = case.sizes[size]
        chosen = np.unique([0, count - 1, *rng.integers(0, count, ROWS)])
        spots = {
            t.name: tuple(chosen if s == size else slice(None) for s in t.shape) for t in question.tensors
        }
        part = replace(case, sizes={**case.sizes, size: len(chosen)}, layout={})
        cut = {name: np.ascontiguousarray(value[spots[name]]) for name, value in inputs.items()}
        yield cut, part, {t.name: spots[t.name] for t in question.tensors if t.role != "in"}

    return some


def causal_rows(question: KernelQuestion, inputs: dict, case: Case, rng) -> Iterator[Sample]:
    """Single queries, each with the keys that it sees: the last of them all, and others."""
    b, h, g, m, n = (case.sizes[name] for name in "BHGMN")
    for at in (m - 1, *rng.integers(0, m, ROWS - 1)):
        batch, head = rng.integers(0, b), rng.integers(0, h)
        last = int(at) + 1 + n - m
        keys = (slice(batch, batch + 1), slice(head // (h // g), head // (h // g) + 1), slice(0, last))
        query = (slice(batch, batch + 1), slice(head, head + 1), slice(at, at + 1))
        part = replace(case, sizes={**case.sizes, "B": 1, "H": 1, "G": 1, "M": 1, "N": last}, layout={})
        yield {"q": inputs["q"][query], "k": inputs["k"][keys], "v": inputs["v"][keys]}, part, {"o": query}


def of(question: KernelQuestion) -> Callable:
    return question.speed.sampled or whole
