"""Make some inputs faint and others large, such that products stay as they are or results become faint with them.

A kernel may leave out blocks whose numbers seem too small to matter, or cut large ones off. Such numbers matter if others make
up for them, or if all are alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions.model import Case, KernelQuestion

KIND = "faint or large numbers"
POWERS = {"fp16": (13, 13), "": (14, 20)}  # of two, of inputs with and without fp16
LARGEST = {"fp16": 2.0**15.9, "fp8e4nv": 2.0**8.8, "": 2.0**100}
SOME = 1 / 2  # of the indices along the last axis


def cases(question: KernelQuestion, plain: list[Case], rng: np.random.Generator) -> Iterator[Case]:
    """Yield for each group of inputs a case in which it is large, and one in which it is faint, in fp16 and in a wider dtype.
    An input on its own is also faint for some indices alone."""
    for group in question.balanced:
        for narrow in (True, False):
            for way in (1, -1):
                fitting = [
                    c for c in plain if (c.dtype == "fp16") == narrow and fits(question, c, group, way)
                ]
                if fitting:
                    case = fitting[rng.integers(len(fitting))]
                    scaled = {name: way * sign for name, sign in group.items()}
                    yield replace(case, kind=KIND, crossed=True, scaled=scaled)
        if len(group) == 1:
            case = plain[rng.integers(len(plain))]
            yield replace(case, kind=KIND, crossed=True, scaled=dict.fromkeys(group, SOME))


def fits(question: KernelQuestion, case: Case, group: dict, way: int) -> bool:
    """Return whether outputs hold the results. Those in fp16 don't if all inputs of a group are large."""
    outputs = {case.dtype_of(tensor) for tensor in question.tensors if tensor.role != "in"}
    return "fp16" not in outputs or way * min(group.values()) < 0


def scaled(case: Case, inputs: dict, rng: np.random.Generator) -> dict:
    """Return the inputs, each times a power of two or divided by it, as the case says."""
    names = [name for name in case.scaled if name in inputs]
    narrow = any(inputs[name].dtype == DTYPES["fp16"] for name in names)
    low, high = POWERS["fp16" if narrow else ""]
    power = int(rng.integers(low, high + 1))
    power = min([power, *(room(inputs[name]) for name in names if case.scaled[name] == 1)])
    found = dict(inputs)
    for name in names:
        way, value = case.scaled[name], inputs[name]
        if way == SOME:
            factor = 2.0 ** -(power * (rng.random(value.shape[-1]) < SOME))
        else:
            factor = 2.0 ** (power * way)
        found[name] = (value.astype(np.float32) * np.float32(factor)).astype(value.dtype)
    return found


def room(value: np.ndarray) -> int:
    """Return the largest power of two by which all finite numbers may grow."""
    wide = np.abs(value.astype(np.float64))
    largest = wide[np.isfinite(wide)].max(initial=0)
    most = next(
        (most for dtype, most in LARGEST.items() if dtype and value.dtype == DTYPES[dtype]), LARGEST[""]
    )
    return max(0, math.floor(math.log2(most / largest))) if largest else 0
