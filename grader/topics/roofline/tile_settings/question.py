"""Ask *tile settings*, and weigh its parts."""

import numpy as np

from grader.questions import Part, UpTo
from grader.questions.draws import between
from grader.topics.roofline.shared import INFINITE, LESSON, MEETING, each_moved_once, halves, rung
from grader.topics.roofline.tile_settings import cases
from grader.topics.roofline.tile_settings.mistakes import MISTAKES

QUESTION = rung(
    id="roofline.tile_settings",
    asks="the grid, the tile, the warps and the stages of a given kernel, for sizes that are multiples of 256",
    reads=("a mk fp16", "b kn fp16"),
    writes=("c mn",),
    formula=lambda t, c: t["a"] @ t["b"],
    size_of_terms=lambda t, c: np.abs(t["a"]) @ np.abs(t["b"]),
    parts=(
        Part("values", 1, "values", asks="right for {public} that you can see and more that you can't"),
        Part(
            "traffic",
            1,
            "traffic",
            asks="loads A and B no more often than tiles of 128 × 256 or 256 × 128 would",
        ),
        Part(
            "compiled",
            2,
            "compiled",
            asks="compiles for {targets} (H100, H200) with {spills}, within shared memory, on tensor cores (by `wgmma`, their instruction there)",
        ),
    ),
    public=(halves(M=256, N=256, K=256),),
    hidden=lambda rng: [
        halves(M=256, N=512, K=256, kind="more columns"),
        halves(M=512, N=256, K=512, kind="more rows"),
        halves(M=768, N=256, K=256, kind="more rows than any size that is named"),
        halves(M=256, N=768, K=256, kind="more columns than any size that is named"),
        halves(M=256, N=256, K=768, kind="a longer sum than any that is named"),
        halves(M=256, N=512, K=256, values=INFINITE, kind="an infinity first, in A and in B"),
        halves(M=512, N=256, K=256, values=MEETING, kind=MEETING),
    ],
    balanced=({"a": 1, "b": -1},),
    up_to={"M": UpTo(4096, 256, 256), "N": UpTo(4096, 256, 256), "K": UpTo(1024, 256, 256)},
    metered=lambda rng: halves(
        M=256 * between(rng, 1, 2), N=512, K=256 * between(rng, 1, 2), kind="the metered size"
    ),
    a_program=("mn", 256 * 256),
    budgets={"traffic": lambda c: [*cases.large_tiles(c), *each_moved_once("c mn!")(c)]},
    compile_case=halves(M=512, N=512, K=256),
    instruction={90: "wgmma"},
    where=f'{LESSON}, "Waiting, and how to hide it"',
    hints=(
        "The budget allows the loads of 128 x 256 tiles. How many fp32 sums does such a tile have, and which threads hold them?",
        "The sums are divided among 32 * num_warps threads. Each thread has at most 255 registers and needs some of them for other things.",
        "Registers per thread for the sums: 128 * 256 / (32 * num_warps). Shared memory: num_stages * (128 + 256) * BLOCK_K * 2 bytes.",
    ),
    mistakes=MISTAKES,
)
