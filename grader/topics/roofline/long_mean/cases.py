"""Draw the inputs of *long mean* and limit their cost."""

from grader.questions import Budget, Case

LANES = "what is done with each number, and how many lanes of the last piece are masked: they take instructions all the same"
# operations a number, within which pieces of 128 or 256 stay, but not a single block for 1,100 numbers
PIECES = 1.6


def few_idle_lanes(c: Case) -> list[Budget]:
    m, n = c.sizes["M"], c.sizes["N"]
    return [
        Budget(
            what="operations",
            count="operations",
            most=PIECES * m * n,
            look=LANES,
            model=f"{PIECES} for each of {m} x {n} numbers",
        ),
    ]
