"""List right answers to *turned* in other forms."""

from grader.topics.roofline.shared_answers import anyhow
from grader.topics.roofline.shared_answers import tile

FORMS = (
anyhow("turned", "offs_m =")
    | {
        "tiles of 8 by 8": (("traffic",), tile(8, 8, (32, 16))),
        "tiles of 64 by 64": ((), tile(64, 64, (32, 16))),
        "turned on the chip": (
            (),
            [
                (
                    "tl.store(y_ptr + offs_n * M + offs_m, x, mask=mask)",
                    "tl.store(y_ptr + tl.trans(offs_n) * M + tl.trans(offs_m), tl.trans(x), mask=tl.trans(mask))",
                )
            ],
        ),
    }
)
