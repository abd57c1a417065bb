"""Ask *layernorm gelu*, and weigh its parts."""

from grader.questions import Free, KernelQuestion, Part, Speed, Tensor, UpTo, samples
from grader.topics.roofline.layernorm_gelu import cases
from grader.topics.roofline.layernorm_gelu.mistakes import MISTAKES

QUESTION = KernelQuestion(
    id="roofline.layernorm_gelu",
    notebook="kernel",
    asks="y = LayerNorm(GELU(x)) over rows, with weight w and bias b, in one launch that reads x once and writes y once",
    parts=(
        Part(
            "values",
            4,
            "values",
            asks="right for {public} that you can see and more that you can't: rows of one number and of more than 9,000, many rows, any strides, numbers far from zero, numbers that are all equal or nearly so, one large number in a row, eps up to 10,000, NaN and infinities of both signs, where GELU(-∞) is NaN because -∞ · 0 is",
        ),
        Part(
            "traffic",
            4,
            "traffic",
            asks="in {launches}, x is loaded once and y is stored once, and each row may load w and b once",
        ),
        Part(
            "compiled",
            2,
            "compiled",
            asks="compiles for sm_80 (A100), 89 (RTX 4090), 90 (H100, H200) and 100 (B200) at {compiled[M]} × {compiled[N]} with {spills}",
        ),
        Part(
            "speed",
            4,
            "traffic",
            gpu="speed",
            asks=f"without a GPU, x and y move in whole sectors, with at most 2% more bytes. Each number takes at most {cases.WORK} operations, where an erf counts as one. There is at least one program for every {cases.ROWS} rows. With a GPU, at {{timed[M]:,}} × {{timed[N]}}: full points up to {{full}} times the time of a copy of x, none beyond {{none}} times",
        ),
    ),
    tensors=(
        Tensor("x", "mn", ("M", "N")),
        Tensor("w", "n", ("N",), "fp32"),
        Tensor("b", "n", ("N",), "fp32"),
        Tensor("y", "mn", ("M", "N"), role="out"),
    ),
    inputs=cases.operands,
    reference=cases.fused,
    tolerance=cases.within,
    public=(
        cases.case(4, 64),
        cases.case(3, 100, kind="a row that fills no block"),
        cases.case(5, 96, "bf16"),
        cases.case(
            6, 40, layout={"x": "padded", "y": "transposed"}, kind="rows with gaps, y column by column"
        ),
    ),
    hidden=cases.hidden,
    rows="M",
    alone=(cases.LARGE_WEIGHT,),
    alike=("x", "w", "b"),
    balanced=({"w": 1, "b": 1},),
    free={"x": Free(60_000, 1e15, "M"), "w": Free(1e4, 1e4), "b": Free(1e4, 1e4)},
    any_scalar=("eps",),
    up_to={"M": UpTo(100_000), "N": UpTo(16_384)},
    metered=cases.metered,
    blocks={"M": 8, "N": 64},
    budgets={"traffic": cases.one_pass_traffic, "speed": cases.by_sectors},
    useful=cases.useful,
    compile_case=cases.case(512, 4096, "bf16", sm_count=132),
    sampled=samples.rows("M"),
    in_corners=samples.rows("M"),
    far="M",
    targets=(90, 80, 89, 100),
    speed=Speed("copy", cases.LARGE, full=2.9, none=5.8, bound=cases.bound, sampled=samples.rows("M")),
    where=f'{cases.LESSON}, "The kernel, line by line"',
    hints=(
        "Use one program per row. What must the program keep so that it never has to load the row twice?",
        "Load the whole row into one block (tl.arange over the next power of two, masked) and apply GELU in fp32. Then take mean and variance of the elements in that block.",
        "g = 0.5 * x * (1 + tl.erf(x * 0.70710678)); mean = tl.sum(g) / N; d = tl.where(mask, g - mean, 0.0); var = tl.sum(d * d) / N",
    ),
    mistakes=MISTAKES,
)
