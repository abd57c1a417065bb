"""Ask *differences*, and weigh its parts."""

import numpy as np

from grader.questions import Free, UpTo
from grader.questions.draws import between, odd
from grader.topics.roofline.differences import cases
from grader.topics.roofline.differences.mistakes import MISTAKES
from grader.topics.roofline.shared import A_RUN, INFINITE, PROGRAMS, case, each_moved_once, rung

QUESTION = rung(
    id="roofline.differences",
    asks="y[i] = x[i] - x[i - 1], and y[0] = x[0], for any N",
    reads=("x n",),
    writes=("y n",),
    formula=lambda t, c: np.diff(t["x"], prepend=0.0),
    public=(case(N=64), case(N=100, kind="a last piece that is not full")),
    hidden=lambda rng: [
        case(N=1, kind="a single number"),
        case(N=odd(rng, 131, 999), kind="another length"),
        case(N=between(rng, 42000, 50000), kind="many programs"),
        case(N=between(rng, 65, 127), values="far from zero", kind="numbers far from zero"),
        case(N=between(rng, 65, 127), values=INFINITE, kind=INFINITE),
        case(N=between(rng, 9000, 12000), values=A_RUN, kind=A_RUN),
    ],
    alike=("x",),
    free={"x": Free(1.7e38, 1.7e38)},
    up_to={"N": UpTo(131_072)},
    metered=lambda rng: case(N=between(rng, 900, 1100), kind="the metered size"),
    a_program=("n", 256),
    blocks={"N": 256},
    budgets={"traffic": lambda c: [*cases.twice(c), *each_moved_once("y n!")(c)]},
    where=PROGRAMS,
    hints=(
        "Two loads can leave the array. The last program can read past its end, and the first program's first element has no element before it.",
        "Load x twice, at offs and at offs - 1, each time with its own mask. A masked element gets the value of other=.",
        "before = tl.load(x_ptr + offs - 1, mask=(offs > 0) & (offs < N), other=0.0)",
    ),
    mistakes=MISTAKES,
)
