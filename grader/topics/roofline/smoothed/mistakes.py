"""List the mistakes of *smoothed*, a row each."""

from collections.abc import Callable

import numpy as np

from grader.questions import Case
from grader.questions.families import within_limit
from grader.topics.roofline.shared_mistakes import changed, gives, of_ladder


def carried(step: Callable, first: Callable = lambda x, a: 0 * x) -> Callable:
    """Return h after each step: `step(h, x, alpha)`, from `first(x[0], alpha)` on."""

    def wrong(t: dict, c: Case) -> np.ndarray:
        alpha, y = c.scalars["alpha"], np.empty_like(t["x"])
        h = first(t["x"][0], alpha)
        for i, x in enumerate(t["x"]):
            y[i] = h = step(h, x, alpha)
        return y

    return wrong


def right_step(h, x, alpha):
    return h + alpha * (x - h)


def a_step_late(t: dict, c: Case) -> np.ndarray:
    y = carried(right_step)(t, c)
    return np.vstack([0 * y[:1], y[:-1]])


def backwards(t: dict, c: Case) -> np.ndarray:
    return carried(right_step)({"x": t["x"][::-1]}, c)[::-1]


MISTAKES = of_ladder(
    ("y",),
    {
        "weights exchanged": gives(
            "alpha and 1 - alpha are swapped: alpha is the share of x",
            carried(lambda h, x, a: a * h + (1 - a) * x),
            by=[("(1 - alpha) * h + alpha * x", "alpha * h + (1 - alpha) * x")],
        ),
        "nothing carried": gives(
            "this is alpha x: the value of the step before is missing",
            carried(lambda h, x, a: a * x),
            by=[("(1 - alpha) * h + ", "")],
        ),
        "x itself": gives(
            "this is x unchanged: store h",
            lambda t, c: t["x"],
            by=[("offs, h, mask", "offs, x, mask")],
        ),
        "nothing forgotten": gives(
            "the step before has its full weight: multiply it by 1 - alpha",
            carried(lambda h, x, a: h + a * x),
            by=[("(1 - alpha) * h", "h")],
        ),
        "a step towards x": gives(
            "an infinity must stay: where h is infinite, x - h is the opposite infinity, and their sum is NaN",
            carried(right_step),
            by=[("(1 - alpha) * h + alpha * x", "h + alpha * (x - h)")],
        ),
        "x in full": gives(
            "x has its full weight: multiply it by alpha",
            carried(lambda h, x, a: (1 - a) * h + x),
            by=[("+ alpha * x", "+ x")],
        ),
        "from the first row": gives(
            "this begins with h = x[0]: before the first step h is 0",
            carried(right_step, first=lambda x, a: x),
            by=[("h = tl.zeros((BLOCK,), tl.float32)", "h = tl.load(x_ptr + offs, mask=mask)")],
        ),
        "a step late": gives(
            "these are the values of the step before: update h first, then store it",
            a_step_late,
            by=[
                (
                    "        h = (1 - alpha) * h + alpha * x\n        tl.store(y_ptr + t * M + offs, h, mask=mask)",
                    "        tl.store(y_ptr + t * M + offs, h, mask=mask)\n        h = (1 - alpha) * h + alpha * x",
                )
            ],
        ),
        "backwards": gives(
            "this walks from the last row to the first",
            backwards,
            by=[("range(0, T)", "range(T - 1, -1, -1)")],
        ),
        "the last row alone": changed(
            (
                "        tl.store(y_ptr + t * M + offs, h, mask=mask)",
                "    tl.store(y_ptr + (T - 1) * M + offs, h, mask=mask)",
            )
        ),
        "rows of T": changed(("x_ptr + t * M", "x_ptr + t * T")),
        "beyond the end": changed(
            ("tl.load(x_ptr + t * M + offs, mask=mask)", "tl.load(x_ptr + t * M + offs)")
        ),
        "sums in fp16": changed(("+ alpha * x", "+ (alpha * x).to(tl.float16)")),
        "alpha kept from 0 and 1": changed(
            (
                "h = tl.zeros((BLOCK,), tl.float32)",
                "h = tl.zeros((BLOCK,), tl.float32)\n    alpha = tl.minimum(tl.maximum(alpha, 0.02), 0.98)",
            )
        ),
        "x loaded twice": changed(
            (
                "        h =",
                "        x = (x + tl.load(x_ptr + t * M + offs, mask=mask, volatile=True)) / 2\n        h =",
            ),
            part="traffic",
        ),
    },
)


SHORTCUTS = {"M up to 64": within_limit("M", 64), "T up to 16": within_limit("T", 16)}
