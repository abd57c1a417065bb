"""Ask *rotary cache*, and weigh its parts."""

from grader.questions import WHOLE, Free, Gap, KernelQuestion, Part, Speed, Steers, Tensor, UpTo
from grader.topics.next_bottleneck.rotary_cache import cases
from grader.topics.next_bottleneck.rotary_cache.mistakes import MISTAKES
from grader.topics.next_bottleneck.shared import LESSON

PAGES = ("P", "G", "S", "D")

QUESTION = KernelQuestion(
    id="next_bottleneck.rotary_cache",
    notebook="capstone",
    entry="launch_rotary",
    asks="norm the heads of q and k, turn them by their position lens - 1, write q to q, and k and v into their page of the cache, in one launch",
    parts=(
        Part(
            "values",
            4,
            "values",
            asks="right for {public} that you can see and more that you can't: heads of 2 to 256 numbers, one key head and many, pages of any size, one sequence's prompt, long sequences, any strides, numbers small, large and beyond fp16, heads of zeros, eps up to 10,000, infinity, NaN and −0. The rest of the cache stays as it was",
        ),
        Part(
            "traffic",
            1,
            "traffic",
            asks="in {launches}, each head is loaded once and stored once, and may load its place, its angles and its weight once. The cache isn't read",
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
            asks="compiles for {targets} at {compiled[T]} rows of {compiled[H]} + 2 × {compiled[G]} heads of {compiled[D]} with {spills}",
        ),
        Part(
            "speed",
            2,
            "traffic",
            gpu="speed",
            asks=f"without a GPU: whole sectors (2% more is allowed), at most {cases.WORK} operations for each number of x, at least one program for every {cases.HEADS} heads of q in a row. With one, at {{timed[T]}} rows: full points up to {{full}} times the time of PyTorch's operations, none beyond {{none}} times",
        ),
    ),
    tensors=(
        Tensor("x", "tc", lambda s: (s["T"], (s["H"] + 2 * s["G"]) * s["D"])),
        Tensor("lens", "t", ("T",), "i32"),
        Tensor("table", "tl", ("T", "L"), "i32"),
        Tensor("turns", "pd", lambda s: (s["L"] * s["S"], s["D"]), "fp32"),
        Tensor("wq", "d", ("D",)),
        Tensor("wk", "d", ("D",)),
        Tensor("q", "thd", ("T", "H", "D"), role="out"),
        Tensor("k", "phsd", PAGES, role="inout"),
        Tensor("v", "phsd", PAGES, role="inout"),
    ),
    inputs=cases.operands,
    reference=cases.wanted,
    tolerance=cases.within,
    signed=("v",),
    public=(
        cases.case(3, 4, 2, 16, 4, 2),
        cases.case(4, 3, 1, 24, 5, 3, kind="heads that fill no block"),
        cases.case(5, 4, 2, 64, 16, 2, "bf16"),
        cases.case(6, 2, 1, 32, 4, 3, values="one sequence", kind="one sequence's prompt"),
    ),
    hidden=cases.hidden,
    rows="T",
    alone=("one sequence",),
    joined=("x",),
    crossed=cases.crossed,
    any_scalar=("eps",),
    alike=("x", "wq", "wk"),
    balanced=({"wq": 1}, {"wk": 1}),
    free=dict.fromkeys(("wq", "wk"), Free(1000, 1e12, WHOLE, anywhere=False, least=1e-3)),
    up_to={
        "T": UpTo(4096, 1),
        "H": UpTo(256),
        "G": UpTo(64, 1),
        "D": UpTo(512, 4, 2),
        "S": UpTo(1024),
        "L": UpTo(4096, 1),
        "P": UpTo(4098, 3),
    },
    sized=cases.sized,
    metered=cases.metered,
    blocks={"D": 16, "H": cases.HEADS},
    steered=(Steers("lens", ("table", "turns")),),
    budgets={"traffic": cases.in_and_out, "speed": cases.flow},
    useful=cases.useful,
    gap=Gap(cases.plain_spends, cases.least_spent, "plain PyTorch"),
    compile_case=cases.COMPILED,
    targets=(90, 80),
    speed=Speed("turned_and_kept", cases.TIMED, full=0.15, none=0.4, bound=cases.bound),
    where=f'{LESSON}/c_compilers.ipynb, "Reading what it wrote"',
    hints=(
        "Which heads of x does a program own, and where does each of them end up? Heads of q, k and v differ in only two things: whether they are normed and turned, and the address of their store.",
        "Take one program for each row and head. Load both halves of the head; at = lens - 1; page = table[row, at // S], and at % S is the token in the page. For q and k, divide both halves by the root of their mean square, multiply by the weight, then compute a * cos - b * sin and b * cos + a * sin.",
        "scale = tl.rsqrt((tl.sum(a * a, 0) + tl.sum(b * b, 0)) / D + eps); cos = tl.load(turns_ptr + at * stride_turnsp + offs * stride_turnsd, ...), sin HALF further; at_k = k_ptr + page * stride_kp + (head - H) * stride_kh + at % S * stride_ks + offs * stride_kd",
    ),
    mistakes=MISTAKES,
)
