"""Ask *tile sectors*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.roofline.tile_sectors import cases
from grader.topics.roofline.tile_sectors.mistakes import MISTAKES

QUESTION = NumpyQuestion(
    id="roofline.tile_sectors",
    notebook="concepts",
    asks="tile_sectors(rows, cols, row_length, elem_bytes): the number of 32-byte sectors that hold the top left tile of a row-major matrix, which begins where a sector begins",
    entry="tile_sectors",
    parts=(Part("values", 3, "calls"),),
    reference=cases.tile_sectors,
    public=(
        Call((1, 32, 4096, 4), "a row"),
        Call((32, 1, 4096, 4), "a column"),
        Call((4, 5, 100, 4), "rows that end within a sector"),
    ),
    hidden=lambda rng: [
        *(
            Call(
                (between(rng, 3, 40), between(rng, 3, 40), between(rng, 41, 300), 2 ** between(rng, 0, 3)),
                "another tile",
            )
            for _ in range(5)
        ),
        Call(
            (between(rng, 5, 9), between(rng, 4, 12), 8 * between(rng, 5, 9) + 3, 4),
            "rows that begin within a sector",
        ),
        Call((between(rng, 8, 20), 2, 3, 2), "rows that share a sector"),
        Call(
            (between(rng, 3, 9), 8 * between(rng, 1, 6), 8 * between(rng, 9, 40), 4),
            "rows that end where a sector ends",
        ),
    ],
    where='course/00_roofline/b_addresses.ipynb, "Thirty-two addresses"',
    hints=(
        "A sector is 32 bytes and begins at a multiple of 32. Which sector holds the element of row r and column c?",
        "The element's address is (r * row_length + c) * elem_bytes, and its sector is that address // 32. How many different sectors do all elements of the tile have?",
        "len({(r * row_length + c) * elem_bytes // 32 for r in range(rows) for c in range(cols)})",
    ),
    mistakes=MISTAKES,
)
