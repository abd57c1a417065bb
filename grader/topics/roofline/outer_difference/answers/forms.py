"""List right answers to *outer difference* in other forms."""

from grader.topics.roofline.shared_answers import anyhow
from grader.topics.roofline.shared_answers import tile

FORMS = (
anyhow("outer_difference", "offs_m =")
    | {
        "tiles of 16 by 16": ((), tile(16, 16)),
        "made equally large first": (
            (),
            [
                (
                    "a[:, None] - b[None, :]",
                    "tl.broadcast_to(a[:, None], BLOCK_M, BLOCK_N) - tl.broadcast_to(b[None, :], BLOCK_M, BLOCK_N)",
                )
            ],
        ),
        "loaded as a column and a row": (
            (),
            [
                (
                    "tl.load(a_ptr + offs_m, mask=offs_m < M)",
                    "tl.load(a_ptr + offs_m[:, None], mask=offs_m[:, None] < M)",
                ),
                ("a[:, None] - b", "a - b"),
            ],
        ),
    }
)
