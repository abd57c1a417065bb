"""Ask *sum and max*, and weigh its parts."""

import numpy as np

from grader.questions import Free, UpTo
from grader.questions.draws import between, odd
from grader.topics.roofline.shared import ENDLESS, FUSION, TOO_LARGE, case, each_moved_once, rung
from grader.topics.roofline.sum_and_max.mistakes import MISTAKES

QUESTION = rung(
    id="roofline.sum_and_max",
    asks="s[i] = the sum of row i of x and m[i] = its largest number, for an N of at most 1024, with x loaded once",
    reads=("x mn",),
    writes=("s m", "m m"),
    formula=lambda t, c: (t["x"].sum(1), t["x"].max(1)),
    size_of_terms=lambda t, c: (np.abs(t["x"]).sum(1), np.zeros(len(t["x"]))),
    public=(case(M=4, N=64), case(M=3, N=100, kind="a row that fills no block")),
    hidden=lambda rng: [
        case(M=between(rng, 3, 9), N=odd(rng, 5, 63), values="below zero", kind="all numbers below zero"),
        case(
            M=between(rng, 3, 9),
            N=between(rng, 17, 60),
            values="far below zero",
            kind="all numbers far below zero",
        ),
        case(M=between(rng, 3, 9), N=between(rng, 520, 1000), kind="long rows"),
        case(M=between(rng, 100, 200), N=1, values="the lowest", kind="rows of one number"),
        case(M=3, N=1024, kind="the longest row"),
        case(M=between(rng, 3, 9), N=odd(rng, 65, 199), values=TOO_LARGE, kind=TOO_LARGE),
        case(M=between(rng, 20, 40), N=odd(rng, 65, 199), values=ENDLESS, kind="infinities in a row"),
    ],
    rows="M",
    alike=("x",),
    free={"x": Free(1e30, 1e30, "M")},
    up_to={"M": UpTo(70_000), "N": UpTo(1024)},
    metered=lambda rng: case(M=between(rng, 20, 30), N=between(rng, 300, 500), kind="the metered size"),
    a_program=("m", 8),
    blocks={"M": 8, "N": 1024},
    budgets={"traffic": each_moved_once("x mn", "s m!", "m m!")},
    where=FUSION,
    hints=(
        "Which value of a masked element doesn't change the sum, and which value doesn't change the maximum?",
        "A masked element must be 0 in the sum and minus infinity in the maximum. One load can give only one of these values, so make the other with tl.where(mask, a, b).",
        "tl.max(tl.where(offs < N, x, float('-inf')), axis=0), and tl.sum(x, axis=0) of what was loaded with other=0.0",
    ),
    mistakes=MISTAKES,
)
