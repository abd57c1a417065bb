"""List the mistakes of *doubled*, a row each."""

from grader.questions.families import within_limit
from grader.topics.roofline.shared_mistakes import changed, gives, of_ladder

MISTAKES = of_ladder(
    ("y",),
    {
        "not doubled": gives(
            "this is x itself: double each element", lambda t, c: t["x"], by=[("2 * x", "x")]
        ),
        "squared": gives(
            "these are the squares of x: the question asks for 2 x",
            lambda t, c: t["x"] ** 2,
            by=[("2 * x", "x * x")],
        ),
        "every program the first block": changed(("tl.program_id(0) * BLOCK + ", "")),
        "offsets one apart": changed(("tl.program_id(0) * BLOCK", "tl.program_id(0)")),
        "one more in the exponent": changed(
            (
                "    tl.store",
                "    bits = x.to(tl.int32, bitcast=True)\n    exponent = (bits >> 23) & 255\n    tl.store",
            ),
            (
                "2 * x",
                "tl.where((exponent == 0) | (exponent == 255), x + x, (bits + (1 << 23)).to(tl.float32, bitcast=True))",
            ),
        ),
        "one program": changed(("(p.N // 64,)", "(1,)")),
        "half of each block": changed(('{"BLOCK": 64}', '{"BLOCK": 32}')),
        "shifted by one": changed(("tl.load(x_ptr + offs)", "tl.load(x_ptr + offs + 1)")),
        "stored into x": changed(("tl.store(y_ptr", "tl.store(x_ptr")),
        "x loaded twice": changed(
            ("    tl.store", "    x = (x + tl.load(x_ptr + offs, volatile=True)) / 2\n    tl.store"),
            part="traffic",
        ),
        "y stored twice": changed(
            ("    tl.store", "    tl.store(y_ptr + offs, x)\n    tl.store"), part="traffic"
        ),
    },
)


SHORTCUTS = {"N up to 256": within_limit("N", 256), "N up to 1024": within_limit("N", 1024)}
