"""Choose rows of a large case to compare with the float64 reference, if all rows would take minutes.

Each sample is a smaller problem of the same kind: its inputs, its case, and the position of its outputs in the whole.
The rows are drawn after the answer is fixed. `written` (a mask for each output) limits them to the output of some
programs.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from grader.questions.far import Written, picked
from grader.questions.model import Case, KernelQuestion

ROWS = 256
KEYS = 4096  # of a query, beyond which fewer are drawn: their numbers leave a core's cache
HEADS = 8  # whose keys are kept in float64, since many queries have the same ones
Sample = tuple[dict, Case, dict]


def whole(question: KernelQuestion, inputs: dict, case: Case, rng, written=None) -> Iterator[Sample]:
    yield inputs, case, {t.name: ... for t in question.tensors if t.role != "in"}


def rows(*sizes: str) -> Callable:
    """Draw rows along sizes whose parts are independent, always with the first and the last.

    The size "M" is the axis "m" of every tensor that has one."""

    def some(question: KernelQuestion, inputs: dict, case: Case, rng, written=None) -> Iterator[Sample]:
        chosen = {}
        for size in sizes:
            there = (
                np.arange(case.sizes[size]) if written is None else _written_along(question, size, written)
            )
            if not len(there):
                return
            chosen[size] = np.unique([there[0], there[-1], *rng.choice(there, min(ROWS, len(there)))])
        spots = {
            t.name: tuple(chosen.get(axis.upper(), slice(None)) for axis in t.axes) for t in question.tensors
        }
        lengths = {size: len(one) for size, one in chosen.items()}
        part = replace(case, sizes={**case.sizes, **lengths}, layout={})
        cut = {name: picked(value, spots[name]) if name in spots else value for name, value in inputs.items()}
        yield cut, part, {t.name: spots[t.name] for t in question.tensors if t.role != "in"}

    return some


def _written_along(question: KernelQuestion, size: str, written: dict[str, Written]) -> np.ndarray:
    """Return the indices along a size at which anything was written."""
    at = {t.name: t.axes.index(size.lower()) for t in question.tensors if size.lower() in t.axes}
    found = [one.along(at[name]) for name, one in written.items() if name in at]
    return np.unique(np.concatenate(found))


def causal_rows(question: KernelQuestion, inputs: dict, case: Case, rng, written=None) -> Iterator[Sample]:
    """Draw single queries, each with the keys that it sees, always with the last query."""
    b, h, g, m, n = (case.sizes[name] for name in "BHGMN")
    if written is None:
        places = [
            (int(rng.integers(0, b)), int(rng.integers(0, h)), int(at))
            for at in (m - 1, *rng.integers(0, m, ROWS - 1))
        ]
    else:
        there = written["o"].rows()
        if not len(there):
            return
        rows = min(ROWS, ROWS * KEYS**2 // n**2)
        drawn = rng.choice(len(there), min(rows, len(there)), replace=False)
        places = [tuple(map(int, there[i])) for i in (len(there) - 1, *drawn)]

    @lru_cache(maxsize=HEADS)
    def keys(batch: int, head: int) -> dict[str, np.ndarray]:
        """Return all keys and values of a head, in the dtype in which every reference computes."""
        spot = slice(batch, batch + 1), slice(head, head + 1)
        return {name: inputs[name][spot].astype(np.float64) for name in "kv"}

    for batch, head, at in places:
        last = at + 1 + n - m
        query = (slice(batch, batch + 1), slice(head, head + 1), slice(at, at + 1))
        part = replace(case, sizes={**case.sizes, "B": 1, "H": 1, "G": 1, "M": 1, "N": last}, layout={})
        seen = {name: one[:, :, :last] for name, one in keys(batch, head // (h // g)).items()}
        yield {"q": inputs["q"][query].astype(np.float64), **seen}, part, {"o": query}


def heads(question: KernelQuestion, inputs: dict, case: Case, rng, written=None) -> Iterator[Sample]:
    """Draw one whole head, for outputs whose rows depend on all others of their head and on nothing else."""
    batch, head = int(rng.integers(case.sizes["B"])), int(rng.integers(case.sizes["H"]))
    spot = (slice(batch, batch + 1), slice(head, head + 1))
    part = replace(case, sizes={**case.sizes, "B": 1, "H": 1, "G": 1}, layout={})
    cut = {name: value[spot] for name, value in inputs.items()}
    yield cut, part, {t.name: spot for t in question.tensors if t.role != "in"}


def batches(question: KernelQuestion, inputs: dict, case: Case, rng, written=None) -> Iterator[Sample]:
    """Draw one sequence of a batch, with all its heads."""
    at = int(rng.integers(case.sizes["B"]))
    part = replace(case, sizes={**case.sizes, "B": 1}, layout={})
    cut = {name: value[at : at + 1] for name, value in inputs.items()}
    yield cut, part, {t.name: slice(at, at + 1) for t in question.tensors if t.role != "in"}


def of(question: KernelQuestion) -> Callable:
    return question.speed.sampled or whole
