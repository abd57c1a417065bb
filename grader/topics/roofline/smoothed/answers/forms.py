"""List right answers to *smoothed* in other forms."""

from grader.topics.roofline.shared_answers import anyhow

FORMS = (
anyhow("smoothed", "offs =")
    | {
        "addresses that move on": (
            (),
            [
                ("    for t", "    x_ptr += offs\n    y_ptr += offs\n    for t"),
                ("x_ptr + t * M + offs", "x_ptr"),
                (
                    "y_ptr + t * M + offs, h, mask=mask)",
                    "y_ptr, h, mask=mask)\n        x_ptr += M\n        y_ptr += M",
                ),
            ],
        ),
    }
)
