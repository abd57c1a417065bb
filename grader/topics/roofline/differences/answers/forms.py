"""List right answers to *differences* in other forms."""

from grader.topics.roofline.shared_answers import anyhow

BLOCKS_64 = [("(triton.cdiv(p.N, 64),)", "(triton.cdiv(p.N, 256),)"), ('{"BLOCK": 64}', '{"BLOCK": 256}')]


FORMS = (
anyhow("differences", "offs =")
    | {
        "blocks of 256": ((), BLOCKS_64),
        "an address that never leaves": (
            (),
            [
                (
                    "tl.load(x_ptr + offs - 1, mask=(offs > 0) & mask, other=0.0)",
                    "tl.where(offs > 0, tl.load(x_ptr + tl.maximum(offs - 1, 0), mask=mask), 0.0)",
                )
            ],
        ),
    }
)
