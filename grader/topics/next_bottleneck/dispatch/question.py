"""Ask *dispatch*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.next_bottleneck.dispatch import cases
from grader.topics.next_bottleneck.dispatch.mistakes import MISTAKES
from grader.topics.next_bottleneck.shared import LESSON

QUESTION = NumpyQuestion(
    id="next_bottleneck.dispatch",
    notebook="concepts",
    asks="dispatch(request, least, most, multiple, seconds): the index of the fastest kernel that may run (the first among equally fast ones, -1 if none may run), and the number of kernels that are faster but invalid (all kernels if none may run). Kernel i may run if least[i] <= request <= most[i] in every feature and every feature is a multiple of multiple[i]",
    entry="dispatch",
    parts=(Part("values", 3, "calls"),),
    reference=cases.dispatch,
    public=(
        Call(
            (
                np.array([90, 128]),
                np.array([[100, 64], [90, 64], [80, 64]]),
                np.array([[100, 256], [90, 128], [100, 512]]),
                np.array([[1, 8], [1, 64], [1, 16]]),
                np.array([1.0, 3.0, 2.0]),
            ),
            "three attention kernels",
        ),
        Call(
            (
                np.array([80, 96]),
                np.array([[90, 64], [75, 64]]),
                np.array([[100, 256], [100, 256]]),
                np.array([[1, 8], [1, 64]]),
                np.array([1.0, 2.0]),
            ),
            "none may run",
        ),
    ),
    hidden=lambda rng: (
        [Call(cases.table(rng, between(rng, 5, 9), 3, between(rng, 2, 3)), "another table") for _ in range(6)]
        + [Call(cases.table(rng, between(rng, 4, 7), 2, 0), "none may run") for _ in range(2)]
        + [Call(cases.at_borders(rng), "a request at the borders") for _ in range(2)]
        + [Call(cases.only_multiples(rng), "only a multiple is broken") for _ in range(2)]
        + [Call(cases.tied(rng), "equally fast kernels, valid and not") for _ in range(4)]
        + [
            Call(
                (
                    np.array([16]),
                    np.array([[8], [8], [32]]),
                    np.array([[32], [32], [64]]),
                    np.array([[8], [8], [8]]),
                    np.array([2.0, 2.0, 1.0]),
                ),
                "two equally fast",
            )
        ]
    ),
    where=f'{LESSON}/e_dispatch.ipynb, "The dispatcher"',
    hints=(
        "First find the kernels that may run, then the fastest among them.",
        "Make a row of booleans per kernel from least <= request, request <= most and request % multiple == 0, and reduce it over the features with all(axis=1). Give the kernels that may not run an infinite time.",
        "valid = (...).all(axis=1); if not valid.any(): return -1, len(seconds); i = int(np.where(valid, seconds, np.inf).argmin()); return i, int((~valid & (seconds < seconds[i])).sum())",
    ),
    mistakes=MISTAKES,
)
