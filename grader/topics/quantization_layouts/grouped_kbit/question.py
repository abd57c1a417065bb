"""Ask *grouped kbit*, and weigh its parts."""

from grader.questions import Free, KernelQuestion, Part, Steers, Tensor, UpTo, samples
from grader.topics.quantization_layouts.grouped_kbit import cases
from grader.topics.quantization_layouts.grouped_kbit.mistakes import MISTAKES
from grader.topics.quantization_layouts.shared import LESSON
from grader.topics.quantization_layouts.shared_kbit import (
    BITS,
    LEVELS,
    OPERATIONS,
    TILE,
    TURNED,
    X,
    Y,
    flow,
    planes,
    traffic,
    useful,
)
from grader.topics.quantization_layouts.shared_wanted import BLOCK, layer, within

QUESTION = KernelQuestion(
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
            asks="right for {public} that you can see and more that you can't: experts without rows at the beginning, at the end and between others, one expert with all rows, fewer rows than experts, more than 128 rows for one expert, forty experts, a single expert, and the kinds of cases of section 8",
        ),
        Part(
            "traffic",
            1,
            "traffic",
            asks=f"the words of an expert are loaded at most once for every {TILE} rows of the expert, and never if it has no rows. Its scales are loaded at most twice as often. X, Y and scratch as in section 8",
        ),
        Part(
            "flow",
            1,
            "traffic",
            asks=f"as in section 8, with {OPERATIONS} operations for each weight that is loaded",
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
    inputs=planes,
    reference=layer,
    tolerance=within,
    public=(
        cases.to_experts(4, 32, 256, [5, 3, 8]),
        cases.to_experts(3, 40, 160, [0, 7, 0, 2], kind="experts without rows"),
        cases.to_experts(2, 48, 512, [20, 1], "bf16", kind="more rows than sixteen for one expert"),
        cases.to_experts(5, 33, 96, [4, 0, 6], layout=TURNED, kind="words and X column by column"),
    ),
    hidden=cases.hidden_experts,
    in_corners=samples.rows("N"),
    far="N",
    alike=("s", "c", "x"),
    balanced=({"s": 1, "x": -1}, {"c": 1, "x": -1}, {"s": 1}),
    free={
        "s": Free(16, 1e6, "N", anywhere=False, least=1e-6),
        "x": Free(1000, 1e6, "M", anywhere=False, least=1e-6),
    },
    up_to={"BITS": BITS, "N": UpTo(32_768), "K": UpTo(16_384, 32, 32), "M": UpTo(4096), "E": UpTo(512)},
    sized=cases.sized,
    metered=cases.metered_experts,
    blocks={"M": 32, "N": 64, "K": 128},
    vector=32,  # a lane may take a word of codes
    steered=(Steers("r", whether=True), Steers("w", ("c",))),
    budgets={"traffic": traffic, "flow": flow},
    useful=useful,
    most_launches=2,
    compile_case=cases.to_experts(4, 256, 512, [16, 0, 5, 40, 0, 1, 16, 2], "bf16", sm_count=132),
    targets=(90, 80),
    instruction={80: "mma.sync"},
    most_spills=256,
    where=f'{LESSON}/d_which_kernel.ipynb, "Kernel families, by M"',
    hints=(
        "launch_experts(p) doesn't know which rows belong to which expert, because r is data. Which grid gives every expert's rows an owner, whatever r holds?",
        "Start one program for each expert and each tile of rows of W. It loads r[e] and r[e + 1] and walks over the rows between them, sixteen at a time. For an expert without rows it then loads nothing more.",
        "first, last = tl.load(r_ptr + e * stride_re), tl.load(r_ptr + (e + 1) * stride_re); for top in range(first, last, BLOCK_M): offs_m = top + tl.arange(0, BLOCK_M); mask_m = offs_m < last; then your k-bit GEMM with w_ptr + e * stride_we and s_ptr + e * stride_se",
    ),
    mistakes=MISTAKES,
)
