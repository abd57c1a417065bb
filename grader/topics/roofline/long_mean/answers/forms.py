"""List right answers to *long mean* in other forms."""

from grader.topics.roofline.shared_answers import anyhow

FORMS = (
anyhow("long_mean", "row =")
    | {
        "pieces of 256": ((), [('{"BLOCK": 128}', '{"BLOCK": 256}')]),
        "each piece summed at once": (
            (),
            [
                ("tl.zeros((BLOCK,), tl.float32)", "0.0"),
                (
                    "total += tl.load(x_ptr + row * N + start + offs, mask=start + offs < N, other=0.0)",
                    "total += tl.sum(tl.load(x_ptr + row * N + start + offs, mask=start + offs < N, other=0.0), axis=0)",
                ),
                ("tl.sum(total, axis=0) / N", "total / N"),
            ],
        ),
        "divided before": ((), [("tl.sum(total, axis=0) / N", "tl.sum(total / N, axis=0)")]),
    }
)
