"""GEMM tiling: reuse counted, traffic modelled, and a tiled kernel that moves what the model says."""

import math

from grader.questions import Case, KernelQuestion, Part, Speed, Tensor, samples
from grader.topics.gemm_tiling import budgets, cases, concepts, mistakes
from grader.topics.gemm_tiling.cases import SCALE_BLOCK, sizes
from kernels.gemm_tiling import cost

LESSON = concepts.LESSON
LARGE = Case(sizes(4096, 4096, 4096), "bf16", sm_count=132)
COMPILED = Case(sizes(4096, 4096, 1024), "bf16")  # a few programs may each own much of it


def bound(case: Case) -> tuple[float, float]:
    m, n, k = (case.sizes[s] for s in "MNK")
    return cost.flops(m, n, k), cost.compulsory_bytes(m, n, k)


def scaled_bound(case: Case) -> tuple[float, float]:
    m, n, k = (case.sizes[s] for s in "MNK")
    return cost.flops(m, n, k), cost.block_scaled_bytes(m, n, k)


TILED_GEMM = KernelQuestion(
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
            asks="A is loaded at most ⌈N/32⌉ times, B at most ⌈M/32⌉ times, C is stored exactly once, in {launches}; scratch holds no more than an unfinished tile for each multiprocessor",
        ),
        Part(
            "grouping",
            2,
            "traffic",
            asks=f"what the waves of programs read, each byte once a wave, is within {budgets.MARGIN} of what square patches of {budgets.PATCH} × {budgets.PATCH} tiles would need; at {{compiled[M]}} × {{compiled[N]}} × {{compiled[K]:,}} and at a drawn size between too, in waves of as many, by where the programs store",
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
            asks="without a GPU: no more loads than 128 × 64 tiles would make, all of the product in `tl.dot`, no operand there wider than 16 bits, next to nothing beside it, programs for every 256 × 256 numbers of C or half of the multiprocessors, no product twice. With one: at least {full_speed} of cuBLAS's speed; points fall to none at {none_speed}",
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
    metered=budgets.metered_product,
    budgets={"traffic": budgets.traffic, "grouping": budgets.grouping, "speed": budgets.reuse},
    useful=budgets.useful,
    compile_case=COMPILED,
    sampled=samples.rows("M"),
    targets=(90, 80),
    instruction={90: "wgmma", 80: "mma.sync"},
    most_spills=64,
    speed=Speed("matmul", LARGE, full=1 / 0.7, none=1 / 0.35, bound=bound, sampled=samples.rows("M")),
    where=f'{LESSON}/b_kernel.ipynb, "The kernel, line by line"',
    hints=(
        "Start with one program a tile and no grouping: find the tile's row and column from tl.program_id(0), then loop along K.",
        "offs_m and offs_n say which elements the tile owns; load A and B with a mask in both directions and other=0.0; acc = tl.dot(a, b, acc) in fp32.",
        "For the grouping: group = pid // (GROUP_M * tiles_n), rows = min(tiles_m - group * GROUP_M, GROUP_M), then row = first + pid % (GROUP_M * tiles_n) % rows and column = pid % (GROUP_M * tiles_n) // rows.",
    ),
    mistakes=mistakes.GEMM,
)

BLOCK_SCALED = KernelQuestion(
    id="gemm_tiling.block_scaled_gemm",
    entry="launch_block_scaled",
    notebook="kernel",
    bonus=True,
    asks="C = (A x sa)(B x sb) with fp8 codes, a scale for each 1 x 128 piece of A and 128 x 128 block of B, summed in fp32",
    parts=(
        Part(
            "values",
            3,
            "values",
            asks="right for {public} that you can see and more that you can't: odd rows, ragged blocks of columns and of K, everything strided, long sums, small scales and large ones, whose products fp16 does not hold, scales of many digits",
        ),
        Part(
            "traffic",
            1,
            "traffic",
            asks="A is loaded at most ⌈N/64⌉ times, B at most ⌈M/32⌉ times, at sizes near 540 × 540 × 320; C is stored once",
        ),
        Part(
            "compiled",
            1,
            "compiled",
            asks="compiles for {targets} at {compiled[M]} × {compiled[N]} × {compiled[K]:,}, within shared memory, {spills}, on tensor cores",
        ),
        Part(
            "speed",
            1,
            "traffic",
            gpu="speed",
            asks="without a GPU: no more loads than 64 × 64 tiles would make, all of the product in `tl.dot`, no operand there wider than 16 bits, programs for every 256 × 256 numbers of C or half of the multiprocessors, no product twice. With one, at {timed[M]}³: full points up to {full} times the time of cuBLAS on codes widened to bf16, none beyond {none} times",
        ),
    ),
    tensors=(
        Tensor("a", "mk", ("M", "K"), "fp8e4nv"),
        Tensor("b", "kn", ("K", "N"), "fp8e4nv"),
        Tensor("sa", "mk", lambda s: (s["M"], math.ceil(s["K"] / SCALE_BLOCK)), "fp32"),
        Tensor(
            "sb", "kn", lambda s: (math.ceil(s["K"] / SCALE_BLOCK), math.ceil(s["N"] / SCALE_BLOCK)), "fp32"
        ),
        Tensor("c", "mn", ("M", "N"), role="out"),
    ),
    inputs=cases.scaled_operands,
    reference=cases.scaled_product,
    tolerance=cases.scaled_within,
    public=(
        Case(sizes(32, 128, 256), "bf16"),
        Case(sizes(40, 70, 200), "bf16", kind="ragged in every direction"),
    ),
    hidden=cases.hidden_scaled,
    metered=budgets.metered_scaled,
    budgets={"traffic": budgets.scaled_traffic, "speed": budgets.scaled_reuse},
    useful=budgets.useful,
    most_spills=2048,  # Triton 3.6 keeps fp8 operands in registers and spills 1,092 bytes of the lab's own kernel
    compile_case=COMPILED,
    sampled=samples.rows("M"),
    targets=(90,),
    instruction={90: "wgmma"},
    speed=Speed("matmul_of_codes", LARGE, full=4.3, none=8.6, bound=scaled_bound, sampled=samples.rows("M")),
    where=f'{LESSON}/d_measured.ipynb, "Eight bits, safely"',
    hints=(
        "The scales change every 128 steps along K, so take BLOCK_K = 128: then one scale of B and one a row of A serve a whole tl.dot.",
        "Keep the product of one block apart from the running sum: part = tl.dot(a, b), then scale it, then add.",
        "acc += tl.dot(a, b) * sa[:, None] * sb, with sa of shape (BLOCK_M,) and sb a scalar where BLOCK_N divides 128.",
    ),
    mistakes=mistakes.SCALED,
)

QUESTIONS = (*concepts.QUESTIONS, TILED_GEMM, BLOCK_SCALED)
SHORTCUTS = {
    TILED_GEMM.id: mistakes.GEMM_SHORTCUTS,
    BLOCK_SCALED.id: mistakes.SCALED_SHORTCUTS,
    **concepts.SHORTCUTS,
}
