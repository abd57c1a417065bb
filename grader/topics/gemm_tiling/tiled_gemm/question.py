"""Ask *tiled gemm*, and weigh its parts."""

from grader.questions import Case, Free, KernelQuestion, Part, Speed, Tensor, UpTo, samples
from grader.topics.gemm_tiling.shared import COMPILED, LARGE, LESSON, sizes, useful
from grader.topics.gemm_tiling.tiled_gemm import cases
from grader.topics.gemm_tiling.tiled_gemm.mistakes import MISTAKES

QUESTION = KernelQuestion(
    id="gemm_tiling.tiled_gemm",
    notebook="kernel",
    asks="C = A B in fp16 or bf16 with an fp32 accumulator, for any M, N, K and any strides, grouped for the L2",
    parts=(
        Part(
            "values",
            4,
            "values",
            asks="right for {public} that you can see and more that you can't: odd sizes, one row, one column, short K, sizes beyond 4096, operands of any strides, long sums, infinity and NaN",
        ),
        Part(
            "traffic",
            3,
            "traffic",
            asks="in {launches}, A is loaded at most ⌈N/32⌉ times, B is loaded at most ⌈M/32⌉ times, C is stored exactly once, and scratch holds no more than an unfinished tile for each multiprocessor",
        ),
        Part(
            "grouping",
            2,
            "traffic",
            asks=f"the programs of a wave share what they read: each byte of A and B counts once for each wave that reads it. All waves together read at most {cases.MARGIN} times the bytes that they would read if each wave were a square patch of C, in tiles of {cases.PATCH} × {cases.PATCH}. The grader works out these bytes from where each program stores, at {{compiled[M]}} × {{compiled[N]}} × {{compiled[K]:,}} and at drawn sizes, some of them far from square",
        ),
        Part(
            "compiled",
            2,
            "compiled",
            asks="compiles for {targets} at {compiled[M]} × {compiled[N]} × {compiled[K]:,} with {spills}, within shared memory, on tensor cores",
        ),
        Part(
            "speed",
            4,
            "traffic",
            gpu="speed",
            asks="without a GPU, the kernel loads no more than 64 × 128 tiles would. `tl.dot` computes every product, once, from operands of at most 16 bits, and there is little other arithmetic. There is a program for every 256 × 256 numbers of C, or for every second multiprocessor if that is fewer. With a GPU, the kernel reaches at least {full_speed} of cuBLAS's speed for full points, which fall to none at {none_speed}",
        ),
    ),
    tensors=(
        Tensor("a", "mk", ("M", "K")),
        Tensor("b", "kn", ("K", "N")),
        Tensor("c", "mn", ("M", "N"), role="out"),
    ),
    inputs=cases.operands,
    reference=cases.product,
    tolerance=cases.within,
    public=(
        Case(sizes(64, 64, 64)),
        Case(sizes(100, 70, 50), kind="ragged in every direction"),
        Case(sizes(64, 128, 96), "bf16"),
        Case(sizes(33, 65, 40), layout={"a": "transposed"}, kind="A transposed in memory"),
    ),
    hidden=cases.hidden_products,
    rows="M",
    # not where C is in fp16, which holds no such sums
    alike=("a", "b"),
    balanced=({"a": 1, "b": -1},),
    free={"a": Free(60_000, 1e15, "M", anywhere=False), "b": Free(60_000, 1e15, "N", anywhere=False)},
    up_to={"M": UpTo(100_000), "N": UpTo(100_000), "K": UpTo(32_768)},
    metered=cases.metered_product,
    blocks={"M": 128, "N": 256, "K": 64},
    budgets={"traffic": cases.traffic, "grouping": cases.grouping, "speed": cases.reuse},
    useful=useful,
    compile_case=COMPILED,
    sampled=samples.rows("M"),
    in_corners=samples.rows("M", "N"),
    far="MN",
    targets=(90, 80),
    instruction={90: "wgmma", 80: "mma.sync"},
    most_spills=64,
    speed=Speed("matmul", LARGE, full=1 / 0.7, none=1 / 0.35, bound=cases.bound, sampled=samples.rows("M")),
    where=f'{LESSON}/b_kernel.ipynb, "The kernel, line by line"',
    hints=(
        "Start with one program per tile and no grouping. Find the tile's row and column from tl.program_id(0), then loop along K.",
        "offs_m and offs_n say which elements the tile owns; load A and B with a mask in both directions and other=0.0; acc = tl.dot(a, b, acc) in fp32.",
        "For the grouping: first = pid // (GROUP_M * tiles_n) * GROUP_M, rows = min(tiles_m - first, GROUP_M), then row = first + pid % (GROUP_M * tiles_n) % rows and column = pid % (GROUP_M * tiles_n) // rows.",
    ),
    mistakes=MISTAKES,
)
