"""Quantized layouts: codes, scales and bytes in numpy, and kernels that read a packed weight once and nothing wider."""

from grader.questions import Case, KernelQuestion, Part, Speed, Tensor, samples
from grader.topics.quantization_layouts import (
    budgets,
    cases,
    concepts,
    dispatch,
    kbit,
    mistakes,
    own_layout,
    wanted,
)
from grader.topics.quantization_layouts.cases import sizes

LESSON = concepts.LESSON
LARGE = Case(sizes(28672, 8192, 128), "bf16", sm_count=132)
FEW_ROWS = Case(sizes(28672, 8192, 128, 16), "bf16", sm_count=132)

WORDS = Tensor("w", "nk", lambda s: (s["N"], s["K"] // 8), "i32")
SCALES = Tensor("s", "ng", lambda s: (s["N"], s["K"] // s["G"]))

GEMV = KernelQuestion(
    id="quantization_layouts.w4a16_gemv",
    notebook="kernel",
    asks="y = W x for one row x of fp16 or bf16 and a packed W: w[n, k // 8] holds the code of column k in bits 4 (k % 8) to 4 (k % 8) + 3, and the weight is (code - 8) s[n, k // G]",
    parts=(
        Part(
            "values",
            4,
            "values",
            asks="right for {public} that you can see and more that you can't: each G, odd numbers of rows and of groups, a single row, a single group, more than 4096 rows, K beyond 8192, any strides, bf16 numbers beyond fp16's range, a NaN in x",
        ),
        Part(
            "traffic",
            3,
            "traffic",
            asks="every word is loaded exactly once, a scale at most twice, x at most once for every 4 rows of W, y is stored once; scratch holds at most four unfinished fp32 sums a row, in one launch or two",
        ),
        Part(
            "compiled",
            1,
            "compiled",
            asks="compiles for {targets} at {compiled[N]} × {compiled[K]} with {spills}",
        ),
        Part(
            "speed",
            3,
            "traffic",
            gpu="speed",
            asks=f"without a GPU: words in whole sectors of 32 bytes (2% more is allowed), a program at least for each multiprocessor, at most {budgets.GEMV_WORK} operations on floats a weight; operations of every kind have a limit too. With one, at {{timed[N]:,}} × {{timed[K]}}: full points from {{full_speed}} of the speed of cuBLAS on the 16-bit weight, none below {{none_speed}}",
        ),
    ),
    tensors=(WORDS, SCALES, Tensor("x", "k", ("K",)), Tensor("y", "n", ("N",), role="out")),
    inputs=cases.packed,
    reference=wanted.layer,
    tolerance=wanted.within,
    public=(
        Case(sizes(64, 256, 64)),
        Case(sizes(50, 160, 32), kind="rows and groups that fill no block"),
        Case(sizes(48, 384, 128), "bf16"),
        Case(
            sizes(33, 192, 64),
            layout={"w": "transposed", "x": "spread 3"},
            kind="words column by column, x with gaps",
        ),
    ),
    hidden=cases.hidden_gemv,
    metered=budgets.metered_gemv,
    budgets={"traffic": budgets.gemv, "speed": budgets.gemv_flow},
    useful=budgets.useful,
    most_launches=2,
    compile_case=Case(sizes(4096, 4096, 128), "bf16", sm_count=132),
    sampled=samples.rows("N"),
    targets=(90, 80),
    speed=Speed(
        "linear_in_16_bits", LARGE, full=1 / 1.3, none=2 / 1.3, bound=budgets.bound, sampled=samples.rows("N")
    ),
    where=f'{LESSON}/c_packing.ipynb, "The kernel, line by line"',
    hints=(
        "Begin with one program for 16 rows and a block of words: load a word once, and ask what each of its eight codes meets in x.",
        "Give the eight codes an axis of their own: w[:, :, None] >> (4 * tl.arange(0, 8))[None, None, :] & 15, of shape (rows, words, 8), against x as (words, 8). Sum the last axis, times the scale of the word, and add up in fp32.",
        "part = tl.sum((code - 8).to(tl.float32) * x[None, :, :], 2); acc += part * s, with s loaded at s_ptr + offs_n[:, None] * stride_sn + (word * 8 // G)[None, :] * stride_sg; at the end tl.sum(acc, 1).",
    ),
    mistakes=mistakes.GEMV,
)

GEMM = KernelQuestion(
    id="quantization_layouts.w4a16_gemm",
    notebook="kernel",
    entry="launch_gemm",
    asks="Y = X W.T for any number of rows of X and a packed W: w[n, k // 8] holds the code of column k in bits 4 (k % 8) to 4 (k % 8) + 3, and the weight is (code - z[n, k // G]) s[n, k // G], multiplied on tensor cores",
    parts=(
        Part(
            "values",
            4,
            "values",
            asks="right for {public} that you can see and more that you can't: all that the kernel for one row was tried on, one row of X and more than 128, zero points that differ from group to group",
        ),
        Part(
            "traffic",
            3,
            "traffic",
            asks="every word is loaded exactly once, scales and zero points at most twice, X at most once for every 32 rows of W, Y is stored once; scratch as above",
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
            asks=f"without a GPU: all products in `tl.dot`, at most {budgets.GEMM_WORK} operations on floats a weight beside it, words in whole sectors, a program at least for each multiprocessor, no operand of `tl.dot` wider than 16 bits; operations of every kind have a limit too. With one, at {{timed[N]:,}} × {{timed[K]}} with M = {{timed[M]}}: full points up to {{full}} times the time of cuBLAS on the 16-bit weight, none beyond {{none}} times",
        ),
    ),
    tensors=(
        WORDS,
        SCALES,
        Tensor("z", "ng", lambda s: (s["N"], s["K"] // s["G"]), "u8"),
        Tensor("x", "mk", ("M", "K")),
        Tensor("y", "mn", ("M", "N"), role="out"),
    ),
    inputs=cases.packed,
    reference=wanted.layer,
    tolerance=wanted.within,
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
    metered=budgets.metered_gemm,
    budgets={"traffic": budgets.gemm, "speed": budgets.gemm_flow},
    useful=budgets.useful,
    most_launches=2,
    compile_case=Case(sizes(4096, 4096, 128, 16), "bf16", sm_count=132),
    sampled=samples.rows("N"),
    targets=(90, 80),
    instruction={80: "mma.sync"},
    most_spills=256,
    speed=Speed(
        "linear_in_16_bits", FEW_ROWS, full=1.25, none=2.5, bound=budgets.bound, sampled=samples.rows("N")
    ),
    where=f'{LESSON}/d_which_kernel.ipynb, "Kernel families, by M"',
    hints=(
        "Tensor cores want 16-bit operands in tl.dot. Which block of your GEMV holds what they are made of, and what shape should it have?",
        "code - zero, of shape (BLOCK_N, GROUP // 8, 8), is a whole number that 16 bits hold exactly: tl.reshape makes (BLOCK_N, GROUP) of it, columns in their order. Load X as (BLOCK_M, GROUP) and multiply; the group's scales, one a row of W, meet the product, which has a column for each.",
        "number = (code - z[:, None, None]).to(x_ptr.dtype.element_ty); acc += tl.dot(x, tl.trans(tl.reshape(number, (BLOCK_N, GROUP)))) * s.to(tl.float32)[None, :], with z (as tl.int32) and s of shape (BLOCK_N,), loaded at column start // GROUP of theirs",
    ),
    mistakes=mistakes.GEMM,
)

QUESTIONS = (*concepts.QUESTIONS, GEMV, GEMM, *dispatch.QUESTIONS, *kbit.QUESTIONS, *own_layout.QUESTIONS)
SHORTCUTS = {
    **concepts.SHORTCUTS,
    **kbit.SHORTCUTS,
    **own_layout.SHORTCUTS,
    GEMV.id: mistakes.GEMV_SHORTCUTS,
    GEMM.id: mistakes.GEMM_SHORTCUTS,
}
