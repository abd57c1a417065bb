"""Gate and up of all experts in one launch: a tile of rows knows its expert, and nobody asks how many tiles there are."""

import numpy as np

from grader.questions import Case, KernelQuestion, Part, Speed, Tensor
from grader.questions.draws import ROUNDING, SMALLEST, where_finite
from grader.topics.moe_routing import budgets, cases
from grader.topics.moe_routing.cases import rooms, rows, with_products
from grader.topics.moe_routing.concepts import LESSON
from grader.topics.moe_routing.mistakes_gemm import GEMM as MISTAKES
from grader.topics.moe_routing.mistakes_gemm import gated, products
from kernels.moe_routing import reference

FP32_SUM = 2.0**-16  # of the sum of magnitudes: an fp32 sum in any order
CUT_OFF = 2.0**-27  # of the same a term: a tensor core cuts off where fp32 rounds; an H200 lost 5e-9
STEEPEST = 1.1  # how much SiLU changes at most where its argument does
FUNCTIONS = 2.0**-18  # of h: an exponential, a division and two products in fp32


def wanted(inputs: dict, case: Case) -> dict:
    """Each real row through gate and up of its tile's expert; all other rows of h as they were."""
    found, gate, up = products(inputs, case)
    h = inputs["h"].astype(np.float64)
    h[found] = gated(gate, up)
    return {"h": h}


def within(inputs: dict, case: Case, want: dict) -> dict:
    """One rounding of h, and what errors of two fp32 sums make of it."""
    found, gate, up = products(inputs, case)
    size = {name: np.abs(inputs[name].astype(np.float64)) for name in "xw"}
    _, of_gate, of_up = products(inputs | size, case)
    out, allowed = case.dtypes.get("h", case.dtype), np.zeros(want["h"].shape)
    with np.errstate(invalid="ignore", over="ignore"):
        off = FP32_SUM + CUT_OFF * case.sizes["H"]
        off_gate, off_up = off * of_gate, off * of_up
        sums = STEEPEST * off_gate * (np.abs(up) + off_up) + np.abs(reference.silu(gate)) * off_up
        allowed[found] = sums + (ROUNDING[out] + FUNCTIONS) * np.abs(want["h"][found]) + SMALLEST[out]
    return {"h": where_finite(allowed, want["h"])}


TIMED = with_products([64] * 64, 4, 64, 2048, 768, "bf16", sm_count=132)
GEMM = KernelQuestion(
    id="moe_routing.grouped_gemm",
    notebook="kernel",
    entry="launch_gemm",
    asks="h[row] = SiLU(gate) * up for the token x[picks[row] // K], where gate and up are its products with rows n and N + n of w[owner[row // TILE]]; rows whose pick is -1 stay as they are",
    parts=(
        Part(
            "values",
            4,
            "values",
            asks="right for {public} that you can see and more that you can't: experts without tokens anywhere, one with all of them, no tokens, more experts than tokens, ends that fill no block, long sums, bf16 beyond what fp16 holds, a NaN, strided tensors",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks=f"an expert's weights are loaded once for each of its tiles, those of an expert without tokens never; x at most once for every {budgets.NARROW} columns, by the rows that have a pick, and what is loaded for padding counts too; h is written once; no scratch, {{launches}}",
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
            asks="without a GPU: all products in `tl.dot`, whole sectors of weights, a program at least for each multiprocessor; operations of every kind have a limit too. With one, at {timed[T]} tokens and {timed[E]} experts of {timed[H]} × {timed[N]}: full points up to {full} times the time of PyTorch's gather, grouped product and gate, none beyond {none} times",
        ),
    ),
    tensors=(
        Tensor("x", "th", ("T", "H")),
        Tensor("w", "enh", lambda s: (s["E"], 2 * s["N"], s["H"])),
        Tensor("picks", "r", lambda s: (rows(s),), "i32"),
        Tensor("owner", "i", lambda s: (rooms(s),), "i32"),
        Tensor("h", "rn", lambda s: (rows(s), s["N"]), role="inout"),
    ),
    inputs=cases.products,
    reference=wanted,
    tolerance=within,
    public=(
        with_products([5, 3, 0, 8], 2, 16, 64, 32),
        with_products([0, 20, 0, 1, 2], 1, 16, 70, 50, "bf16", kind="ragged in every direction"),
        with_products(
            [9, 3, 6],
            2,
            32,
            48,
            33,
            layout={"x": "transposed", "w": "transposed"},
            kind="x and weights column by column",
        ),
        with_products([0, 0, 0], 1, 16, 32, 16, kind="no tokens"),
    ),
    hidden=cases.hidden_gemm,
    metered=budgets.metered_gemm,
    budgets={"traffic": budgets.gemm, "speed": budgets.gemm_flow},
    useful=budgets.useful_gemm,
    most_launches=1,
    compile_case=with_products([16, 0, 5, 40, 0, 1, 16, 2], 1, 16, 512, 256, "bf16", sm_count=132),
    targets=(90, 80),
    instruction={80: "mma.sync"},
    most_spills=256,
    speed=Speed("grouped_and_gated", TIMED, full=0.75, none=1.5, bound=budgets.bound_gemm),
    where=f'{LESSON}/c_kernel_and_combine.ipynb, "The kernel, line by line"',
    hints=(
        "The grid is for the worst routing: every tile there is room for, times the strips of columns. What does a program look up before anything else, and when is it done at once?",
        "expert = tl.load(owner_ptr + tile * stride_owneri); if expert >= 0: the rows of the tile, their picks, token = pick // K; then along H two products of the same block of x, with rows n and N + n of the expert's weight. SiLU after the loop, in fp32, and a store masked to real rows.",
        "at = w_ptr + expert.to(tl.int64) * stride_we + offs_n[None, :] * stride_wn + offs_k[:, None] * stride_wh; gate = tl.dot(x, tl.load(at, ...), gate); up = tl.dot(x, tl.load(at + N * stride_wn, ...), up); h = gate / (1 + tl.exp(-gate)) * up",
    ),
    mistakes=MISTAKES,
)
