"""Limit a question's arithmetic of every kind together, so that no kind is free while another is counted."""

import math

from grader.questions.model import Budget

AGAIN = "what is computed more than once, or for lanes that nobody needs: whole numbers and tl.dot count too"

WHOLE_BLOCKS = "how large the blocks are, since tl.dot computes all of a block, and whether a product is computed more than once"


def work(each: float, of: float, words: str) -> Budget:
    """Allow `each` operations for each of `of` numbers, which `words` name."""
    return Budget(
        what="operations of every kind",
        count="work",
        most=each * of,
        look=AGAIN,
        model=f"{each:g} for each of {words}; a sixteenth of the FLOP in tl.dot counts with them",
    )


def filled(*sides: tuple[int, int]) -> int:
    """Return the size of a block whose sides are rounded up, (size, multiple) each."""
    return math.prod(math.ceil(size / by) * by for size, by in sides)
