"""Ask *residual norm*, and weigh its parts."""

from grader.questions import Free, Gap, KernelQuestion, Part, Speed, Tensor, UpTo, samples
from grader.topics.next_bottleneck.residual_norm import cases
from grader.topics.next_bottleneck.residual_norm.mistakes import MISTAKES
from grader.topics.next_bottleneck.shared import LESSON

QUESTION = KernelQuestion(
    id="next_bottleneck.residual_norm",
    notebook="capstone",
    entry="launch_norm",
    asks="r = r + x in r's own 16 bits, and y = r / sqrt(mean(r * r) + eps) * w, row by row, in one launch",
    parts=(
        Part(
            "values",
            3,
            "values",
            asks="right for {public} that you can see and more that you can't: rows of one number and of more than 9,000, many rows, any strides, numbers small, large and beyond fp16, rows of zeros, eps up to 10,000, NaN and infinities of both signs. Only r and y are written",
        ),
        Part(
            "traffic",
            1,
            "traffic",
            asks="four passes in {launches}: x and r are loaded once, r and y stored once, and each row may load w once",
        ),
        Part(
            "gap",
            2,
            "gap",
            asks="the share of the slot's gap that you close, from plain PyTorch to what must be spent: launches at 5 µs and bytes at 4.8 TB/s, counted at the metered size with and without a GPU",
        ),
        Part(
            "compiled",
            1,
            "compiled",
            asks="compiles for {targets} at {compiled[M]} × {compiled[N]:,} with {spills}",
        ),
        Part(
            "speed",
            2,
            "traffic",
            gpu="speed",
            asks=f"without a GPU: whole sectors (2% more is allowed), at most {cases.WORK} operations for each number, at least one program for every {cases.ROWS} rows. With one, at {{timed[M]}} × {{timed[N]:,}}: full points up to {{full}} times the time of PyTorch's addition and norm, none beyond {{none}} times",
        ),
    ),
    tensors=(
        Tensor("x", "mn", ("M", "N")),
        Tensor("r", "mn", ("M", "N"), role="inout"),
        Tensor("w", "n", ("N",)),
        Tensor("y", "mn", ("M", "N"), role="out"),
    ),
    inputs=cases.operands,
    reference=cases.wanted,
    tolerance=cases.within,
    public=(
        cases.case(4, 64),
        cases.case(3, 100, kind="a row that fills no block"),
        cases.case(5, 256, "bf16"),
        cases.case(
            6, 40, layout={"r": "padded", "y": "transposed"}, kind="rows with gaps, y column by column"
        ),
    ),
    hidden=cases.hidden,
    rows="M",
    alike=("x", "r", "w"),
    balanced=({"w": 1},),
    free={"x": Free(30_000, 1e15, "M"), "r": Free(30_000, 1e15, "M"), "w": Free(30_000, 1e15)},
    in_corners=samples.rows("M"),
    far="M",
    any_scalar=("eps",),
    up_to={"M": UpTo(100_000), "N": UpTo(16_384)},
    metered=cases.metered,
    blocks={"M": 4, "N": 64},
    budgets={"traffic": cases.four_passes, "speed": cases.by_sectors},
    useful=cases.useful,
    gap=Gap(cases.plain_spends, cases.least_spent, "plain PyTorch"),
    compile_case=cases.case(64, 4096, "bf16", sm_count=132),
    targets=(90, 80),
    speed=Speed("added_and_normed", cases.TIMED, full=0.55, none=1.1, bound=cases.bound),
    where=f'{LESSON}/c_compilers.ipynb, "Reading what it wrote"',
    hints=(
        "Which elements does the norm read that the addition has just computed? They are still in registers, so do you have to load them from memory?",
        "Take one program per row. Load the rows of x and r, add them in fp32, round the sum to r's dtype, store it, and take the norm of the rounded elements in fp32, from the same block.",
        "s = (x.to(tl.float32) + r.to(tl.float32)).to(r_ptr.dtype.element_ty); tl.store(at_r, s, mask=mask); wide = s.to(tl.float32); y = wide * tl.rsqrt(tl.sum(wide * wide, 0) / N + eps) * w",
    ),
    mistakes=MISTAKES,
)
