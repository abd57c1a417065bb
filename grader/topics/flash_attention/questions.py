"""Attention without the score matrix: online softmax in numpy, then the forward, split-KV decoding, a window, the backward."""

from grader.questions import Case, KernelQuestion, Part, Speed, Tensor, samples
from grader.topics.flash_attention import backward, budgets, cases, concepts, wanted
from grader.topics.flash_attention import mistakes as forward
from grader.topics.flash_attention import mistakes_decode as decode
from grader.topics.flash_attention import mistakes_window as window
from grader.topics.flash_attention.cases import case, decode_case
from kernels.flash_attention import cost

LESSON = concepts.LESSON
LARGE = case(4, 32, 8, 4096, 4096, 128, "bf16", sm_count=132)
LONG_CACHE = decode_case(4, 32, 8, 32768, 128, "bf16", sm_count=132)
TRAINED = case(4, 16, 16, 2048, 2048, 64, "bf16", sm_count=132)


def bound(c: Case) -> tuple[float, float]:
    return cost.flops(budgets.shape_of(c)), cost.tiled_state_bytes(budgets.shape_of(c))


def decode_bound(c: Case) -> tuple[float, float]:
    return budgets.decode_useful(c), cost.decode_bytes(budgets.decode_of(c))


def backward_bound(c: Case) -> tuple[float, float]:
    return budgets.backward_useful(c), 2 * cost.tiled_state_bytes(budgets.shape_of(c))


QKV = (
    Tensor("q", "bhmd", ("B", "H", "M", "D")),
    Tensor("k", "bhnd", ("B", "G", "N", "D")),
    Tensor("v", "bhnd", ("B", "G", "N", "D")),
)
O = Tensor("o", "bhmd", ("B", "H", "M", "D"), role="out")


def _rows(name: str, role: str = "in") -> Tensor:
    return Tensor(name, "bhmd", ("B", "H", "M", "D"), role=role)


def _keys(name: str, role: str = "in") -> Tensor:
    return Tensor(name, "bhnd", ("B", "H", "N", "D"), role=role)


FORWARD = KernelQuestion(
    id="flash_attention.forward",
    notebook="kernel",
    asks="causal attention with grouped heads: query head h uses key head h // (H // G), query i sees keys up to i + N - M",
    parts=(
        Part(
            "values",
            5,
            "values",
            asks="right for {public} that you can see and more that you can't: odd lengths, grouped heads in a batch, a single query, more keys than queries, long rows, extreme scores, scores far below zero (below −10⁹ too), another scale, strided tensors",
        ),
        Part(
            "traffic",
            4,
            "traffic",
            asks="nothing is computed beyond the tile of the last key that a tile of rows can see; both products run in `tl.dot`; nothing is stored but the output, once",
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
            asks="without a GPU: no more loads than tiles of 64 rows would make, no operand of `tl.dot` wider than 16 bits, and a program at least for every 256 rows of a head, up to one for each multiprocessor. With one: full points from {full_speed} of PyTorch's FlashAttention-2, none below {none_speed}",
        ),
    ),
    tensors=(*QKV, O),
    inputs=cases.operands,
    reference=wanted.attended,
    tolerance=wanted.within(wanted.attended),
    public=(
        case(1, 1, 1, 64, 64, 64),
        case(1, 2, 1, 100, 100, 64, kind="a ragged length, two query heads a key head"),
        case(1, 4, 2, 40, 72, 64, "bf16", kind="more keys than queries"),
    ),
    hidden=cases.hidden_forward,
    metered=budgets.metered_forward,
    budgets={"traffic": budgets.forward, "speed": budgets.forward_reuse},
    useful=budgets.useful,
    compile_case=case(1, 8, 2, 4096, 4096, 128, "bf16", sm_count=132),
    sampled=samples.causal_rows,
    targets=(90, 80),
    instruction={90: "wgmma", 80: "mma.sync"},
    most_spills=64,
    speed=Speed("sdpa_flash", LARGE, full=1 / 0.9, none=2 / 0.9, bound=bound, sampled=samples.causal_rows),
    where=f'{LESSON}/b_kernel.ipynb, "The kernel, line by line"',
    hints=(
        "Start without the mask: one program for a tile of rows and one head; loop over tiles of keys with the three running numbers of the concepts lab.",
        "Keep m, l and acc in fp32; scores = tl.dot(q, tl.trans(k)) * scale; set masked ones to -inf before tl.max; cast p to v's dtype for the second tl.dot.",
        "alpha = tl.exp(m - m_new); l = l * alpha + tl.sum(p, 1); acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v); the loop ends at min(N, (row_tile + 1) * BLOCK_M + N - M).",
    ),
    mistakes=forward.FORWARD,
)

SPLIT_DECODE = KernelQuestion(
    id="flash_attention.split_decode",
    notebook="kernel",
    entry="launch_decode",
    asks="decoding, one query a sequence over a long cache: keys split over programs, then combined by their log-sum-exp",
    parts=(
        Part(
            "values",
            4,
            "values",
            asks="right for {public} that you can see and more that you can't: odd lengths, a single key, groups of three and of twenty heads, long caches, extreme scores, scores far below zero (below −10⁹ too), a strided cache, another scale",
        ),
        Part(
            "traffic",
            3,
            "traffic",
            asks="each byte of the cache is loaded once; at least as many programs read it as there are multiprocessors; at most {launches}",
        ),
        Part(
            "compiled",
            1,
            "compiled",
            asks="compiles for {targets} at {compiled[N]} keys of {compiled[G]} key heads of {compiled[D]}, {spills}",
        ),
        Part(
            "speed",
            2,
            "traffic",
            gpu="speed",
            asks="without a GPU: everything that moves, what the splits leave included, is within 1.3 of the cache, the queries and the outputs, and no operand of `tl.dot` is wider than 16 bits; operations of every kind have a limit too. With one, at {timed[B]} × {timed[N]:,} keys: full points up to {full} times the time of PyTorch's attention, none beyond {none} times",
        ),
    ),
    tensors=(
        Tensor("q", "bhd", ("B", "H", "D")),
        Tensor("k", "bhnd", ("B", "G", "N", "D")),
        Tensor("v", "bhnd", ("B", "G", "N", "D")),
        Tensor("o", "bhd", ("B", "H", "D"), role="out"),
    ),
    inputs=cases.decode_operands,
    reference=wanted.decoded,
    tolerance=wanted.within(wanted.decoded),
    public=(
        decode_case(1, 1, 1, 64, 64),
        decode_case(1, 4, 2, 300, 64, kind="keys that fill no block"),
        decode_case(2, 8, 2, 128, 64, "bf16"),
    ),
    hidden=cases.hidden_decode,
    metered=budgets.metered_decode,
    budgets={"traffic": budgets.decode, "speed": budgets.decode_moved},
    useful=budgets.decode_useful,
    most_launches=2,
    compile_case=decode_case(1, 8, 2, 4096, 128, "bf16", sm_count=132),
    targets=(90, 80),
    most_spills=64,
    speed=Speed(
        "sdpa_one_query", LONG_CACHE, full=1.5, none=3.0, bound=decode_bound, sampled=samples.batches
    ),
    where=f'{LESSON}/c_decode.ipynb, "Decoding: split the keys"',
    hints=(
        "Each program takes one key head and a range of keys and leaves its own maximum, sum and output in scratch; a second launch combines them.",
        "All query heads of a group go into the rows of one tile, padded to the next power of two and at least to 16, so that tl.dot takes it.",
        "combine: m = max over splits; weight_s = l_s * exp(m_s - m); o = sum(weight_s * o_s) / sum(weight_s), with o_s already divided by l_s",
    ),
    mistakes=decode.DECODE,
)

WINDOW = KernelQuestion(
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
            asks="right for {public} that you can see and more that you can't: odd lengths, other windows and caps (from 0.5 to 10¹²), more keys than queries, extreme scores, scores far below zero",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks="nothing is computed before the tile of the first key that a tile's first row sees, nor behind its last row's own, counted near 1000 queries at the end of 2000 keys, with a window near 100; no operand of `tl.dot` is wider than 16 bits; a program at least for every 256 rows of a head, up to one for each multiprocessor",
        ),
    ),
    tensors=(*QKV, O),
    inputs=cases.operands,
    reference=wanted.windowed,
    tolerance=wanted.within(wanted.windowed),
    public=(
        case(1, 1, 1, 64, 64, 64, w=16, softcap=30),
        case(1, 2, 1, 100, 100, 64, w=20, softcap=10, kind="a ragged length"),
    ),
    hidden=cases.hidden_window,
    metered=budgets.metered_window,
    budgets={"traffic": budgets.window},
    useful=budgets.useful,
    where=f'{LESSON}/c_decode.ipynb, "What else a mask can be"',
    hints=(
        "Take your forward kernel; the cap changes the scores before the mask, the window changes where the loop starts.",
        "tanh(x) = 1 - 2 / (exp(2 x) + 1) keeps fp32 accuracy and never overflows to NaN.",
        "start = max(0, first_row + N - M - W) // BLOCK_N * BLOCK_N; a key is seen where place - W <= key <= place.",
    ),
    mistakes=window.WINDOW,
)

BACKWARD = KernelQuestion(
    id="flash_attention.backward",
    notebook="kernel",
    entry="launch_backward",
    bonus=True,
    asks="dq, dk and dv of causal attention from do, with the weights computed again from q, k and the log-sum-exp",
    parts=(
        Part(
            "values",
            3,
            "values",
            asks="right for {public} that you can see and more that you can't: more keys than queries, bf16 in a batch, long rows, another scale, everything strided; dq may be added up by fp32 atomics",
        ),
        Part(
            "traffic",
            1,
            "traffic",
            asks="at most {launches}; at most seven products over the causal half and 45% for whole tiles; loads of 32 × 32 tiles, counted near 750 tokens",
        ),
        Part(
            "compiled",
            1,
            "compiled",
            asks="compiles for {targets} at {compiled[H]} heads of {compiled[M]} × {compiled[D]}, {spills}",
        ),
        Part(
            "speed",
            1,
            "traffic",
            gpu="speed",
            asks="without a GPU: no more loads than 64 × 64 tiles would make, no operand of `tl.dot` wider than 16 bits, and a program at least for every 256 keys, and every 256 rows, of a head, up to one for each multiprocessor. With one, at {timed[B]} × {timed[H]} heads of {timed[M]} × {timed[D]}: full points up to {full} times the time of PyTorch's own backward, none beyond {none} times",
        ),
    ),
    tensors=(
        _rows("q"),
        _keys("k"),
        _keys("v"),
        _rows("o"),
        _rows("do"),
        Tensor("lse", "bhm", ("B", "H", "M"), "fp32"),
        _rows("dq", "out"),
        _keys("dk", "out"),
        _keys("dv", "out"),
    ),
    inputs=cases.backward_operands,
    reference=backward.gradients,
    tolerance=backward.gradient_within,
    public=(case(1, 1, 1, 64, 64, 64), case(1, 2, 2, 70, 70, 64, kind="a ragged length")),
    hidden=cases.hidden_backward,
    metered=budgets.metered_backward,
    budgets={"traffic": budgets.backward, "speed": budgets.backward_reuse},
    useful=budgets.backward_useful,
    most_launches=4,
    compile_case=case(1, 2, 2, 512, 512, 64, "bf16", sm_count=132),
    targets=(90,),
    most_spills=4096,
    repeatable=False,
    speed=Speed("sdpa_backward", TRAINED, full=1.5, none=3.0, bound=backward_bound, sampled=samples.heads),
    where=f'{LESSON}/appendix.ipynb, "Backward: compute it again"',
    hints=(
        "delta = sum(o * do) over the head dimension, one number a row, is all that softmax's gradient needs of the output.",
        "One kernel owns a tile of keys and walks over rows for dk and dv; another owns a tile of rows and walks over keys for dq: then no two programs write the same element.",
        "p = exp(s - lse); dv += p^T do; dp = do v^T; ds = p * (dp - delta); dk += ds^T q * scale; dq += ds k * scale",
    ),
    mistakes=backward.BACKWARD,
)

QUESTIONS = (*concepts.QUESTIONS, FORWARD, SPLIT_DECODE, WINDOW, BACKWARD)
SHORTCUTS = {
    **concepts.SHORTCUTS,
    FORWARD.id: forward.FORWARD_SHORTCUTS,
    SPLIT_DECODE.id: decode.DECODE_SHORTCUTS,
    WINDOW.id: window.WINDOW_SHORTCUTS,
    BACKWARD.id: backward.BACKWARD_SHORTCUTS,
}
