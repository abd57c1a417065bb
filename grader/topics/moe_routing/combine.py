"""Un-permute and combine in one launch: a token fetches its rows where they lie, and adds them in the order of its picks."""

import numpy as np

from grader.questions import Case, KernelQuestion, Part, Speed, Tensor
from grader.questions.draws import ROUNDING, SMALLEST, where_finite
from grader.topics.moe_routing import budgets, cases
from grader.topics.moe_routing.cases import combined, rows
from grader.topics.moe_routing.concepts import LESSON
from grader.topics.moe_routing.mistakes_combine import COMBINE as MISTAKES
from grader.topics.moe_routing.mistakes_combine import picked
from kernels.moe_routing import reference

FP32_SUM = 2.0**-20  # of the sum of magnitudes: an fp32 sum of a few


def wanted(inputs: dict, case: Case) -> dict:
    with np.errstate(invalid="ignore"):
        return {
            "out": reference.combine_picks(
                inputs["rows"].astype(np.float64)[inputs["place"]], inputs["weights"]
            )
        }


def within(inputs: dict, case: Case, want: dict) -> dict:
    out, (held, weights) = case.dtypes.get("out", case.dtype), picked(inputs)
    with np.errstate(invalid="ignore"):
        sums = (np.abs(held) * weights).sum(1)
        allowed = FP32_SUM * sums + ROUNDING[out] * np.abs(want["out"]) + SMALLEST[out]
    return {"out": where_finite(allowed, want["out"])}


COMBINE = KernelQuestion(
    id="moe_routing.fused_combine",
    notebook="kernel",
    entry="launch_combine",
    asks="out[t] = the sum over slots of weights[t, slot] * rows[place[t, slot]], in fp32; rows that no place names are read by nobody",
    parts=(
        Part(
            "values",
            3,
            "values",
            asks="right for {public} that you can see and more that you can't: one pick a token and many, no tokens, wide rows and rows of a single number, bf16, results in fp32, an infinity, strided tensors; the same at every run",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks=f"each pick's row is loaded once, places and weights at most once for every {budgets.STRIP} columns; out is written once; no scratch, no atomics, {{launches}}",
        ),
        Part(
            "compiled",
            1,
            "compiled",
            asks="compiles for {targets} at {compiled[T]} × {compiled[H]:,}, {spills}",
        ),
        Part(
            "speed",
            2,
            "traffic",
            gpu="speed",
            asks=f"without a GPU: whole sectors of rows, at most {budgets.SUMMED} operations a number, a program at least for every {budgets.TOKENS} tokens; operations of every kind have a limit too. With one, at {{timed[T]}} × {{timed[H]:,}}: full points up to {{full}} times the time of PyTorch's gather, product and sum, none beyond {{none}} times",
        ),
    ),
    tensors=(
        Tensor("rows", "rh", lambda s: (rows(s), s["H"])),
        Tensor("place", "tk", ("T", "K"), "i32"),
        Tensor("weights", "tk", ("T", "K"), "fp32"),
        Tensor("out", "th", ("T", "H"), role="out"),
    ),
    inputs=cases.weighed_rows,
    reference=wanted,
    tolerance=within,
    public=(
        combined(6, 2, 4, 64),
        combined(5, 3, 5, 50, dtype="bf16", kind="rows that fill no block"),
        combined(
            4, 2, 4, 33, layout={"rows": "transposed", "place": "transposed"}, kind="rows column by column"
        ),
        combined(0, 2, 4, 32, kind="no tokens"),
    ),
    hidden=cases.hidden_combine,
    metered=budgets.metered_combine,
    budgets={"traffic": budgets.combine, "speed": budgets.combine_flow},
    useful=budgets.useful_combine,
    most_launches=1,
    compile_case=combined(64, 8, 64, 2048, dtype="bf16", sm_count=132),
    targets=(90, 80),
    speed=Speed(
        "gathered_and_summed",
        combined(4096, 8, 128, 2048, 64, "bf16", sm_count=132),
        full=0.25,
        none=0.5,
        bound=budgets.bound_combine,
    ),
    where=f'{LESSON}/c_kernel_and_combine.ipynb, "Un-permute and combine, without atomics"',
    hints=(
        "Who owns a number of out? One program, which then needs nobody's leave to add: from which rows?",
        "A program for a token and a strip of columns: for each slot load its place and its weight (two numbers), then the strip of that row; add weight times row in fp32; store once. With no tokens the grid still has a program, which has nothing to do.",
        "for slot in tl.static_range(PICKS): row = tl.load(place_ptr + token * stride_placet + slot * stride_placek).to(tl.int64); acc += tl.load(weights_ptr + ...) * tl.load(rows_ptr + row * stride_rowsr + offs_h * stride_rowsh, mask=mask_h, other=0.0).to(tl.float32)",
    ),
    mistakes=MISTAKES,
)
