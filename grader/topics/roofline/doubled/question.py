"""Ask *doubled*, and weigh its parts."""

from grader.questions import Free, UpTo
from grader.questions.draws import between
from grader.topics.roofline.doubled.mistakes import MISTAKES
from grader.topics.roofline.shared import PROGRAMS, case, each_moved_once, rung

QUESTION = rung(
    id="roofline.doubled",
    asks="y = 2 x, for an N that is a multiple of 64, with 64 elements per program",
    reads=("x n",),
    writes=("y n",),
    formula=lambda t, c: 2 * t["x"],
    public=(case(N=64, kind="one program"), case(N=256)),
    hidden=lambda rng: [
        case(N=64 * between(rng, 5, 9), kind="more programs"),
        case(N=64 * between(rng, 700, 900), kind="many programs"),
    ],
    signed=("y",),
    alike=("x",),
    free={"x": Free(1.7e38, 1.7e38)},
    up_to={"N": UpTo(131_072, 64, 64)},
    metered=lambda rng: case(N=64 * between(rng, 12, 20), kind="the metered size"),
    a_program=("n", 64),
    blocks={"N": 64},
    budgets={"traffic": each_moved_once("x n", "y n!")},
    where=PROGRAMS,
    hints=(
        "Each program has 64 elements of its own. Which ones does program 0 have, and which ones does program 3 have?",
        "Program pid begins at pid * BLOCK; tl.arange(0, BLOCK) counts from there.",
        "offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK); then tl.load(x_ptr + offs), and tl.store(y_ptr + offs, ...)",
    ),
    mistakes=MISTAKES,
)
