"""List the mistakes of *fused combine*, a row each."""

from collections.abc import Callable

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.draws import rounded
from grader.questions.families import computing, dense, family, one_stride, same_strides, within_limit
from grader.questions.rows import edited
from grader.topics.moe_routing.fused_combine.cases import picked


def stored(out: np.ndarray, case: Case) -> dict:
    with np.errstate(over="ignore", invalid="ignore"):
        return {"out": rounded(out, case.dtypes.get("out", case.dtype)).astype(np.float64)}


def would(joined: Callable) -> Callable:
    """`joined(rows, topk_weights)` gives the result."""

    def wrong(inputs: dict, case: Case) -> dict:
        with np.errstate(over="ignore", invalid="ignore"):
            return stored(joined(*picked(inputs)), case)

    return wrong


def as_they_lie(inputs: dict, case: Case) -> dict:
    t, k = inputs["inv_permuted_idx"].shape
    rows = inputs["rows"].astype(np.float64)[: t * k].reshape(t, k, case.sizes["H"])
    with np.errstate(over="ignore", invalid="ignore"):
        return stored((rows * picked(inputs)[1]).sum(1), case)


def in_rows_dtype(inputs: dict, case: Case) -> dict:
    """Keep the running sum in the dtype of the rows, rounded after every pair."""
    to, total = DTYPES[case.dtype], np.zeros((case.sizes["T"], case.sizes["H"]))
    rows, topk_weights = picked(inputs)
    with np.errstate(over="ignore", invalid="ignore"):
        for slot in range(rows.shape[1]):
            total = (total + rows[:, slot] * topk_weights[:, slot]).astype(to).astype(np.float64)
    return stored(total, case)


def rows_in_fp16(inputs: dict, case: Case) -> dict:
    rows, topk_weights = picked(inputs)
    with np.errstate(over="ignore", invalid="ignore"):
        return stored((rows.astype(np.float16).astype(np.float64) * topk_weights).sum(1), case)


def weights_in_rows_dtype(inputs: dict, case: Case) -> dict:
    rows, topk_weights = picked(inputs)
    with np.errstate(over="ignore", invalid="ignore"):
        return stored((rows * rounded(topk_weights, case.dtype).astype(np.float64)).sum(1), case)


ADD = "acc += weight * y.to(tl.float32)"
AT_ROW = "inv_permuted_idx_ptr + token * stride_inv_permuted_idxt + slot * stride_inv_permuted_idxk"
ROW = f"row = tl.load(\n                {AT_ROW}\n            ).to(tl.int64)"
WEIGHT = "topk_weights_ptr + token * stride_topk_weightst + slot * stride_topk_weightsk"
AT = "        at = out_ptr"
SLOTS = "tl.static_range(TOP_K)"
BLOCK = "min(1024, triton.next_power_of_2(p.H))"
Y = "tl.load(rows_ptr + row * stride_rowsr + offs_h * stride_rowsh, mask=mask_h, other=0.0)"


MISTAKES = (
    family(
        "no weights",
        "multiply each row by its weight before you add it",
        would(lambda y, w: y.sum(1)),
        edits=((ADD, "acc += y.to(tl.float32)"),),
    ),
    family(
        "a mean",
        "this is the mean of the rows: multiply each row by its weight, and add",
        would(lambda y, w: y.mean(1)),
        edits=((ADD, "acc += y.to(tl.float32) / TOP_K"),),
    ),
    family(
        "made to add up to 1",
        "use the weights as they are: they need not add up to 1",
        would(lambda y, w: (y * w).sum(1) / w.sum(1)),
        edits=(
            (ADD, f"{ADD}\n            whole += weight"),
            ("        for slot", "        whole = 0.0\n        for slot"),
            (AT, "        acc = acc / whole\n        at = out_ptr"),
        ),
    ),
    family(
        "rows as they lie",
        "a token's rows are not next to each other: inv_permuted_idx[token, slot] is the row of each",
        as_they_lie,
        edits=((ROW, "row = (token * TOP_K + slot).to(tl.int64)"),),
    ),
    family(
        "weights of 0 left out",
        "a pair of weight 0 counts as well: 0 times infinity is NaN",
        would(lambda y, w: np.where(w != 0, y * w, 0).sum(1)),
        edits=((ADD, "acc += tl.where(weight != 0, weight * y.to(tl.float32), 0.0)"),),
    ),
    family(
        "the last pair alone",
        "this is only the last pair: add each pair to the sum so far",
        would(lambda y, w: y[:, -1] * w[:, -1]),
        edits=((ADD, "acc = weight * y.to(tl.float32)"),),
    ),
    family(
        "the first pair alone",
        "this is only the first pair: a token has K of them",
        would(lambda y, w: y[:, 0] * w[:, 0]),
        edits=((SLOTS, "tl.static_range(1)"),),
    ),
    family(
        "the first weight for all",
        "every pair has its own weight: topk_weights[token, slot]",
        would(lambda y, w: (y * w[:, :1]).sum(1)),
        edits=((WEIGHT, "topk_weights_ptr + token * stride_topk_weightst"),),
    ),
    family(
        "a sum in the rows' dtype",
        "close, but off: keep the sum in fp32 from first to last, and round it once",
        in_rows_dtype,
        edits=(
            (ADD, "acc = (acc + weight * y.to(tl.float32)).to(rows_ptr.dtype.element_ty).to(tl.float32)"),
        ),
    ),
    family(
        "weights in the rows' dtype",
        "close, but off: the weights are fp32 and lose digits if you round them to the dtype of the rows",
        weights_in_rows_dtype,
        edits=((ADD, "acc += weight.to(rows_ptr.dtype.element_ty).to(tl.float32) * y.to(tl.float32)"),),
    ),
    family(
        "rows in fp16",
        "bf16 holds numbers above 65504 and fp16 does not: what is rounded to fp16 on the way?",
        rows_in_fp16,
        edits=((ADD, "acc += weight * y.to(tl.float16).to(tl.float32)"),),
    ),
    edited("two pairs", (SLOTS, "tl.static_range(2 if TOP_K > 2 else TOP_K)")),
    edited("the next token's rows", (ROW, ROW.replace("token *", "tl.minimum(token + 1, T - 1) *"))),
    edited("no mask at the store", (", mask=mask_h)\n    ### END", ")\n    ### END")),
    edited("no token", ("max(1, p.T)", "p.T")),
    edited("a token where there is none", ("if token < T:", "if token < T + 1:")),
    edited("one strip alone", ("triton.cdiv(p.H, block))", "1)"), (BLOCK, "64")),
    edited(
        "inv_permuted_idx by the strides of topk_weights",
        (
            "token * stride_inv_permuted_idxt + slot * stride_inv_permuted_idxk",
            "token * stride_topk_weightst + slot * stride_topk_weightsk",
        ),
    ),
    edited("rows taken for dense", ("offs_h * stride_rowsh", "offs_h")),
    edited("out taken for dense", ("offs_h * stride_outh", "offs_h")),
    edited(
        "infinities cleaned away",
        (ADD, "acc += weight * tl.where(tl.abs(y.to(tl.float32)) < 1e30, y.to(tl.float32), 0.0)"),
    ),
    edited(
        "0 times infinity left out", (ADD, "acc += tl.where(weight == 0.0, 0.0, weight * y.to(tl.float32))")
    ),
    edited(
        "nonsense at the size that is compiled",
        (AT, "        if H == 2048:\n            acc = acc * 0.5\n        at = out_ptr"),
    ),
    edited("every row twice", (ADD, f"y = tl.maximum(y, {Y})\n            {ADD}"), part="traffic"),
    edited("narrow strips", (BLOCK, "64"), part="traffic"),
    edited(
        "each number ten times",
        (
            ADD,
            f"for _ in range(10):\n                y = y + 0.0 * weight.to(y.dtype)\n            {ADD}",
        ),
        part="speed",
    ),
    edited(
        "few programs",
        ("    token = tl.program_id(0)\n", ""),
        ("    if token < T:\n", "    for token in range(tl.program_id(0), T, tl.num_programs(0)):\n"),
        ("max(1, p.T)", "8"),
        part="speed",
    ),
    edited(
        "one program for most tokens",
        ("    token = tl.program_id(0)\n", ""),
        (
            "    if token < T:\n",
            "    first, rest = tl.program_id(0), tl.num_programs(0) - 1\n    end = tl.where(first == rest, T, tl.minimum(first + 1, T))\n    for token in range(first, end):\n",
        ),
        ("max(1, p.T)", "max(1, triton.cdiv(p.T, 4))"),
        part="speed",
    ),
    edited(
        "every other number",
        (
            "offs_h = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)",
            "offs_h = tl.program_id(1) + tl.num_programs(1) * tl.arange(0, BLOCK)",
        ),
        (BLOCK, "max(16, triton.next_power_of_2(p.H) // 4)"),
        part="speed",
    ),
    edited(
        "more than registers hold", (BLOCK, "32768"), ('"num_warps": 4', '"num_warps": 1'), part="compiled"
    ),
)


SHORTCUTS = {
    "rows in fp16": computing(rows_in_fp16),
    **{
        f"{name} up to {most}": within_limit(name, most)
        for name, most in (
            *(("T", most) for most in (1, 32, 128, 256)),
            *(("K", most) for most in (1, 2, 4)),
            *(("H", most) for most in (64, 128, 256, 1024, 4096)),
        )
    },
    "at least one token": lambda question, case: case.sizes["T"] == 0,
    **{
        f"stride {axis} of {name} taken for 1": one_stride(name, axis)
        for name in ("rows", "inv_permuted_idx", "topk_weights", "out")
        for axis in (0, 1)
    },
    **{
        f"{name} taken for dense": dense(name) for name in ("rows", "inv_permuted_idx", "topk_weights", "out")
    },
    "the strides of the rows for the result": same_strides("rows", "out"),
    "the strides of inv_permuted_idx for topk_weights": same_strides("inv_permuted_idx", "topk_weights"),
}
