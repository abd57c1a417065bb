"""Ask *grouped gemm*, and weigh its parts."""

from grader.questions import Free, KernelQuestion, Part, Speed, Steers, Tensor, UpTo
from grader.topics.moe_routing.grouped_gemm import cases
from grader.topics.moe_routing.grouped_gemm.mistakes import MISTAKES
from grader.topics.moe_routing.shared import LESSON, rooms, rows

QUESTION = KernelQuestion(
    id="moe_routing.grouped_gemm",
    notebook="kernel",
    entry="launch_gemm",
    asks="h[row, n] = SiLU(gate) * up, where gate and up are the dot products of x[sorted_token_ids[row] // K] with rows n and N + n of w[expert_ids[row // TILE]]. Rows whose pair is -1 stay as they are",
    parts=(
        Part(
            "values",
            4,
            "values",
            asks="right for {public} that you can see and more that you can't: experts without tokens at any index, one expert with all tokens, no tokens, more experts than tokens, ends that fill no block, long sums, bf16 values beyond what fp16 holds, a NaN, strided tensors",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks=f"an expert's weights are loaded once for each of its tiles, and never if it has no tokens. For every {cases.NARROW} columns, x is loaded at most once per row that has a pair, and loads for padding count too. h is written once, without scratch, in {{launches}}",
        ),
        Part(
            "compiled",
            2,
            "compiled",
            asks="compiles for {targets} at {compiled[E]} experts of {compiled[H]} × {compiled[N]}, within shared memory, {spills}, on tensor cores",
        ),
        Part(
            "speed",
            3,
            "traffic",
            gpu="speed",
            asks=f"without a GPU: all products in `tl.dot`, whole sectors of weights, and at least one program for each multiprocessor, or for every {cases.WIDE} columns of each tile if these are fewer. Operations of every kind have a limit too. With a GPU, at {{timed[T]}} tokens and {{timed[E]}} experts of {{timed[H]}} × {{timed[N]}}: full points up to {{full}} times the time of PyTorch's gather, grouped product and gate, none beyond {{none}} times",
        ),
    ),
    tensors=(
        Tensor("x", "th", ("T", "H")),
        Tensor("w", "enh", lambda s: (s["E"], 2 * s["N"], s["H"])),
        Tensor("sorted_token_ids", "r", lambda s: (rows(s),), "i32", formerly="picks"),
        Tensor("expert_ids", "i", lambda s: (rooms(s),), "i32", formerly="owner"),
        Tensor("h", "rn", lambda s: (rows(s), s["N"]), role="inout"),
    ),
    inputs=cases.products,
    reference=cases.wanted,
    tolerance=cases.within,
    public=(
        cases.with_products([5, 3, 0, 8], 2, 16, 64, 32),
        cases.with_products([0, 20, 0, 1, 2], 1, 16, 70, 50, "bf16", kind="ragged in every direction"),
        cases.with_products(
            [9, 3, 6],
            2,
            32,
            48,
            33,
            layout={"x": "transposed", "w": "transposed"},
            kind="x and weights column by column",
        ),
        cases.with_products([0, 0, 0], 1, 16, 32, 16, kind="no tokens"),
    ),
    hidden=cases.hidden_gemm,
    rows="T",
    joined=("x",),
    alike=("x", "w"),
    balanced=({"x": 1, "w": -1},),
    free={
        "x": Free(100, 1e4, "T", anywhere=False, least=1e-4),
        "w": Free(10, 1e4, "N", anywhere=False, least=1e-4),
    },
    up_to={
        "T": UpTo(16_384),
        "K": UpTo(16, 1),
        "E": UpTo(512),
        "TILE": (16, 32, 64),
        "H": UpTo(16_384),
        "N": UpTo(8192),
    },
    sized=cases.sized,
    metered=cases.metered_gemm,
    blocks={"H": 64, "N": 128},
    steered=(Steers("sorted_token_ids", whether=True), Steers("expert_ids", whether=True)),
    budgets={"traffic": cases.gemm, "speed": cases.gemm_flow},
    useful=cases.useful_gemm,
    most_launches=1,
    compile_case=cases.with_products([16, 0, 5, 40, 0, 1, 16, 2], 1, 16, 512, 256, "bf16", sm_count=132),
    targets=(90, 80),
    instruction={80: "mma.sync"},
    most_spills=256,
    speed=Speed("grouped_and_gated", cases.TIMED, full=0.75, none=1.5, bound=cases.bound_gemm),
    where=f'{LESSON}/c_kernel_and_combine.ipynb, "The kernel, line by line"',
    hints=(
        "The grid is sized for the worst routing, with one program for every tile of the capacity and every strip of columns. What must a program look up first, and in which case can it exit at once?",
        "expert = tl.load(expert_ids_ptr + tile * stride_expert_idsi); if expert >= 0: load the pairs of the tile's rows, token = pair // K; along H, multiply the same block of x by rows n and by rows N + n of the expert's weights. Apply SiLU after the loop, in fp32, and mask the store to real rows.",
        "at = w_ptr + expert.to(tl.int64) * stride_we + offs_n[None, :] * stride_wn + offs_k[:, None] * stride_wh; gate = tl.dot(x, tl.load(at, ...), gate); up = tl.dot(x, tl.load(at + N * stride_wn, ...), up); h = gate / (1 + tl.exp(-gate)) * up",
    ),
    mistakes=MISTAKES,
)
