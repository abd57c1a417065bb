"""Ask *window softcap*, and weigh its parts."""

from grader.questions import Free, KernelQuestion, Part, UpTo, samples
from grader.questions.model import ONE_ANOTHER
from grader.topics.flash_attention.shared import (
    LESSON,
    LOWEST,
    QKV,
    O,
    case,
    few_pairs,
    operands,
    useful,
    within,
)
from grader.topics.flash_attention.window_softcap import cases
from grader.topics.flash_attention.window_softcap.mistakes import MISTAKES

QUESTION = KernelQuestion(
    id="flash_attention.window_softcap",
    notebook="kernel",
    entry="launch_window",
    bonus=True,
    asks="causal attention where a query sees its own key and W before it, and scores pass through softcap * tanh(s / softcap)",
    parts=(
        Part(
            "values",
            3,
            "values",
            asks="right for {public} that you can see and more that you can't: odd lengths, other windows and caps (from 0.5 to 900, and 10¹² where scores are as far from 0), more keys than queries, extreme scores, scores far below zero, other scales (from 0.001 to 30), values up to 60,000 in fp16",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks="nothing is computed before the tile of the first key that a tile's first row sees, nor past the tile of its last row's own key, counted near 1000 queries at the end of 2000 keys, with a window near 100. No operand of `tl.dot` is wider than 16 bits, and there is at least one program for every 256 rows of a head, up to one per multiprocessor",
        ),
    ),
    tensors=(*QKV, O),
    inputs=operands,
    reference=cases.windowed,
    tolerance=within(cases.windowed),
    public=(
        case(1, 1, 1, 64, 64, 64, w=16, softcap=30),
        case(1, 2, 1, 100, 100, 64, w=20, softcap=10, kind="a ragged length"),
    ),
    hidden=cases.hidden_window,
    rows="B",
    crossed=few_pairs(1 << 20),
    alone=(LOWEST,),
    in_corners=samples.causal_rows,
    far="BHG",
    any_scalar=("scale",),
    alike=("q", "k", "v"),
    balanced=({"q": 1, "k": -1}, {"v": 1}),
    free={"v": Free(30_000, 1e15, "D", anywhere=False, least=1e-4)},
    up_to={
        "B": UpTo(128),
        "H": UpTo(128),
        "G": UpTo(128),
        "M": UpTo(1200),
        "N": UpTo(8192),
        "D": (32, 64),
        "W": UpTo(8191),
    },
    sized=cases.sized,
    metered=cases.metered_window,
    blocks={"M": 128, "N": 256},
    compared=(ONE_ANOTHER, "0", "inf", "-inf"),
    budgets={"traffic": cases.window},
    useful=useful,
    where=f'{LESSON}/c_decode.ipynb, "What else a mask can be"',
    hints=(
        "Take your forward kernel. The cap changes the scores before the mask, and the window changes where the loop starts.",
        "tanh(x) = 1 - 2 / (exp(2 x) + 1) keeps fp32 accuracy and never overflows to NaN.",
        "start = max(0, first_row + N - M - W) // BLOCK_N * BLOCK_N; a key is seen if place - W <= key <= place, where place is the query's own key.",
    ),
    mistakes=MISTAKES,
)
