"""Ask *w4a16 gemm*, and weigh its parts."""

from grader.questions import Case, Free, KernelQuestion, Part, Speed, Tensor, UpTo, samples
from grader.topics.quantization_layouts.shared import (
    EXACT,
    LESSON,
    SCALE_TENSOR,
    WORDS,
    bound,
    few_weights,
    packed,
    sized,
    sizes,
    useful,
)
from grader.topics.quantization_layouts.shared_wanted import layer, within
from grader.topics.quantization_layouts.w4a16_gemm import cases
from grader.topics.quantization_layouts.w4a16_gemm.mistakes import MISTAKES

QUESTION = KernelQuestion(
    id="quantization_layouts.w4a16_gemm",
    notebook="kernel",
    entry="launch_gemm",
    asks="Y = X W.T for any number of rows of X and a packed W: w[n, k // 8] holds the code of column k in bits 4 (k % 8) to 4 (k % 8) + 3, and the weight is (code - z[n, k // G]) s[n, k // G], multiplied on tensor cores",
    parts=(
        Part(
            "values",
            4,
            "values",
            asks="right for {public} that you can see and more that you can't: the kinds of cases of the kernel for one row, one row of X and more than 128, zero points that differ from group to group",
        ),
        Part(
            "traffic",
            3,
            "traffic",
            asks="every word is loaded exactly once, scales and zero points at most twice, X at most once for every 32 rows of W, Y is stored once, with scratch as above",
        ),
        Part(
            "compiled",
            2,
            "compiled",
            asks="compiles for {targets} at {compiled[N]} × {compiled[K]} with M = {compiled[M]}, {spills}, on tensor cores",
        ),
        Part(
            "speed",
            3,
            "traffic",
            gpu="speed",
            asks="without a GPU: all products in `tl.dot`, little time per weight by these counts, words in whole sectors, at least one program per SM, no operand of `tl.dot` wider than 16 bits. With one, at {timed[N]:,} × {timed[K]} with M = {timed[M]}: full points up to {full} times the time of cuBLAS on the 16-bit weight, none beyond {none} times",
        ),
    ),
    tensors=(
        WORDS,
        SCALE_TENSOR,
        Tensor("z", "ng", lambda s: (s["N"], s["K"] // s["G"]), "u8"),
        Tensor("x", "mk", ("M", "K")),
        Tensor("y", "mn", ("M", "N"), role="out"),
    ),
    inputs=packed,
    reference=layer,
    tolerance=within,
    public=(
        Case(sizes(64, 256, 64, 16)),
        Case(sizes(50, 160, 32, 7), kind="ragged in every direction"),
        Case(sizes(64, 384, 128, 32), "bf16", kind="more rows of X than sixteen"),
        Case(
            sizes(33, 192, 64, 5),
            layout={"w": "transposed", "x": "transposed"},
            kind="words and X column by column",
        ),
    ),
    hidden=cases.hidden_gemm,
    rows="M",
    alone=("large", EXACT),  # their scales are of a size for their x, whose y fp16 holds, or fp32 alone
    crossed=few_weights,
    alike=("s", "z", "x"),
    balanced=({"s": 1, "x": -1}, {"s": 1}),
    free={
        "s": Free(16, 1e6, "N", anywhere=False, least=1e-6),
        "x": Free(1000, 1e6, "M", anywhere=False, least=1e-6),
    },
    up_to={"N": UpTo(70_000), "K": UpTo(32_768, 32, 32), "G": (32, 64, 128), "M": UpTo(8192)},
    sized=sized,
    metered=cases.metered_gemm,
    blocks={"M": 32, "N": 64, "K": 128},
    budgets={"traffic": cases.gemm, "speed": cases.gemm_flow},
    useful=useful,
    most_launches=2,
    compile_case=Case(sizes(4096, 4096, 128, 16), "bf16", sm_count=132),
    sampled=samples.rows("N"),
    in_corners=samples.rows("N", "M"),
    far="NM",
    targets=(90, 80),
    instruction={80: "mma.sync"},
    most_spills=256,
    speed=Speed(
        "linear_in_16_bits", cases.FEW_ROWS, full=1.25, none=2.5, bound=bound, sampled=samples.rows("N")
    ),
    where=f'{LESSON}/d_which_kernel.ipynb, "Kernel families, by M"',
    hints=(
        "For tensor cores, tl.dot needs 16-bit operands. From which block of your GEMV can you make one, and what shape should it have?",
        "code - zero, of shape (BLOCK_N, GROUP // 8, 8), is an integer that 16 bits hold exactly. tl.reshape turns it into (BLOCK_N, GROUP), with the columns in order. Load X as (BLOCK_M, GROUP) and multiply the two with tl.dot. Then multiply each column of the result by the scale of its row of W.",
        "number = (code - z[:, None, None]).to(x_ptr.dtype.element_ty); acc += tl.dot(x, tl.trans(tl.reshape(number, (BLOCK_N, GROUP)))) * s.to(tl.float32)[None, :], with z (as tl.int32) and s of shape (BLOCK_N,), both loaded at column start // GROUP",
    ),
    mistakes=MISTAKES,
)
