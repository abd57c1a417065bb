"""Draw the inputs of *differences* and limit their cost."""

from grader.questions import Budget, Case
from grader.topics.roofline.shared import elements

BEFORE = "how often a number of x is loaded: once for itself and once for its successor"


def twice(c: Case) -> list[Budget]:
    n = c.sizes["N"]
    return [
        Budget(
            what="read of x",
            tensor="x",
            most=2 * elements(c, "n"),
            least=elements(c, "n"),
            look=BEFORE,
            model=f"{n} elements of 4 bytes, at i and at i - 1",
        )
    ]
