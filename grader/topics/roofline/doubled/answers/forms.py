"""List right answers to *doubled* in other forms."""

from grader.topics.roofline.shared_answers import anyhow

FORMS = (
anyhow("doubled", "offs =")
    | {
        "x + x": ((), [("2 * x", "x + x")]),
        "a program that walks": (
            ("traffic",),
            [
                ("y_ptr, BLOCK", "y_ptr, N, BLOCK"),
                (
                    "    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    x = tl.load(x_ptr + offs)\n    tl.store(y_ptr + offs, 2 * x)",
                    "    for start in range(0, N, BLOCK):\n        offs = start + tl.arange(0, BLOCK)\n        tl.store(y_ptr + offs, 2 * tl.load(x_ptr + offs))",
                ),
                ("(p.N // 64,)", "(1,)"),
            ],
        ),
    }
)
