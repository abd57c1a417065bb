"""List right answers to *sum and max* in other forms."""

from grader.topics.roofline.shared_answers import anyhow

FORMS = (
anyhow("sum_and_max", "row =")
    | {
        "a block as the row needs it": ((), [('"BLOCK": 1024', '"BLOCK": triton.next_power_of_2(p.N)')]),
        "loaded for the maximum": (
            (),
            [
                ("other=0.0", 'other=float("-inf")'),
                ("tl.sum(x, axis=0)", "tl.sum(tl.where(mask, x, 0.0), axis=0)"),
                ('tl.where(mask, x, float("-inf"))', "x"),
            ],
        ),
        "the smallest of the negated": (
            (),
            [
                (
                    'tl.max(tl.where(mask, x, float("-inf")), axis=0)',
                    '-tl.min(tl.where(mask, -x, float("inf")), axis=0)',
                )
            ],
        ),
    }
)
