"""Kernels that bring rows back to their tokens, wrong."""

from grader.questions.tables import because, changed

COMBINE = "moe_routing.fused_combine"

ADD = "acc += weight * y.to(tl.float32)"
ROW = "row = tl.load(place_ptr + token * stride_placet + slot * stride_placek).to(tl.int64)"
WEIGHT = "weights_ptr + token * stride_weightst + slot * stride_weightsk"
STORED = "acc.to(out_ptr.dtype.element_ty)"
AT = "        at = out_ptr"
SLOTS = "tl.static_range(PICKS)"
BLOCK = "min(1024, triton.next_power_of_2(p.H))"
Y = "tl.load(rows_ptr + row * stride_rowsr + offs_h * stride_rowsh, mask=mask_h, other=0.0)"

WRONG = {
    COMBINE: {
        "no weights": changed((ADD, "acc += y.to(tl.float32)"), mistake="no weights"),
        "a mean": changed((ADD, "acc += y.to(tl.float32) / PICKS"), mistake="a mean"),
        "made to add up to 1": changed(
            (ADD, f"{ADD}\n            whole += weight"),
            ("        for slot", "        whole = 0.0\n        for slot"),
            (AT, "        acc = acc / whole\n        at = out_ptr"),
            mistake="made to add up to 1",
        ),
        "rows as they lie": changed(
            (ROW, "row = (token * PICKS + slot).to(tl.int64)"), mistake="rows as they lie"
        ),
        "the last pick alone": changed(
            (ADD, "acc = weight * y.to(tl.float32)"), mistake="the last pick alone"
        ),
        "the first pick alone": changed((SLOTS, "tl.static_range(1)"), mistake="the first pick alone"),
        "the first weight for all": changed(
            (WEIGHT, "weights_ptr + token * stride_weightst"), mistake="the first weight for all"
        ),
        "a sum in the rows' dtype": changed(
            (ADD, "acc = (acc + weight * y.to(tl.float32)).to(rows_ptr.dtype.element_ty).to(tl.float32)"),
            mistake="a sum in the rows' dtype",
        ),
        "weights in the rows' dtype": changed(
            (ADD, "acc += weight.to(rows_ptr.dtype.element_ty).to(tl.float32) * y.to(tl.float32)"),
            mistake="weights in the rows' dtype",
        ),
        "rows in fp16": changed((ADD, "acc += weight * y.to(tl.float16).to(tl.float32)")),
        "two picks": changed((SLOTS, "tl.static_range(2 if PICKS > 2 else PICKS)")),
        "the next token's place": changed((ROW, ROW.replace("token *", "tl.minimum(token + 1, T - 1) *"))),
        "no mask at the store": changed((", mask=mask_h)\n    ### END", ")\n    ### END")),
        "no token": changed(("max(1, p.T)", "p.T")),
        "a token where there is none": changed(("if token < T:", "if token < T + 1:")),
        "one strip alone": changed(("triton.cdiv(p.H, block))", "1)"), (BLOCK, "64")),
        "places by the weights' strides": changed(
            (
                "token * stride_placet + slot * stride_placek",
                "token * stride_weightst + slot * stride_weightsk",
            )
        ),
        "rows taken for dense": changed(("offs_h * stride_rowsh", "offs_h")),
        "out taken for dense": changed(("offs_h * stride_outh", "offs_h")),
        "infinities cleaned away": changed(
            (ADD, "acc += weight * tl.where(tl.abs(y.to(tl.float32)) < 1e30, y.to(tl.float32), 0.0)")
        ),
        "0 times infinity left out": changed(
            (ADD, "acc += tl.where(weight == 0.0, 0.0, weight * y.to(tl.float32))")
        ),
        "nonsense at the size that is compiled": changed(
            (AT, "        if H == 2048:\n            acc = acc * 0.5\n        at = out_ptr")
        ),
        "every row twice": changed((ADD, f"y = tl.maximum(y, {Y})\n            {ADD}"), part="traffic"),
        "narrow strips": changed((BLOCK, "64"), part="traffic"),
        "each number ten times": changed(
            (
                ADD,
                f"for _ in range(10):\n                y = y + 0.0 * weight.to(y.dtype)\n            {ADD}",
            ),
            part="speed",
        ),
        "few programs": changed(
            ("    token = tl.program_id(0)\n", ""),
            ("    if token < T:\n", "    for token in range(tl.program_id(0), T, tl.num_programs(0)):\n"),
            ("max(1, p.T)", "8"),
            part="speed",
        ),
        "one program for most tokens": changed(
            ("    token = tl.program_id(0)\n", ""),
            (
                "    if token < T:\n",
                "    first, rest = tl.program_id(0), tl.num_programs(0) - 1\n    end = tl.where(first == rest, T, tl.minimum(first + 1, T))\n    for token in range(first, end):\n",
            ),
            ("max(1, p.T)", "max(1, triton.cdiv(p.T, 4))"),
            part="speed",
        ),
        "every other number": changed(
            (
                "offs_h = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)",
                "offs_h = tl.program_id(1) + tl.num_programs(1) * tl.arange(0, BLOCK)",
            ),
            (BLOCK, "max(16, triton.next_power_of_2(p.H) // 4)"),
            part="speed",
        ),
        "more than registers hold": changed(
            (BLOCK, "32768"), ('"num_warps": 4', '"num_warps": 1'), part="compiled"
        ),
    },
}

EQUIVALENT = {
    COMBINE: because(
        {
            "another width of the strips": ["halved: 1024 -> 512"],
            "zeros of 16 bits become 32 with the first sum": ["function: tl.float32 -> tl.float16"],
            "a masked lane is never stored": [
                "no other: tl.load(rows_ptr + row * stride_rowsr + offs_h * stride_rowsh, mask=mask_h, other=0.0) -> tl.load(rows_ptr + row * stride_rowsr + offs_h * stride_rows",
                "plus one: 0.0 -> 1.0",
            ],
            "a second program beyond the tokens does nothing": ["plus one: 1 -> 2"],
        }
    ),
}
