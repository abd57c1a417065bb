"""Ask *forward*, and weigh its parts."""

from grader.questions import Free, KernelQuestion, Part, Speed, UpTo, samples
from grader.questions.model import ONE_ANOTHER
from grader.topics.flash_attention.forward import cases
from grader.topics.flash_attention.forward.mistakes import MISTAKES
from grader.topics.flash_attention.shared import (
    DEEPEST,
    LESSON,
    LOWEST,
    QKV,
    TIED,
    O,
    case,
    few_pairs,
    operands,
    useful,
    within,
)

QUESTION = KernelQuestion(
    id="flash_attention.forward",
    notebook="kernel",
    asks="causal attention with grouped heads: query head h uses key head h // (H // G), query i sees keys up to i + N - M",
    parts=(
        Part(
            "values",
            5,
            "values",
            asks="right for {public} that you can see and more that you can't: odd lengths, grouped heads in a batch, a single query, more keys than queries, long rows, extreme scores, scores far below zero (below −10⁹ too), other scales (from 0.001 to 30), values up to 60,000 in fp16, a NaN in V, strided tensors",
        ),
        Part(
            "traffic",
            4,
            "traffic",
            asks="nothing is computed beyond the tile of the last key that a tile of rows can see. Both products run in `tl.dot`, and nothing is stored but the output, once",
        ),
        Part(
            "compiled",
            2,
            "compiled",
            asks="compiles for {targets} at {compiled[H]} query heads (on {compiled[G]} key heads) of {compiled[M]} × {compiled[D]}, within shared memory, {spills}, on tensor cores",
        ),
        Part(
            "speed",
            5,
            "traffic",
            gpu="speed",
            asks="without a GPU: no more loads than tiles of 64 rows would make, no operand of `tl.dot` wider than 16 bits, and at least one program for every 256 rows of a head, up to one per multiprocessor. With one: full points from {full_speed} of the speed of PyTorch's FlashAttention-2, none below {none_speed}",
        ),
    ),
    tensors=(*QKV, O),
    inputs=operands,
    reference=cases.attended,
    tolerance=within(cases.attended),
    public=(
        case(1, 1, 1, 64, 64, 64),
        case(1, 2, 1, 100, 100, 64, kind="a ragged length, two query heads a key head"),
        case(1, 4, 2, 40, 72, 64, "bf16", kind="more keys than queries"),
    ),
    hidden=cases.hidden_forward,
    rows="B",
    crossed=few_pairs(1 << 22),
    alone=(LOWEST, DEEPEST, TIED),
    any_scalar=("scale",),
    alike=("q", "k", "v"),
    balanced=({"q": 1, "k": -1}, {"v": 1}),
    free={"v": Free(30_000, 1e15, "D", anywhere=False, least=1e-4)},
    up_to={
        "B": UpTo(128),
        "H": UpTo(128),
        "G": UpTo(128),
        "M": UpTo(4096),
        "N": UpTo(8192),
        "D": (32, 64, 128),
    },
    sized=cases.sized,
    metered=cases.metered_forward,
    blocks={"M": 128, "N": 256},
    compared=(
        ONE_ANOTHER,
        "0",
        "inf",
        "-inf",
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
    ),  # by which a maximum may grow before sums are rescaled
    budgets={"traffic": cases.forward, "speed": cases.forward_reuse},
    useful=useful,
    compile_case=case(1, 8, 2, 4096, 4096, 128, "bf16", sm_count=132),
    sampled=samples.causal_rows,
    in_corners=samples.causal_rows,
    far="BHG",
    targets=(90, 80),
    instruction={90: "wgmma", 80: "mma.sync"},
    most_spills=64,
    speed=Speed(
        "sdpa_flash", cases.LARGE, full=1 / 0.9, none=2 / 0.9, bound=cases.bound, sampled=samples.causal_rows
    ),
    where=f'{LESSON}/b_kernel.ipynb, "The kernel, line by line"',
    hints=(
        "Start without the mask. Each program takes one tile of rows of one head, and loops over the tiles of keys with the three running numbers of the concepts lab.",
        "Keep m, l and acc in fp32. The scores are tl.dot(q, tl.trans(k)) * scale. Set masked scores to -inf before tl.max, and cast p to v's dtype for the second tl.dot.",
        "alpha = tl.exp(m - m_new); l = l * alpha + tl.sum(p, 1); acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v); the loop ends at min(N, (row_tile + 1) * BLOCK_M + N - M).",
    ),
    mistakes=MISTAKES,
)
