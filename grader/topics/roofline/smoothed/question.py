"""Ask *smoothed*, and weigh its parts."""

from grader.questions import Free, UpTo
from grader.questions.draws import between, log_uniform
from grader.topics.roofline.shared import ENDLESS, HUGE_FIRST, PROGRAMS, each_moved_once, rung
from grader.topics.roofline.smoothed import cases
from grader.topics.roofline.smoothed.mistakes import MISTAKES

QUESTION = rung(
    id="roofline.smoothed",
    asks="y[t] = (1 - alpha) y[t - 1] + alpha x[t] down the columns of a T x M matrix x, starting from y[-1] = 0",
    reads=("x tm",),
    writes=("y tm",),
    formula=lambda t, c: cases.smoothed(t["x"], c.scalars["alpha"]),
    size_of_terms=lambda t, c: cases.largest(t["x"], c.scalars["alpha"]),
    public=(
        cases.paced(0.5, T=4, M=64),
        cases.paced(0.25, T=10, M=100, kind="a last piece that is not full"),
    ),
    hidden=lambda rng: [
        cases.paced(
            rng.uniform(0.05, 0.95), T=between(rng, 20, 40), M=between(rng, 65, 300), kind="another alpha"
        ),
        cases.paced(
            rng.uniform(0.05, 0.95), T=1, M=between(rng, 4200, 4500), kind="a single step of many columns"
        ),
        cases.paced(log_uniform(rng, 1e-3, 1e-2), T=between(rng, 5, 9), M=70, kind="a small alpha"),
        cases.paced(log_uniform(rng, 1e-8, 1e-6), T=between(rng, 5, 40), M=70, kind="a tiny alpha"),
        cases.paced(1.0, T=between(rng, 5, 9), M=70, kind="an alpha of 1"),
        cases.paced(
            rng.uniform(0.6, 0.9), T=between(rng, 150, 200), M=3, values="far from zero", kind="many steps"
        ),
        cases.paced(
            rng.uniform(0.05, 0.95),
            T=between(rng, 9, 20),
            M=between(rng, 65, 199),
            values=ENDLESS,
            kind="infinities in columns",
        ),
        cases.paced(1.0, T=between(rng, 5, 9), M=70, values=ENDLESS, kind="infinities at an alpha of 1"),
        cases.paced(
            1 - log_uniform(rng, 1e-6, 1e-3),
            T=between(rng, 200, 600),
            M=70,
            values=ENDLESS,
            kind="infinities at an alpha of nearly 1",
        ),
        cases.paced(
            rng.uniform(0.05, 0.95),
            T=between(rng, 9, 20),
            M=between(rng, 65, 199),
            values="next to zero",
            kind="numbers next to zero",
        ),
        cases.paced(
            rng.uniform(0.03, 0.9), T=between(rng, 700, 990), M=7, values=HUGE_FIRST, kind=HUGE_FIRST
        ),
        cases.paced(
            rng.uniform(0.9, 0.995),
            T=between(rng, 700, 990),
            M=70,
            values=ENDLESS,
            kind="infinities long before the end",
        ),
    ],
    rows="M",
    sized=cases.sized,
    sized_in_part=cases.sized_in_part,
    alike=("x",),
    free={"x": Free(1e30, 1e30, "M", least=1e-34)},
    any_scalar=("alpha",),
    up_to={"T": UpTo(1000), "M": UpTo(100_000)},
    metered=lambda rng: cases.paced(
        0.5, T=between(rng, 20, 30), M=8 * between(rng, 257, 270), kind="the metered size"
    ),
    a_program=("m", 128),
    blocks={"M": 128},
    budgets={"traffic": each_moved_once("x tm", "y tm!")},
    where=PROGRAMS,
    hints=(
        "Columns don't depend on each other, but each step depends on the step before it. Can you divide the columns among programs, or the steps?",
        "A program owns BLOCK columns and keeps one number h for each. A loop over t loads a piece of row t, updates h and stores it.",
        "h = (1 - alpha) * h + alpha * tl.load(x_ptr + t * M + offs, mask=offs < M, other=0.0)",
    ),
    mistakes=MISTAKES,
)
