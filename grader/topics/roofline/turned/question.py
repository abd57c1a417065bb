"""Ask *turned*, and weigh its parts."""

from grader.questions import Free, UpTo
from grader.questions.draws import between
from grader.topics.roofline.shared import case, rung
from grader.topics.roofline.turned import cases
from grader.topics.roofline.turned.mistakes import MISTAKES

QUESTION = rung(
    id="roofline.turned",
    asks="y = x transposed, in whole sectors on both sides",
    reads=("x mn",),
    writes=("y nm",),
    formula=lambda t, c: t["x"].T,
    public=(case(M=32, N=64), case(M=20, N=50, kind="ragged tiles")),
    hidden=lambda rng: [
        case(M=between(rng, 17, 90), N=between(rng, 17, 90), kind="other sizes"),
        case(M=1, N=between(rng, 11000, 15000), values="large", kind="a single row of large numbers"),
        case(M=between(rng, 1100, 1500), N=between(rng, 2, 9), kind="many short rows"),
    ],
    rows="M",
    signed=("y",),
    far="MN",
    alike=("x",),
    free={"x": Free(1.7e38, 1.7e38)},
    up_to=dict.fromkeys("MN", UpTo(100_000)),
    metered=lambda rng: case(M=8 * between(rng, 62, 68), N=8 * between(rng, 66, 72), kind="the metered size"),
    a_program=("mn", 128 * 128),
    blocks={"M": 128, "N": 128},
    budgets={"traffic": cases.whole_sectors},
    where=cases.SECTORS,
    hints=(
        "How far apart in y are two neighbours of a row of x? If a tile is a single row or a single column, either its loads or its stores use only one element of each sector.",
        "A tile's rows are pieces of x's rows, and its columns are pieces of y's rows. Rows and columns must both be long enough to fill a sector.",
        "Load x_ptr + offs_m[:, None] * N + offs_n[None, :], store the same tile to y_ptr + offs_n[None, :] * M + offs_m[:, None], with 32 x 32 tiles",
    ),
    mistakes=MISTAKES,
)
