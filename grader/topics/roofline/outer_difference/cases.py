"""Draw the inputs of *outer difference* and limit their cost."""

import math
from dataclasses import replace

from grader.questions import Budget, Case
from grader.topics.roofline.shared import elements

SHARED = "what a tile of results needs of a and of b: a piece of each, not a number of each for every result"


def pieces_by_tile(c: Case) -> list[Budget]:
    """As often as tiles of 16 x 16 need them."""
    down, across = math.ceil(c.sizes["M"] / 16), math.ceil(c.sizes["N"] / 16)
    found = []
    for name, axis, times, what in (("a", "m", across, "columns"), ("b", "n", down, "rows")):
        piece = Budget(
            what=f"read of {name}",
            tensor=name,
            most=times * elements(c, axis),
            least=elements(c, axis),
            look=SHARED,
            model=f"{name} once for each of {times} {what} of 16 x 16 tiles",
        )
        asked = replace(piece, what=f"read of {name}, lane by lane", count="requested", least=0.0)
        found += [piece, asked]
    return found
