"""Ask *fused combine*, and weigh its parts."""

from grader.questions import Free, KernelQuestion, Part, Speed, Steers, Tensor, UpTo, samples
from grader.topics.moe_routing.fused_combine import cases
from grader.topics.moe_routing.fused_combine.mistakes import MISTAKES
from grader.topics.moe_routing.shared import LESSON, rows

QUESTION = KernelQuestion(
    id="moe_routing.fused_combine",
    notebook="kernel",
    entry="launch_combine",
    asks="out[t] = the sum over slots of topk_weights[t, slot] * rows[inv_permuted_idx[t, slot]], in fp32. No program reads rows that inv_permuted_idx doesn't name",
    parts=(
        Part(
            "values",
            3,
            "values",
            asks="right for {public} that you can see and more that you can't: one expert per token and many, no tokens, wide rows and rows of a single number, bf16, results in fp32, infinities of both signs, strided tensors, and the same bits in every run",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks=f"each pair's row is loaded once, inv_permuted_idx and topk_weights at most once for every {cases.STRIP} columns, and out is written once, without scratch or atomics, in {{launches}}",
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
            asks=f"without a GPU: whole sectors of rows, at most {cases.SUMMED} operations per number, and at least one program for every {cases.TOKENS} tokens. Operations of every kind have a limit too. With a GPU, at {{timed[T]}} × {{timed[H]:,}}: full points up to {{full}} times the time of PyTorch's gather, product and sum, none beyond {{none}} times",
        ),
    ),
    tensors=(
        Tensor("rows", "rh", lambda s: (rows(s), s["H"])),
        Tensor("inv_permuted_idx", "tk", ("T", "K"), "i32", formerly="place"),
        Tensor("topk_weights", "tk", ("T", "K"), "fp32", formerly="weights"),
        Tensor("out", "th", ("T", "H"), role="out"),
    ),
    inputs=cases.weighed_rows,
    reference=cases.wanted,
    tolerance=cases.within,
    public=(
        cases.combined(6, 2, 4, 64),
        cases.combined(5, 3, 5, 50, dtype="bf16", kind="rows that fill no block"),
        cases.combined(
            4,
            2,
            4,
            33,
            layout={"rows": "transposed", "inv_permuted_idx": "transposed"},
            kind="rows column by column",
        ),
        cases.combined(0, 2, 4, 32, kind="no tokens"),
    ),
    hidden=cases.hidden_combine,
    in_corners=samples.rows("T"),
    alike=("rows",),  # no weight is negative
    regular={"topk_weights": "numbers"},
    regular_case=cases.many_wide_rows,
    balanced=({"rows": 1, "topk_weights": -1},),
    free={"rows": Free(20_000, 1e30, "H"), "topk_weights": Free(100, 100)},
    up_to={"T": UpTo(32_768), "K": UpTo(16), "E": UpTo(512), "TILE": (16, 64), "H": UpTo(16_384)},
    sized=cases.sized,
    metered=cases.metered_combine,
    blocks={"H": 64},
    steered=(Steers("inv_permuted_idx", ("rows",)),),
    budgets={"traffic": cases.combine, "speed": cases.combine_flow},
    useful=cases.useful_combine,
    most_launches=1,
    compile_case=cases.combined(64, 8, 64, 2048, dtype="bf16", sm_count=132),
    targets=(90, 80),
    speed=Speed(
        "gathered_and_summed",
        cases.combined(4096, 8, 128, 2048, 64, "bf16", sm_count=132),
        full=0.25,
        none=0.5,
        bound=cases.bound_combine,
    ),
    where=f'{LESSON}/c_kernel_and_combine.ipynb, "Un-permute and combine, without atomics"',
    hints=(
        "Give each element of out to exactly one program, so that no other program adds to it. Which rows does that program need a value from?",
        "Start one program for each token and strip of columns. For each slot it loads the row's number and the weight, then the strip of that row, and adds weight times row in fp32. It stores once. If there are no tokens, the grid still has one program, which does nothing.",
        "for slot in tl.static_range(TOP_K): row = tl.load(inv_permuted_idx_ptr + token * stride_inv_permuted_idxt + slot * stride_inv_permuted_idxk).to(tl.int64); acc += tl.load(topk_weights_ptr + ...) * tl.load(rows_ptr + row * stride_rowsr + offs_h * stride_rowsh, mask=mask_h, other=0.0).to(tl.float32)",
    ),
    mistakes=MISTAKES,
)
