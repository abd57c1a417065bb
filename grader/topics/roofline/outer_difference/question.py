"""Ask *outer difference*, and weigh its parts."""

from grader.questions import Free, UpTo
from grader.questions.draws import between
from grader.topics.roofline.outer_difference import cases
from grader.topics.roofline.outer_difference.mistakes import MISTAKES
from grader.topics.roofline.shared import PROGRAMS, case, each_moved_once, rung

QUESTION = rung(
    id="roofline.outer_difference",
    asks="y[i, j] = a[i] - b[j], with a and b loaded once for each tile",
    reads=("a m", "b n"),
    writes=("y mn",),
    formula=lambda t, c: t["a"][:, None] - t["b"][None, :],
    public=(case(M=32, N=64), case(M=20, N=50, kind="ragged tiles")),
    hidden=lambda rng: [
        case(M=between(rng, 33, 90), N=between(rng, 91, 150), kind="other sizes"),
        case(M=1, N=between(rng, 1100, 1500), values="large", kind="a single row of large numbers"),
        case(M=between(rng, 1100, 1500), N=1, kind="a single column"),
    ],
    rows="M",
    alike=("a", "b"),
    free=dict.fromkeys("ab", Free(1.7e38, 1.7e38)),
    up_to=dict.fromkeys("MN", UpTo(100_000)),
    metered=lambda rng: case(M=between(rng, 500, 540), N=8 * between(rng, 66, 72), kind="the metered size"),
    a_program=("mn", 128 * 128),
    blocks={"M": 128, "N": 128},
    budgets={"traffic": lambda c: [*cases.pieces_by_tile(c), *each_moved_once("y mn!")(c)]},
    where=PROGRAMS,
    hints=(
        "A tile of 16 x 64 results needs 16 elements of a and 64 elements of b. Load only these.",
        "Load a block of BLOCK_M elements of a and a block of BLOCK_N elements of b. Give each block the dimension that it lacks, and subtract.",
        "a[:, None] - b[None, :] has BLOCK_M rows and BLOCK_N columns",
    ),
    mistakes=MISTAKES,
)
