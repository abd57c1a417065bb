"""Draw the inputs of *turned* and limit their cost."""

from grader.questions import Budget, Case
from grader.topics.roofline.shared import elements

SIDES = "how long the pieces are that neighbouring addresses make: on both sides, 8 numbers of 4 bytes fill a sector"
EDGES = 1.1


def whole_sectors(c: Case) -> list[Budget]:
    size = elements(c, "mn")
    model = f"{c.sizes['M']} x {c.sizes['N']} elements of 4 bytes + 10%"
    return [
        Budget(
            what="sectors of x",
            tensor="x",
            count="sectors",
            most=EDGES * size,
            least=size,
            look=SIDES,
            model=model,
        ),
        Budget(
            what="sectors of y",
            tensor="y",
            access="store",
            count="sectors",
            most=EDGES * size,
            least=size,
            look=SIDES,
            model=model,
        ),
    ]


SECTORS = 'course/00_roofline/b_addresses.ipynb, "Thirty-two addresses"'
