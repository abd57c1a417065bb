"""Ask *w4a16 gemv*, and weigh its parts."""

from grader.questions import WHOLE, Case, Free, KernelQuestion, Part, Speed, Tensor, UpTo, samples
from grader.topics.quantization_layouts.shared import (
    EXACT,
    LESSON,
    NANS,
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
from grader.topics.quantization_layouts.w4a16_gemv import cases
from grader.topics.quantization_layouts.w4a16_gemv.mistakes import MISTAKES

QUESTION = KernelQuestion(
    id="quantization_layouts.w4a16_gemv",
    notebook="kernel",
    asks="y = W x for one row x of fp16 or bf16 and a packed W: w[n, k // 8] holds the code of column k in bits 4 (k % 8) to 4 (k % 8) + 3, and the weight is (code - 8) s[n, k // G]",
    parts=(
        Part(
            "values",
            4,
            "values",
            asks="right for {public} that you can see and more that you can't: each G, odd numbers of rows and of groups, a single row, a single group, more than 4096 rows, K beyond 8192, any strides, bf16 numbers beyond fp16's range, scales of both signs, a NaN in a long x",
        ),
        Part(
            "traffic",
            3,
            "traffic",
            asks="every word is loaded exactly once, a scale at most twice, x at most once for every 4 rows of W, y is stored once, and scratch holds at most four unfinished fp32 sums per row, in one launch or two",
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
            asks="without a GPU: words in whole sectors of 32 bytes (2% more is allowed), at least one program per SM, and little time per weight by these counts. With one, at {timed[N]:,} × {timed[K]}: full points from {full_speed} of the speed of cuBLAS on the 16-bit weight, none below {none_speed}",
        ),
    ),
    tensors=(WORDS, SCALE_TENSOR, Tensor("x", "k", ("K",)), Tensor("y", "n", ("N",), role="out")),
    inputs=packed,
    reference=layer,
    tolerance=within,
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
    crossed=few_weights,
    rows="N",
    alone=("large", EXACT, *NANS),  # all rows have one x, and weights as exact as each other
    alike=("s", "x"),
    balanced=({"s": 1, "x": -1}, {"s": 1}),
    free={
        "s": Free(16, 1e6, "N", anywhere=False, least=1e-6),
        "x": Free(1000, 1e6, WHOLE, anywhere=False, least=1e-6),
    },
    up_to={"N": UpTo(70_000), "K": UpTo(32_768, 32, 32), "G": (32, 64, 128)},
    sized=sized,
    metered=cases.metered_gemv,
    blocks={"N": 64, "K": 1024},
    vector=32,  # a lane may take a word of codes
    budgets={"traffic": cases.gemv, "speed": cases.gemv_flow},
    useful=useful,
    most_launches=2,
    compile_case=Case(sizes(4096, 4096, 128), "bf16", sm_count=132),
    sampled=samples.rows("N"),
    in_corners=samples.rows("N"),
    far="N",
    targets=(90, 80),
    speed=Speed(
        "linear_in_16_bits", cases.LARGE, full=1 / 1.3, none=2 / 1.3, bound=bound, sampled=samples.rows("N")
    ),
    where=f'{LESSON}/c_packing.ipynb, "The kernel, line by line"',
    hints=(
        "Begin with one program for 16 rows and a block of words. Load each word once. Which element of x does each of its eight codes multiply?",
        "Give the eight codes an axis of their own: w[:, :, None] >> (4 * tl.arange(0, 8))[None, None, :] & 15, of shape (rows, words, 8). Multiply them by x as (words, 8), sum over the last axis, multiply by the word's scale, and add up in fp32.",
        "part = tl.sum((code - 8).to(tl.float32) * x[None, :, :], 2); acc += part * s, with s loaded at s_ptr + offs_n[:, None] * stride_sn + (word * 8 // G)[None, :] * stride_sg; at the end tl.sum(acc, 1).",
    ),
    mistakes=MISTAKES,
)
