"""Make some inputs faint and others large, such that products stay as they are or results become faint with them.

A kernel may leave out blocks whose numbers seem too small to matter, or cut large ones off. Such numbers matter if others make
up for them, or if all are alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from grader.questions.model import Case, KernelQuestion

KIND = "faint or large numbers"
POWERS = {True: (12, 12), False: (14, 20)}  # of two, of a case in fp16 and in a wider dtype
SOME, FEW = 1 / 2, 1 / 32  # of an input's elements
OUTLYING = 10  # power of two of a few that lie far above all others


def cases(question: KernelQuestion, plain: list[Case], rng: np.random.Generator) -> Iterator[Case]:
    """Yield for each group of inputs a case in which it is large, and one in which it is faint, in fp16 and in a wider dtype.
    An input on its own also has some faint elements, and a few large ones."""
    for group in question.balanced:
        for narrow in (True, False):
            for way in (1, -1):
                power = way * int(rng.integers(POWERS[narrow][0], POWERS[narrow][1] + 1))
                fitting = [
                    c for c in plain if (c.dtype == "fp16") == narrow and fits(question, c, group, way)
                ]
                yield from scaled(fitting, {name: (power * sign, 1.0) for name, sign in group.items()}, rng)
        if len(group) == 1:
            yield from scaled(plain, dict.fromkeys(group, (-POWERS[True][0], SOME)), rng)
            fitting = [case for case in plain if fits(question, case, group, 1)]
            yield from scaled(fitting, dict.fromkeys(group, (OUTLYING, FEW)), rng)


def metered(question: KernelQuestion, rng: np.random.Generator) -> Iterator[Case]:
    """Yield a case of about the metered size for each input that changes results alone, all of whose numbers are large, since a
    kernel may treat large results in a second pass."""
    for group in question.balanced if question.metered else ():
        case = replace(question.metered(rng), dtype="bf16", sm_count=0)
        if len(group) == 1 and fits(question, case, group, 1):
            large = scaled([case], dict.fromkeys(group, (POWERS[False][1], 1.0)), rng)
            yield from (replace(one, crossed=False, kind=f"about the metered size: {KIND}") for one in large)


def scaled(fitting: list[Case], powers: dict, rng: np.random.Generator) -> Iterator[Case]:
    """Yield one of these cases, if there are any, with such powers of two for shares of the elements of inputs."""
    if fitting:
        yield replace(fitting[rng.integers(len(fitting))], kind=KIND, crossed=True, scaled=powers)


def fits(question: KernelQuestion, case: Case, group: dict, way: int) -> bool:
    """Return whether outputs hold the results. Those in fp16 don't if all inputs of a group are large."""
    outputs = {case.dtype_of(tensor) for tensor in question.tensors if tensor.role != "in"}
    return "fp16" not in outputs or min(way * sign for sign in group.values()) < 0
