"""Draw the inputs of *tile settings* and limit their cost."""

from grader.questions import Budget, Case
from grader.questions.work import work

EACH = 20  # operations of every kind for a number of C
PRODUCT = 0.3  # and for each of its products, of which tl.dot takes an eighth and addresses take less
TILES = "the sides of the tile: each program loads a band of A as high as its tile and a band of B as wide"


def large_tiles(c: Case) -> list[Budget]:
    """Return the loads of 128 x 256 tiles, or 256 x 128 ones."""
    m, n, k = (c.sizes[s] for s in "MNK")
    loads = max(m * k * n // wide + k * n * m // high for high, wide in ((128, 256), (256, 128)))
    return [
        Budget(
            what="all loads",
            most=2 * loads,
            look=TILES,
            model=f"{m} x {k} and {k} x {n} elements of 2 bytes, in tiles of 128 x 256",
        ),
        work(
            EACH + PRODUCT * k,
            m * n,
            f"{m} x {n} numbers of C, and {PRODUCT:g} for each of their {k} products",
        ),
    ]
