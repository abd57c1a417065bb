"""List the mistakes of *reuse*, a row each."""

from grader.questions import Mistake

MISTAKES = (
    Mistake(
        "one FLOP",
        "half of what is wanted: a multiply-add counts as two FLOPs, and a step loads its bm + bn elements once",
        cell="def reuse(bm, bn):\n    return bm * bn / (bm + bn)",
    ),
    Mistake(
        "upside down",
        "this is what a tile loads for each FLOP: the FLOPs stand above the line, 2 * bm * bn, and the loads below",
        cell="def reuse(bm, bn):\n    return (bm + bn) / (2 * bm * bn)",
    ),
    Mistake(
        "arithmetic mean",
        "this is the arithmetic mean of the sides; the loads of both sides add up below the line",
        cell="def reuse(bm, bn):\n    return (bm + bn) / 2",
    ),
)


SHORTCUTS = {"square tiles": lambda bm, bn: float(bm)}
