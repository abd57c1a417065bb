"""List right answers to *subtracted* in other forms."""

from grader.topics.roofline.shared_answers import ARANGE
from grader.topics.roofline.shared_answers import ID
from grader.topics.roofline.shared_answers import anyhow
from grader.topics.roofline.shared_answers import tile

GRID_16_32 = "(triton.cdiv(p.M, 16), triton.cdiv(p.N, 32))"


FORMS = (
anyhow("subtracted", "offs_m =")
    | {
        "a row a program": ((), tile(1, 128)),
        "a column of ids, a row of ids": (
            (),
            [
                (
                    f"{ID} * BLOCK_M + {ARANGE}BLOCK_M)[:, None]",
                    f"({ID} * BLOCK_M + {ARANGE}BLOCK_M))[:, None]",
                )
            ],
        ),
        "one axis of programs": (
            (),
            [
                (
                    "offs_m = tl.program_id(0)",
                    "across = tl.cdiv(N, BLOCK_N)\n    offs_m = tl.program_id(0) // across",
                ),
                ("tl.program_id(1)", "tl.program_id(0) % across"),
                (GRID_16_32, "(triton.cdiv(p.M, 16) * triton.cdiv(p.N, 32),)"),
            ],
        ),
    }
)
