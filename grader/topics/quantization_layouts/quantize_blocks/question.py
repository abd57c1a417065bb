"""Ask *quantize blocks*, and weigh its parts."""

from grader.questions import Free, KernelQuestion, Part, Speed, Tensor, UpTo, samples
from grader.topics.quantization_layouts.quantize_blocks import cases
from grader.topics.quantization_layouts.quantize_blocks.mistakes import MISTAKES
from grader.topics.quantization_layouts.shared import LESSON

QUESTION = KernelQuestion(
    id="quantization_layouts.quantize_blocks",
    notebook="kernel",
    entry="launch_blocks",
    bonus=True,
    asks="h = silu(g) * u in fp32, and its codes q in E4M3 with a scale s for each row and block of 128 columns: s = max|h| / 448, q = h / s",
    parts=(
        Part(
            "values",
            3,
            "values",
            asks="right for {public} that you can see and more that you can't: long rows, many rows, less than a block, one column beyond a block, blocks of zeros, blocks of gates down to −75, loud columns, numbers small and beyond fp16, any strides",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks="g and u are loaded once, codes and scales stored once, and h never: 5 bytes for each element and a scale for each block",
        ),
        Part(
            "flow",
            1,
            "traffic",
            gpu="speed",
            asks=f"without a GPU: whole sectors (2% more is allowed), at most {cases.WORK} operations per element, at least one program per {cases.A_PROGRAM:,} elements. With one, at {{timed[M]:,}} × {{timed[K]:,}}: full points up to {{full}} times the time of PyTorch's operations one by one, none beyond {{none}} times",
        ),
        Part(
            "compiled",
            1,
            "compiled",
            asks="compiles for {targets}, the first GPUs with E4M3, at {compiled[M]} × {compiled[K]:,} with {spills}",
        ),
    ),
    tensors=(
        Tensor("g", "mk", ("M", "K")),
        Tensor("u", "mk", ("M", "K")),
        Tensor("q", "mk", ("M", "K"), "fp8e4nv", role="out"),
        Tensor("s", "mb", lambda s: (s["M"], -(-s["K"] // cases.BLOCK)), "fp32", role="out"),
    ),
    inputs=cases.operands,
    reference=cases.quantized,
    tolerance=cases.within,
    public=(
        cases.case(4, 256),
        cases.case(3, 200, "fp16", kind="a last block that is part full"),
        cases.case(4, 256, values="blocks of zeros", kind="blocks of zeros"),
        cases.case(
            6,
            300,
            layout={"g": "padded", "u": "padded", "q": "padded", "s": "transposed"},
            values="loud columns",
            kind="loud columns, rows with gaps, scales block by block",
        ),
    ),
    hidden=cases.hidden,
    rows="M",
    in_corners=samples.rows("M"),
    far="M",
    alike=("g", "u"),
    free={"g": Free(60_000, 1e15, "M", lowest=cases.LOWEST), "u": Free(60_000, 1e15, "M")},
    up_to={"M": UpTo(100_000, 1), "K": UpTo(65_536, 1)},
    metered=cases.metered,
    blocks={"M": 16, "K": 128},
    compared=("0", "448", "-448"),
    budgets={"traffic": cases.one_pass, "flow": cases.flow},
    useful=cases.useful,
    compile_case=cases.case(64, 4096, sm_count=132),
    targets=(90,),
    speed=Speed(
        "gated_and_quantized", cases.TIMED, full=0.15, none=0.4, bound=cases.bound, sampled=samples.rows("M")
    ),
    where=f'{LESSON}/g_narrow_both.ipynb, "The kernel before the product"',
    hints=(
        "A block's maximum and its codes need the same 128 numbers. How many bytes of h does a program keep if it takes one row and one block, and where?",
        "Give a program a few rows and one block of 128 columns. Load g and u, widen both, compute h, take the maximum of |h| along the columns, and divide. A masked element must not raise the maximum, and a block of zeros must not cause a division by zero.",
        "h = g * tl.sigmoid(g) * u; top = tl.max(tl.abs(h), 1, keep_dims=True); inverse = tl.where(top > 0, 448.0 / top, 0.0); codes are (h * inverse).to(q_ptr.dtype.element_ty), the scale top / 448.0",
    ),
    mistakes=MISTAKES,
)
