"""Ask *long mean*, and weigh its parts."""

import numpy as np

from grader.questions import Free, UpTo
from grader.questions.draws import between, odd
from grader.topics.roofline.long_mean import cases
from grader.topics.roofline.long_mean.mistakes import MISTAKES
from grader.topics.roofline.shared import ENDLESS, FUSION, case, each_moved_once, rung

QUESTION = rung(
    id="roofline.long_mean",
    asks="y[i] = the mean of row i of x, for rows of any length, which are loaded in pieces",
    reads=("x mn",),
    writes=("y m",),
    formula=lambda t, c: t["x"].mean(1),
    size_of_terms=lambda t, c: np.abs(t["x"]).mean(1),
    public=(case(M=2, N=512), case(M=3, N=300, kind="a last piece that is not full")),
    hidden=lambda rng: [
        case(M=2, N=between(rng, 9000, 12000), kind="a long row"),
        case(M=between(rng, 30, 60), N=between(rng, 2, 9), kind="rows shorter than a piece"),
        case(M=4, N=256 * between(rng, 3, 5) + 1, values="far from zero", kind="one more than whole pieces"),
        case(M=between(rng, 20, 40), N=odd(rng, 129, 399), values=ENDLESS, kind="infinities in a row"),
        case(M=3, N=between(rng, 9000, 12000), values=ENDLESS, kind="infinities in a long row"),
        case(M=3, N=between(rng, 40_000, 60_000), values=ENDLESS, kind="infinities in a very long row"),
        case(M=8, N=between(rng, 5000, 9000), values="large", kind="large numbers in long rows"),
    ],
    rows="M",
    alike=("x",),
    free={"x": Free(1e30, 1e30, "M")},
    up_to=dict.fromkeys("MN", UpTo(100_000)),
    metered=lambda rng: case(M=between(rng, 8, 12), N=between(rng, 1030, 1110), kind="the metered size"),
    a_program=("m", 4),
    blocks={"M": 4, "N": 512},
    budgets={"traffic": lambda c: [*each_moved_once("x mn", "y m!")(c), *cases.few_idle_lanes(c)]},
    where=FUSION,
    hints=(
        "Walk along the row, BLOCK elements at a time. What must be kept from one iteration to the next?",
        "Keep a block of BLOCK running sums, which start at zero. Each iteration adds the piece that it loads, and one tl.sum after the loop adds up the block.",
        "for start in range(0, N, BLOCK): total += tl.load(x_ptr + row * N + start + offs, mask=start + offs < N, other=0.0)",
    ),
    mistakes=MISTAKES,
)
