"""List right answers to *small product* in other forms."""

from grader.topics.roofline.shared_answers import anyhow

FORMS = (
anyhow("small_product", "down =")
    | {
        "a side as large as it needs": (
            (),
            [('{"SIDE": 32}', '{"SIDE": max(16, triton.next_power_of_2(max(p.M, p.N, p.K)))}')],
        ),
        "added to zeros": ((), [("tl.dot(a, b)", "tl.dot(a, b, tl.zeros((SIDE, SIDE), tl.float32))")]),
        "B loaded turned": (
            (),
            [
                (
                    "tl.load(b_ptr + down * N + across, mask=(down < K) & (across < N), other=0.0)",
                    "tl.trans(tl.load(b_ptr + across * N + down, mask=(across < K) & (down < N), other=0.0))",
                )
            ],
        ),
    }
)
