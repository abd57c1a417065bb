"""Codebooks of two to five bits in bit planes: one weight for any number of rows, and one for each expert."""

from grader.questions import Case, KernelQuestion, Part, Tensor, samples
from grader.topics.quantization_layouts import budgets_kbit as budgets
from grader.topics.quantization_layouts import cases_kbit as cases
from grader.topics.quantization_layouts import mistakes_kbit as mistakes
from grader.topics.quantization_layouts import wanted
from grader.topics.quantization_layouts.cases_kbit import sizes, to_experts
from grader.topics.quantization_layouts.wanted import BLOCK

LESSON = "course/02_quantization_layouts"
LEVELS = Tensor("c", "l", lambda s: (2 ** s["BITS"],))
X, Y = Tensor("x", "mk", ("M", "K")), Tensor("y", "mn", ("M", "N"), role="out")
SHOWN = (
    Case(sizes(4, 64, 256, 16)),
    Case(sizes(3, 50, 160, 7), kind="ragged in every direction"),
    Case(sizes(2, 48, 512, 1), "bf16", kind="a single row of X"),
)
TURNED = {"w": "transposed", "x": "transposed"}

KBIT = KernelQuestion(
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
            asks="every word of every plane is loaded exactly once, a scale at most twice, X at most once for every 32 rows of W, Y is stored once; scratch holds at most four unfinished fp32 sums a number, in one launch or two",
        ),
        Part(
            "flow",
            1,
            "traffic",
            asks=f"all products in `tl.dot`, at most {budgets.OPERATIONS} operations on floats a weight beside it, planes in whole sectors (2% more is allowed), a program at least for each multiprocessor; operations of every kind have a limit too, and no operand of `tl.dot` is wider than 16 bits",
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
    inputs=cases.planes,
    reference=wanted.layer,
    tolerance=wanted.within,
    public=(
        *SHOWN,
        Case(sizes(5, 33, 192, 20), layout=TURNED, kind="words and X column by column"),
    ),
    hidden=cases.hidden_kbit,
    metered=budgets.metered_kbit,
    budgets={"traffic": budgets.traffic, "flow": budgets.flow},
    useful=budgets.useful,
    most_launches=2,
    compile_case=Case(sizes(4, 4096, 4096, 16), "bf16", sm_count=132),
    sampled=samples.rows("N"),
    targets=(90, 80),
    instruction={80: "mma.sync"},
    most_spills=256,
    where=f'{LESSON}/b_codes.ipynb, "Error against bits, and codebooks"',
    hints=(
        "Your W4A16 GEMM has a block of codes, (BLOCK_N, WORDS, 8). What shape has it where a word holds 32 columns, and how do bits of BITS words become one code?",
        "Begin with zeros of (BLOCK_N, WORDS, 32) in int32. For each plane b load its words, shift them by the column, & 1, and OR that, shifted up by b, into the code. Then tl.load the level at c_ptr + code * stride_cl.",
        "for b in tl.static_range(BITS): plane = tl.load(at_w + b * stride_wb, mask=mask, other=0); code |= ((plane[:, :, None] >> tl.arange(0, 32)[None, None, :]) & 1) << b",
    ),
    mistakes=mistakes.KBIT,
)

EXPERTS = KernelQuestion(
    id="quantization_layouts.grouped_kbit",
    notebook="kernel",
    entry="launch_experts",
    bonus=True,
    asks="Y = X W.T where rows r[e] to r[e + 1] - 1 of X and Y belong to expert e and its weight w[e], of BITS bits in planes, with scales s[e] and one codebook for all experts",
    parts=(
        Part(
            "values",
            3,
            "values",
            asks="right for {public} that you can see and more that you can't: experts without rows first, last and between others, one with all rows, fewer rows than experts, more than 128 rows for one, forty experts, a single one, and what section 8 was tried on",
        ),
        Part(
            "traffic",
            1,
            "traffic",
            asks=f"the words of an expert with rows are loaded once for every {budgets.TILE} rows that it has, or less often, those of one without rows never; its scales at most twice as often; X, Y and scratch as in section 8",
        ),
        Part(
            "flow",
            1,
            "traffic",
            asks=f"as in section 8, with {budgets.OPERATIONS} operations for each weight that is loaded",
        ),
        Part(
            "compiled",
            1,
            "compiled",
            asks="compiles for {targets} at {compiled[E]} experts of {compiled[N]} × {compiled[K]} with {compiled[BITS]} bits, {spills}, on tensor cores",
        ),
    ),
    tensors=(
        Tensor("w", "ebnk", lambda s: (s["E"], s["BITS"], s["N"], s["K"] // BLOCK), "i32"),
        Tensor("s", "eng", lambda s: (s["E"], s["N"], s["K"] // BLOCK)),
        LEVELS,
        Tensor("r", "e", lambda s: (s["E"] + 1,), "i32"),
        X,
        Y,
    ),
    inputs=cases.planes,
    reference=wanted.layer,
    tolerance=wanted.within,
    public=(
        to_experts(4, 32, 256, [5, 3, 8]),
        to_experts(3, 40, 160, [0, 7, 0, 2], kind="experts without rows"),
        to_experts(2, 48, 512, [20, 1], "bf16", kind="more rows than sixteen for one expert"),
        to_experts(5, 33, 96, [4, 0, 6], layout=TURNED, kind="words and X column by column"),
    ),
    hidden=cases.hidden_experts,
    metered=budgets.metered_experts,
    budgets={"traffic": budgets.traffic, "flow": budgets.flow},
    useful=budgets.useful,
    most_launches=2,
    compile_case=to_experts(4, 256, 512, [16, 0, 5, 40, 0, 1, 16, 2], "bf16", sm_count=132),
    targets=(90, 80),
    instruction={80: "mma.sync"},
    most_spills=256,
    where=f'{LESSON}/d_which_kernel.ipynb, "Kernel families, by M"',
    hints=(
        "launch_experts(p) is not told which rows are whose: r is data. Which programs can you start so that every expert's rows are owned, whatever r holds?",
        "A program for each expert and each tile of rows of W: it loads r[e] and r[e + 1] and walks over the rows between them, sixteen at a time. An expert without rows then loads nothing more.",
        "first, last = tl.load(r_ptr + e * stride_re), tl.load(r_ptr + (e + 1) * stride_re); for top in range(first, last, BLOCK_M): offs_m = top + tl.arange(0, BLOCK_M); mask_m = offs_m < last; then your k-bit GEMM with w_ptr + e * stride_we and s_ptr + e * stride_se",
    ),
    mistakes=mistakes.EXPERTS,
)

QUESTIONS = (KBIT, EXPERTS)
SHORTCUTS = {KBIT.id: mistakes.KBIT_SHORTCUTS, EXPERTS.id: mistakes.EXPERTS_SHORTCUTS}
