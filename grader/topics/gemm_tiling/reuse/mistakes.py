"""List the mistakes of *reuse*, a row each."""

from grader.questions import Mistake

MISTAKES = (
    Mistake(
        "one FLOP",
        "this is half the right number: a multiply-add counts as two FLOP, and a step loads its bm + bn elements once",
        cell="def reuse(bm, bn):\n    return bm * bn / (bm + bn)",
    ),
    Mistake(
        "upside down",
        "this is the loads per FLOP: divide the FLOP, 2 * bm * bn, by the loads",
        cell="def reuse(bm, bn):\n    return (bm + bn) / (2 * bm * bn)",
    ),
    Mistake(
        "arithmetic mean",
        "this is the arithmetic mean of the sides: divide by the loads of both sides, bm + bn",
        cell="def reuse(bm, bn):\n    return (bm + bn) / 2",
    ),
)


SHORTCUTS = {"square tiles": lambda bm, bn: float(bm)}
