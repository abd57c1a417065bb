"""Ask *kbit gemm*, and weigh its parts."""

from grader.questions import Case, Free, KernelQuestion, Part, Steers, Tensor, UpTo, samples
from grader.topics.quantization_layouts.kbit_gemm import cases
from grader.topics.quantization_layouts.kbit_gemm.mistakes import MISTAKES
from grader.topics.quantization_layouts.shared import EXACT, LESSON, few_weights
from grader.topics.quantization_layouts.shared_kbit import (
    BITS,
    LEVELS,
    OPERATIONS,
    SHOWN,
    TURNED,
    X,
    Y,
    flow,
    long_rows,
    planes,
    sizes,
    traffic,
    useful,
)
from grader.topics.quantization_layouts.shared_wanted import BLOCK, layer, within

QUESTION = KernelQuestion(
    id="quantization_layouts.kbit_gemm",
    notebook="kernel",
    entry="launch_kbit",
    bonus=True,
    asks="Y = X W.T for any number of rows of X and a W of BITS bits: bit j of w[b, n, i] is bit b of the code of column 32 i + j, and the weight is c[code] s[n, k // 32]",
    parts=(
        Part(
            "values",
            3,
            "values",
            asks="right for {public} that you can see and more that you can't: each number of bits, odd numbers of rows and of words, a single row of X, of W, a single word, more than 128 rows of X, more than 4096 of W, K beyond 8192, any strides, bf16 numbers beyond fp16's range, a NaN in X",
        ),
        Part(
            "traffic",
            1,
            "traffic",
            asks="every word of every plane is loaded exactly once, a scale at most twice, X at most once for every 32 rows of W, Y is stored once, and scratch holds at most four unfinished fp32 sums per element of Y, in one launch or two",
        ),
        Part(
            "flow",
            1,
            "traffic",
            asks=f"all products in `tl.dot`, at most {OPERATIONS} other float operations per weight, planes in whole sectors (2% more is allowed), at least one program per SM. Operations of every kind have a limit too, and no operand of `tl.dot` is wider than 16 bits",
        ),
        Part(
            "compiled",
            1,
            "compiled",
            asks="compiles for {targets} at {compiled[N]} × {compiled[K]} with {compiled[BITS]} bits and M = {compiled[M]}, {spills}, on tensor cores",
        ),
    ),
    tensors=(
        Tensor("w", "bnk", lambda s: (s["BITS"], s["N"], s["K"] // BLOCK), "i32"),
        Tensor("s", "ng", lambda s: (s["N"], s["K"] // BLOCK)),
        LEVELS,
        X,
        Y,
    ),
    inputs=planes,
    reference=layer,
    tolerance=within,
    public=(
        *SHOWN,
        Case(sizes(5, 33, 192, 20), layout=TURNED, kind="words and X column by column"),
    ),
    hidden=cases.hidden_kbit,
    rows="M",
    alone=(EXACT,),  # its scales are of a size for its x, whose y only fp32 holds
    crossed=few_weights,
    alike=("s", "c", "x"),
    regular_case=long_rows,
    balanced=({"s": 1, "x": -1}, {"c": 1, "x": -1}, {"s": 1}),
    free={
        "s": Free(16, 1e6, "N", anywhere=False, least=1e-6),
        "x": Free(1000, 1e6, "M", anywhere=False, least=1e-6),
    },
    up_to={"BITS": BITS, "N": UpTo(32_768), "K": UpTo(16_384, 32, 32), "M": UpTo(8192)},
    metered=cases.metered_kbit,
    blocks={"M": 32, "N": 64, "K": 128},
    steered=(Steers("w", ("c",)),),
    vector=32,  # a lane may take a word of codes
    budgets={"traffic": traffic, "flow": flow},
    useful=useful,
    most_launches=2,
    compile_case=Case(sizes(4, 4096, 4096, 16), "bf16", sm_count=132),
    sampled=samples.rows("N"),
    in_corners=samples.rows("N", "M"),
    far="NM",
    targets=(90, 80),
    instruction={80: "mma.sync"},
    most_spills=256,
    where=f'{LESSON}/b_codes.ipynb, "Error against bits, and codebooks"',
    hints=(
        "Your W4A16 GEMM has a block of codes, (BLOCK_N, WORDS, 8). What is its shape if a word holds 32 columns, and how do the bits of BITS words become one code?",
        "Begin with zeros of (BLOCK_N, WORDS, 32) in int32. For each plane b load its words, shift them by the column, & 1, and OR that, shifted up by b, into the code. Then tl.load the level at c_ptr + code * stride_cl.",
        "for b in tl.static_range(BITS): plane = tl.load(at_w + b * stride_wb, mask=mask, other=0); code |= ((plane[:, :, None] >> tl.arange(0, 32)[None, None, :]) & 1) << b",
    ),
    mistakes=MISTAKES,
)
