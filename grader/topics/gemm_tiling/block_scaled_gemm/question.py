"""Ask *block scaled gemm*, and weigh its parts."""

import math

from grader.questions import Case, Free, KernelQuestion, Part, Speed, Tensor, UpTo, samples
from grader.topics.gemm_tiling.block_scaled_gemm import cases
from grader.topics.gemm_tiling.block_scaled_gemm.mistakes import MISTAKES
from grader.topics.gemm_tiling.shared import COMPILED, LARGE, LESSON, sizes, useful

QUESTION = KernelQuestion(
    id="gemm_tiling.block_scaled_gemm",
    entry="launch_block_scaled",
    notebook="kernel",
    bonus=True,
    asks="C = (A x sa)(B x sb), summed in fp32, with fp8 codes and a scale for each 1 x 128 piece of A and each 128 x 128 block of B",
    parts=(
        Part(
            "values",
            3,
            "values",
            asks="right for {public} that you can see and more that you can't: odd rows, ragged blocks of columns and of K, everything strided, long sums, scales so small or so large that fp16 does not hold their products (fp32 does), scales of many digits, codes of NaN",
        ),
        Part(
            "traffic",
            1,
            "traffic",
            asks="at sizes near 540 × 540 × 320, A is loaded at most ⌈N/64⌉ times, B is loaded at most ⌈M/32⌉ times, and C is stored once",
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
            asks="without a GPU, the kernel loads no more than 64 × 64 tiles would. `tl.dot` computes every product, once, from operands of at most 16 bits. There is a program for every 256 × 256 numbers of C, or for every second multiprocessor if that is fewer. With a GPU, at {timed[M]}³: full points up to {full} times the time of cuBLAS on codes widened to bf16, none beyond {none} times",
        ),
    ),
    tensors=(
        Tensor("a", "mk", ("M", "K"), "fp8e4nv"),
        Tensor("b", "kn", ("K", "N"), "fp8e4nv"),
        Tensor("sa", "mk", lambda s: (s["M"], math.ceil(s["K"] / cases.SCALE_BLOCK)), "fp32"),
        Tensor(
            "sb",
            "kn",
            lambda s: (math.ceil(s["K"] / cases.SCALE_BLOCK), math.ceil(s["N"] / cases.SCALE_BLOCK)),
            "fp32",
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
    rows="M",
    alone=(cases.WHOLE,),  # sums of such numbers are exact
    alike=("a", "b", "sa", "sb"),
    balanced=({"sa": 1, "sb": -1},),
    free={"a": Free(448, 448, "M"), "sa": Free(1e10, 1e10, "M"), "sb": Free(1e10, 1e10, "N")},
    up_to={"M": UpTo(70_000), "N": UpTo(70_000), "K": UpTo(32_768)},
    metered=cases.metered_scaled,
    blocks={"M": 128, "N": 128, "K": 128},
    budgets={"traffic": cases.scaled_traffic, "speed": cases.scaled_reuse},
    useful=useful,
    most_spills=2048,  # Triton 3.6 keeps fp8 operands in registers and spills 1,092 bytes of the lab's own kernel
    compile_case=COMPILED,
    sampled=samples.rows("M"),
    in_corners=samples.rows("M"),
    far="M",
    targets=(90,),
    instruction={90: "wgmma"},
    speed=Speed(
        "matmul_of_codes", LARGE, full=4.3, none=8.6, bound=cases.scaled_bound, sampled=samples.rows("M")
    ),
    where=f'{LESSON}/d_measured.ipynb, "Eight bits, safely"',
    hints=(
        "The scales change after every 128 elements along K, so take BLOCK_K = 128. Then one scale of B, and one scale for each row of A, apply to a whole tl.dot.",
        "Keep the product of one block apart from the running sum: compute part = tl.dot(a, b), scale it, then add it.",
        "acc += tl.dot(a, b) * sa[:, None] * sb, with sa of shape (BLOCK_M,) and sb a scalar where BLOCK_N divides 128.",
    ),
    mistakes=MISTAKES,
)
