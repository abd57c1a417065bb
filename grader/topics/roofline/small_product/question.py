"""Ask *small product*, and weigh its parts."""

import numpy as np

from grader.questions import Free, UpTo
from grader.questions.draws import between
from grader.topics.roofline.shared import INFINITE, MEETING, OF_ZEROS, each_moved_once, halves, rung
from grader.topics.roofline.small_product import cases
from grader.topics.roofline.small_product.mistakes import MISTAKES

QUESTION = rung(
    id="roofline.small_product",
    asks="C = A B with fp16 operands and fp32 sums, for M, N and K of at most 32, in one tl.dot",
    reads=("a mk fp16", "b kn fp16"),
    writes=("c mn",),
    formula=lambda t, c: t["a"] @ t["b"],
    size_of_terms=lambda t, c: np.abs(t["a"]) @ np.abs(t["b"]),
    public=(
        halves(M=16, N=16, K=16),
        halves(M=3, N=5, K=6, kind="sides far below 16"),
        halves(M=20, N=32, K=17, kind="sides beyond 16"),
    ),
    hidden=lambda rng: [
        halves(M=between(rng, 17, 31), N=between(rng, 3, 15), K=between(rng, 18, 31), kind="other sides"),
        halves(M=1, N=32, K=32, kind="a single row"),
        halves(M=between(rng, 2, 15), N=1, K=between(rng, 2, 15), kind="a single column"),
        halves(M=32, N=32, K=1, kind="K of one"),
        *(
            halves(
                M=between(rng, 2, 15), N=between(rng, 17, 31), K=between(rng, 2, 31), values=values, kind=kind
            )
            for values, kind in (
                ("far from zero", "numbers far from zero"),
                (INFINITE, "an infinity first, in A and in B"),
                (OF_ZEROS, "zeros that meet an infinity"),
                (MEETING, MEETING),
            )
        ),
    ],
    rows="M",
    alike=("a", "b"),
    balanced=({"a": 1, "b": -1},),
    free={"a": Free(60_000, 1e15, "M"), "b": Free(60_000, 1e15, "N")},
    up_to=dict.fromkeys("MNK", UpTo(32)),
    metered=lambda rng: halves(
        M=between(rng, 26, 31), N=between(rng, 26, 31), K=between(rng, 26, 31), kind="the metered size"
    ),
    blocks={"M": 32, "N": 32, "K": 32},
    budgets={"traffic": lambda c: [*cases.in_dots(c), *each_moved_once("c mn!")(c)]},
    where="course/01_gemm_tiling/b_kernel.ipynb",
    hints=(
        "tl.dot takes blocks, and a matrix of 5 x 9 doesn't fill a block. Which value should the block's other elements have?",
        "Make every side a power of two of at least 16. Mask the loads with other=0.0, because zeros add nothing, and mask the store by M and N.",
        "a = tl.load(a_ptr + offs[:, None] * K + offs[None, :], mask=(offs[:, None] < M) & (offs[None, :] < K), other=0.0), with 32 for every side",
    ),
    mistakes=MISTAKES,
)
