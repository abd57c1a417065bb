"""Ask *subtracted*, and weigh its parts."""

from grader.questions import Free, UpTo
from grader.questions.draws import between, odd, spread
from grader.topics.roofline.shared import A_RUN, PROGRAMS, case, each_moved_once, rung
from grader.topics.roofline.subtracted.mistakes import MISTAKES

QUESTION = rung(
    id="roofline.subtracted",
    asks="y = x - z for matrices of M x N with any strides, in tiles",
    reads=("x mn", "z mn"),
    writes=("y mn",),
    formula=lambda t, c: t["x"] - t["z"],
    public=(
        case(M=32, N=64),
        case(M=20, N=50, kind="ragged tiles"),
        case(M=33, N=40, layout={"z": "transposed"}, kind="z lies column by column"),
    ),
    hidden=lambda rng: [
        case(
            M=between(rng, 17, 90), N=between(rng, 17, 90), layout=spread(rng, *"xzy"), kind="no stride of 1"
        ),
        case(
            M=odd(rng, 33, 99), N=odd(rng, 33, 99), layout=dict.fromkeys("xzy", "transposed"), kind="columns"
        ),
        case(M=1, N=between(rng, 1100, 1500), kind="a single row"),
        case(M=between(rng, 70, 90), N=between(rng, 140, 190), values=A_RUN, kind=A_RUN),
        case(M=between(rng, 1100, 1500), N=1, kind="a single column"),
        case(
            M=odd(rng, 65, 129),
            N=odd(rng, 129, 257),
            layout={"x": "padded", "y": "transposed"},
            kind="strided matrices",
        ),
    ],
    alike=("x", "z"),
    free=dict.fromkeys("xz", Free(1.7e38, 1.7e38)),
    up_to=dict.fromkeys("MN", UpTo(100_000)),
    metered=lambda rng: case(M=between(rng, 500, 540), N=8 * between(rng, 66, 72), kind="the metered size"),
    a_program=("mn", 128 * 128),
    blocks={"M": 128, "N": 128},
    budgets={"traffic": each_moved_once("x mn", "z mn", "y mn!")},
    where=PROGRAMS,
    hints=(
        "A tile has rows and columns. Make one block of row indices and one of column indices, each from a program id of its own.",
        "Make the row indices a column, offs_m[:, None], and the column indices a row, offs_n[None, :]. Combining the two gives a whole tile.",
        "x = tl.load(x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))",
    ),
    mistakes=MISTAKES,
)
